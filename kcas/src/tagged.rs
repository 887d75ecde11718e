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
//! A tag names one operation for ever, or rather until the 49-bit sequence number wraps. That takes
//! one thread more than a year at 10^7 tags a second, and harms only a thread that slept meanwhile,
//! for exactly a whole number of turns.

use crate::thread_id::MAX_THREADS;

const TAG: u64 = 1 << 63;
const INSTALL: u64 = 1 << 62;
const OWNER: u64 = 1 << 61;
const SEQUENCE_BITS: u32 = 49;
const SEQUENCE_MASK: u64 = (1 << SEQUENCE_BITS) - 1;

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
pub(crate) enum Word {
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
            Word::Install(InstallTag(raw))
        } else if raw & OWNER != 0 {
            Word::Owner(KcasTag(raw & !OWNER))
        } else {
            Word::Kcas(KcasTag(raw))
        }
    }
}

/// Names one K-CAS: its owner's id and the owner's sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KcasTag(u64);

/// Names one installation of a K-CAS tag in one word, by one thread: no two share a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InstallTag(u64);

impl KcasTag {
    pub(crate) fn new(thread: usize, sequence: u64) -> KcasTag {
        KcasTag(TAG | (thread as u64) << SEQUENCE_BITS | sequence)
    }

    /// Returns the tag with these bits, taken from a record that keeps it as a plain number.
    pub(crate) fn from_raw(raw: u64) -> KcasTag {
        KcasTag(raw)
    }

    /// Returns the confirmed tag, as a word.
    pub(crate) fn raw(self) -> u64 {
        self.0
    }

    /// Returns the owner tag, as a word.
    pub(crate) fn owner_raw(self) -> u64 {
        self.0 | OWNER
    }

    pub(crate) fn thread(self) -> usize {
        thread(self.0)
    }

    pub(crate) fn sequence(self) -> u64 {
        self.0 & SEQUENCE_MASK
    }
}

impl InstallTag {
    pub(crate) fn new(thread: usize, sequence: u64) -> InstallTag {
        InstallTag(TAG | INSTALL | (thread as u64) << SEQUENCE_BITS | sequence)
    }

    pub(crate) fn raw(self) -> u64 {
        self.0
    }

    pub(crate) fn thread(self) -> usize {
        thread(self.0)
    }

    pub(crate) fn sequence(self) -> u64 {
        self.0 & SEQUENCE_MASK
    }
}

/// Returns the sequence number after this one.
pub(crate) fn next_sequence(sequence: u64) -> u64 {
    (sequence + 1) & SEQUENCE_MASK
}

fn thread(raw: u64) -> usize {
    ((raw & !(TAG | INSTALL | OWNER)) >> SEQUENCE_BITS) as usize
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
    fn every_63_bit_number_is_a_value() {
        for value in [0, 1, u64::MAX >> 1] {
            assert_eq!(Word::from(value), Word::Value(value));
        }
        assert!(!is_value(1 << 63));
    }

    #[test]
    fn sequence_numbers_wrap_into_their_field() {
        assert_eq!(next_sequence(0), 1);
        assert_eq!(next_sequence(SEQUENCE_MASK), 0);
    }
}
