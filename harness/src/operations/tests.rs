//! Phases on an exact set, whose answers are always right.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, Mutex};

use anyhow::Result;
use filter::FixedState;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::*;

/// An exact set with room for a given number of keys, which counts inserts, lookups and removes.
struct Exact {
    room: usize,
    keys: Mutex<HashSet<u64>>,
    calls: Mutex<[u64; 3]>,
    /// The fewest and the most keys present after an operation.
    fewest_and_most: Mutex<(usize, usize)>,
}

impl Exact {
    fn holding(room: usize, inside: Range<u64>) -> Self {
        let subject = Self::with_buckets(room).unwrap();
        *subject.keys.lock().unwrap() = inside.map(|key| FixedState.hash_one(key)).collect();
        *subject.fewest_and_most.lock().unwrap() = (usize::MAX, 0);
        subject
    }

    fn len(&self) -> usize {
        self.keys.lock().unwrap().len()
    }

    /// Works on a phase over the keys 0..400, for this many operations or until it is done.
    fn work(&self, operations: u64, phase: &mut Phase) -> Tally {
        let numbers: Vec<u64> = (0..400).collect();
        let mut tally = Tally::default();
        let mut more = true;
        while more && tally.operations < operations {
            let batch = (operations - tally.operations).min(BATCH as u64) as usize;
            more = phase.perform_batch(self, &numbers, batch, &mut tally);
        }
        tally
    }

    fn call<R>(&self, operation: usize, call: impl FnOnce(&mut HashSet<u64>) -> R) -> R {
        let mut keys = self.keys.lock().unwrap();
        let answer = call(&mut keys);
        self.calls.lock().unwrap()[operation] += 1;
        let (fewest, most) = &mut *self.fewest_and_most.lock().unwrap();
        (*fewest, *most) = (keys.len().min(*fewest), keys.len().max(*most));
        answer
    }
}

impl Subject for Exact {
    const NAME: &'static str = "exact";
    const DESCRIPTION: &'static str = "a hash set under a mutex";
    const GUARANTEES: &'static str = "linearizable; blocking";

    fn with_buckets(room: usize) -> Result<Self> {
        Ok(Self {
            room,
            keys: Mutex::default(),
            calls: Mutex::default(),
            fewest_and_most: Mutex::default(),
        })
    }

    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.call(0, |keys| {
            keys.len() < self.room && keys.insert(FixedState.hash_one(key))
        })
    }

    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.call(1, |keys| keys.contains(&FixedState.hash_one(key)))
    }

    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.call(2, |keys| keys.remove(&FixedState.hash_one(key)))
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>()
    }
}

/// 45 % of lookups of keys 0..100, as many of keys 200..400, and updates of keys 100..200, of which the
/// first 50 are inside.
fn mix() -> Phase {
    let pool = Pool::new((100..200).collect(), 50);
    let keys = ((0..100).collect(), Cycle::new(200..400, 7), pool);
    Phase::Mix(Box::new(Mix::new(
        90,
        keys,
        &mut SmallRng::seed_from_u64(1),
    )))
}

#[test]
fn mix_keeps_percentages_and_load() {
    let subject = Exact::holding(150, 0..150);
    let tally = subject.work(30_000, &mut mix());
    let right = Tally {
        operations: 30_000,
        absent: 13_500,
        ..Tally::default()
    };
    let calls = *subject.calls.lock().unwrap();
    assert_eq!((tally, calls), (right, [1_500, 27_000, 1_500]));
    assert_eq!(*subject.fewest_and_most.lock().unwrap(), (149, 150));
}

/// With less room some keys are refused, until others have made room.
#[test]
fn refused_keys_are_counted_not_lost() {
    let subject = Exact::holding(140, 0..150);
    let tally = subject.work(30_000, &mut mix());
    assert!(tally.refused >= 10 && subject.len().abs_diff(140) <= 1);
    assert_eq!(tally.missing, 0, "{tally:?}");
}

#[test]
fn fills_and_drains_use_every_key_once() {
    let keys = (0..2_600).collect::<Vec<u64>>();
    let (subject, stop) = (Exact::holding(2_500, 0..0), AtomicBool::new(false));
    let counted = AtomicU64::new(0);
    let works = |mut phase: Phase, progress| {
        let watch = Watch {
            progress,
            ..Watch::new(&stop)
        };
        Measured::perform(&subject, &keys, &mut phase, &watch, None)
    };
    let tally = works(Phase::Insert(0..2_600), None);
    assert_eq!((tally.operations, tally.refused), (2_600, 100));
    assert_eq!(subject.count_found(&keys, 0..2_600), 2_500);
    let tally = works(Phase::Remove(0..2_600), None);
    assert_eq!((tally.operations, tally.missing), (2_600, 100));
    assert_eq!(subject.len(), 0);
    stop.store(true, Ordering::Relaxed);
    let tally = works(Phase::Insert(0..2_600), None);
    assert_eq!(tally.operations, BATCH as u64);
    let tally = works(Phase::Insert(0..2_600), Some(&counted));
    assert_eq!((tally.operations, counted.load(Ordering::Relaxed)), (1, 1));
    let mut order = vec![300];
    subject.fill(&keys, &mut order, &stop);
    assert!(order.is_empty());
}

#[test]
fn lookups_cover_keys_and_check_answers() {
    let drawn: Arc<[usize]> = (0..100).collect();
    // One key is lost, or one found that is not there, in each lap.
    for (range, present, absent, wrong) in [
        (0..50, Present::All, 0, [0, 4, 0]),
        (50..100, Present::None, 200, [0, 0, 4]),
        (0..100, Present::Drawn(drawn, 50), 100, [0, 2, 2]),
    ] {
        let cycle = Cycle::new(range, 3);
        let mut phase = Phase::Lookup(Lookups { cycle, present });
        for (inside, wrong) in [50, 49, 51].into_iter().zip(wrong) {
            let subject = Exact::holding(100, 0..inside);
            let tally = subject.work(200, &mut phase);
            assert_eq!((tally.operations, tally.absent), (200, absent));
            assert_eq!(tally.missing + tally.false_positives, wrong);
        }
    }
}
