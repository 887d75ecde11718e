//! One word and its content: a value, or the address of a descriptor on the heap. All unsafe code
//! is here.
//!
//! ```text
//! bit  63   62 … 4          3..0
//!      0    ── value, 63 bits ──
//!      1    address         0     owned by a K-CAS
//!      1    address         1     an installation in progress (DCSS)
//! ```

use std::ptr;
use std::sync::Arc;

use arrayvec::ArrayVec;
use crossbeam_epoch::Guard;
use kcas::WordArray;
use kcas::engines::Entries;
use kcas::sync::{AtomicU64, Ordering};

const TAG: u64 = 1 << 63;
const INSTALL: u64 = 1;

/// Returns true if a word holds a value and no operation is under way on it.
#[inline]
pub(crate) fn is_value(raw: u64) -> bool {
    raw & TAG == 0
}

#[derive(Debug, Default)]
pub(crate) struct Word(AtomicU64);

/// The content of a word. A thread that reads it may use it while its guard lives.
#[derive(Clone, Copy)]
pub(crate) enum Content<'g> {
    /// No operation is under way here.
    Value(u64),
    /// Owned by this K-CAS until it is decided and released.
    Kcas(&'g Kcas),
    /// A thread is installing a K-CAS here, if it is still undecided.
    Install(&'g Install),
}

/// A K-CAS. The low bits of its address are free for the kind of the tag.
#[repr(align(16))]
pub(crate) struct Kcas {
    /// The [`State`](crate::commit::State), as a number.
    pub(crate) status: AtomicU64,
    pub(crate) entries: Entries,
    /// Its owner's installation in the word of each entry. Each is put into a word once at most.
    installations: ArrayVec<Install, { WordArray::MAX_ENTRIES }>,
}

/// An installation of a K-CAS in one word, by one thread: a part of the K-CAS if that is its own, otherwise an object.
#[repr(align(16))]
pub(crate) struct Install {
    target: *const Kcas,
    /// The value that it replaces.
    pub(crate) expected: u64,
    /// Keeps the target alive as long as the installation, unless its maker is the target's owner,
    /// who keeps it alive anyway.
    _kept: Option<Arc<Kcas>>,
}

impl Word {
    /// Returns the raw content of the word: its value, or a number of 2^63 or more.
    #[inline]
    pub(crate) fn load_raw(&self) -> u64 {
        // SeqCst, as all accesses here: see the docs of `kcas`, "Orderings".
        self.0.load(Ordering::SeqCst)
    }

    /// Exchanges values. An error holds the raw content of the word.
    #[inline]
    pub(crate) fn compare_exchange_values(&self, current: u64, new: u64) -> Result<u64, u64> {
        self.0
            .compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst)
    }

    pub(crate) fn load<'g>(&self, guard: &'g Guard) -> Content<'g> {
        Content::decode(self.load_raw(), guard)
    }

    pub(crate) fn compare_exchange<'g>(
        &self,
        current: Content<'g>,
        new: Content<'g>,
        guard: &'g Guard,
    ) -> Result<(), Content<'g>> {
        match self.compare_exchange_values(current.raw(), new.raw()) {
            Ok(_) => Ok(()),
            Err(raw) => Err(Content::decode(raw, guard)),
        }
    }
}

impl<'g> Content<'g> {
    /// Decodes what was read from a word under this guard.
    fn decode(raw: u64, _: &'g Guard) -> Self {
        let address = (raw & !(TAG | INSTALL)) as usize;
        if is_value(raw) {
            Content::Value(raw)
        } else if raw & INSTALL == 0 {
            // SAFETY: `raw` says that a `Kcas` is at this address: only the `raw()` of one is ever
            // put into a word. It stood in a word while this thread was pinned, so its owner had
            // not released it (`Kcas::retire`) when the thread was pinned, and it stays alive as
            // long as the guard. It was written before its address was put into the word (SeqCst),
            // and since then only its status, an atomic, is written.
            Content::Kcas(unsafe { &*ptr::with_exposed_provenance(address) })
        } else {
            // SAFETY: as above, with `Install`, which is never written.
            Content::Install(unsafe { &*ptr::with_exposed_provenance(address) })
        }
    }

    fn raw(self) -> u64 {
        let tag = |address: usize| {
            let address = address as u64;
            // An address of user space, aligned.
            debug_assert_eq!(address & (TAG | INSTALL), 0);
            address | TAG
        };
        match self {
            Content::Value(value) => value,
            Content::Kcas(kcas) => tag(address(kcas)),
            Content::Install(install) => tag(address(install)) | INSTALL,
        }
    }
}

