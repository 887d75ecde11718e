//! Owners that are killed before each store of an insert. The owner is a forked child.

use std::cell::Cell;
use std::collections::HashSet;
use std::process::abort;

use filter::Class;

use super::*;

const BUCKETS: usize = 64;

thread_local! {
    static STORES_LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
    pub(super) static IS_FLAWED: Cell<bool> = const { Cell::new(false) };
}

pub(super) fn die_if_due() {
    match STORES_LEFT.get() {
        // No destructor runs, so mutexes stay locked.
        0 => abort(),
        left => STORES_LEFT.set(left - 1),
    }
}

/// Kills an owner before each store of an insert. Returns how many it killed, and how often a key was there other than once.
fn kill_owners() -> (u64, usize) {
    let mut wrong = 0;
    for stores in 0.. {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("filter");
        let filter = RobustCuckooFilter::open_or_create(&path, BUCKETS).unwrap();
        let locate = |key: &u64| locate(&filter.geometry, key);
        let mut classes = HashSet::new();
        let mut keys = (0..).filter(|key| classes.insert(Class::from(locate(key))));
        let all: Vec<_> = keys.by_ref().take(BUCKETS * 4 * 95 / 100).collect();
        assert!(all.iter().all(|key| filter.insert(key)));
        // Its insert moves others: no bucket of its own has room, nor has any where those could go.
        let is_full = |bucket| !Layout::has_room(filter.read(bucket));
        let needs_moves = |bucket| {
            let word = filter.read(bucket);
            let others = (0..4).map(|slot| Layout::fingerprint(word, slot));
            is_full(bucket)
                && others
                    .into_iter()
                    .all(|fingerprint| is_full(filter.geometry.other(fingerprint, bucket)))
        };
        let new =
            keys.find(|key| needs_moves(locate(key).first) && needs_moves(locate(key).second));
        let new = new.expect("most buckets are full");
        // SAFETY: the child uses nothing of other threads, and aborts or ends here.
        let owner = unsafe { libc::fork() };
        if owner == 0 {
            STORES_LEFT.set(stores);
            let is_refused = !filter.insert(&new);
            // SAFETY: the process may end.
            unsafe { libc::_exit(is_refused.into()) };
        }
        let mut status = 0;
        // SAFETY: the call writes to `status` alone.
        let ended = unsafe { libc::waitpid(owner, &mut status, 0) };
        let is_done = status == 0;
        assert!(ended == owner && (is_done || libc::WIFSIGNALED(status)));

        assert!(all.iter().all(|key| filter.contains(key)), "a key is lost");
        // One that was killed has inserted its key or has not.
        assert!(filter.remove(&new) || !is_done);
        wrong += all.iter().filter(|key| !filter.remove(key)).count();
        wrong += (0..BUCKETS)
            .map(|bucket| Layout::occupied(filter.read(bucket)))
            .sum::<usize>();
        if is_done {
            return (stores, wrong);
        }
    }
    unreachable!()
}

#[test]
fn killed_owner_leaves_each_key_once() {
    let (killed, wrong) = kill_owners();
    // Two moves or more, of eight stores each.
    assert!(killed >= 16 && killed.is_multiple_of(8), "{killed}");
    assert_eq!(wrong, 0);
}

#[test]
fn flawed_repair_is_found() {
    IS_FLAWED.set(true);
    let (_, wrong) = kill_owners();
    assert!(wrong > 0);
}
