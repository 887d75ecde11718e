//! The meaning of a word's 64 bits: a value of 63 bits, or a tag that names an operation.
//!
//! ```text
//! bit  63   62   61   60..49    48..0
//!      0    ────────── value, 63 bits ──────────
//!      1    0    0    thread    sequence number      owned by a K-CAS: confirmed
//!      1    0    1    thread    sequence number      owned by a K-CAS: put there by its owner
//!      1    1    0    thread    sequence number      an installation in progress (DCSS)
//! ```
//!
//! A tag names one operation forever, or rather until the 49-bit sequence number wraps. That takes
//! one thread more than a year at 10^7 tags a second, and harms only a thread that slept meanwhile,
//! for exactly a whole number of turns.

use crate::thread_id::MAX_THREADS;

const TAG: u64 = 1 << 63;
const INSTALL: u64 = 1 << 62;
const OWNER: u64 = 1 << 61;
const SEQUENCE_BITS: u32 = 49;
pub(crate) const SEQUENCE_MASK: u64 = (1 << SEQUENCE_BITS) - 1;

const _: () = assert!(MAX_THREADS <= 1 << (61 - SEQUENCE_BITS));

/// Width of a value in bits.
pub(crate) const VALUE_BITS: u32 = 63;

/// True when the word holds a value and no operation is under way on it.
#[inline]
pub(crate) fn is_value(raw: u64) -> bool {
    raw & TAG == 0
}

/// A decoded word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// No operation is under way here.
    Value(u64),
    /// Owned by this K-CAS until it is decided and released.
    Kcas(KcasTag),
    /// Put there by the owner of this K-CAS; the decision shows whether the tag came in time.
    Owner(KcasTag),
    /// A K-CAS tag is being installed here, provided its operation is still undecided.
    Install(InstallTag),
}

impl From<u64> for Word {
    fn from(raw: u64) -> Word {
        if is_value(raw) {
            Word::Value(raw)
        } else if raw & INSTALL != 0 {
            Word::Install(Tag(raw))
        } else if raw & OWNER != 0 {
            Word::Owner(Tag(raw & !OWNER))
        } else {
            Word::Kcas(Tag(raw))
        }
    }
}

/// A tag in which `KIND` is set: a thread's id and that thread's sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag<const KIND: u64>(u64);

/// Names one K-CAS of its owner.
pub type KcasTag = Tag<TAG>;

/// Names one installation of a K-CAS tag in one word, by one thread: no two share a name.
pub type InstallTag = Tag<{ TAG | INSTALL }>;

impl<const KIND: u64> Tag<KIND> {
    /// Names an operation of a thread.
    pub fn new(thread: usize, sequence: u64) -> Self {
        Tag(KIND | (thread as u64) << SEQUENCE_BITS | sequence)
    }

    /// Returns it as a word: of a K-CAS, the confirmed tag.
    pub fn raw(self) -> u64 {
        self.0
    }

    /// Returns the id of the thread.
    pub fn thread(self) -> usize {
        ((self.0 & !(TAG | INSTALL | OWNER)) >> SEQUENCE_BITS) as usize
    }

    /// Returns the sequence number.
    pub fn sequence(self) -> u64 {
        self.0 & SEQUENCE_MASK
    }
}

impl KcasTag {
    /// Returns the tag with these bits, taken from a record that keeps it as a plain number.
    pub fn from_raw(raw: u64) -> KcasTag {
        Tag(raw)
    }

    /// Returns the owner tag, as a word.
    pub fn owner_raw(self) -> u64 {
        self.0 | OWNER
    }
}

/// Returns the sequence number after this one, which in damaged memory may be any.
pub fn next_sequence(sequence: u64) -> u64 {
    sequence.wrapping_add(1) & SEQUENCE_MASK
}

#[cfg(all(test, not(kcas_loom)))]
mod tests {
    use super::*;

    #[test]
    fn tags_keep_thread_and_sequence_apart() {
        for thread in [0, 1, MAX_THREADS - 1] {
            for sequence in [0, 1, SEQUENCE_MASK] {
                let kcas = KcasTag::new(thread, sequence);
                let install = InstallTag::new(thread, sequence);
                assert_eq!((kcas.thread(), kcas.sequence()), (thread, sequence));
                assert_eq!((install.thread(), install.sequence()), (thread, sequence));
                assert_eq!(Word::from(kcas.raw()), Word::Kcas(kcas));
                assert_eq!(Word::from(kcas.owner_raw()), Word::Owner(kcas));
                assert_eq!(Word::from(install.raw()), Word::Install(install));
                assert_eq!(KcasTag::from_raw(kcas.raw()), kcas);
            }
        }
    }

    #[test]
    fn sequence_numbers_wrap_into_their_field() {
        assert_eq!(next_sequence(0), 1);
        assert_eq!(next_sequence(SEQUENCE_MASK), 0);
    }
}
