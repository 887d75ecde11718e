//! Models of an [`EpochCell`]: which values a thread may find in it.

use std::sync::Arc;

use kcas::model::{explore, spawn};
use kcas::sync::{AtomicU64, Ordering};

use super::{EpochCell, pin};

/// A thread that finds a value finds it as it was when it was put in.
#[test]
fn a_value_is_found_as_it_was_put_in() {
    explore("a_value_is_found_as_it_was_put_in", None, 10, || {
        let cell = Arc::new(EpochCell::new(AtomicU64::new(1)));
        let other = Arc::clone(&cell);
        let writer = spawn(move || {
            let new = Box::new(AtomicU64::new(0));
            // Relaxed, twice: only the cell is to make it visible.
            new.store(1, Ordering::Relaxed);
            put_in(&other, new);
        });
        let found = cell.load(&pin()).load(Ordering::Relaxed);
        assert_eq!(found, 1, "found before it was made");
        writer.join().unwrap();
    });
}

/// Two threads each replace the value of a cell and then look at the other's cell, whose value they
/// had found before: one of them sees what the other did. With less than `SeqCst` both could miss
/// it (store buffering). Both values were replaced once before, since loom knows no order among
/// initial values.
#[test]
fn two_threads_that_replace_a_value_and_look_at_the_others() {
    let looks: [fn(&EpochCell<u64>, &u64) -> bool; 2] = [
        |cell, known| std::ptr::eq(cell.load(&pin()), known),
        |cell, known| cell.holds(known),
    ];
    for still_holds in looks {
        explore(
            "two_threads_that_replace_a_value_and_look_at_the_others",
            None,
            10,
            move || {
                let cells = Arc::new([0, 0].map(EpochCell::new));
                for cell in cells.iter() {
                    put_in(cell, Box::new(1));
                }
                let replace_and_look = move |cells: &[EpochCell<u64>; 2], mine: usize| {
                    let pinned = pin();
                    let known = cells[1 - mine].load(&pinned);
                    put_in(&cells[mine], Box::new(2));
                    still_holds(&cells[1 - mine], known) && *known == 1
                };
                let others = Arc::clone(&cells);
                let other = spawn(move || replace_and_look(&others, 1));
                let missed = [replace_and_look(&cells, 0), other.join().unwrap()];
                assert_ne!(missed, [true; 2], "each was missed by the other one");
            },
        );
    }
}

fn put_in<T: Send + Sync>(cell: &EpochCell<T>, new: Box<T>) {
    let pinned = pin();
    let current = cell.load(&pinned);
    assert!(cell.replace(current, new, &pinned).is_ok());
}
