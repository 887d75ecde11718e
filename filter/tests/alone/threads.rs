//! More live threads than may insert and remove: the first ones are served, the others get an
//! error, and nothing is lost.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Barrier, Mutex};
use std::thread::{self, Scope, ScopedJoinHandle};

use filter::growing::GrowingCuckooFilter;
use filter::{CuckooFilter, DynCuckooFilter, Filter, InsertError, MAX_THREADS, TooManyThreads};

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

const TOLD: Result<(), InsertError> = Err(InsertError::TooManyThreads(TooManyThreads));

/// In all of them fingerprints are long enough that no two of the keys here are of one class.
struct Filters {
    fixed: CuckooFilter<2, 24>,
    fitted: DynCuckooFilter,
    growing: GrowingCuckooFilter,
}

/// Returns the keys that a thread inserts, each in its own way.
fn keys(thread: usize) -> [usize; 4] {
    [0, 1, 2, 3].map(|way| 4 * thread + way)
}

impl Filters {
    fn new() -> Filters {
        let builder = CuckooFilter::builder().capacity(4 * THREADS);
        Filters {
            fixed: builder.layout().build().unwrap(),
            fitted: builder.false_positive_rate(1e-6).build().unwrap(),
            growing: GrowingCuckooFilter::new(),
        }
    }

    /// Inserts four keys into each filter, each in its own way; true if this thread was served. A
    /// thread is served by all filters or by none.
    fn insert(&self, thread: usize) -> bool {
        let [plain, unique, batch, unique_batch] = keys(thread);
        let mut told = vec![self.fixed.insert(&plain), self.fitted.insert(&plain)];
        let is_new = |new: bool| assert!(new, "two keys are of one class");
        told.push(self.fixed.insert_unique(&unique).map(is_new));
        told.push(self.fitted.insert_unique(&unique).map(is_new));
        let (mut results, mut new) = ([Ok(()); 2], [Ok(true); 2]);
        self.fixed.insert_batch(&[batch], &mut results[..1]);
        self.fitted.insert_batch(&[batch], &mut results[1..]);
        self.fixed
            .insert_unique_batch(&[unique_batch], &mut new[..1]);
        self.fitted
            .insert_unique_batch(&[unique_batch], &mut new[1..]);
        told.extend(results);
        told.extend(new.map(|result| result.map(is_new)));
        let growing = keys(thread).map(|key| match self.growing.insert_unique(&key) {
            Ok(new) => {
                is_new(new);
                Ok(())
            }
            Err(error) => Err(error),
        });
        told.extend(growing);
        assert!(told.iter().all(|result| *result == told[0]), "{told:?}");
        assert!(told[0].is_ok() || told[0] == TOLD, "{:?}", told[0]);
        told[0].is_ok()
    }

    fn has(&self, key: usize) -> bool {
        let (fixed, fitted) = (self.fixed.contains(&key), self.fitted.contains(&key));
        fixed && fitted && self.growing.contains(&key)
    }

    /// Removes the keys of a thread that was served, so it is not one too many.
    fn remove(&self, thread: usize) {
        let [plain, unique, batches @ ..] = keys(thread);
        let mut removed = [false; 4];
        self.fixed.remove_batch(&batches, &mut removed[..2]);
        self.fitted.remove_batch(&batches, &mut removed[2..]);
        assert_eq!(removed, [true; 4]);
        for key in [plain, unique] {
            assert!(self.fixed.remove(&key) && self.fitted.remove(&key));
        }
        assert!(keys(thread).iter().all(|key| self.growing.remove(key)));
    }
}

