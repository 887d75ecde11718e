//! The filter under the model checker, with three buckets of two slots.
//!
//! Run with `scripts/loom.sh`, which prints for each model its threads, its bound on preemptions, and how
//! many executions that was. The changes to the code that each model must catch are kept under
//! `filter/tests/planted/`, and `scripts/planted.sh` shows that it does.
#![cfg(kcas_loom)]

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use filter::hashing::Geometry;
use filter::{CuckooFilter, Full};
use kcas::model::{explore, spawn};

const BUCKETS: usize = 3;

type Small = CuckooFilter<2, 4, Identity>;

/// Keys are their own hashes, so that a test can choose fingerprint and bucket.
#[derive(Clone, Copy, Default)]
struct Identity(u64);

impl BuildHasher for Identity {
    type Hasher = Identity;
    fn build_hasher(&self) -> Identity {
        Identity(0)
    }
}

impl Hasher for Identity {
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are u64")
    }
    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

/// A key that prefers bucket `first` and has `second` as its other one: the `nth` fingerprint of those.
fn key(first: usize, second: usize, nth: usize) -> u64 {
    let geometry = Geometry::<2, 4>::new(BUCKETS);
    (1u64..=15)
        .map(|fingerprint| {
            let high = ((first as u64) << 32) / BUCKETS as u64 + 1;
            high << 32 | fingerprint
        })
        .filter(|&hash| {
            let location = geometry.locate(hash);
            (location.first, location.second) == (first, second)
        })
        .nth(nth)
        .expect("each pair of buckets has four or more of the fifteen fingerprints")
}

/// A filter that holds these keys, each in its preferred bucket.
fn holding(keys: &[u64]) -> Arc<Small> {
    let filter = CuckooFilter::builder()
        .layout::<2, 4>()
        .buckets(BUCKETS)
        .hasher(Identity::default())
        .build()
        .unwrap();
    for key in keys {
        filter.insert(key).unwrap();
    }
    Arc::new(filter)
}

/// Bucket 0 holds a key that can move to bucket 1 and one that cannot; bucket 2 is full of keys that
/// can go nowhere; bucket 1 is empty. An insert of `key(0, 2, _)` must move `key(0, 1, 3)`. (The last
/// fingerprint of its kind is greater than any sequence number here: no tag looks as if it held it.)
fn residents() -> [u64; 4] {
    [key(0, 1, 3), key(0, 0, 0), key(2, 2, 0), key(2, 2, 1)]
}

fn all_present(filter: &Small, keys: &[u64]) {
    for key in keys {
        assert!(filter.contains(key), "{key:#x} is lost");
    }
}

/// A lookup of a resident key while a chain moves it from one of its buckets to the other.
#[test]
fn lookup_of_a_key_that_a_chain_moves() {
    for moved in [key(0, 1, 3), key(1, 0, 3)] {
        explore("lookup_of_a_key_that_a_chain_moves", 5, 20_000, move || {
            let filter = holding(&residents());
            let new = key(0, 2, 0);
            let writer = {
                let filter = Arc::clone(&filter);
                spawn(move || filter.insert(&new))
            };
            assert!(filter.contains(&moved), "a resident key looked absent");
            assert_eq!(writer.join().unwrap(), Ok(()));
            all_present(&filter, &residents());
            all_present(&filter, &[new]);
            assert_eq!(filter.len(), 5);
        });
    }
}

/// A chain moves a resident key into a bucket, and then the key gets back by an insert and a remove of its
/// class, so that the bucket's slots are as they were. A lookup that read the bucket before and after must
/// see that something was added meanwhile.
#[test]
fn a_shift_that_is_taken_back() {
    let (here, there) = (key(0, 1, 3), key(1, 0, 3));
    explore("a_shift_that_is_taken_back", 4, 14_000, move || {
        let filter = holding(&residents());
        assert_eq!(filter.class(&here), filter.class(&there));
        let writer = {
            let filter = Arc::clone(&filter);
            spawn(move || {
                let new = key(0, 2, 0);
                assert_eq!(filter.insert(&new), Ok(()));
                assert!(filter.remove(&new));
                assert_eq!(filter.insert(&here), Ok(()));
                assert!(filter.remove(&there));
            })
        };
        assert!(filter.contains(&there), "a resident key looked absent");
        writer.join().unwrap();
        all_present(&filter, &residents());
        assert_eq!(filter.len(), 4);
    });
}

/// A key's copy changes buckets without a chain: keys of its class are inserted into the one bucket and
/// removed from the other, back and forth, while there is never less than one copy. (This is what the
/// published protocol's counters do not see.)
#[test]
fn hops_by_insert_and_remove() {
    let (here, there) = (key(0, 1, 0), key(1, 0, 0));
    for looked_up in [here, there] {
        explore("hops_by_insert_and_remove", 5, 280, move || {
            let filter = holding(&[here]);
            assert_eq!(filter.class(&here), filter.class(&there));
            let writer = {
                let filter = Arc::clone(&filter);
                spawn(move || {
                    assert_eq!(filter.insert(&there), Ok(()));
                    assert!(filter.remove(&here));
                    assert_eq!(filter.insert(&here), Ok(()));
                    assert!(filter.remove(&there));
                })
            };
            assert!(filter.contains(&looked_up), "a resident key looked absent");
            writer.join().unwrap();
            assert!(filter.contains(&here));
            assert_eq!(filter.len(), 1);
        });
    }
}

