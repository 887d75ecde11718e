//! A large array takes memory from the system as its words are written, not when it is made.

use kcas::WordArray;
use memory_stats::memory_stats;

const LEN: usize = 1 << 27;

/// What else the process may grow or shrink by: pages of the allocator and of the test itself, and of the program's
/// file, which the system may drop at any time.
const SLACK: usize = 4 << 20;

fn resident_bytes() -> usize {
    let stats = memory_stats().expect("the system knows how much memory a process has");
    stats.physical_mem
}

#[test]
fn memory_is_taken_as_words_are_written() {
    crate::turn();
    let before = resident_bytes();
    let mut words = WordArray::new(LEN);
    assert_eq!(words.load(LEN / 2), 0);
    let made = resident_bytes().saturating_sub(before);
    let written = LEN / 16;
    for index in 0..written {
        words.compare_exchange(index, 0, 1).unwrap();
    }
    let filled = resident_bytes().saturating_sub(before);
    println!(
        "an array of {} MiB: {} KiB resident when made, {} MiB with a sixteenth of it written",
        (LEN * 8) >> 20,
        made >> 10,
        filled >> 20
    );
    assert!(made < SLACK, "{made} bytes resident");
    let expected = written * 8 - SLACK..written * 8 + SLACK;
    assert!(expected.contains(&filled), "{filled} bytes resident");
    words.clear();
    let cleared = resident_bytes().saturating_sub(before);
    assert!(expected.contains(&cleared), "{cleared} bytes resident");
    assert_eq!([words.load(0), words.load(written - 1)], [0, 0]);
}
