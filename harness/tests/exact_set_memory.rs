//! What the exact set says of its memory is what the process takes for it.
//!
//! In a process of its own, and one test: whatever else runs would be counted, too.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use harness::subject::Subject;
use harness::subjects::ExactSet;
use memory_stats::memory_stats;

fn resident_bytes() -> usize {
    let stats = memory_stats().expect("the system tells how much memory a process has");
    stats.physical_mem
}

#[test]
fn it_takes_what_it_says() {
    // The second is as full as a table of papaya can be that is made for so many keys.
    for buckets in [250_000, 3 << 16] {
        let before = resident_bytes();
        let set = ExactSet::with_buckets(buckets).unwrap();
        assert!((0..set.slots() as u64).all(|key| set.insert(&key)));
        let taken = resident_bytes() - before;
        let said = set.memory_bytes();
        assert!(
            (said * 9 / 10..said * 11 / 10).contains(&taken),
            "{buckets} buckets: {taken} bytes, not {said}"
        );
        println!("{buckets} buckets: {taken} bytes taken, {said} said");
    }
}
