//! From little to millions of keys and back to nothing, while eight threads insert, look up and remove.

use std::array;
use std::sync::atomic::{AtomicU64, Ordering};

use filter::growing::GrowingCuckooFilter;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::at_once::on_threads;
use crate::bounded_memory::resident_bytes;
use crate::limited::held;

const THREADS: u64 = 8;

/// The key of this number of a thread's own.
fn key(thread: u64, number: u64) -> u64 {
    number * THREADS + thread
}

/// Has all threads do something with each number below `numbers`, and say before how far they are.
fn each(numbers: u64, act: impl Fn(u64, u64, &mut SmallRng, &[AtomicU64; 8]) + Sync) {
    let reached = &array::from_fn(|_| AtomicU64::new(0));
    on_threads(THREADS, |thread| {
        let (own, mut random) = (&reached[thread as usize], SmallRng::seed_from_u64(thread));
        for number in 0..numbers {
            own.store(number, Ordering::SeqCst);
            act(thread, number, &mut random, reached);
        }
        own.store(numbers, Ordering::SeqCst);
    });
}

/// `KEYS` in the environment says how many keys there are in the end.
#[test]
#[ignore = "takes long: scripts/deep.sh runs it"]
fn growing_and_shrinking_keeps_millions_of_keys() {
    crate::turn();
    let keys = std::env::var("KEYS").map_or(4_000_000, |keys| keys.parse().expect("a number"));
    let numbers = keys / THREADS;
    let keys = numbers * THREADS;
    // Beyond what it reserves.
    let builder = GrowingCuckooFilter::builder().reserved_bytes(4 << 20);
    let before = resident_bytes();
    let mut filter = builder.buckets(1_280).build().unwrap();
    let (first, held_first) = (filter.memory_bytes(), held());
    let say = |when: &str, filter: &GrowingCuckooFilter| {
        let (keys, bytes) = (filter.len(), filter.memory_bytes());
        let (resident, held) = (resident_bytes().saturating_sub(before), held());
        println!("{when}: {keys} keys, {bytes} bytes, resident {resident}, allocated {held}");
        resident
    };
    say("at first", &filter);
    // One key in four is removed soon, and inserted again. Those stay that others look up.
    each(numbers, |thread, number, random, reached| {
        filter.insert(&key(thread, number)).unwrap();
        assert!(filter.contains(&key(thread, random.random_range(0..=number))));
        let again = key(thread, (number / 2) & !3);
        if number % 4 == 0 {
            assert!(filter.remove(&again).unwrap(), "{again} cannot be removed");
            filter.insert(&again).unwrap();
        }
        let other = random.random_range(0..THREADS);
        let until = reached[other as usize].load(Ordering::SeqCst);
        let old = key(other, random.random_range(0..until.max(1)) | 3);
        let is_here = old >= key(other, until) || filter.contains(&old);
        assert!(is_here, "{old} is missing");
    });
    let top = say("at the top", &filter);
    assert_eq!(filter.len() as u64, keys);
    assert!(top < filter.memory_bytes() * 5 / 4 + (8 << 20), "{top}");
    // A copy is counted slot by slot.
    assert_eq!(filter.try_clone().unwrap().len() as u64, keys);
    each(numbers, |thread, number, random, reached| {
        assert!(
            filter.remove(&key(thread, number)).unwrap(),
            "{thread}: {number}"
        );
        let other = random.random_range(0..THREADS);
        let until = reached[other as usize].load(Ordering::SeqCst);
        let late = random.random_range(until.min(numbers - 1)..numbers);
        // Unless it was removed meanwhile.
        let is_here = filter.contains(&key(other, late));
        let is_gone = || reached[other as usize].load(Ordering::SeqCst) >= late;
        assert!(is_here || is_gone(), "{other}: {late}");
    });
    say("emptied", &filter);
    assert_eq!((filter.len(), filter.try_clone().unwrap().len()), (0, 0));
    // What is left of keys of more than eight doublings.
    let found = (0..keys).filter(|key| filter.contains(key)).count();
    println!("{found} removed keys seem to be there");
    assert!(found as f64 <= keys as f64 * filter.false_positive_rate());
    filter.shrink_to_fit();
    say("shrunk", &filter);
    assert_eq!(filter.memory_bytes(), first);
    // What is resident says little: the allocator keeps more than the table took. Records of threads stay.
    let held = held();
    assert!(held < held_first + (1 << 20), "{held} of {held_first}");
    assert!(!(0..keys).any(|key| filter.contains(&key)));
}
