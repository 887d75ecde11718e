//! The only source of atomics: the standard library's normally, loom's under the model checker.
//!
//! Every atomic of `kcas` and of `filter` is named through this module, so that a model built with
//! `--cfg kcas_loom` sees each access, as does a test that stops threads ([`steps`](crate::steps)).
//! It also hides what else differs between these builds: how a static and a thread-local are
//! declared, and how a value made on first use is kept ([`OnFirstUse`]).

#[cfg(kcas_loom)]
pub use loom::sync::atomic::Ordering;
#[cfg(any(kcas_loom, feature = "__steps"))]
pub use observed::AtomicU64;
#[cfg(not(any(kcas_loom, feature = "__steps")))]
pub use std::sync::atomic::AtomicU64;
#[cfg(not(kcas_loom))]
pub use std::sync::atomic::Ordering;

use once_cell::race::OnceBox;

use crate::steps::Access;

/// Announces an access that is about to be made, to an observer of [`steps`](crate::steps).
#[inline(always)]
fn announce<T>(place: &T, access: Access) {
    crate::steps::access(access, std::ptr::from_ref(place).addr());
}

/// An atomic that does something before each access: a [step](crate::steps) with the feature
/// `steps`, and the following under loom.
///
/// Loom (0.7.2) decides which executions to explore from the *last* access to an atomic alone. When
/// a thread loads an atomic and then writes it, its own load hides an earlier load by another
/// thread, and the execution in which the write comes first is never explored (loom's issues 166
/// and 392). Every compare-and-swap loop begins like this. So every access here is preceded by a
/// relaxed read-modify-write of a companion, which loom takes to be dependent on every other one:
/// no order of accesses is left out. It orders nothing and publishes nothing, so loads may return
/// the same values as without it. `kcas/testing/tests/loom` shows what would be missed.
#[cfg(any(kcas_loom, feature = "__steps"))]
mod observed {
    #[cfg(kcas_loom)]
    use loom::sync::atomic;
    #[cfg(not(kcas_loom))]
    use std::sync::atomic;

    use atomic::Ordering;

    use crate::steps::{Access, Event, failed, report};

    /// A 64-bit atomic with those operations of the standard one that are used here.
    #[derive(Debug, Default)]
    pub struct AtomicU64 {
        value: atomic::AtomicU64,
        #[cfg(kcas_loom)]
        companion: atomic::AtomicBool,
        #[cfg(kcas_loom)]
        first: u64,
    }

    impl AtomicU64 {
        /// Makes an atomic that holds `value`.
        #[cfg(kcas_loom)]
        pub fn new(value: u64) -> Self {
            AtomicU64 {
                value: atomic::AtomicU64::new(value),
                companion: atomic::AtomicBool::new(false),
                first: value,
            }
        }

        /// Makes an atomic that holds `value`.
        #[cfg(not(kcas_loom))]
        pub const fn new(value: u64) -> Self {
            AtomicU64 {
                value: atomic::AtomicU64::new(value),
            }
        }

        fn before(&self, access: Access) -> &atomic::AtomicU64 {
            #[cfg(kcas_loom)]
            self.companion.swap(false, Ordering::Relaxed);
            super::announce(&self.value, access);
            &self.value
        }

        /// Returns the current value, or an older one that `order` still allows.
        pub fn load(&self, order: Ordering) -> u64 {
            self.before(Access::Load).load(order)
        }

        /// Replaces the value.
        #[track_caller]
        pub fn store(&self, value: u64, order: Ordering) {
            self.before(Access::Store).store(value, order);
            report(|| Event::Store(self, value));
        }

        /// Returns its value, without a step; in models, the one that it was made with.
        #[doc(hidden)]
        pub fn peek(&self) -> u64 {
            #[cfg(kcas_loom)]
            return self.first;
            #[cfg(not(kcas_loom))]
            self.value.load(Ordering::Relaxed)
        }

        /// Replaces the value by its bitwise and with `value`; returns the old value.
        pub fn fetch_and(&self, value: u64, order: Ordering) -> u64 {
            self.before(Access::Exchange).fetch_and(value, order)
        }

        /// Replaces the value by its bitwise or with `value`; returns the old value.
        pub fn fetch_or(&self, value: u64, order: Ordering) -> u64 {
            self.before(Access::Exchange).fetch_or(value, order)
        }

        /// Replaces the value by `value`; returns the old value.
        pub fn swap(&self, value: u64, order: Ordering) -> u64 {
            self.before(Access::Exchange).swap(value, order)
        }

        /// Adds `value`, wrapping; returns the old value.
        pub fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
            self.before(Access::Exchange).fetch_add(value, order)
        }

