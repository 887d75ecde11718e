//! What a filter makes of hashers: a mixed one hashes as its own hasher does and mixes the result, and
//! a saved filter is loaded by no hasher that differs for any kind of keys.

use std::hash::{BuildHasher, Hash, Hasher};

use filter::hashing::FixedHasher;
use filter::{CuckooFilter, FixedState, LoadError, Mixed, mix};

/// Hashes like the default hasher, except for what reaches it through this function of [`Hasher`].
#[derive(Clone)]
struct Differs(&'static str);

struct Hashes {
    inner: FixedHasher,
    differs: &'static str,
}

impl BuildHasher for Differs {
    type Hasher = Hashes;

    fn build_hasher(&self) -> Hashes {
        Hashes {
            inner: FixedState.build_hasher(),
            differs: self.0,
        }
    }
}

macro_rules! functions {
    ($($function:ident: $type:ty,)+) => {
        const FUNCTIONS: &[&str] = &[$(stringify!($function)),+];

        impl Hasher for Hashes {
            $(fn $function(&mut self, value: $type) {
                self.inner.$function(value);
                if self.differs == stringify!($function) {
                    self.inner.write_u8(1);
                }
            })+

            fn finish(&self) -> u64 {
                self.inner.finish()
            }
        }
    };
}

functions! {
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

#[test]
fn hasher_differing_for_some_keys_is_refused() {
    let filter = CuckooFilter::with_capacity(5);
    (0..5).for_each(|key| filter.insert(&key).unwrap());
    let bytes = filter.to_bytes().unwrap();
    let load = |differs| {
        let builder = CuckooFilter::builder().unmixed_hasher(Differs(differs));
        builder.load_bytes(&bytes)
    };
    assert_eq!(load("nowhere").unwrap().len(), 5);
    for function in FUNCTIONS {
        let refused = matches!(load(function), Err(LoadError::Hasher));
        assert!(refused, "{function}");
    }
}

#[expect(clippy::manual_hash_one, reason = "the other way is what is compared")]
fn both_ways_agree(inner: &Differs, key: impl Hash) {
    let mixed = Mixed::new(inner.clone());
    let mut hasher = mixed.build_hasher();
    key.hash(&mut hasher);
    let expected = mix(inner.hash_one(&key));
    assert_eq!(hasher.finish(), expected, "{}, by a hasher", inner.0);
    assert_eq!(mixed.hash_one(&key), expected, "{}, at once", inner.0);
}

/// Each function is passed on to the function of the same name: a key that reaches the hasher through
/// it hashes alike.
#[test]
fn mixed_hasher_agrees_with_inner_hasher() {
    for function in FUNCTIONS {
        let inner = &Differs(function);
        let numbers = (7_u8, 7_u16, 7_u32, 7_u64, 7_u128 << 70, 7_usize);
        both_ways_agree(inner, numbers);
        let signed = (-7_i8, -7_i16, -7_i32, -7_i64, -7_i128 << 70, -7_isize);
        both_ways_agree(inner, signed);
        let others = (true, 'k', "key", "", [7_u32, 8], Some(7_u16), b"bytes");
        both_ways_agree(inner, others);
        both_ways_agree(inner, (vec![7_u64, 8], &["a", "b"][..], None::<u16>));
    }
}
