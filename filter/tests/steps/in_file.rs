//! Copies of a filter in words that processes share: updates and copies that are stopped or killed at any step.

use std::sync::{Arc, Mutex};

use kcas_testing::killed::killed_before;

use crate::at_step::{before_step, hop, pairs, stopped, stops};
use crate::small::in_file::{SmallInFile, begin_copy, forget_last_holder, holding, take_over};
use crate::small::key;

const HERE_AND_THERE: [(usize, usize); 2] = [(0, 1), (2, 1)];

/// More steps than a copy takes alone.
const STEPS: u64 = 80;

/// A copy is killed at any step; perhaps others have kept buckets for it. The next one has what is there then.
#[test]
fn copy_after_killed_copy_has_all_keys() {
    forget_last_holder();
    for (item, twin) in HERE_AND_THERE {
        let [moved, hopped] = [key(item, twin, 0), key(twin, item, 0)];
        let new = key(item, item, 0);
        for (dies, at) in pairs(0..30, (0..STEPS).step_by(2)) {
            let filter = holding(&[moved]);
            let killed = killed_before(dies, || begin_copy(&filter)).is_none();
            take_over(&filter);
            hop(&*filter, moved, hopped);
            filter.insert(&new).unwrap();
            let back = move |others: &SmallInFile| hop(others, hopped, moved);
            let copy = before_step(&filter, at, back, SmallInFile::try_clone).unwrap();
            let counts = [moved, new].map(|key| copy.count(&key));
            assert_eq!(
                counts, [1; 2],
                "killed before {dies}: {killed}, hop at {at}"
            );
            assert_eq!(copy.len(), 2);
        }
    }
}

/// A thread that keeps a bucket for a copy is stopped at any step, until the next copy has come to any step. That copy
/// has what was there when it began.
#[test]
fn thread_of_last_copy_changes_no_later_one() {
    let (item, twin) = (0, 1);
    let [another, new] = [key(item, item, 0), key(item, item, 1)];
    let [moved, hopped] = [key(item, twin, 0), key(twin, item, 0)];
    let mut stale = 0;
    for (begun, next) in pairs((10..40).step_by(5), (5..60).step_by(3)) {
        let make = || {
            let filter = holding(&[another, moved]);
            let first = stopped(&filter, begun, SmallInFile::try_clone);
            Arc::new((filter, Mutex::new(first)))
        };
        let remove = move |both: &(Arc<SmallInFile>, _)| both.0.remove(&another);
        for (step, both, thread) in stops(5, make, remove) {
            let filter = &both.0;
            let first = both.1.lock().unwrap().take();
            drop(first.map(|first| first.thaw()));
            hop(&**filter, moved, hopped);
            let has_room = filter.insert(&new).is_ok();
            let Some(copy) = stopped(filter, next, SmallInFile::try_clone) else {
                continue;
            };
            assert_eq!(thread.thaw(), Ok(true));
            let copy = copy.thaw().unwrap();
            let counts = [new, hopped].map(|key| copy.count(&key));
            let case = format!("first copy at {begun}, remove at {step}, next copy at {next}");
            assert_eq!(counts, [has_room.into(), 1], "{case}");
            stale += u64::from(copy.count(&another) == 0);
        }
    }
    assert!(stale > 0, "no remove was finished before the copy was");
}
