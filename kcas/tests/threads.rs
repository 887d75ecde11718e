//! Threads that come and go: ids are reused, many may live together, and past the limit the failure is
//! clear and passes when threads end.
#![cfg(not(kcas_loom))]

use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;

use kcas::thread_id::{self, MAX_THREADS, TooManyThreads};
use kcas::{Error, Op, WordArray};

/// The tests count live threads of the whole process, so they take turns.
static TURN: Mutex<()> = Mutex::new(());

fn my_index() -> usize {
    thread_id::with(|id| id.index()).unwrap()
}

fn swap(words: &WordArray, expected: u64, new: u64) -> Result<(), Error> {
    words.kcas(&[0, 1].map(|index| Op {
        index,
        expected,
        new,
    }))
}

#[test]
fn an_id_is_reused_after_its_thread_ends() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
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
    assert!(
        greatest < 16,
        "10,000 threads one after another reached id {greatest}"
    );
}

#[test]
fn live_threads_have_different_ids_and_the_limit_is_an_error() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let words = WordArray::new(2);
    let (claimed, tried) = (Barrier::new(MAX_THREADS + 1), Barrier::new(MAX_THREADS + 1));
    let outcomes: Vec<Option<usize>> = thread::scope(|scope| {
        let hold = || {
            let id = thread_id::with(|id| id.index()).ok();
            claimed.wait();
            tried.wait();
            id
        };
        let threads: Vec<_> = (0..MAX_THREADS)
            .map(|_| {
                let small = thread::Builder::new().stack_size(64 * 1024);
                small.spawn_scoped(scope, hold).unwrap()
            })
            .collect();
        claimed.wait();
        // All ids are held. A newcomer is told, for what needs an id, and nothing has changed; loads and
        // single words need none.
        let newcomer = scope.spawn(|| {
            assert_eq!(thread_id::with(|_| ()), Err(TooManyThreads));
            assert_eq!(
                swap(&words, 0, 1),
                Err(Error::TooManyThreads(TooManyThreads))
            );
            assert_eq!((words.load(0), words.load(1)), (0, 0));
            assert_eq!(words.compare_exchange(0, 0, 5), Ok(0));
            assert_eq!(words.compare_exchange(0, 5, 0), Ok(5));
        });
        newcomer.join().unwrap();
        tried.wait();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let mut ids: Vec<usize> = outcomes.into_iter().flatten().collect();
    ids.sort_unstable();
    ids.dedup();
    // The test runner's own threads hold no id: they ran nothing.
    assert_eq!(ids.len(), MAX_THREADS);
    assert_eq!(swap(&words, 0, 1), Ok(()), "ids are free again");
}

#[test]
fn an_operation_in_a_thread_that_is_torn_down_works() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    static WORDS: std::sync::LazyLock<WordArray> = std::sync::LazyLock::new(|| WordArray::new(2));
    struct AtExit;
    impl Drop for AtExit {
        fn drop(&mut self) {
            swap(&WORDS, 1, 2).unwrap();
        }
    }
    thread_local! {
        static AT_EXIT: AtExit = const { AtExit };
    }
    // Whichever of the two thread-locals is destroyed first, in one of the two orders the id is gone.
    for id_first in [true, false] {
        let ending = thread::spawn(move || {
            if !id_first {
                AT_EXIT.with(|_| ());
            }
            swap(&WORDS, 0, 1).unwrap();
            AT_EXIT.with(|_| ());
        });
        ending.join().unwrap();
        swap(&WORDS, 2, 0).expect("the destructor's operation took place");
    }
}
