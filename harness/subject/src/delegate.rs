//! Subjects that delegate methods to a field.

/// Delegates methods of [`Subject`](crate::Subject) to a field that has them, be it a subject or not: `delegate! {
/// self.0: insert contains remove memory_bytes }`. `try_insert` and `try_remove` serve filters whose calls return a
/// `Result`, and `slots` and `capacity` those that know their slots. `with_buckets` makes the only field.
#[macro_export]
macro_rules! delegate {
    (self.$inner:tt: $($method:ident)+) => {
        $($crate::delegate! { @$method $inner })+
    };
    (@with_buckets $inner:tt) => {
        fn with_buckets(buckets: usize) -> $crate::Result<Self> {
            $crate::Subject::with_buckets(buckets).map(|made| Self { $inner: made })
        }
    };
    (@try_insert $inner:tt) => {
        #[inline]
        fn insert<K: ::std::hash::Hash + ?Sized>(&self, key: &K) -> bool {
            self.$inner.insert(key).is_ok()
        }
    };
    (@try_remove $inner:tt) => {
        #[inline]
        fn remove<K: ::std::hash::Hash + ?Sized>(&self, key: &K) -> bool {
            self.$inner.remove(key).unwrap()
        }
    };
    (@contains $inner:tt) => {
        #[inline(always)]
        fn contains<K: ::std::hash::Hash + ?Sized>(&self, key: &K) -> bool {
            self.$inner.contains(key)
        }
    };
    (@class $inner:tt) => {
        fn class<K: ::std::hash::Hash + ?Sized>(&self, key: &K) -> Option<$crate::Class> {
            self.$inner.class(key).into()
        }
    };
    (@insert_if_absent $inner:tt) => {
        fn insert_if_absent<K: ::std::hash::Hash + ?Sized>(
            &self,
            key: &K,
        ) -> Result<bool, $crate::InsertError> {
            self.$inner.insert_if_absent(key)
        }
    };
    (@count $inner:tt) => {
        fn count<K: ::std::hash::Hash + ?Sized>(&self, key: &K) -> u64 {
            self.$inner.count(key) as u64
        }
    };
    (@slots $inner:tt) => {
        fn slots(&self, _: usize) -> usize {
            self.$inner.slots()
        }
    };
    (@capacity $inner:tt) => {
        fn slots(&self, _: usize) -> usize {
            self.$inner.capacity()
        }
    };
    (@memory_bytes $inner:tt) => {
        fn memory_bytes(&self) -> usize {
            self.$inner.memory_bytes()
        }
    };
    // `insert` and `remove`.
    (@$method:ident $inner:tt) => {
        #[inline]
        fn $method<K: ::std::hash::Hash + ?Sized>(&self, key: &K) -> bool {
            self.$inner.$method(key)
        }
    };
}
