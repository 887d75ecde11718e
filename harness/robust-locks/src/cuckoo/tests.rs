//! Owners that are killed before each store of an insert. The owner is a forked child.

use std::cell::Cell;
use std::collections::HashSet;
use std::process::abort;

use filter::Class;

use super::*;

const BUCKETS: usize = 64;

thread_local! {
    static STORES_LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
}

pub(super) fn die_if_due() {
    match STORES_LEFT.get() {
        // No destructor runs, so mutexes stay locked.
        0 => abort(),
        left => STORES_LEFT.set(left - 1),
    }
}

#[test]
fn killed_owner_leaves_each_key_once() {
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
            let other = |slot| (filter.geometry).other(Layout::fingerprint(word, slot), bucket);
            is_full(bucket) && (0..4).map(other).all(is_full)
        };
        let buckets = |key: &u64| [locate(key).first, locate(key).second];
        let new = keys.find(|key| buckets(key).into_iter().all(needs_moves));
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
        assert!(all.iter().all(|key| filter.remove(key)));
        assert!((0..BUCKETS).all(|bucket| Layout::occupied(filter.read(bucket)) == 0));
        if is_done {
            // Two moves or more, of eight stores each.
            assert!(stores >= 16 && stores.is_multiple_of(8), "{stores}");
            return;
        }
    }
}
