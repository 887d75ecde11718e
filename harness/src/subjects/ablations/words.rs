//! The words of a table, one per bucket: where operations in progress are described, and whether
//! readers help them.

use kcas::{Entry, Error, OutOfMemory, WordArray};

/// Words that can be compared and swapped several at a time.
pub trait Words: Sized + Send + Sync + 'static {
    fn try_new(len: usize) -> Result<Self, OutOfMemory>;

    fn load(&self, index: usize) -> u64;

    /// Returns the value of a word, or a number of at least 2^63 if an operation is in progress on
    /// it.
    fn load_raw(&self, index: usize) -> u64;

    /// Replaces a word if it holds `current`. Returns whether it did.
    fn replace(&self, index: usize, current: u64, new: u64) -> bool;

    /// Replaces several words if each holds what is expected. Returns whether they did.
    fn replace_all(&self, entries: &[Entry]) -> bool;
}

/// Returns whether a K-CAS took effect; it is never misused here.
fn succeeded(done: Result<(), Error>) -> bool {
    match done {
        Ok(()) => true,
        Err(Error::Mismatch) => false,
        Err(error) => panic!("{error}"),
    }
}

macro_rules! words {
    ($($(#[doc = $doc:literal])+ $array:ty;)+) => {$(
        $(#[doc = $doc])+
        impl Words for $array {
            fn try_new(len: usize) -> Result<Self, OutOfMemory> {
                Self::try_new(len)
            }

            #[inline]
            fn load(&self, index: usize) -> u64 {
                self.load(index)
            }

            #[inline]
            fn load_raw(&self, index: usize) -> u64 {
                self.load_raw(index)
            }

            #[inline]
            fn replace(&self, index: usize, current: u64, new: u64) -> bool {
                self.compare_exchange(index, current, new).is_ok()
            }

            #[inline]
            fn replace_all(&self, entries: &[Entry]) -> bool {
                succeeded(self.kcas(entries))
            }
        }
    )+};
}

words! {
    /// Ours: descriptors are reused, and readers do not help.
    WordArray;
    /// The same protocol with descriptors on the heap, reclaimed by epochs. Readers do not help here
    /// either.
    kcas_epoch::WordArray;
}

/// Ours, with one or two decisions changed: whether a reader that meets an operation in progress
/// first helps it to finish, and whether the owner of an operation installs its descriptor by DCSS,
/// as helpers do.
#[derive(Debug)]
pub struct Otherwise<const HELPING_READERS: bool, const DCSS: bool>(WordArray);

pub(super) type HelpingReaders = Otherwise<true, false>;
pub(crate) type OwnersByDcss = Otherwise<false, true>;

impl<const HELPING_READERS: bool, const DCSS: bool> Words for Otherwise<HELPING_READERS, DCSS> {
    fn try_new(len: usize) -> Result<Self, OutOfMemory> {
        WordArray::try_new(len).map(Self)
    }

    #[inline]
    fn load(&self, index: usize) -> u64 {
        if HELPING_READERS {
            self.0.load_helping(index)
        } else {
            self.0.load(index)
        }
    }

    #[inline]
    fn load_raw(&self, index: usize) -> u64 {
        self.0.load_raw(index)
    }

    #[inline]
    fn replace(&self, index: usize, current: u64, new: u64) -> bool {
        Words::replace(&self.0, index, current, new)
    }

    #[inline]
    fn replace_all(&self, entries: &[Entry]) -> bool {
        if DCSS {
            succeeded(self.0.kcas_by_dcss(entries))
        } else {
            self.0.replace_all(entries)
        }
    }
}
