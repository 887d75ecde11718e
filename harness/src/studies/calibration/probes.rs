//! Small measurements of the machine at hand, none of which runs a subject.

use std::hint::{self, black_box};
use std::sync::Condvar;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use crossbeam_utils::CachePadded;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use crate::machine::{Cores, are_alike, hand_over, on_both};
use crate::results::median;

/// How often a measurement is repeated. The least counts, as whatever else the machine does only adds to it.
pub(super) const TIMES: usize = 40;

/// Two cache lines, in bytes. Cores fetch lines in pairs, so a walk visits one of each: the other one would be there before it
/// is asked for. (Random accesses use both, as tables do.)
const PAIR: usize = 128;

/// Repeats a measurement, and returns the least.
fn repeated(measure: impl FnMut(usize) -> f64) -> f64 {
    (0..TIMES).map(measure).fold(f64::INFINITY, f64::min)
}

/// Steps of threads that disturb each other, and how often they are repeated: few long runs, as
/// threads do not begin at the same moment. The median counts: the least would be that of threads
/// which did not run at the same time.
const STEPS_TOGETHER: usize = 4_000_000;
const TIMES_TOGETHER: usize = 15;

/// Returns what two cores take as a share of a hand-over. Measures again where the hand-overs just before
/// and just after differ, as the cores of a virtual machine may move.
fn share_of_hand_over(cores: &Cores, mut measure: impl FnMut() -> f64) -> f64 {
    let hand_over = || hand_over(cores, [0, 1], 5);
    let (mut stayed, mut moved) = (Vec::new(), Vec::new());
    for _ in 0..5 * TIMES_TOGETHER {
        let (before, taken, after) = (hand_over(), measure(), hand_over());
        let shares = if are_alike(before, after) {
            &mut stayed
        } else {
            &mut moved
        };
        shares.push(taken / f64::midpoint(before, after));
        if stayed.len() == TIMES_TOGETHER {
            break;
        }
    }
    median(&mut if stayed.is_empty() { moved } else { stayed })
}

/// Steps between two looks at whether another thread has stopped.
const AT_A_TIME: usize = 200;

/// Returns the nanoseconds that a call takes, on average over this many.
fn each(times: usize, mut action: impl FnMut(usize)) -> f64 {
    let start = Instant::now();
    (0..times).for_each(&mut action);
    start.elapsed().as_secs_f64() * 1e9 / times as f64
}

/// How long a load takes whose address depends on the one before, in a table of this size.
pub(super) fn dependent_loads(bytes: usize) -> f64 {
    let chain = chain(bytes / PAIR);
    let mut at = 0;
    let mut walk = |steps| each(steps, |_| at = black_box(chain[at * PAIR / 8] as usize));
    walk(chain.len() / 8);
    repeated(|_| walk(50_000))
}

/// A walk that visits one line of each pair once, in random order.
fn chain(lines: usize) -> Vec<u64> {
    let mut order: Vec<usize> = (0..lines).collect();
    order.shuffle(&mut SmallRng::seed_from_u64(1));
    let mut chain = vec![0; lines * PAIR / 8];
    for (place, &line) in order.iter().enumerate() {
        chain[line * PAIR / 8] = order[(place + 1) % lines] as u64;
    }
    chain
}

/// How much longer a load takes in a table of this size than in one in the nearest cache, if its address depends on no other
/// load.
pub(super) fn independent_loads(bytes: usize) -> f64 {
    let table = vec![1_u64; bytes / 8];
    let mut sum = 0;
    let mut loads = |len: usize| {
        let mut random = SmallRng::seed_from_u64(1);
        repeated(|_| each(100_000, |_| sum += table[place(&mut random, len)]))
    };
    let measured = loads(table.len()) - loads(512);
    black_box(sum);
    measured
}

/// Random numbers that are drawn before each access, at a dozen instructions each: together about as many as one lookup in a
/// fixed-size filter takes.
/// The more there are, up to some fifty, the fewer of the next accesses a core sees while it waits for a line.
const DRAWS: usize = 5;

/// Draws a place in a table of this length.
fn place(random: &mut SmallRng, len: usize) -> usize {
    let drawn = (0..DRAWS).fold(0, |drawn, _| drawn ^ random.random::<u64>());
    ((u128::from(drawn) * len as u128) >> 64) as usize
}

/// An exchange alone.
pub(super) fn exchange(word: &AtomicU64) {
    word.fetch_add(1, Ordering::Relaxed);
}

/// A load, and an exchange that depends on it.
pub(super) fn load_then_exchange(word: &AtomicU64) {
    let seen = word.load(Ordering::Relaxed);
    let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
    let _ = word.compare_exchange(seen, seen + 1, success, failure);
}

