//! A copy of a filter in which keys move at chosen steps of the copying: at any of them, and at the worst ones.

mod small;

use std::sync::Arc;

use filter::SnapshotError;
use kcas::steps::with_hook;
use small::{BUCKETS, Small, holding, key};

/// Copies the filter, with `hook` run before each step.
fn copy_with(filter: &Small, hook: impl FnMut(u64) + 'static) -> Result<Small, SnapshotError> {
    with_hook(hook, || filter.try_clone())
}

/// One copy of a class hops to the class's other bucket before each of some steps, for each choice of these steps among
/// the first 14, which are four rounds and more. It is once in every copy; and so are keys that stay.
#[test]
fn a_key_that_hops_at_any_steps_is_copied_once() {
    const STEPS: u32 = 14;
    let mut copies = 0;
    for (here, there) in [(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0)] {
        for choice in 0u32..1 << STEPS {
            let hopping = [key(here, there, 0), key(there, here, 0)];
            let staying = [key(here, there, 1), key(there, there, 0)];
            let filter = holding(&[hopping[0], staying[0], staying[1]]);
            let others = Arc::clone(&filter);
            let mut hops = 0;
            let copy = copy_with(&filter, move |step| {
                if step < u64::from(STEPS) && choice >> step & 1 == 1 {
                    assert_eq!(others.insert(&hopping[(hops + 1) % 2]), Ok(()));
                    assert!(others.remove(&hopping[hops % 2]));
                    hops += 1;
                }
            });
            let copy = copy.unwrap();
            for key in [hopping[0], staying[0], staying[1]] {
                assert_eq!(copy.count(&key), 1, "{key:#x}, hops {choice:b}");
            }
            assert_eq!(copy.len(), 3);
            copies += 1;
        }
    }
    println!("{copies} copies, each with hops at other steps");
}

/// Keys of three classes, two of which are in a table that is always full. Between the second reads of the
/// two buckets, the one in bucket 0 goes, that in bucket 1 takes its place, and the third takes the place of that:
/// then the copy needs all three.
#[derive(Clone, Copy)]
struct Roundabout {
    first: usize,
}

impl Roundabout {
    /// All slots are taken; what is not of the three classes can go nowhere.
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

/// Copies the filter while the roundabout turns in each of the first attempts, which have `length` steps each: the
/// result, and the number of steps.
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
