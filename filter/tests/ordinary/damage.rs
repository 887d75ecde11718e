//! Saved filters that were damaged or cut off, or claim anything: an error that names the cause,
//! never another filter, and never more memory than the bytes justify.

use crc::{CRC_64_XZ, Crc};
use filter::growing::GrowingBuilder;
use filter::{CuckooFilter, ExpiringCuckooFilter, Filter, GrowingCuckooFilter, LoadError};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

type Loaded = Result<Box<dyn Filter>, LoadError>;

/// A kind of saved filter, and one of that kind.
struct Kind {
    bytes: Vec<u8>,
    /// Bytes up to the header's checksum.
    header: usize,
    /// Where the claims are that decide how much is read.
    claims: &'static [std::ops::Range<usize>],
    from_bytes: fn(&[u8]) -> Loaded,
    read_from: fn(&mut &[u8]) -> Loaded,
    /// How much loading from bytes may ask for, as a multiple of them, besides what a filter has
    /// beside its table.
    most: u64,
}

fn boxed<F: Filter + 'static>(filter: F) -> Box<dyn Filter> {
    Box::new(filter)
}

/// Without reserved memory, which the counting allocator would write each time.
pub(crate) fn growing_builder() -> GrowingBuilder {
    GrowingCuckooFilter::builder().reserved_bytes(0)
}

#[expect(clippy::single_range_in_vec_init, reason = "a list of ranges, of one")]
fn kinds() -> [Kind; 3] {
    let fixed = CuckooFilter::with_capacity(500);
    (0..500).for_each(|key| fixed.insert(&key).unwrap());
    let expiring = ExpiringCuckooFilter::with_capacity(500);
    (0..500).for_each(|key| expiring.insert(&key).unwrap());
    let growing = growing_builder().buckets(16).build().unwrap();
    (0..200).for_each(|key| growing.insert(&key).unwrap());
    let fixed = Kind {
        bytes: fixed.to_bytes().unwrap(),
        header: 32,
        claims: &[16..24],
        from_bytes: |bytes| CuckooFilter::from_bytes(bytes).map(boxed),
        read_from: |bytes| CuckooFilter::read_from(bytes).map(boxed),
        most: 1,
    };
    [
        Kind {
            bytes: expiring.to_bytes().unwrap(),
            from_bytes: |bytes| ExpiringCuckooFilter::from_bytes(bytes).map(boxed),
            read_from: |bytes| ExpiringCuckooFilter::read_from(bytes).map(boxed),
            ..fixed
        },
        fixed,
        Kind {
            bytes: growing.to_bytes().unwrap(),
            header: 40,
            claims: &[12..16, 16..24, 24..32],
            from_bytes: |bytes| growing_builder().from_bytes(bytes).map(boxed),
            read_from: |bytes| growing_builder().read_from(bytes).map(boxed),
            most: 3,
        },
    ]
}

impl Kind {
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
        match self.load(bytes) {
            Ok(_) => panic!("damage was not found"),
            Err(error) => error,
        }
    }
}

#[test]
fn every_length_but_the_right_one_is_an_error() {
    for kind in kinds() {
        let bytes = &kind.bytes;
        for length in 0..bytes.len() {
            match kind.error(&bytes[..length]) {
                LoadError::Truncated { bytes: whole } if length >= kind.header + 8 => {
                    assert_eq!(whole, bytes.len() as u64);
                }
                LoadError::Truncated { .. } => {}
                error => panic!("{length} of {} bytes: {error}", bytes.len()),
            }
        }
        let mut longer = bytes.clone();
        for excess in 1..100 {
            longer.push(0);
            match kind.error(&longer) {
                LoadError::TooLong { excess: found } => assert_eq!(found, excess),
                error => panic!("{excess} bytes too many: {error}"),
            }
        }
        // A reader may continue with something else.
        let mut rest = &longer[..];
        assert!((kind.read_from)(&mut rest).is_ok());
        assert_eq!(rest.len(), 99);
    }
}

#[test]
fn every_flipped_bit_is_an_error() {
    for kind in kinds() {
        for bit in 0..kind.bytes.len() * 8 {
            let mut damaged = kind.bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let error = kind.error(&damaged);
            let right = match bit / 8 {
                // One bit makes it begin like a filter of the other kind.
                6 if b"fg".contains(&damaged[6]) => matches!(error, LoadError::OtherType { .. }),
                0..8 => matches!(error, LoadError::NotAFilter),
                8..12 => matches!(error, LoadError::Version { known: 3, .. }),
                at if at < kind.header + 8 => {
                    matches!(error, LoadError::Corrupt { part: "header" })
                }
                _ => matches!(error, LoadError::Corrupt { part: "table" }),
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
    for kind in kinds() {
        for _ in 0..20_000 {
            let mut forged = kind.bytes.clone();
            let claim = kind.claims[rng.random_range(0..kind.claims.len())].clone();
            let before = u64::from(forged[claim.start]);
            // Most of the claims are huge, and some just wrong.
            let claimed = match rng.random_range(0..3) {
                0 => rng.random::<u64>() >> rng.random_range(0..64),
                1 => 1 << rng.random_range(0..=32),
                _ => before.wrapping_add_signed(rng.random_range(-3..=3)),
            };
            let claimed = &claimed.to_le_bytes()[..claim.len()];
            forged[claim].copy_from_slice(claimed);
            let checksum = crc.checksum(&forged[..kind.header]).to_le_bytes();
            forged[kind.header..kind.header + 8].copy_from_slice(&checksum);
            match kind.load(&forged) {
                Ok(_) => assert_eq!(forged, kind.bytes),
                Err(
                    LoadError::Size { .. }
                    | LoadError::Impossible { .. }
                    | LoadError::Truncated { .. }
                    | LoadError::TooLong { .. }
                    | LoadError::Corrupt { part: "table" },
                ) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}
