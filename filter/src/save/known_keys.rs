//! How a saved filter recognises its hasher: by the hashes of known keys.

use std::hash::BuildHasher;

use super::words::digest_of;

/// Returns a digest of the hashes of known keys. It differs for other hashers, for other seeds, and on machines where
/// the hasher gives other hashes. The default hasher gives each known key the same hash on machines of any word size
/// and byte order.
pub(crate) fn digest_of_known_keys(hasher: &impl BuildHasher) -> u64 {
    let mut digest = digest_of(&[]);
    let mut note = |hash: u64| digest.update(&hash.to_le_bytes());
    for number in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
        note(hasher.hash_one(number));
    }
    // Each type reaches a hasher through a different function of `Hasher`.
    macro_rules! note_as {
        ($($type:ty)+) => {
            $(note(hasher.hash_one(0x0123_4567_89ab_cdef_1032_5476_98ba_dcfe_u128 as $type));)+
        };
    }
    note_as!(u8 u16 u32 u128 i8 i16 i32 i64 i128);
    note(hasher.hash_one(0x1032_5476_usize));
    note(hasher.hash_one(-0x1032_5476_isize));
    // Hashers treat short and long strings differently, and strings differently from bytes, which
    // are preceded by their length.
    let long = "the quick brown fox jumps over the lazy dog, and then the dog jumps over the quick brown fox";
    for length in [0, 3, 7, 15, 31, 63, 90] {
        note(hasher.hash_one(&long[..length]));
        note(hasher.hash_one(&long.as_bytes()[..length]));
    }
    note(hasher.hash_one((1_u16, "two", 3_u64)));
    // Before a variant's value, its number is hashed.
    note(hasher.hash_one(Some(1_u32)));
    note(hasher.hash_one(None::<u32>));
    digest.finalize()
}