/// How much longer an update of a random word of a table takes on two threads, as a share of a hand-over.
pub(super) fn shared_updates(
    cores: &Cores,
    bytes: usize,
    update: impl Fn(&AtomicU64) + Sync,
) -> f64 {
    let table: Vec<AtomicU64> = (0..bytes / 8).map(|_| AtomicU64::new(0)).collect();
    let run = |me: usize, steps: usize| {
        let mut random = SmallRng::seed_from_u64(me as u64);
        each(steps, |_| update(&table[place(&mut random, table.len())]))
    };
    cores.pin(0);
    run(0, STEPS_TOGETHER);
    let alone = repeated(|_| run(0, STEPS_TOGETHER / 100));
    share_of_hand_over(cores, || {
        on_both(cores, [0, 1], |me| run(me, STEPS_TOGETHER)) - alone
    })
}

/// How long a load takes of a line that the other core has written, in a table of this size, as a share of a hand-over.
pub(super) fn written_elsewhere(cores: &Cores, bytes: usize) -> f64 {
    let chain: Vec<AtomicU64> = chain(bytes / PAIR)
        .into_iter()
        .map(AtomicU64::new)
        .collect();
    share_of_hand_over(cores, || {
        let [written, read] = [const { CachePadded::new(AtomicBool::new(false)) }; 2];
        // Twice the average of the two, as the writer counts as nothing.
        2.0 * on_both(cores, [0, 1], |me| {
            if me == 1 {
                // The word beside each one that is read.
                chain.iter().skip(1).step_by(PAIR / 8).for_each(exchange);
                // Release: with the Acquire of the reader.
                written.store(true, Ordering::Release);
                // A core that sleeps may empty its caches.
                while !read.load(Ordering::Relaxed) {
                    hint::spin_loop();
                }
                return 0.0;
            }
            // Acquire: with the Release of the writer.
            while !written.load(Ordering::Acquire) {
                hint::spin_loop();
            }
            let mut at = 0;
            let taken = each(chain.len() * 8 / PAIR, |_| {
                at = black_box(chain[at * PAIR / 8].load(Ordering::Relaxed) as usize);
            });
            read.store(true, Ordering::Relaxed);
            taken
        })
    })
}

/// How long an exchange of a word in the nearest cache takes, by one core.
pub(super) fn exchange_alone() -> f64 {
    let word = AtomicU64::new(0);
    repeated(|_| each(100_000, |_| exchange(&word)))
}

/// How long an exchange of one word takes, on average, when two cores do nothing else, as a share of a
/// hand-over. Each stops when the other does: one that goes on alone is no longer disturbed.
pub(super) fn contended_exchange(cores: &Cores) -> f64 {
    let word = CachePadded::new(AtomicU64::new(0));
    share_of_hand_over(cores, || {
        let stop = CachePadded::new(AtomicBool::new(false));
        on_both(cores, [0, 1], |_| {
            let (start, mut done) = (Instant::now(), 0);
            while done < STEPS_TOGETHER / 10 && !stop.load(Ordering::Relaxed) {
                (0..AT_A_TIME).for_each(|_| exchange(&word));
                done += AT_A_TIME;
            }
            stop.store(true, Ordering::Relaxed);
            start.elapsed().as_secs_f64() * 1e9 / done as f64
        }) / 2.0
    })
}

/// How long a pause takes; to give the core away when nobody wants it; and a system call that wakes
/// nobody: on Linux, a condition variable always asks.
pub(super) fn waiting() -> [f64; 3] {
    let nobody = Condvar::new();
    [
        repeated(|_| each(10_000, |_| hint::spin_loop())),
        repeated(|_| each(1_000, |_| thread::yield_now())),
        repeated(|_| each(1_000, |_| nobody.notify_one())),
    ]
}

/// How long it takes to wake a sleeper, and from then until it runs.
pub(super) fn wake(cores: &Cores) -> [f64; 2] {
    const TRIPS: usize = 200;
    let mut least = [f64::INFINITY; 2];
    for _ in 0..TIMES {
        let turn = AtomicU64::new(0);
        let main = thread::current();
        cores.pin(0);
        thread::scope(|scope| {
            let other = scope.spawn(|| {
                cores.pin(1);
                for trip in 0..TRIPS as u64 {
                    // Acquire pairs with the Release of the other thread.
                    while turn.load(Ordering::Acquire) != 2 * trip + 1 {
                        thread::park();
                    }
                    turn.store(2 * trip + 2, Ordering::Release);
                    main.unpark();
                }
            });
            let mut waking = 0.0;
            let trip = each(TRIPS, |trip| {
                turn.store(2 * trip as u64 + 1, Ordering::Release);
                let start = Instant::now();
                other.thread().unpark();
                waking += start.elapsed().as_secs_f64() * 1e9;
                while turn.load(Ordering::Acquire) != 2 * trip as u64 + 2 {
                    thread::park();
                }
            });
            let wake = waking / TRIPS as f64;
            let awake = (trip / 2.0 - wake).max(0.0);
            least = [least[0].min(wake), least[1].min(awake)];
        });
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_visits_each_line_once() {
        let chain = chain(100);
        let (mut at, mut seen) = (0, vec![false; 100]);
        for _ in 0..100 {
            at = chain[at * PAIR / 8] as usize;
            assert!(!std::mem::replace(&mut seen[at], true));
        }
        assert_eq!(at, 0);
    }
}
