//! Models of threads that are killed, and of those that take over their ids. In each, the same thread goes on as the
//! heir: it has synchronised with the end of the one that was killed, as with a process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kcas::internals::{self, KcasTag, begin_install};
use kcas::{Entry, WordArray};
use kcas_testing::killed::{Mortal, killed_before, mortal, take_over};
use kcas_testing::model::{explore_test, spawn_with};

use crate::as_me;

type Words = WordArray<Mortal>;

/// Kills an action before the access that is chosen.
type Kill<'a> = &'a dyn Fn(&mut dyn FnMut());

/// Explores a model once for each access of an action that it kills.
fn killed_at_each_access(
    preemptions: usize,
    at_least: u64,
    model: impl Fn(Kill) + Copy + Send + Sync + 'static,
) {
    for access in 0.. {
        let killed = Arc::new(AtomicBool::new(false));
        let kills = Arc::clone(&killed);
        let is_explored = explore_test(preemptions, at_least, move || {
            model(&|action| {
                kills.fetch_or(killed_before(access, action).is_none(), Ordering::Relaxed);
            });
        });
        if !is_explored || !killed.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// The first operation of a thread that is killed anywhere in it, or not at all; true if it succeeds.
fn begin(words: &Words) -> bool {
    let entries = [Entry::new(0, 0, 1), Entry::new(1, 0, 1)];
    words.kcas(&entries).is_ok()
}

/// The next operation under the same id.
fn go_on(words: &Words) -> bool {
    let entries = [Entry::new(1, 0, 5), Entry::new(2, 0, 5)];
    words.kcas(&entries).is_ok()
}

/// Checks that some order explains what [`begin`] has answered, if it was not killed, what [`go_on`] and another
/// thread's call have answered, and what the words hold. A call that was killed took effect before the next one, or not
/// at all.
fn check(
    words: &Words,
    first: Option<bool>,
    next: bool,
    other: fn(&mut [u64; 3]) -> u64,
    answer: u64,
) {
    let contents = [0, 1, 2].map(|index| words.load(index));
    // The other call comes before `begin`, before `go_on`, or last.
    let explains = |begins: bool, place: usize| {
        let (mut words, mut answered) = ([0; 3], 0);
        for step in 0..3 {
            if step == place {
                answered = other(&mut words);
            }
            let (changed, entries) = match step {
                0 => (first.unwrap_or(begins), [0, 1]),
                1 => (next, [1, 2]),
                _ => continue,
            };
            let fits = entries.map(|index| words[index]) == [0; 2];
            let is_known = step == 1 || first.is_some();
            if fits != changed && (changed || is_known) {
                return false;
            }
            if changed {
                for index in entries {
                    words[index] = [1, 5][step];
                }
            }
        }
        (words, answered) == (contents, answer)
    };
    let orders = [0, 1, 2].map(|place| explains(true, place) || explains(false, place));
    assert!(
        orders.contains(&true),
        "no order explains {first:?}, {next:?}, {answer} and {contents:?}"
    );
}

/// The owner is killed anywhere in its operation, while a helper that meets it may have stopped anywhere. The heir
/// takes over, and reuses the record for an operation on one of the same words: the helper may wake only then.
#[test]
fn owner_killed_at_each_access() {
    killed_at_each_access(2, 20, |kill| {
        let words = Arc::new(mortal(3));
        let helper = spawn_with(&words, |words| words.compare_exchange(0, 0, 7).is_ok());
        let mut first = None;
        kill(&mut || first = Some(begin(&words)));
        take_over(&words);
        let next = go_on(&words);
        let other = |words: &mut [u64; 3]| {
            let exchanges = words[0] == 0;
            words[0] = if exchanges { 7 } else { words[0] };
            u64::from(exchanges)
        };
        check(&words, first, next, other, helper.join().unwrap().into());
    });
}

/// The same with a reader instead of a helper.
#[test]
fn owner_killed_while_read() {
    killed_at_each_access(2, 66, |kill| {
        let words = Arc::new(mortal(3));
        let reader = spawn_with(&words, |words| words.load(1));
        let mut first = None;
        kill(&mut || first = Some(begin(&words)));
        take_over(&words);
        let next = go_on(&words);
        check(
            &words,
            first,
            next,
            |words| words[1],
            reader.join().unwrap(),
        );
    });
}

/// The heir is also killed, anywhere in what it does.
#[test]
fn heir_killed_at_each_access() {
    for access in [10, 11, 12, 13] {
        killed_at_each_access(1, 45, move |kill| {
            let words = Arc::new(mortal(3));
            let helper = spawn_with(&words, |words| words.load_helping(1));
            let first = killed_before(access, || begin(&words));
            kill(&mut || take_over(&words));
            take_over(&words);
            let next = go_on(&words);
            check(
                &words,
                first,
                next,
                |words| words[1],
                helper.join().unwrap(),
            );
        });
    }
}

/// A helper is killed anywhere, also within an installation. Its heir ends that, even if the owner of the operation has
/// gone on to another one, and reuses the record.
#[test]
fn helper_killed_at_each_access() {
    killed_at_each_access(2, 700, |kill| {
        let words = Arc::new(mortal(3));
        let owner = spawn_with(&words, |words| {
            let undone = begin(words) && words.compare_exchange(1, 1, 0).is_ok();
            undone && go_on(words)
        });
        kill(&mut || {
            words.load_helping(0);
        });
        take_over(&words);
        // Its next installation loses the word that it is for.
        as_me(|me| begin_install(internals::words(&words), me, KcasTag::new(0, 0), 2, 0));
        words.load_helping(1);
        assert!(owner.join().unwrap());
        assert_eq!([0, 1, 2].map(|index| words.load(index)), [1, 5, 5]);
    });
}
