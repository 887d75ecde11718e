//! No operation allocates, except a thread's first.

use kcas::engines::MISMATCH;
use kcas::{Entry, WordArray};

fn entries(expected: u64, new: u64) -> [Entry; WordArray::MAX_ENTRIES] {
    std::array::from_fn(|index| Entry::new(index, expected, new))
}

#[test]
fn operations_do_not_allocate() {
    let words = WordArray::new(WordArray::MAX_ENTRIES);
    // The thread's first operation makes its id, and perhaps a chunk of records.
    words.kcas(&entries(0, 1)).unwrap();
    let measured = allocation_counter::measure(|| {
        for value in 1..1_000 {
            words.kcas(&entries(value, value + 1)).unwrap();
            assert_eq!(words.kcas(&entries(value, value)), Err(MISMATCH));
            let one = &entries(value, value)[..1];
            assert_eq!(words.kcas(one), Err(MISMATCH));
            words.compare_exchange(3, value + 1, value + 1).unwrap();
            assert_eq!(words.load(7), value + 1);
        }
    });
    assert_eq!(measured.count_total, 0);
    let control = allocation_counter::measure(|| drop(std::hint::black_box(Box::new(1))));
    assert_eq!(control.count_total, 1, "the counter counts");
}
