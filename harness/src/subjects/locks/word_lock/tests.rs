//! Words, locks, and chains that are stopped or fail.

use subject::layout::FINGERPRINT_BITS;

use super::*;

/// Returns a word with these fingerprints, the first in the lowest slot.
fn word(fingerprints: [u64; SLOTS_PER_BUCKET]) -> u64 {
    let slots = fingerprints.into_iter().enumerate();
    slots.fold(0, |word, (slot, fingerprint)| {
        word | fingerprint << (slot * FINGERPRINT_BITS)
    })
}

/// Returns a filter of two buckets with these words, and a key that prefers the first.
fn two_buckets(words: [u64; 2]) -> (WordLock, u64) {
    let filter = WordLock::with_buckets(2).unwrap();
    let prefers_the_first = |key: &u64| {
        let location = filter.table.locate(key);
        [location.first, location.second] == [0, 1]
    };
    let key = (0..).find(prefers_the_first).unwrap();
    for (bucket, word) in words.into_iter().enumerate() {
        filter.free(bucket, word);
    }
    (filter, key)
}

#[test]
fn insert_prefers_emptier_bucket_above_half_load() {
    let chosen = |first, second| {
        let (filter, key) = two_buckets([first, second]);
        let location = filter.table.locate(&key);
        filter.choose(location).map(|(bucket, _)| bucket)
    };
    let [none, two, three, full] = [[0; 4], [1, 0, 1, 0], [1, 1, 0, 1], [1; 4]].map(word);
    assert_eq!(chosen(two, none), Some(0));
    assert_eq!(chosen(three, two), Some(1));
    assert_eq!(chosen(three, three), Some(0));
    assert_eq!(chosen(full, three), Some(1));
    assert_eq!(chosen(three, full), Some(0));
    assert_eq!(chosen(full, full), None);
    assert_eq!(chosen(none | LOCK, three), Some(1));
    assert_eq!(chosen(full, none | LOCK), None);
}

#[cfg(feature = "steps")]
mod while_a_chain_moves {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::sync::Arc;

    use filter::internals::path::Chain;
    use kcas_testing::steps::{freeze, with_hook};

    use super::*;

    const BUCKETS: usize = 64;

    /// Returns a filter, a new key, and the path of three buckets or more that makes room for it.
    fn with_long_chain() -> (WordLock, u64, Chain) {
        let filter = WordLock::with_buckets(BUCKETS).unwrap();
        for key in 0_u64.. {
            let location = filter.table.locate(&key);
            let read = |bucket| filter.read(bucket);
            let chain = find_chain(&filter.table.geometry, location, read);
            let chain = chain.expect("a chain of three comes before the table is full");
            if chain.len() >= 3 {
                return (filter, key, chain);
            }
            assert!(filter.insert(&key));
        }
        unreachable!("there are more keys than slots")
    }

    /// Each key is looked up before every step of an insert; the new one is found after its path.
    #[test]
    fn chain_stopped_anywhere_hides_no_key() {
        let (filter, new, chain) = with_long_chain();
        let filter = Rc::new(filter);
        let (waits, finds) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let (other, waiting, finding) = (Rc::clone(&filter), Rc::clone(&waits), Rc::clone(&finds));
        let hook = move |_| {
            let look = |key: u64| other.look(other.table.locate(&key));
            for found in (0..new).map(look) {
                assert_ne!(found, Some(false));
                waiting.set(waiting.get() + usize::from(found.is_none()));
            }
            finding.set(finding.get() + usize::from(look(new) == Some(true)));
        };
        let location = filter.table.locate(&new);
        assert!(with_hook(hook, || filter.place(location)));
        assert!(waits.get() > 0, "there is a moment at which one must wait");
        // The steps after the path took effect, which clear the locks.
        assert_eq!(finds.get(), chain.len() - 1);
        assert!((0..=new).all(|key| filter.contains(&key)));
        assert!((0..BUCKETS).all(|bucket| is_free(filter.read(bucket))));
    }

    /// The only bucket with the fingerprint is locked, and is unlocked later, with the
    /// fingerprint or without. Checks the call's answer and what is left in the bucket.
    fn waits_for(bucket: usize, with: bool, call: impl Fn(&WordLock, u64) -> bool) -> (bool, u64) {
        let (filter, key) = two_buckets([0; 2]);
        let held = word([filter.table.locate(&key).fingerprint, 0, 0, 0]);
        filter.free(bucket, held | LOCK);
        let filter = Rc::new(filter);
        let other = Rc::clone(&filter);
        let hook = move |step| {
            // A lookup has made three loads that give no answer, and two more.
            if step == 5 {
                other.free(bucket, if with { held } else { 0 });
            }
        };
        let answer = with_hook(hook, || call(&filter, key));
        (answer, Layout::slots(filter.read(bucket)))
    }

    #[test]
    fn lookups_and_removes_wait_for_locked_bucket() {
        for bucket in [0, 1] {
            let contains = |filter: &WordLock, key| filter.contains(&key);
            assert!(!waits_for(bucket, false, contains).0);
            assert!(waits_for(bucket, true, contains).0);
            let remove = |filter: &WordLock, key| filter.remove(&key);
            assert_eq!(waits_for(bucket, true, remove), (true, 0));
            assert_eq!(waits_for(bucket, false, remove), (false, 0));
        }
    }

    /// A path whose root has changed, and the fingerprint between its second and third bucket.
    fn failing_chain() -> (WordLock, Chain, Location) {
        let (filter, _, mut chain) = with_long_chain();
        chain[0].word = Layout::advance(chain[0].word);
        let moving = Location {
            fingerprint: Layout::fingerprint(chain[1].word, chain[1].slot),
            first: chain[2].bucket,
            second: chain[1].bucket,
        };
        assert!(!Layout::contains(chain[2].word, moving.fingerprint));
        let left = Layout::clear(chain[1].word, chain[1].slot);
        assert!(!Layout::contains(left, moving.fingerprint));
        (filter, chain, moving)
    }

    /// The lookup reads one bucket before a path puts the fingerprint there, the other after
    /// that one has lost it, and the first one again after the path has failed and everything
    /// is as it was.
    #[test]
    fn lookup_is_not_misled_by_failed_chain() {
        let (filter, chain, moving) = failing_chain();
        let filter = Arc::new(filter);
        let other = Arc::clone(&filter);
        let (mut chain, mut frozen) = (Some(chain), None);
        // The steps of the lookup: first word, second, first again.
        let hook = move |at| match at {
            1 => {
                let (filter, chain) = (Arc::clone(&other), chain.take().unwrap());
                // The path must fail at its last exchange.
                let last = chain.len() as u64 - 1;
                let stopped = freeze(last, move || filter.shift(&chain, 1));
                frozen = Some(stopped.expect("it has so many steps"));
            }
            2 => assert!(!frozen.take().unwrap().thaw()),
            _ => {}
        };
        assert_eq!(with_hook(hook, || filter.look(moving)), None);
        assert_eq!(filter.look(moving), Some(true));
    }
}
