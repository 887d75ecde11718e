//! The formats of saved filters: later versions load what was saved once. Damaged, cut off or forged, it is an error
//! that names the cause, never another filter, and never more memory than the bytes justify.

use std::hash::BuildHasher;
use std::ops::Range;

use crc::{CRC_64_XZ, Crc};
use filter::growing::GrowingBuilder;
use filter::{
    CuckooFilter, ExpiringCuckooFilter, Filter, FixedState, GrowingCuckooFilter, LoadError,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

type Loaded = Result<Box<dyn Filter>, LoadError>;

struct Format {
    /// A filter of 300 keys that was saved in this format.
    golden: &'static [u8],
    /// Makes that filter, if the same keys give the same bytes on any machine and in any build.
    make: Option<fn() -> Box<dyn Filter>>,
    /// Number of its keys that are numbers; the others are texts.
    numbers: u64,
    /// Bytes up to the header's checksum.
    header: usize,
    /// Where the claims are that decide how much is read.
    claims: &'static [Range<usize>],
    from_bytes: fn(&[u8]) -> Loaded,
    read_from: fn(&mut &[u8]) -> Loaded,
    /// How much loading from bytes may ask for, as a multiple of them, besides what a filter has
    /// beside its table.
    most: u64,
}

const FIXED: Format = Format {
    golden: include_bytes!("../golden/version-3"),
    make: Some(|| {
        let filter = CuckooFilter::builder().buckets(97).build().unwrap();
        (0..200_u64).for_each(|key| filter.insert(&key).unwrap());
        (0..100).for_each(|key| filter.insert(&format!("key {key}")).unwrap());
        boxed(filter)
    }),
    numbers: 200,
    header: 32,
    #[expect(clippy::single_range_in_vec_init, reason = "a list of ranges, of one")]
    claims: &[16..24],
    from_bytes: |bytes| CuckooFilter::from_bytes(bytes).map(boxed),
    read_from: |bytes| CuckooFilter::read_from(bytes).map(boxed),
    most: 1,
};

/// A hundred keys each were inserted in period 5, 6 and 7.
const EXPIRING: Format = Format {
    golden: include_bytes!("../golden/expiring-version-3"),
    make: Some(|| {
        let filter = ExpiringCuckooFilter::builder().buckets(97).build().unwrap();
        for key in 0..300_u64 {
            filter.advance_to(5 + key / 100).unwrap();
            filter.insert(&key).unwrap();
        }
        boxed(filter)
    }),
    numbers: 300,
    from_bytes: |bytes| ExpiringCuckooFilter::from_bytes(bytes).map(boxed),
    read_from: |bytes| ExpiringCuckooFilter::read_from(bytes).map(boxed),
    ..FIXED
};

const GROWING: Format = Format {
    golden: include_bytes!("../golden/growing-version-3"),
    make: None,
    numbers: 300,
    header: 40,
    claims: &[12..16, 16..24, 24..32],
    from_bytes: |bytes| growing_builder().load_bytes(bytes).map(boxed),
    read_from: |bytes| growing_builder().load_from(bytes).map(boxed),
    most: 3,
};

const FORMATS: [Format; 3] = [FIXED, EXPIRING, GROWING];

fn boxed<F: Filter + 'static>(filter: F) -> Box<dyn Filter> {
    Box::new(filter)
}

/// Without reserved memory, which the counting allocator would write each time.
pub(crate) fn growing_builder() -> GrowingBuilder {
    GrowingCuckooFilter::builder().reserved_bytes(0)
}