/// Returns the address of a descriptor, for its tag and for the thread that frees it.
fn address<T>(descriptor: &T) -> usize {
    ptr::from_ref(descriptor).expose_provenance()
}

impl Kcas {
    /// Creates an operation that lives as long as its guard, or until it is retired.
    pub(crate) fn new(status: u64, entries: Entries, _: &Guard) -> &Kcas {
        let installation = |expected| Install {
            target: ptr::null(),
            expected,
            _kept: None,
        };
        let installations = entries.iter().map(|entry| installation(entry.expected));
        #[expect(
            clippy::arc_with_non_send_sync,
            reason = "others get it by its address, from a word"
        )]
        let mut new = Arc::new(Kcas {
            status: AtomicU64::new(status),
            installations: installations.collect(),
            entries,
        });
        let target = Arc::as_ptr(&new);
        let only = Arc::get_mut(&mut new).expect("nobody else has it yet");
        let all = only.installations.iter_mut();
        all.for_each(|installation| installation.target = target);
        let at = Arc::into_raw(new);
        at.expose_provenance();
        // SAFETY: it was just made, and whoever releases it (`retire`) guarantees that it is no
        // longer used.
        unsafe { &*at }
    }

    /// Returns its owner's installation for an entry.
    pub(crate) fn installation(&self, entry: usize) -> &Install {
        &self.installations[entry]
    }

    pub(crate) fn is(&self, other: &Kcas) -> bool {
        ptr::eq(self, other)
    }

    /// Releases the operation once all threads that are pinned now no longer are. Installations of
    /// it by helpers keep it alive longer.
    ///
    /// # Safety
    ///
    /// It comes from [`Kcas::new`], and the caller is its owner and calls this for the first time.
    /// No word holds it, and none ever will; nor does any hold an installation of it by its owner.
    pub(crate) unsafe fn retire(&self, guard: &Guard) {
        let address = address(self);
        guard.defer(move || {
            let at: *const Kcas = ptr::with_exposed_provenance(address);
            // SAFETY: it was made by `Arc::into_raw`, and this count is given back once. Whoever
            // found it in a word, or in an installation by its owner, was pinned before it left
            // there, and no longer is.
            drop(unsafe { Arc::from_raw(at) });
        });
    }

    /// Keeps the operation alive, for a helper that found it in a word.
    fn keep(&self, _: &Guard) -> Arc<Kcas> {
        let at: *const Kcas = ptr::with_exposed_provenance(address(self));
        // SAFETY: it was made by `Arc::into_raw`, and its owner's count is not given back while the
        // guard lives.
        unsafe {
            Arc::increment_strong_count(at);
            Arc::from_raw(at)
        }
    }
}

impl Install {
    /// Creates a helper's installation, which lives as long as its guard, or until it is retired or freed.
    pub(crate) fn new<'g>(target: &'g Kcas, expected: u64, guard: &'g Guard) -> &'g Install {
        let at = Box::into_raw(Box::new(Install {
            target: ptr::from_ref(target),
            expected,
            _kept: Some(target.keep(guard)),
        }));
        at.expose_provenance();
        // SAFETY: it was just made, and whoever frees it (`retire`, `free`) guarantees that it is
        // no longer used.
        unsafe { &*at }
    }

    /// Returns the operation that it installs.
    pub(crate) fn target<'g>(&'g self, _: &'g Guard) -> &'g Kcas {
        // SAFETY: a helper's installation keeps its target alive until it is freed itself. An
        // owner's installation has left its word before the owner releases the target, and the
        // current thread found the installation in the word (or made it) while pinned.
        unsafe { &*self.target }
    }

    /// Frees the installation once all threads that are pinned now no longer are.
    ///
    /// # Safety
    ///
    /// It comes from [`Install::new`] and was neither retired nor freed before. No word holds it,
    /// and none ever will.
    pub(crate) unsafe fn retire(&self, guard: &Guard) {
        let address = address(self);
        // SAFETY: it is not freed elsewhere, and whoever found it in a word was pinned before it
        // left.
        guard.defer(move || unsafe { Install::free(address) });
    }

    /// Frees an installation at once.
    ///
    /// # Safety
    ///
    /// It comes from [`Install::new`], was not freed before, and nobody uses it any more. (By its
    /// address: a reference must stay valid until the call that was given it ends.)
    pub(crate) unsafe fn free(address: usize) {
        let at: *mut Install = ptr::with_exposed_provenance_mut(address);
        // SAFETY: it was made by `Box`, and the caller guarantees the rest.
        drop(unsafe { Box::from_raw(at) });
    }
}
