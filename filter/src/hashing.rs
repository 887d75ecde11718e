//! From a key's hash to its fingerprint and its two buckets, for any number of buckets.
//!
//! A 64-bit hash gives the fingerprint from its low end and the first bucket from its high end. The
//! other bucket is `(g(fingerprint) − bucket) mod m`, where `g` spreads fingerprints over the
//! buckets: an involution for every m, so either bucket leads to the other without the key, and a
//! table need not be a power of two. (The xor of Fan et al. 2014 requires one.)
//!
//! The hash must be good in all of its 64 bits, as those of rapidhash, xxhash and SipHash are: an
//! identity or a single multiplication is not enough. The default hasher is good as it is; any
//! other is mixed first ([`Mixed`]), unless it is given to
//! [`Builder::unmixed_hasher`](crate::Builder::unmixed_hasher). `filter/tests/ordinary/capacity.rs`
//! fills a filter by means of a hasher that does nothing.
//!
//! The requirements on the hash also hold for [growing](crate::growing) filters.

use std::hash::{BuildHasher, Hasher};

use rapidhash::v3::{DEFAULT_RAPID_SECRETS, RapidSecrets, rapidhash_v3_inline};

/// The default hasher: rapidhash V3, whose output is specified. A key (except for four kinds, below) has the same
/// hash on every machine, whatever its word size and byte order, in every build, and in later versions of
/// this crate, as long as its `Hash` writes the same; so a [saved](crate::save) filter can be loaded elsewhere, and
/// hashes can be sent to another process.
///
/// Each integer that a key writes is hashed as eight bytes, little-endian and sign-extended if it is signed. Equal
/// numbers of different types are therefore the same key, and so are a negative number and that number plus 2^64, such
/// as -1 and `u64::MAX`. Two exceptions: 128-bit integers are hashed as sixteen bytes, and the `u8` 255, with which a
/// `str` ends, adds `0x9e37_79b9_7f4a_7c15`, since hashing it would take as long as hashing a short string. A slice
/// of bytes is hashed as it is. The seed of each hash is the hash of what came before, and the first seed is that of
/// rapidhash itself, so the hash of a `u64` is rapidhash V3 of its bytes.
///
/// Four kinds of keys hash differently on other machines, because of what the standard library passes to the
/// hasher: slices and arrays of integers wider than a byte, and IP addresses (so socket addresses, too), depend
/// on the byte order; slices and arrays of `usize` and `isize` on the word size as well; and paths on the word
/// size and the system. Hash the bytes of such a key instead: `octets` of an address, for example.
///
/// The standard library may also [change](std::hash::Hash) what a type of its own writes, and a type
/// that derives `Hash` writes something else when its fields change.
///
/// If strangers choose the keys, seed a hasher at random instead
/// ([`Builder::hasher`](crate::Builder::hasher)): the seed of this one is known, so keys can be
/// chosen that collide. If the filter is to be saved, keep the seeds
/// ([`save`](crate::save#hashers)).
///
/// Other hashers were tried: xxh3 made lookups of `u64` slower; foldhash and the faster variants of
/// rapidhash do not promise their output.
#[derive(Clone, Copy, Debug, Default)]
pub struct FixedState;

impl BuildHasher for FixedState {
    type Hasher = FixedHasher;

    #[inline]
    fn build_hasher(&self) -> FixedHasher {
        FixedHasher(DEFAULT_RAPID_SECRETS.seed)
    }
}

/// The [`Hasher`] of [`FixedState`].
#[derive(Clone, Debug)]
pub struct FixedHasher(u64);

impl Default for FixedHasher {
    fn default() -> Self {
        FixedState.build_hasher()
    }
}

/// Widens these integers to 64 bits, with their sign if they have one.
macro_rules! widened {
    ($($write:ident: $type:ty,)+) => {
        $(#[inline]
        fn $write(&mut self, value: $type) {
            self.write_u64(value as u64);
        })+
    };
}

