//! Copying a filter while keys move at chosen steps of the copying: at any of them, and at the
//! worst ones.

mod small;

use std::sync::Arc;

use filter::{CuckooFilter, SnapshotError};
use kcas::steps::with_hook;
use small::{BUCKETS, Small, holding, key};

/// Copies the filter, with `hook` run before each step.
fn copy_with(filter: &Small, hook: impl FnMut(u64) + 'static) -> Result<Small, SnapshotError> {
    with_hook(hook, || filter.try_clone())
}

/// All ordered pairs of buckets.
const PAIRS: [(usize, usize); 6] = [(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0)];

/// One copy of each class in `hopping` hops to the class's other bucket before each of some steps,
/// for every choice of these steps among the first 14. Every copy of the filter has each of them
/// once, and also the keys that stay.
fn hop_at_any_steps<const N: usize>(hopping: [[u64; 2]; N], staying: &[u64]) {
    const STEPS: u32 = 14;
    let all = Vec::from_iter(hopping.iter().map(|pair| &pair[0]).chain(staying).copied());
    for choice in 0u32..1 << STEPS {
        let filter = holding(&all);
        let others = Arc::clone(&filter);
        let mut hops = 0;
        let copy = copy_with(&filter, move |step| {
            if step < u64::from(STEPS) && choice >> step & 1 == 1 {
                for keys in hopping {
                    assert_eq!(others.insert(&keys[(hops + 1) % 2]), Ok(()));
                    assert!(others.remove(&keys[hops % 2]));
                }
                hops += 1;
            }
        });
        let copy = copy.unwrap();
        for key in &all {
            assert_eq!(copy.count(key), 1, "{key:#x}, hops {choice:b}");
        }
        assert_eq!(copy.len(), all.len());
    }
}

/// Two buckets change: both are read at one moment.
#[test]
fn a_key_that_hops_at_any_steps_is_copied_once() {
    for (here, there) in PAIRS {
        hop_at_any_steps(
            [[key(here, there, 0), key(there, here, 0)]],
            &[key(here, there, 1), key(there, there, 0)],
        );
    }
}

/// All three buckets change: they are read again and again.
#[test]
fn two_keys_that_hop_at_any_steps_are_copied_once() {
    for (here, there) in PAIRS {
        let third = 3 - here - there;
        hop_at_any_steps(
            [
                [key(here, there, 0), key(there, here, 0)],
                [key(third, here, 0), key(here, third, 0)],
            ],
            &[key(there, there, 0)],
        );
    }
}

fn filter_of(buckets: usize) -> Arc<CuckooFilter> {
    Arc::new(CuckooFilter::builder().buckets(buckets).build().unwrap())
}

/// Buckets change all over the table before each step: the number of steps is limited.
#[test]
fn a_copy_that_comes_to_no_end_is_given_up() {
    for buckets in [30, 1_000] {
        let filter = filter_of(buckets);
        let others = Arc::clone(&filter);
        let most = 32 * buckets as u64 + 4_096;
        let hook = move |step| {
            assert!(step < most, "it goes on after {most} steps");
            for key in 16 * step..16 * (step + 1) {
                others.insert(&key).unwrap();
                assert!(others.remove(&key));
            }
        };
        let copy = with_hook(hook, || filter.try_clone());
        assert_eq!(copy.unwrap_err(), SnapshotError::TooBusy, "{buckets}");
    }
}

