//! A mixed hasher hashes as its own hasher does, in both ways of hashing, and mixes the result.

use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};

use filter::hashing::{Mixed, mix};

/// A hasher for which each function of [`Hasher`] does something different.
#[derive(Default)]
struct TellsFunctionsApart(u64);

impl TellsFunctionsApart {
    fn add(&mut self, function: u64, value: u64) {
        self.0 = mix(self.0 ^ mix(function) ^ value);
    }
}

macro_rules! functions {
    ($($number:literal $write:ident: $type:ty,)+) => {
        impl Hasher for TellsFunctionsApart {
            fn write(&mut self, bytes: &[u8]) {
                bytes.iter().for_each(|&byte| self.add(0, byte.into()));
            }

            fn finish(&self) -> u64 {
                self.0
            }

            $(fn $write(&mut self, value: $type) {
                self.add($number, value as u64);
            })+
        }
    };
}

functions! {
    1 write_u8: u8,
    2 write_u16: u16,
    3 write_u32: u32,
    4 write_u64: u64,
    5 write_u128: u128,
    6 write_usize: usize,
    7 write_i8: i8,
    8 write_i16: i16,
    9 write_i32: i32,
    10 write_i64: i64,
    11 write_i128: i128,
    12 write_isize: isize,
}

#[expect(clippy::manual_hash_one, reason = "the other way is what is compared")]
fn both_ways_agree<S: BuildHasher + Clone, T: Hash>(name: &str, inner: &S, key: T) {
    let mixed = Mixed(inner.clone());
    let mut hasher = mixed.build_hasher();
    key.hash(&mut hasher);
    let expected = mix(inner.hash_one(&key));
    let kind = std::any::type_name::<T>();
    assert_eq!(hasher.finish(), expected, "{name}, {kind}: by a hasher");
    assert_eq!(mixed.hash_one(&key), expected, "{name}, {kind}: at once");
}

fn agrees(name: &str, inner: &(impl BuildHasher + Clone)) {
    macro_rules! each {
        ($($key:expr),+ $(,)?) => {
            $(both_ways_agree(name, inner, $key);)+
        };
    }
    each!(7u8, 7u16, 7u32, 7u64, 7u128 << 70, 7usize);
    each!(-7i8, -7i16, -7i32, -7i64, -7i128 << 70, -7isize);
    each!(true, 'k', (), "key", "", String::from("key"));
    each!((7u8, -7i64, "key"), [7u32, 8], &[7u8, 8][..], vec![7u64, 8]);
    each!(&["a", "b"][..], Some(7u16), None::<u16>, b"bytes");
}

#[test]
fn a_mixed_hasher_agrees_with_its_hasher() {
    agrees(
        "one that tells functions apart",
        &BuildHasherDefault::<TellsFunctionsApart>::default(),
    );
}
