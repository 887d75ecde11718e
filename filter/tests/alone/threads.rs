//! More live threads than there are ids: all are served, unless each id is kept by a thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Barrier, mpsc};
use std::thread::{self, Scope, ScopedJoinHandle};

use crossbeam_utils::CachePadded;
use filter::growing::GrowingCuckooFilter;
use filter::{
    AdvanceError, CuckooFilter, ExpiringCuckooFilter, Filter, InsertError, UpdateError, max_threads,
};

const THREADS: usize = 5_000;

/// Spawns threads with small stacks, each of which is given its number.
///
/// Join each: the end of the scope alone does not wait until a thread has given its id back, and
/// the next test would find some still taken.
fn spawn_small<'scope, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    threads: usize,
    run: impl Fn(usize) -> R + Copy + Send + 'scope,
) -> Vec<ScopedJoinHandle<'scope, R>> {
    let spawn = |number| {
        let small = thread::Builder::new().stack_size(128 * 1024);
        small.spawn_scoped(scope, move || run(number)).unwrap()
    };
    (0..threads).map(spawn).collect()
}

fn join<R>(threads: Vec<ScopedJoinHandle<R>>) -> Vec<R> {
    threads.into_iter().map(|t| t.join().unwrap()).collect()
}

const REFUSED: Result<(), InsertError> = Err(InsertError::TooManyThreads);

const MAX_THREADS: usize = max_threads();

/// Filters of every kind, with fingerprints so long that no two of the keys here are of one class.
struct Filters([Box<dyn Filter>; 4]);

/// Returns the keys that a thread inserts, each in its own way.
fn keys(thread: usize) -> [usize; 4] {
    [0, 1, 2, 3].map(|way| 4 * thread + way)
}

impl Filters {
    fn new() -> Filters {
        let builder = CuckooFilter::builder().capacity(4 * THREADS);
        let growing = GrowingCuckooFilter::builder().buckets(1 << 20);
        let expiring = ExpiringCuckooFilter::builder().capacity(4 * THREADS);
        let expiring = expiring.layout::<2, 24, 2>();
        Filters([
            Box::new(builder.clone().layout::<2, 24>().build().unwrap()),
            Box::new(builder.false_positive_rate(1e-6).build().unwrap()),
            Box::new(growing.build().unwrap()),
            Box::new(expiring.build().unwrap()),
        ])
    }

    /// Inserts four keys into each filter, each in its own way; true if this thread was served. A
    /// thread is served by all filters or by none.
    fn insert(&self, thread: usize) -> bool {
        let [plain, unique, batch, unique_batch] = keys(thread);
        let is_new = |new: bool| assert!(new, "two keys are of one class");
        let mut results = Vec::new();
        for filter in &self.0 {
            results.push(filter.insert(&plain));
            results.push(filter.insert_if_absent(&unique).map(is_new));
            let (mut result, mut new) = ([Ok(())], [Ok(true)]);
            filter.insert_batch(&[batch], &mut result);
            filter.insert_if_absent_batch(&[unique_batch], &mut new);
            results.extend(result);
            results.extend(new.map(|result| result.map(is_new)));
        }
        let first = &results[0];
        assert!(results.iter().all(|result| result == first), "{results:?}");
        assert!(first.is_ok() || *first == REFUSED, "{first:?}");
        first.is_ok()
    }

    fn has(&self, key: usize) -> bool {
        self.0.iter().all(|filter| filter.contains(&key))
    }

    /// Removes the keys of a thread that was served.
    fn remove(&self, thread: usize) {
        let [plain, unique, batches @ ..] = keys(thread);
        for filter in &self.0 {
            let mut removed = [const { Ok(false) }; 2];
            filter.remove_batch(&batches, &mut removed);
            assert_eq!(removed, [const { Ok(true) }; 2]);
            assert!(filter.remove(&plain).unwrap() && filter.remove(&unique).unwrap());
        }
    }

    fn len(&self) -> [usize; 4] {
        [0, 1, 2, 3].map(|nth| self.0[nth].len())
    }
}

#[test]
fn threads_beyond_id_limit_all_insert() {
    crate::turn();
    let filters = Filters::new();
    let all_live = Barrier::new(THREADS);
    let insert = |number| {
        let served = catch_unwind(AssertUnwindSafe(|| filters.insert(number)));
        // Also after a panic, or the others wait forever.
        all_live.wait();
        filters.remove(number);
        served.unwrap()
    };
    let served = thread::scope(|scope| join(spawn_small(scope, THREADS, insert)));
    assert_eq!(served, [true; THREADS]);
    assert_eq!(filters.len(), [0; 4]);
}