/// So much changes between the first and the second read that the list of changes is too long: the
/// copy begins again, and never takes more than three tables.
#[test]
fn a_table_that_is_replaced_meanwhile_takes_no_more_than_three() {
    const BUCKETS: u64 = 1 << 14;
    const KEYS: u64 = 2 * BUCKETS;
    for (times, copied) in [(0, true), (1, true), (3, true), (u64::MAX, false)] {
        let filter = filter_of(BUCKETS as usize);
        (0..KEYS).for_each(|key| filter.insert(&(0_u64, key)).unwrap());
        let others = Arc::clone(&filter);
        let mut replaced = 0;
        let hook = move |step| {
            if step % BUCKETS == 0 && step > 0 && replaced < times {
                for key in 0..KEYS {
                    assert!(others.remove(&(replaced, key)));
                    others.insert(&(replaced + 1, key)).unwrap();
                }
                replaced += 1;
            }
        };
        let mut copy = None;
        let measured = allocation_counter::measure(|| {
            copy = Some(with_hook(hook, || filter.try_clone()));
        });
        let tables = measured.bytes_max as f64 / (8 * BUCKETS) as f64;
        println!("replaced {times} times: {tables:.2} tables");
        assert!(tables < 3.2, "{measured:?}");
        match copy.unwrap() {
            Ok(copy) => {
                assert!(copied);
                assert_eq!(copy.len() as u64, KEYS);
                assert!((0..KEYS).all(|key| copy.contains(&(times, key))));
            }
            Err(error) => assert_eq!((error, copied), (SnapshotError::TooBusy, false)),
        }
    }
}

/// Keys of three classes, two of which are in a table that is always full. Between the second reads
/// of the two buckets, the key in bucket 0 goes, the one in bucket 1 takes its place, and the third
/// one takes that one's place: then the copy needs all three.
#[derive(Clone, Copy)]
struct Roundabout {
    first: usize,
}

impl Roundabout {
    /// All slots are taken; keys of other classes cannot move anywhere.
    fn filter(self) -> Arc<Small> {
        holding(&[
            key(0, 1, 0),
            key(0, 0, 0),
            key(1, 0, 1),
            key(1, 1, 0),
            key(2, 2, 0),
            key(2, 2, 1),
        ])
    }

    fn turn(&mut self, filter: &Small) {
        let class = |n| (self.first + n) % 3;
        assert!(filter.remove(&key(0, 1, class(0))));
        assert_eq!(filter.insert(&key(0, 1, class(1))), Ok(()));
        assert!(filter.remove(&key(1, 0, class(1))));
        assert_eq!(filter.insert(&key(1, 0, class(2))), Ok(()));
        self.first += 1;
    }
}

/// Steps before the second read of bucket 1.
const WORST: u64 = BUCKETS as u64 + 1;

/// Copies the filter while the roundabout turns in each of the first attempts, which have `length`
/// steps each; returns the result and the number of steps.
fn copy_in(attempts: u64, length: u64) -> (Result<Small, SnapshotError>, u64) {
    use std::sync::atomic::{AtomicU64, Ordering};

    let mut roundabout = Roundabout { first: 0 };
    let filter = roundabout.filter();
    let others = Arc::clone(&filter);
    let steps = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&steps);
    let copy = copy_with(&filter, move |step| {
        counter.store(step + 1, Ordering::Relaxed);
        if step % length == WORST && step / length < attempts {
            roundabout.turn(&others);
        }
    });
    (copy, steps.load(Ordering::Relaxed))
}

#[test]
fn a_copy_for_which_there_is_no_room_is_begun_again_and_given_up_in_the_end() {
    let undisturbed = copy_in(0, u64::MAX).1;
    let (copy, steps) = copy_in(1, u64::MAX);
    assert_eq!(copy.unwrap().len(), 6);
    let length = steps - undisturbed;
    assert!(length > undisturbed, "the first attempt failed late");
    for attempts in [2, 3, 10] {
        let (copy, steps) = copy_in(attempts, length);
        let copy = copy.unwrap();
        assert_eq!(steps, attempts * length + undisturbed);
        let class = |n| ((attempts as usize) + n) % 3;
        assert_eq!(copy.count(&key(0, 1, class(0))), 1);
        assert_eq!(copy.count(&key(0, 1, class(1))), 1);
        assert_eq!(copy.count(&key(0, 1, class(2))), 0);
        assert_eq!(copy.len(), 6);
    }
    let (copy, _) = copy_in(u64::MAX, length);
    let error = copy.expect_err("there is no room at any time");
    assert_eq!(error, SnapshotError::TooBusy);
    assert!(error.to_string().contains("try again when fewer threads"));
}
