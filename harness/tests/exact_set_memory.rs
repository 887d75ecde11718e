//! Tests that the memory the exact set declares is what it requests from the allocator, plus the
//! overhead of glibc's.

use allocation_counter::measure;
use harness::subject::Subject;
use harness::subjects::ExactSet;

/// Bytes that glibc's allocator adds to an entry of 16 bytes.
const ADDED: u64 = 16;

#[test]
fn exact_set_memory_bytes_matches_allocations() {
    // The second is as full as a table of papaya of that size can be.
    for buckets in [25_000, 3 << 14] {
        let mut made = None;
        let taken = measure(|| {
            let set = ExactSet::with_buckets(buckets).unwrap();
            assert!((0..set.slots(buckets) as u64).all(|key| set.insert(&key)));
            made = Some(set);
        });
        let set = made.unwrap();
        let (reported, keys) = (set.memory_bytes() as u64, set.slots(buckets) as u64);
        let expected = reported - ADDED * keys;
        let bytes = taken.bytes_current as u64;
        let right = (expected * 99 / 100..expected * 101 / 100).contains(&bytes);
        assert!(right, "{buckets} buckets: {bytes} bytes, not {expected}");
    }
}

/// Removed keys leave marks in the table, which only another table gets rid of.
#[test]
fn exact_set_memory_is_constant_under_churn() {
    let taken = measure(|| {
        let set = ExactSet::with_buckets(1_000).unwrap();
        assert!((0..3_600_u64).all(|key| set.insert(&key)));
        for key in 3_600..100_000_u64 {
            assert!(set.insert(&key) && set.remove(&key));
        }
        let reported = set.memory_bytes();
        std::mem::forget(set);
        assert!(reported < 400_000, "{reported}");
    });
    assert!(taken.bytes_current < 600_000, "{taken:?}");
}
