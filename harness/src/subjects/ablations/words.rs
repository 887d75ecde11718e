//! The words of a table, one per bucket: where operations in progress are described, and whether
//! readers help them.

use kcas::{Entry, Error, OutOfMemory, WordArray};

pub trait Words: Sized + Send + Sync + 'static {
    fn try_new(len: usize) -> Result<Self, OutOfMemory>;

    fn load(&self, index: usize) -> u64;

    /// Returns the value of a word; at least 2^63 if an operation is in progress on it.
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
        Err(Error::Mismatch { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Descriptors are reused, as in our filter. Two decisions may be changed: whether a reader that
/// meets an operation in progress first helps it to finish, and whether the owner of an operation
/// installs its descriptor by DCSS, as helpers do.
pub struct Reused<const HELPING_READERS: bool = false, const DCSS: bool = false>(WordArray);

pub(super) type HelpingReaders = Reused<true, false>;
pub(crate) type OwnersByDcss = Reused<false, true>;

impl<const HELPING_READERS: bool, const DCSS: bool> Words for Reused<HELPING_READERS, DCSS> {
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
        self.0.compare_exchange(index, current, new).is_ok()
    }

    #[inline]
    fn replace_all(&self, entries: &[Entry]) -> bool {
        succeeded(if DCSS {
            self.0.kcas_by_dcss(entries)
        } else {
            self.0.kcas(entries)
        })
    }
}

/// The same protocol with descriptors on the heap, reclaimed by epochs. Readers do not help.
impl Words for kcas_epoch::WordArray {
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
