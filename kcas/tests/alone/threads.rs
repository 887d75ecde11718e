//! Threads that come and go: ids are reused, any number of threads may live at once, and beyond the limit of those that
//! have an id there is a clear error, which goes away when threads end.

use std::sync::{Barrier, Mutex};
use std::thread;

use kcas::thread_id::{self, MAX_THREADS, ThreadId};
use kcas::{Entry, Error, TooManyThreads, WordArray};

fn my_index() -> usize {
    thread_id::with(|id| id.index()).unwrap()
}

fn swap(words: &WordArray, expected: u64, new: u64) -> Result<(), Error> {
    words.kcas(&[0, 1].map(|index| Entry::new(index, expected, new)))
}

#[test]
fn id_is_reused_after_thread_ends() {
    crate::turn();
    let words = WordArray::new(2);
    let mut greatest = 0;
    for round in 0..10_000 {
        let run = || {
            swap(&words, round, round + 1).unwrap();
            my_index()
        };
        greatest = greatest.max(thread::scope(|scope| scope.spawn(run).join().unwrap()));
    }
    assert_eq!(words.load(0), 10_000);
    assert!(greatest < 16, "one of 10,000 threads has id {greatest}");
}

#[test]
fn live_threads_have_distinct_ids_up_to_limit() {
    crate::turn();
    let words = WordArray::new(2);
    // All ids are held. A newcomer gets an error where it needs an id, and nothing has changed;
    // loads and single words need none.
    let mut ids = while_held(MAX_THREADS, || {
        let too_many = thread_id::with(|_| ()).unwrap_err();
        assert_eq!(swap(&words, 0, 1), Err(too_many.into()));
        assert_eq!((words.load(0), words.load(1)), (0, 0));
        assert_eq!(words.compare_exchange(0, 0, 5), Ok(0));
        assert_eq!(words.compare_exchange(0, 5, 0), Ok(5));
    });
    ids.sort_unstable();
    ids.dedup();
    // The test runner's own threads hold no id, since they ran no operation.
    assert_eq!(ids.len(), MAX_THREADS);
    assert_eq!(swap(&words, 0, 1), Ok(()), "ids are free again");
}

#[test]
fn late_thread_that_registers_within_call_keeps_id() {
    crate::turn();
    while_held(MAX_THREADS / 4 * 3, || {
        let for_calls = thread_id::for_calls().unwrap();
        thread_id::register().unwrap();
        drop(for_calls);
        assert!(
            thread_id::with_held(|_| ()).is_some(),
            "it gave the id back"
        );
    });
}

#[test]
fn late_thread_returns_id_after_call() {
    crate::turn();
    let is_held = || thread_id::with_held(|_| ()).is_some();
    while_held(MAX_THREADS / 4 * 3, || {
        assert!(thread_id::with(|_| is_held()).unwrap());
        assert!(!is_held(), "it is kept");
        thread_id::register().unwrap();
        assert!(is_held(), "it is not kept, though it is asked to be");
    });
    while_held(MAX_THREADS / 4 * 3 - 1, || {
        my_index();
        assert!(is_held(), "it is not kept");
    });
}

/// Runs something in a new thread while this many others hold an id each; returns their ids.
fn while_held(ids: usize, run: impl FnOnce() + Send) -> Vec<usize> {
    let barrier = Barrier::new(ids + 1);
    let hold = || {
        thread_id::register().unwrap();
        let id = my_index();
        barrier.wait();
        barrier.wait();
        // A thread that has registered keeps its id for as long as it lives.
        assert_eq!(my_index(), id);
        id
    };
    thread::scope(|scope| {
        let small = || thread::Builder::new().stack_size(64 * 1024);
        let holders = (0..ids).map(|_| small().spawn_scoped(scope, hold).unwrap());
        let holders: Vec<_> = holders.collect();
        barrier.wait();
        let result = scope.spawn(run).join();
        barrier.wait();
        // Each is joined: the end of a scope does not wait until its threads have given their ids back, and
        // the next test would find some of them taken.
        let ids = holders.into_iter().map(|t| t.join().unwrap()).collect();
        result.unwrap();
        ids
    })
}

/// One thread is in the middle of an operation, and others hold all other ids: one more thread can load the word, and
/// gets an error when it would have to help.
#[cfg(feature = "__steps")]
#[test]
fn thread_without_id_cannot_help() {
    crate::turn();
    use kcas::internals;

    let words = WordArray::new(2);
    let entries = [0, 1].map(|index| Entry::new(index, 0, 1));
    thread_id::register().unwrap();
    let begin = |me: &ThreadId| {
        let own = internals::begin_kcas(internals::words(&words), me, &entries);
        internals::place(internals::words(&words), me, own, &entries[0]);
        own
    };
    let own = thread_id::with(begin).unwrap();
    while_held(MAX_THREADS - 1, || {
        let too_many = kcas::register().unwrap_err();
        let single = Entry::new(0, words.load(0), 5);
        assert_eq!(words.kcas(&[single]), Err(too_many.into()));
        let exchanged = words.compare_exchange(0, single.expected, 5);
        assert_eq!(exchanged, Err(too_many.into()));
        let load = std::panic::AssertUnwindSafe(|| words.load_helping(0));
        assert!(std::panic::catch_unwind(load).is_err());
        assert_eq!(words.load(0), single.expected);
    });
    let finish = |me: &ThreadId| internals::finish_own(internals::words(&words), me, own, &entries);
    assert_eq!(thread_id::with(finish), Ok(true));
    assert_eq!((words.load(0), words.load(1)), (1, 1));
}

/// A thread that has lost its id because it is being torn down claims one for a call and all calls
/// inside it.
#[test]
fn nested_calls_share_id() {
    crate::turn();
    struct AtExit;
    impl Drop for AtExit {
        fn drop(&mut self) {
            for _ in 0..3 {
                let inside = thread_id::with(|outer| {
                    // Nobody else gets it meanwhile.
                    let others = thread::spawn(thread_id::register).join().unwrap();
                    let is_same = |inner: &ThreadId| outer.index() == inner.index();
                    let all_same = (0..3).all(|_| thread_id::with(is_same) == Ok(true));
                    all_same && others.is_err()
                });
                SHARED.lock().unwrap().push(inside);
            }
        }
    }
    thread_local! {
        static AT_EXIT: AtExit = const { AtExit };
    }
    static SHARED: Mutex<Vec<Result<bool, TooManyThreads>>> = Mutex::new(Vec::new());
    // The id is claimed last, so it is given back first.
    while_held(MAX_THREADS - 1, || {
        AT_EXIT.with(|_| ());
        thread_id::register().unwrap();
    });
    assert_eq!(*SHARED.lock().unwrap(), [Ok(true); 3]);
}
