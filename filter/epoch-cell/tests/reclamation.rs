//! Replaced values are dropped exactly once, and not while a thread may read them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use epoch_cell::{EpochCell, pin};

/// How often the collector is given a chance to free something. (Miri takes its time.)
const ROUNDS: u64 = if cfg!(miri) { 200 } else { 20_000 };

/// Counts drops; holds a number and its complement, so that a freed value is noticed when it is
/// read.
struct Counted {
    number: u64,
    complement: u64,
    drops: Arc<AtomicUsize>,
}

impl Counted {
    fn new(number: u64, drops: &Arc<AtomicUsize>) -> Counted {
        Counted {
            number,
            complement: !number,
            drops: Arc::clone(drops),
        }
    }

    fn is_whole(&self) -> bool {
        self.complement == !self.number
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        assert!(self.is_whole(), "dropped twice");
        self.complement = self.number;
        self.drops.fetch_add(1, Ordering::Relaxed);
    }
}

/// Lets the collector run until this many values were dropped.
fn await_drops(drops: &AtomicUsize, wanted: usize) {
    for _ in 0..1_000_000 {
        if drops.load(Ordering::Relaxed) >= wanted {
            break;
        }
        pin().after_all(|| ());
        thread::yield_now();
    }
    assert_eq!(drops.load(Ordering::Relaxed), wanted);
}

#[test]
fn threads_read_what_is_not_freed_and_all_is_freed_once() {
    let drops = Arc::new(AtomicUsize::new(0));
    let cell = EpochCell::new(Counted::new(0, &drops));
    let replaced = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let pinned = pin();
                    let old = cell.load(&pinned);
                    let new = Box::new(Counted::new(old.number + 1, &drops));
                    match cell.replace(old, new, &pinned) {
                        Ok(()) => replaced.fetch_add(1, Ordering::Relaxed),
                        Err(mine) => {
                            assert_eq!(mine.number, old.number + 1);
                            assert!(!cell.holds(old));
                            drop(mine);
                            // It was never in the cell.
                            drops.fetch_sub(1, Ordering::Relaxed);
                            0
                        }
                    };
                    assert!(old.is_whole(), "freed while it was read");
                }
            });
        }
        scope.spawn(|| {
            let mut before = 0;
            for _ in 0..ROUNDS {
                let pinned = pin();
                let value = cell.load(&pinned);
                assert!(value.is_whole() && value.number >= before);
                before = value.number;
                thread::yield_now();
                assert!(value.is_whole(), "freed while it was read");
            }
        });
    });
    let replaced = replaced.into_inner();
    assert_eq!(cell.load(&pin()).number, replaced as u64);
    await_drops(&drops, replaced);
    drop(cell);
    assert_eq!(drops.load(Ordering::Relaxed), replaced + 1);
}

#[test]
fn nothing_is_freed_while_someone_is_pinned() {
    let drops = Arc::new(AtomicUsize::new(0));
    let cell = EpochCell::new(Counted::new(1, &drops));
    let pinned = pin();
    let old = cell.load(&pinned);
    thread::scope(|scope| {
        scope.spawn(|| {
            let pinned = pin();
            let current = cell.load(&pinned);
            let new = Box::new(Counted::new(2, &drops));
            assert!(cell.replace(current, new, &pinned).is_ok());
            drop(pinned);
            (0..ROUNDS).for_each(|_| pin().after_all(|| ()));
        });
    });
    assert_eq!(drops.load(Ordering::Relaxed), 0);
    assert!(old.is_whole());
    drop(pinned);
    await_drops(&drops, 1);
}

#[test]
fn who_has_it_alone_may_change_it() {
    let mut cell = EpochCell::new(vec![1]);
    cell.get_mut().push(2);
    assert_eq!(cell.load(&pin()), &[1, 2]);
}