/// Two inserts that both must evict, through the same full buckets, into the one bucket with room for
/// both: both succeed and nothing is lost.
#[test]
fn two_evicting_inserts_with_overlapping_chains() {
    explore(
        "two_evicting_inserts_with_overlapping_chains",
        3,
        25_000,
        || {
            let movable = [key(0, 1, 0), key(0, 1, 1), key(2, 1, 0), key(2, 1, 1)];
            let filter = holding(&movable);
            let new = [key(0, 2, 0), key(2, 0, 1)];
            let other = {
                let filter = Arc::clone(&filter);
                spawn(move || filter.insert(&new[1]))
            };
            assert_eq!(filter.insert(&new[0]), Ok(()));
            assert_eq!(other.join().unwrap(), Ok(()));
            all_present(&filter, &movable);
            all_present(&filter, &new);
            assert_eq!(filter.len(), 6);
        },
    );
}

/// The same with room for one: one insert succeeds, the other is told `Full`, and nothing is lost.
#[test]
fn two_evicting_inserts_for_one_slot() {
    explore("two_evicting_inserts_for_one_slot", 3, 19_000, || {
        let movable = [key(0, 1, 0), key(0, 1, 1), key(2, 1, 0), key(2, 1, 1)];
        let filter = holding(&movable);
        let stuck = key(1, 1, 0);
        filter.insert(&stuck).unwrap();
        let new = [key(0, 2, 0), key(2, 0, 1)];
        let other = {
            let filter = Arc::clone(&filter);
            spawn(move || filter.insert(&new[1]))
        };
        let results = [filter.insert(&new[0]), other.join().unwrap()];
        assert!(
            results == [Ok(()), Err(Full)] || results == [Err(Full), Ok(())],
            "one slot, and yet {results:?}"
        );
        all_present(&filter, &movable);
        for (key, result) in new.iter().zip(results) {
            assert_eq!(filter.contains(key), result.is_ok());
        }
        assert_eq!(filter.len(), 6);
    });
}

/// Two removes of the last copy: exactly one takes it.
#[test]
fn two_removes_of_the_last_copy() {
    explore("two_removes_of_the_last_copy", None, 200, || {
        let last = key(0, 1, 0);
        let filter = holding(&[last]);
        let other = {
            let filter = Arc::clone(&filter);
            spawn(move || filter.remove(&last))
        };
        let mine = filter.remove(&last);
        assert!(mine ^ other.join().unwrap(), "one copy, two answers alike");
        assert!(!filter.contains(&last));
        assert_eq!(filter.len(), 0);
    });
}

/// A remove of a key while a chain moves it: the key was there throughout, so the remove finds it.
#[test]
fn remove_of_a_key_that_a_chain_moves() {
    for removed in [key(0, 1, 3), key(1, 0, 3)] {
        explore("remove_of_a_key_that_a_chain_moves", 4, 50_000, move || {
            let filter = holding(&residents());
            let new = key(0, 2, 0);
            let writer = {
                let filter = Arc::clone(&filter);
                spawn(move || filter.insert(&new))
            };
            assert!(filter.remove(&removed), "a resident key looked absent");
            assert_eq!(writer.join().unwrap(), Ok(()));
            assert!(!filter.contains(&removed));
            all_present(&filter, &residents()[1..]);
            all_present(&filter, &[new]);
            assert_eq!(filter.len(), 4);
        });
    }
}

/// An insert for which no chain leads to an empty slot: `Full`, and everything is as before, also when
/// a resident key is removed at the same time (then the insert may find room instead).
#[test]
fn full_leaves_everything() {
    explore("full_leaves_everything", 4, 40, || {
        let stuck = [key(0, 0, 0), key(0, 0, 1), key(1, 1, 0), key(1, 1, 1)];
        let filter = holding(&stuck);
        let new = key(0, 1, 0);
        assert_eq!(filter.insert(&new), Err(Full));
        all_present(&filter, &stuck);
        assert!(!filter.contains(&new));
        let remover = {
            let filter = Arc::clone(&filter);
            spawn(move || filter.remove(&stuck[2]))
        };
        let result = filter.insert(&new);
        assert!(remover.join().unwrap());
        all_present(&filter, &[stuck[0], stuck[1], stuck[3]]);
        assert!(!filter.contains(&stuck[2]));
        assert_eq!(filter.contains(&new), result.is_ok());
        assert_eq!(filter.len(), 3 + usize::from(result.is_ok()));
    });
}

/// Two plain inserts and a remove in one bucket: no copy is lost and none comes from nowhere.
#[test]
fn plain_inserts_and_a_remove_in_one_bucket() {
    explore(
        "plain_inserts_and_a_remove_in_one_bucket",
        None,
        3_500,
        || {
            let (resident, mine, others) = (key(0, 1, 0), key(0, 1, 1), key(0, 1, 2));
            let filter = holding(&[resident]);
            let other = {
                let filter = Arc::clone(&filter);
                spawn(move || {
                    assert_eq!(filter.insert(&others), Ok(()));
                    assert!(filter.remove(&resident));
                })
            };
            assert_eq!(filter.insert(&mine), Ok(()));
            other.join().unwrap();
            all_present(&filter, &[mine, others]);
            assert!(!filter.contains(&resident));
            assert_eq!(filter.len(), 2);
        },
    );
}
