//! What the exact set says of its memory is what it asks the allocator for, and what glibc's adds to it.

use allocation_counter::measure;
use harness::subject::Subject;
use harness::subjects::ExactSet;

/// What glibc's allocator adds to an entry of 16 bytes.
const ADDED: u64 = 16;

#[test]
fn it_takes_what_it_says() {
    // The second is as full as a table of papaya can be that is made for so many keys.
    for buckets in [25_000, 3 << 14] {
        let mut made = None;
        let taken = measure(|| {
            let set = ExactSet::with_buckets(buckets).unwrap();
            assert!((0..set.slots() as u64).all(|key| set.insert(&key)));
            made = Some(set);
        });
        let set = made.unwrap();
        let (said, keys) = (set.memory_bytes() as u64, set.slots() as u64);
        let expected = said - ADDED * keys;
        let bytes = taken.bytes_current as u64;
        assert!(
            (expected * 99 / 100..expected * 101 / 100).contains(&bytes),
            "{buckets} buckets: {bytes} bytes, not {expected}"
        );
    }
}