impl Format {
    /// Loads in both ways, which must agree except about what follows the filter; neither may
    /// request more memory than there are bytes for.
    fn load(&self, bytes: &[u8]) -> Loaded {
        let [read, loaded] = [true, false].map(|from_reader| {
            let mut loaded = None;
            let measured = allocation_counter::measure(|| {
                loaded = Some(if from_reader {
                    (self.read_from)(&mut &bytes[..])
                } else {
                    (self.from_bytes)(bytes)
                });
            });
            // A reader's bytes are copied to twice the room, and a chunk at first.
            let (times, chunk) = [(self.most, 0), (3, 16 << 10)][usize::from(from_reader)];
            let chunk = chunk.max((self.most - 1) << 13);
            let length = bytes.len() as u64;
            let most = times * length + chunk + (16 << 10);
            assert!(measured.bytes_max <= most, "{measured:?}, {length} bytes");
            loaded.unwrap()
        });
        if !matches!(loaded, Err(LoadError::TooLong { .. })) {
            let [one, other] = [&loaded, &read].map(|loaded| match loaded {
                Ok(filter) => Ok(filter.to_bytes().unwrap()),
                Err(error) => Err(error.to_string()),
            });
            assert_eq!(one, other);
        }
        loaded
    }

    fn error(&self, bytes: &[u8]) -> LoadError {
        self.load(bytes).expect_err("damage was not found")
    }
}

#[test]
fn filters_saved_in_version_3_are_loaded() {
    for format in FORMATS {
        let loaded = format.load(format.golden).unwrap();
        assert_eq!(loaded.len(), 300);
        let texts = (0..300 - format.numbers).map(|key| format!("key {key}"));
        assert!((0..format.numbers).all(|key| loaded.contains(&key)));
        assert!(texts.into_iter().all(|key| loaded.contains(&key)));
        let absent = (300..10_000_u64).filter(|key| loaded.contains(key)).count();
        assert!(absent < 40, "{absent} of 9,700 absent keys");
        if let Some(make) = format.make {
            let same = [loaded, make()].map(|filter| filter.to_bytes().unwrap());
            assert!(same.iter().all(|bytes| bytes == format.golden));
        }
    }
}

/// Reads filters as the docs of `save` describe them, byte by byte: a machine of any byte order would find the same.
#[test]
fn formats_are_as_documented() {
    let checksum = |bytes: &[&[u8]]| Crc::<u64>::new(&CRC_64_XZ).checksum(&bytes.concat());
    for (bytes, magic, age_bits) in [
        (FIXED.golden, b"cuckoof\n", 0),
        (EXPIRING.golden, b"cuckoox\n", 2),
    ] {
        let number = |offset: usize, length: usize| {
            let bytes = bytes[offset..offset + length].iter().enumerate();
            bytes.fold(0, |sum, (at, &byte)| sum + (u64::from(byte) << (8 * at)))
        };
        assert_eq!(&bytes[..8], magic);
        let layout = [(12, 2), (14, 1), (15, 1)].map(|(offset, length)| number(offset, length));
        assert_eq!((number(8, 4), layout), (3, [4, 12, age_bits]));
        assert_eq!(number(16, 8), 97);
        let words: Vec<u64> = (0..97).map(|bucket| number(40 + 8 * bucket, 8)).collect();
        let end = bytes.len() - 8;
        // The period comes after the buckets.
        assert_eq!(end, 40 + 8 * 97 + [0, 8][usize::from(age_bits > 0)]);
        assert!(age_bits == 0 || number(end - 8, 8) == 7);
        assert_eq!(number(32, 8), checksum(&[&bytes[..32]]));
        assert_eq!(number(end, 8), checksum(&[&bytes[..32], &bytes[40..end]]));
        assert!(words.iter().all(|word| word >> (48 + 4 * age_bits) == 0));
        let slots = words
            .iter()
            .flat_map(|word| (0..4).map(move |slot| (word, slot)));
        let slots = slots.map(|(word, slot)| {
            let age = word >> (48 + age_bits * slot) & ((1 << age_bits) - 1);
            (word >> (12 * slot) & 0xfff, age)
        });
        let (held, free): (Vec<_>, Vec<_>) = slots.partition(|slot| slot.0 != 0);
        assert!(held.len() == 300 && free.iter().all(|slot| slot.1 == 0));
        for (age, keys) in [(0, [300, 100]), (1, [0, 100]), (2, [0, 100]), (3, [0, 0])] {
            let of_age = held.iter().filter(|slot| slot.1 == age).count();
            assert_eq!(of_age, keys[usize::from(age_bits > 0)]);
        }
        // The hash of a number, of which the lowest bits are its fingerprint.
        for key in 0..200_u64 {
            let fingerprint = (FixedState.hash_one(key) & 0xfff).max(1);
            assert!(held.iter().any(|slot| slot.0 == fingerprint));
        }
    }
}