#[test]
fn thread_over_limit_can_only_look_up() {
    crate::turn();
    let filters = Filters::new();
    thread::scope(|scope| {
        let inserter = scope.spawn(|| filters.insert(0));
        assert!(inserter.join().unwrap());
    });
    let (registered, tried) = (Barrier::new(MAX_THREADS + 1), Barrier::new(MAX_THREADS + 1));
    thread::scope(|scope| {
        let hold = |_| {
            assert_eq!(filter::register_thread(), Ok(()));
            registered.wait();
            tried.wait();
            // This thread is sure of its id.
            assert!(!filters.0[0].remove("absent").unwrap());
        };
        let holders = spawn_small(scope, MAX_THREADS, hold);
        registered.wait();
        let one_too_many = scope.spawn(|| {
            let refused = UpdateError::TooManyThreads;
            assert_eq!(filter::register_thread(), Err(refused.clone()));
            assert!(!filters.insert(1));
            assert!(keys(0).into_iter().all(|key| filters.has(key)));
            assert_eq!((filters.0[0].count(&0), filters.len()), (1, [4; 4]));
            assert!(refused.to_string().contains("no thread id is free"));
            for filter in &filters.0 {
                let mut removed = [const { Ok(true) }; 2];
                filter.remove_batch(&[0, 1], &mut removed);
                assert_eq!(removed, [const { Err(UpdateError::TooManyThreads) }; 2]);
                assert_eq!(filter.remove(&0), Err(refused.clone()));
            }
            let expiring = ExpiringCuckooFilter::with_capacity(10);
            let refused = AdvanceError::Update(refused);
            assert_eq!(expiring.advance(), Err(refused.clone()));
            assert_eq!(expiring.advance_to(1), Err(refused));
            assert_eq!(expiring.period(), 0);
            assert!(keys(0).into_iter().all(|key| filters.has(key)));
        });
        let result = one_too_many.join();
        tried.wait();
        join(holders);
        result.unwrap();
    });
}

/// Idle threads leave ids to others, also after a clone or save.
#[test]
fn idle_threads_leave_ids_to_others() {
    crate::turn();
    let filter = CuckooFilter::builder().buckets(1).build().unwrap();
    let (idle, tried) = (Barrier::new(MAX_THREADS + 1), Barrier::new(MAX_THREADS + 1));
    thread::scope(|scope| {
        let call = |number| {
            let copied = match number % 2 {
                0 => filter.try_clone().map(|_| ()),
                _ => filter.to_bytes().map(|_| ()),
            };
            idle.wait();
            tried.wait();
            copied
        };
        let threads = spawn_small(scope, MAX_THREADS, call);
        idle.wait();
        let inserted = scope.spawn(|| filter.insert("key")).join();
        tried.wait();
        assert_eq!(join(threads), [const { Ok(()) }; MAX_THREADS]);
        assert_eq!(inserted.unwrap(), Ok(()));
    });
}

/// A filter has fewer than two counters for each thread of the most that were alive at once, whichever of them have
/// changed it, and never more than one for each that there can be.
#[test]
fn counters_are_under_two_per_live_thread() {
    crate::turn();
    let build = || CuckooFilter::builder().buckets(1).build().unwrap();
    let empty = build().memory_bytes();
    let of_all = build();
    let done = Barrier::new(MAX_THREADS + 1);
    let (sender, receiver) = mpsc::channel();
    let sender = &sender;
    let counted = thread::scope(|scope| {
        let mut threads = Vec::new();
        let mut next = || {
            let change = |_| {
                filter::register_thread().unwrap();
                let of_one = build();
                for filter in [&of_all, &of_one] {
                    assert!(!filter.remove("absent").unwrap());
                }
                let counters = [&of_all, &of_one].map(|filter| filter.memory_bytes() - empty);
                sender.send(counters).unwrap();
                done.wait();
            };
            threads.extend(spawn_small(scope, 1, change));
            receiver.recv().unwrap()
        };
        let counted: Vec<[usize; 2]> = (0..MAX_THREADS).map(|_| next()).collect();
        done.wait();
        join(threads);
        counted
    });
    let counter = size_of::<CachePadded<u64>>();
    // The chunks have a pointer each.
    let most = |counters: usize| counters * counter + 256;
    for (before, [of_all, of_one]) in counted.into_iter().enumerate() {
        let alive = before + 1;
        let is_so = of_all <= most((2 * alive - 1).min(MAX_THREADS)) && of_one <= most(alive);
        assert!(is_so, "{of_all} and {of_one} bytes with {alive} threads");
    }
}
