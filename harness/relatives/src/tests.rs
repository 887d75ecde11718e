//! One body of tests for all relatives. Each has its claims besides, and what it alone promises is
//! tested where it is.

use std::sync::Barrier;
use std::thread;

use subject::Subject;

use crate::*;

/// Calls a test with each of these types.
macro_rules! each {
    ($test:ident: $($subject:ty)+) => {
        $($test::<$subject>();)+
    };
}

/// Threads work on tables so small that they meet in every word. Each finds its own keys from the
/// return of their insert to the call of their remove, and so does everybody in the end.
fn threads_lose_nothing<S: Subject>() {
    const THREADS: u64 = 3;
    for round in 0..300 {
        let subject = S::with_buckets(4).unwrap();
        let barrier = Barrier::new(THREADS as usize);
        let name = S::NAME;
        let work = |thread| {
            barrier.wait();
            // Fewer than there are slots. Exact tables may refuse one.
            let keys = (0..4).map(|key| (round, thread, key));
            let mut kept: Vec<_> = keys.filter(|key| subject.insert(key)).collect();
            for (index, key) in kept.clone().iter().enumerate() {
                assert!(subject.contains(key), "{name}: {key:?}");
                if S::OPERATIONS.remove && index % 2 == 0 {
                    assert!(subject.remove(key), "{name}: {key:?}");
                    kept.retain(|other| other != key);
                }
            }
            kept
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| scope.spawn(move || work(thread)))
                .collect();
            for key in threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap())
            {
                assert!(subject.contains(&key), "{name}: {key:?}");
            }
        });
    }
}

#[test]
fn threads_lose_nothing_in_any_relative() {
    each!(threads_lose_nothing: Bloom BlockedBloom CountingBloom ScalableBloom CountMin
        VectorQuotient SmartCuckooMutex PlainCuckooMutex);
}

fn one_copy_is_removed_once<S: Subject>() {
    let subject = S::with_buckets(4).unwrap();
    for round in 0..300 {
        assert!(subject.insert(&round));
        let barrier = Barrier::new(2);
        let remove = || {
            barrier.wait();
            usize::from(subject.remove(&round))
        };
        let removed = thread::scope(|scope| {
            let threads = [scope.spawn(remove), scope.spawn(remove)];
            threads.map(|thread| thread.join().unwrap())
        });
        assert_eq!(removed.iter().sum::<usize>(), 1, "{}", S::NAME);
        assert!(!subject.contains(&round), "{}", S::NAME);
    }
}

#[test]
fn of_two_threads_that_remove_one_copy_one_does() {
    each!(one_copy_is_removed_once: CountingBloom VectorQuotient SmartCuckooMutex PlainCuckooMutex);
}

/// At each step of a call, another call of each kind changes the same words.
#[cfg(feature = "steps")]
fn no_step_loses_a_key<S: Subject>() {
    use std::cell::Cell;
    use std::rc::Rc;
    let happened = Rc::new(Cell::new(false));
    for at in 0.. {
        let subject = Rc::new(S::with_buckets(1).unwrap());
        assert!(
            ["stays", "goes", "went"]
                .iter()
                .all(|key| subject.insert(key))
        );
        let (other, happens) = (Rc::clone(&subject), Rc::clone(&happened));
        let between = move |step| {
            if step == at {
                assert!(other.contains("stays") && other.insert("comes"));
                assert!(!S::OPERATIONS.remove || other.remove("goes"));
                happens.set(true);
            }
        };
        let both = || subject.insert("new") && (!S::OPERATIONS.remove || subject.remove("went"));
        assert!(kcas::steps::with_hook(between, both), "{}", S::NAME);
        if !happened.replace(false) {
            assert!(at >= 4, "{} makes {at} steps", S::NAME);
            break;
        }
        for key in ["comes", "new", "stays", "goes", "went"] {
            let inside = !S::OPERATIONS.remove || !["goes", "went"].contains(&key);
            assert_eq!(subject.contains(key), inside, "{}, {at}: {key}", S::NAME);
        }
    }
}

#[cfg(feature = "steps")]
#[test]
fn no_step_of_a_relative_without_locks_loses_a_key() {
    each!(no_step_loses_a_key: Bloom BlockedBloom CountingBloom ScalableBloom CountMin);
}
