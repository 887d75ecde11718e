//! Subjects that leave methods to what they are made of.

/// Passes methods of [`Subject`](crate::Subject) on to a field that has them, be it another subject
/// or not: `delegate! { self.0: insert contains remove slots memory_bytes }`.
#[macro_export]
macro_rules! delegate {
    (self.$inner:tt: $($method:ident)+) => {
        $($crate::delegate! { @$method $inner })+
    };
    (@insert $inner:tt) => {
        #[inline]
        fn insert<K: ::std::hash::Hash + ?Sized>(&self, key: &K) -> bool {
            self.$inner.insert(key)
        }
    };
    (@contains $inner:tt) => {
        #[inline(always)]
        fn contains<K: ::std::hash::Hash + ?Sized>(&self, key: &K) -> bool {
            self.$inner.contains(key)
        }
    };
    (@remove $inner:tt) => {
        #[inline]
        fn remove<K: ::std::hash::Hash + ?Sized>(&self, key: &K) -> bool {
            self.$inner.remove(key)
        }
    };
    (@class $inner:tt) => {
        fn class<K: ::std::hash::Hash + ?Sized>(&self, key: &K) -> Option<$crate::Class> {
            self.$inner.class(key)
        }
    };
    (@slots $inner:tt) => {
        fn slots(&self) -> usize {
            self.$inner.slots()
        }
    };
    (@memory_bytes $inner:tt) => {
        fn memory_bytes(&self) -> usize {
            self.$inner.memory_bytes()
        }
    };
}