#[test]
fn every_wrong_length_is_error() {
    for format in FORMATS {
        let bytes = format.golden;
        for length in 0..bytes.len() {
            match format.error(&bytes[..length]) {
                LoadError::Truncated { bytes: whole, .. } if length >= format.header + 8 => {
                    assert_eq!(whole, bytes.len() as u64);
                }
                LoadError::Truncated { .. } => {}
                error => panic!("{length} of {} bytes: {error}", bytes.len()),
            }
        }
        let mut longer = bytes.to_vec();
        for excess in 1..100 {
            longer.push(0);
            match format.error(&longer) {
                LoadError::TooLong { excess: found, .. } => assert_eq!(found, excess),
                error => panic!("{excess} bytes too many: {error}"),
            }
        }
        // A reader may continue with something else.
        let mut rest = &longer[..];
        assert!((format.read_from)(&mut rest).is_ok());
        assert_eq!(rest.len(), 99);
    }
}

#[test]
fn every_flipped_bit_is_error() {
    for format in FORMATS {
        for bit in 0..format.golden.len() * 8 {
            let mut damaged = format.golden.to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let error = format.error(&damaged);
            let right = match bit / 8 {
                // One bit makes it begin like a filter of the other kind.
                6 if b"fg".contains(&damaged[6]) => matches!(error, LoadError::Kind { .. }),
                // Also if it ends there: it is not one that was cut off.
                at @ 0..8 => {
                    let cut = format.error(&damaged[..=at]);
                    matches!(
                        (&error, cut),
                        (LoadError::NotAFilter, LoadError::NotAFilter)
                    )
                }
                8..12 => matches!(error, LoadError::Version { known: 3, .. }),
                at if at < format.header + 8 => {
                    matches!(error, LoadError::Corrupt { part: "header", .. })
                }
                _ => matches!(error, LoadError::Corrupt { part: "table", .. }),
            };
            assert!(right, "bit {bit}: {error}");
        }
    }
}

/// Headers with right checksums that claim anything: their claims are not trusted.
#[test]
fn forged_headers_are_errors() {
    let crc = Crc::<u64>::new(&CRC_64_XZ);
    let mut rng = StdRng::seed_from_u64(2);
    for format in FORMATS {
        for _ in 0..20_000 {
            let mut forged = format.golden.to_vec();
            let claim = format.claims[rng.random_range(0..format.claims.len())].clone();
            let before = u64::from(forged[claim.start]);
            // Most of the claims are huge, and some just wrong.
            let claimed = match rng.random_range(0..3) {
                0 => rng.random::<u64>() >> rng.random_range(0..64),
                1 => 1 << rng.random_range(0..=32),
                _ => before.wrapping_add_signed(rng.random_range(-3..=3)),
            };
            let claimed = &claimed.to_le_bytes()[..claim.len()];
            forged[claim].copy_from_slice(claimed);
            let checksum = crc.checksum(&forged[..format.header]).to_le_bytes();
            forged[format.header..format.header + 8].copy_from_slice(&checksum);
            match format.load(&forged) {
                Ok(_) => assert_eq!(forged, format.golden),
                Err(
                    LoadError::Size { .. }
                    | LoadError::Impossible { .. }
                    | LoadError::Truncated { .. }
                    | LoadError::TooLong { .. }
                    | LoadError::Corrupt { part: "table", .. },
                ) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}