        /// Subtracts `value`, wrapping; returns the old value.
        pub fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
            self.before(Access::Exchange).fetch_sub(value, order)
        }

        /// Replaces the value by `new` if it is `current`; returns the old value.
        #[track_caller]
        pub fn compare_exchange(
            &self,
            current: u64,
            new: u64,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u64, u64> {
            let result = self
                .before(Access::Exchange)
                .compare_exchange(current, new, success, failure);
            if result.is_err() {
                failed();
            }
            report(|| Event::Exchange(self, current, new, result));
            result
        }
    }
}

/// Returns `len` zeros, or `None` when the allocator refuses the memory.
///
/// The memory comes zeroed from the system, which supplies a large piece page by page on first
/// write: a table that is never filled takes only the pages that were written.
#[cfg(not(any(kcas_loom, feature = "__steps")))]
pub fn zeros(len: usize) -> Option<Box<[AtomicU64]>> {
    bytemuck::try_zeroed_slice_box(len).ok()
}

/// Returns `len` zeros, or `None` when the allocator refuses the memory.
#[cfg(any(kcas_loom, feature = "__steps"))]
pub fn zeros(len: usize) -> Option<Box<[AtomicU64]>> {
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(len).ok()?;
    zeros.resize_with(len, || AtomicU64::new(0));
    Some(zeros.into_boxed_slice())
}

/// A value made on first use, without a lock: racing makers each build one, the first to publish
/// its value wins, and the others drop theirs.
///
/// Under loom the value is made at once, so that no publication is hidden from the model.
#[derive(Debug)]
pub struct OnFirstUse<T, A = ()> {
    made: OnceBox<T>,
    make: fn(A) -> T,
    of: A,
}

impl<T, A: Copy> OnFirstUse<T, A> {
    /// Makes a place for the value that `make` builds from this argument.
    #[cfg(not(kcas_loom))]
    pub const fn new(make: fn(A) -> T, of: A) -> Self {
        OnFirstUse {
            made: OnceBox::new(),
            make,
            of,
        }
    }

    /// Makes the value that `make` builds from this argument.
    #[cfg(kcas_loom)]
    pub fn new(make: fn(A) -> T, of: A) -> Self {
        OnFirstUse {
            made: OnceBox::with_value(Box::new(make(of))),
            make,
            of,
        }
    }

    /// Returns the value, if it has been made. Wait-free: one load.
    pub fn get(&self) -> Option<&T> {
        announce(self, Access::Load);
        self.made.get()
    }

    /// Returns the value; the first caller makes it. Wait-free, except for the allocator on first
    /// use.
    pub fn get_or_make(&self) -> &T {
        announce(self, Access::Load);
        self.made.get_or_init(|| Box::new((self.make)(self.of)))
    }
}

/// A value that is set once, by the first of several threads that try, without a lock.
#[derive(Debug)]
pub(crate) struct SetOnce<T> {
    // In models it is set before threads share it: see `Pieces`.
    value: OnceBox<T>,
}

impl<T> SetOnce<T> {
    pub(crate) const fn new() -> Self {
        SetOnce {
            value: OnceBox::new(),
        }
    }

    /// Returns the value, if it has been set. Wait-free: one load.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        announce(self, Access::Load);
        self.value.get()
    }

    /// Sets the value, unless that has been done.
    pub(crate) fn set(&self, value: T) {
        announce(self, Access::Exchange);
        let _ = self.value.set(Box::new(value));
    }
}

/// Declares a static that holds atomics, or an array of atomics that are all made alike: an
/// ordinary one normally, one made again for each execution under loom.
macro_rules! shared_static {
    ($(#[$meta:meta])* static $name:ident: $type:ty = $value:expr;) => {
        #[cfg(not(kcas_loom))]
        $(#[$meta])*
        static $name: $type = $value;

        #[cfg(kcas_loom)]
        loom::lazy_static! {
            $(#[$meta])*
            static ref $name: $type = $value;
        }
    };
    ($(#[$meta:meta])* static $name:ident: [$type:ty; $len:expr] = each $element:expr;) => {
        #[cfg(not(kcas_loom))]
        $(#[$meta])*
        static $name: [$type; $len] = [const { $element }; $len];

        #[cfg(kcas_loom)]
        loom::lazy_static! {
            $(#[$meta])*
            static ref $name: [$type; $len] = std::array::from_fn(|_| $element);
        }
    };
}
pub(crate) use shared_static;

/// Declares a thread-local: the standard library's, or loom's under loom.
macro_rules! thread_static {
    ($(#[$meta:meta])* static $name:ident: $type:ty = $value:expr;) => {
        #[cfg(not(kcas_loom))]
        std::thread_local! {
            $(#[$meta])*
            static $name: $type = const { $value };
        }

        #[cfg(kcas_loom)]
        loom::thread_local! {
            $(#[$meta])*
            static $name: $type = $value;
        }
    };
}
pub(crate) use thread_static;