impl Hasher for FixedHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let secrets = RapidSecrets {
            seed: self.0,
            ..DEFAULT_RAPID_SECRETS
        };
        self.0 = rapidhash_v3_inline::<true, false, false>(bytes, &secrets);
    }

    #[inline]
    fn write_u8(&mut self, value: u8) {
        if value == u8::MAX {
            // The end of a string: what precedes it has been hashed, with its length.
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        } else {
            self.write_u64(value.into());
        }
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.write(&value.to_le_bytes());
    }

    #[inline]
    fn write_u128(&mut self, value: u128) {
        self.write(&value.to_le_bytes());
    }

    #[inline]
    fn write_i128(&mut self, value: i128) {
        self.write(&value.to_le_bytes());
    }

    widened! {
        write_u16: u16,
        write_u32: u32,
        write_usize: usize,
        write_i8: i8,
        write_i16: i16,
        write_i32: i32,
        write_i64: i64,
        write_isize: isize,
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Returns a hash of which each bit depends on each bit of `hash`. Distinct hashes stay distinct.
///
/// The functions that take a hash, such as [`insert_hash`](crate::Filter::insert_hash), use it as it is. If you make
/// hashes elsewhere and are not sure of all their bits, for example numbers used as their own hashes, mix them first.
#[inline]
pub const fn mix(hash: u64) -> u64 {
    // The finalizer of SplitMix64 (Stafford's thirteenth variant).
    let hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}

/// A hasher whose hashes are [mixed](mix): good in all bits, whatever `S` is, as long as it tells
/// keys apart.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mixed<S>(S);

impl<S> Mixed<S> {
    /// Mixes the hashes of this hasher.
    pub const fn new(hasher: S) -> Self {
        Mixed(hasher)
    }

    /// Returns the hasher.
    pub fn into_inner(self) -> S {
        self.0
    }
}

impl<S: BuildHasher> BuildHasher for Mixed<S> {
    type Hasher = MixedHasher<S::Hasher>;

    #[inline]
    fn build_hasher(&self) -> Self::Hasher {
        MixedHasher(self.0.build_hasher())
    }
}

/// The [`Hasher`] of [`Mixed`]: passes each write on to the function of the same name in `H`, since
/// many hashers treat numbers in ways of their own. (`write_str` and `write_length_prefix` are not
/// stable, and take the standard library's default path; so if a hasher for a nightly compiler
/// defines them, strings and slices hash differently here.)
#[derive(Clone, Debug)]
pub struct MixedHasher<H>(H);

/// Forwards these functions.
macro_rules! handed_on {
    ($($write:ident: $type:ty,)+) => {
        $(#[inline]
        fn $write(&mut self, value: $type) {
            self.0.$write(value);
        })+
    };
}

impl<H: Hasher> Hasher for MixedHasher<H> {
    handed_on! {
        write: &[u8],
        write_u8: u8,
        write_u16: u16,
        write_u32: u32,
        write_u64: u64,
        write_u128: u128,
        write_usize: usize,
        write_i8: i8,
        write_i16: i16,
        write_i32: i32,
        write_i64: i64,
        write_i128: i128,
        write_isize: isize,
    }

    #[inline]
    fn finish(&self) -> u64 {
        mix(self.0.finish())
    }
}

/// Returns the hash of what `write` writes.
#[inline]
pub(crate) fn hash_with(hasher: &impl BuildHasher, write: &mut dyn FnMut(&mut dyn Hasher)) -> u64 {
    let mut hasher = hasher.build_hasher();
    write(&mut hasher);
    hasher.finish()
}

#[cfg(all(test, not(kcas_loom)))]
mod tests {
    use std::hash::Hash;

    use super::*;

    /// Values that must never change: saved filters and hashes sent elsewhere depend on them. All
    /// but the longest were computed by another program, written after the description of rapidhash.
    #[test]
    fn default_hasher_is_specified() {
        let golden = |key: &dyn Fn(&mut FixedHasher), hash: u64| {
            let mut hasher = FixedState.build_hasher();
            key(&mut hasher);
            assert_eq!(hasher.finish(), hash, "{:#x}", hasher.finish());
        };
        golden(&|hasher| 7u64.hash(hasher), 0x3317_4310_c9f6_f55b);
        golden(&|hasher| (-7i64).hash(hasher), 0x18fc_bc06_d9cc_8058);
        golden(&|hasher| u128::MAX.hash(hasher), 0x1764_2793_5a1a_5c21);
        golden(&|hasher| "".hash(hasher), 0xa170_5605_6219_49c3);
        golden(&|hasher| "key".hash(hasher), 0x40bd_59ff_2470_12e7);
        golden(&|hasher| b"key"[..].hash(hasher), 0xb8dd_036b_5a72_0f29);
        let (long, mixed) = ("x".repeat(1_000), (1u8, 'x', true, -2i16, Some("y")));
        golden(&|hasher| long.hash(hasher), 0x42cd_2c92_f36f_a921);
        golden(&|hasher| mixed.hash(hasher), 0xfadb_021e_4383_c492);
        let published = rapidhash::v3::rapidhash_v3(&7u64.to_le_bytes());
        assert_eq!(FixedState.hash_one(7u64), published);
    }

    /// A key then hashes alike on machines of any word size.
    #[test]
    fn equal_integers_hash_alike() {
        fn hash(key: impl Hash) -> u64 {
            FixedState.hash_one(key)
        }
        let signed = [hash(-42i8), hash(-42i16), hash(-42i32), hash(-42isize)];
        assert_eq!(signed, [hash(-42i64); 4]);
        let unsigned = [hash(42u8), hash(42u16), hash(42u32), hash(42usize)];
        assert_eq!(unsigned, [hash(42u64); 4]);
        assert_eq!(hash(-1i8), hash(u64::MAX));
        assert_eq!(hash(i64::MIN), hash(1u64 << 63));
        assert_ne!(hash("key"), hash("kez"));
        assert_ne!(hash(255u8), hash(()));
    }
}
