//! Models of [`thread_id`](crate::thread_id): ids that are given back and claimed again.

use crate::descriptor;
use crate::entry::Entry;
use crate::model::{explore_test, spawn};
use crate::thread_id::{MAX_THREADS, ThreadId};

/// A thread gives its id back, and another one, which nothing else synchronises with it, claims it:
/// it continues the sequence numbers where the first one left off. If they started afresh, two
/// operations or two installations would get the same tag.
#[test]
fn an_id_changes_hands_with_what_is_kept_under_it() {
    explore_test(4, 10_000, || {
        let begin = || {
            let entry = Entry::new(0, 0, 1);
            let id = ThreadId::acquire().unwrap();
            let tag = descriptor::begin_kcas(&id, &[entry]).tag;
            let install = descriptor::begin_install(&id, tag, 0);
            id.give_back();
            (tag, install)
        };
        let other = spawn(begin);
        let mine = begin();
        let others = other.join().unwrap();
        assert_ne!(mine.0, others.0, "two operations have one tag");
        assert_ne!(mine.1, others.1, "two installations have one tag");
    });
}

/// All ids are held when one is given back: a thread that is promised an id finds it at once,
/// rather than searching for a bit that it cannot see yet.
#[test]
fn a_promised_id_is_found() {
    explore_test(None, 10, || {
        let held = (1..MAX_THREADS).map(|_| ThreadId::acquire().unwrap());
        let held: Vec<_> = held.collect();
        let claimer = spawn(|| ThreadId::acquire().map(|id| id.give_back()));
        held[0].give_back();
        // In time or not, it gets a clear answer.
        let _ = claimer.join().unwrap();
        held[1..].iter().for_each(ThreadId::give_back);
    });
}