#[test]
fn more_threads_than_there_are_ids_are_told() {
    let _turn = crate::turn();
    let filters = Filters::new();
    let all_tried = Barrier::new(THREADS);
    let insert = |number| {
        let served = catch_unwind(AssertUnwindSafe(|| filters.insert(number)));
        // Also after a panic, or the others wait for ever.
        all_tried.wait();
        // All ids are held from here on, until the first thread ends.
        served.unwrap()
    };
    let served = thread::scope(|scope| join(spawn_small(scope, THREADS, insert)));
    let told = served.iter().filter(|served| !**served).count();
    assert_eq!(told, THREADS - MAX_THREADS);
    let held = 4 * MAX_THREADS;
    assert_eq!((filters.fixed.len(), filters.fitted.len()), (held, held));
    let of_served = (0..THREADS).filter(|&thread| served[thread]);
    for thread in of_served.clone() {
        assert!(keys(thread).into_iter().all(|key| filters.has(key)));
    }
    // Ids have been given back.
    thread::scope(|scope| {
        for thread in (0..THREADS).filter(|&thread| !served[thread]) {
            let filters = &filters;
            let late = scope.spawn(move || {
                assert!(filters.insert(thread));
                filters.remove(thread);
            });
            late.join().unwrap();
        }
    });
    of_served.for_each(|thread| filters.remove(thread));
    assert!(filters.fixed.is_empty() && filters.fitted.is_empty());
}

#[test]
fn a_thread_that_is_one_too_many_looks_up_and_can_ask_before_it_removes() {
    let _turn = crate::turn();
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
            assert!(!filters.fixed.remove("absent"));
        };
        let holders = spawn_small(scope, MAX_THREADS, hold);
        registered.wait();
        let one_too_many = scope.spawn(|| {
            assert_eq!(filter::register_thread(), Err(TooManyThreads));
            assert!(!filters.insert(1));
            assert!(keys(0).into_iter().all(|key| filters.has(key)));
            assert_eq!((filters.fixed.count(&0), filters.fixed.len()), (1, 4));
            let panics = |call: &dyn Fn()| {
                let message = catch_unwind(AssertUnwindSafe(call)).unwrap_err();
                let message = message.downcast_ref::<String>().unwrap();
                assert!(message.contains("4096 live threads"), "{message}");
            };
            panics(&|| assert!(filters.fixed.remove(&0)));
            panics(&|| assert!(filters.growing.remove(&0)));
            panics(&|| filters.fixed.remove_batch(&[0, 1], &mut [false; 2]));
            assert_eq!(filters.fixed.try_remove(&0), Err(TooManyThreads));
            assert_eq!(filters.fitted.try_remove(&0), Err(TooManyThreads));
            assert_eq!(filters.growing.try_remove(&0), Err(TooManyThreads));
            assert!(keys(0).into_iter().all(|key| filters.has(key)));
        });
        let result = one_too_many.join();
        tried.wait();
        join(holders);
        result.unwrap();
    });
}

/// A thread that is being torn down has no id of its own, and claims one for each call: only one,
/// even for an insert that takes a chain of shifts.
#[test]
fn an_insert_of_a_thread_that_is_torn_down_needs_one_id() {
    let _turn = crate::turn();
    static FILTER: std::sync::LazyLock<CuckooFilter> =
        std::sync::LazyLock::new(|| CuckooFilter::builder().buckets(1_000).build().unwrap());
    static TOLD: Mutex<Vec<Result<(), InsertError>>> = Mutex::new(Vec::new());
    struct AtExit;
    impl Drop for AtExit {
        fn drop(&mut self) {
            // Until it is full: most of the last inserts take chains.
            let results = (0..3_900).map(|key| FILTER.insert(&key)).collect();
            *TOLD.lock().unwrap() = results;
        }
    }
    thread_local! {
        static AT_EXIT: AtExit = const { AtExit };
    }
    let (registered, ended) = (Barrier::new(MAX_THREADS), Barrier::new(MAX_THREADS));
    thread::scope(|scope| {
        let hold = |_| {
            assert_eq!(filter::register_thread(), Ok(()));
            registered.wait();
            ended.wait();
        };
        let holders = spawn_small(scope, MAX_THREADS - 1, hold);
        registered.wait();
        let ending = scope.spawn(|| {
            // Registered first, so its id is given back first.
            AT_EXIT.with(|_| ());
            assert_eq!(filter::register_thread(), Ok(()));
        });
        let result = ending.join();
        ended.wait();
        join(holders);
        result.unwrap();
    });
    let told = TOLD.lock().unwrap();
    let refused = told.iter().filter(|result| result.is_err()).count();
    assert_eq!((told.len(), refused), (3_900, 0));
}
