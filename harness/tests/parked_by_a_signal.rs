//! Stops real threads wherever a signal finds them: the others must get on without them, and do, if
//! there is no lock. A signal, unlike a step (`stalls.rs`), comes between any two instructions, and
//! needs no special build.
#![cfg(unix)]

use std::collections::VecDeque;
use std::os::unix::thread::JoinHandleExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use harness::subject::Subject;
use harness::subjects::{GlobalLock, LockFree};
use rand::rngs::SmallRng;
use rand::seq::index;
use rand::{RngExt, SeedableRng};

/// A signal whose handler parks the thread.
mod parking {
    use std::ffi::c_int;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    use nix::errno::Errno;
    use nix::poll::{PollTimeout, poll};
    use nix::sys::pthread::{Pthread, pthread_kill};
    use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

    static HELD: AtomicBool = AtomicBool::new(false);
    static PARKED: AtomicUsize = AtomicUsize::new(0);

    /// Uses only these atomics, `errno`, which it restores, and `poll`, which may be called in a
    /// handler.
    extern "C" fn park_here(_: c_int) {
        let errno = Errno::last_raw();
        PARKED.fetch_add(1, Ordering::SeqCst);
        while HELD.load(Ordering::SeqCst) {
            let _ = poll(&mut [], PollTimeout::from(1_u8));
        }
        PARKED.fetch_sub(1, Ordering::SeqCst);
        Errno::set_raw(errno);
    }

    pub(super) fn prepare() {
        let action = SigAction::new(
            SigHandler::Handler(park_here),
            // Waiting for a lock is resumed afterwards.
            SaFlags::SA_RESTART,
            SigSet::empty(),
        );
        // SAFETY: the handler is safe wherever it interrupts a thread, as it says, and nothing else
        // in this process uses the signal.
        unsafe { sigaction(Signal::SIGUSR1, &action) }.unwrap();
    }

    /// Threads that stay stopped until this is dropped.
    pub(super) struct Parked;

    /// Parks threads that have not ended. At most one call at a time.
    pub(super) fn park(threads: &[Pthread]) -> Parked {
        HELD.store(true, Ordering::SeqCst);
        let parked = Parked;
        for &thread in threads {
            pthread_kill(thread, Signal::SIGUSR1).unwrap();
        }
        wait_for(threads.len());
        parked
    }

    impl Drop for Parked {
        fn drop(&mut self) {
            HELD.store(false, Ordering::SeqCst);
            wait_for(0);
        }
    }

    fn wait_for(parked: usize) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while PARKED.load(Ordering::SeqCst) != parked {
            assert!(Instant::now() < deadline, "a thread has ended early");
            thread::sleep(Duration::from_micros(50));
        }
    }
}

const THREADS: usize = 5;
/// Small and full: threads meet, and about every fourth insert shifts others.
const BUCKETS: usize = 64;
/// Keys of each thread, most of which are in the filter.
const KEYS: u64 = 48;
const OUT: usize = 4;
/// Number of operations that each thread that is not parked must complete while others are.
const OPERATIONS: u64 = 500;

/// Threads that insert, look up and remove their own keys, and check every answer.
struct Workers<S> {
    subject: Arc<S>,
    over: Arc<AtomicBool>,
    /// Number of operations that each has done.
    done: Vec<Arc<AtomicU64>>,
    threads: Vec<JoinHandle<()>>,
}

impl<S: Subject> Workers<S> {
    fn start() -> Self {
        let subject = Arc::new(S::with_buckets(BUCKETS).unwrap());
        let over = Arc::new(AtomicBool::new(false));
        let done: Vec<Arc<AtomicU64>> = (0..THREADS).map(|_| Arc::default()).collect();
        let start = |(thread, done): (u64, &Arc<AtomicU64>)| {
            let (subject, over, done) = (subject.clone(), over.clone(), done.clone());
            let keys = thread * KEYS..(thread + 1) * KEYS;
            thread::spawn(move || work(&*subject, keys.collect(), &over, &done))
        };
        let threads: Vec<_> = (0..).zip(&done).map(start).collect();
        // Wait until threads are past what they do only once, such as allocating, which may take
        // locks of the system.
        let begins = |done: &Arc<AtomicU64>| done.load(Ordering::SeqCst) < OPERATIONS;
        while done.iter().any(begins) {
            let failed = threads.iter().any(JoinHandle::is_finished);
            assert!(!failed, "one has failed");
            thread::sleep(Duration::from_micros(100));
        }
        Self {
            subject,
            over,
            done,
            threads,
        }
    }

    /// Parks one to three of the threads. Returns whether all others got on within the given time.
    fn others_get_on(&self, random: &mut SmallRng, patience: Duration) -> bool {
        let number = random.random_range(1..=3);
        let parked = index::sample(random, THREADS, number).into_vec();
        let handles: Vec<_> = (parked.iter())
            .map(|&thread| self.threads[thread].as_pthread_t())
            .collect();
        thread::sleep(Duration::from_micros(random.random_range(0..300)));
        let _parked = parking::park(&handles);

        let count = |thread: usize| self.done[thread].load(Ordering::SeqCst);
        let before: Vec<u64> = (0..THREADS).map(count).collect();
        let got_on =
            |thread| parked.contains(&thread) || count(thread) - before[thread] >= OPERATIONS;
        let deadline = Instant::now() + patience;
        while !(0..THREADS).all(got_on) {
            if Instant::now() > deadline {
                return false;
            }
            thread::sleep(Duration::from_micros(100));
        }
        // Threads that have not moved are those that were parked.
        parked.iter().all(|&thread| count(thread) == before[thread])
    }

    /// Checks that all keys can be removed, and nothing is left.
    fn finish(self) {
        self.over.store(true, Ordering::SeqCst);
        for thread in self.threads {
            thread.join().unwrap();
        }
        for key in 0..THREADS as u64 * KEYS {
            assert!(!self.subject.contains(&key), "{key} is left");
        }
    }
}

/// Removes the oldest key and inserts another, round and round; at the end removes all.
fn work(subject: &impl Subject, mut out: VecDeque<u64>, over: &AtomicBool, done: &AtomicU64) {
    let count = || done.fetch_add(1, Ordering::SeqCst);
    // Never grows: a thread parked in the allocator would block others.
    let mut inside = VecDeque::with_capacity(out.len());
    while !over.load(Ordering::SeqCst) {
        if let Some(key) = out.pop_front() {
            // A full filter may refuse it.
            let accepted = subject.insert(&key);
            if accepted { &mut inside } else { &mut out }.push_back(key);
            count();
        }
        for key in [inside.front(), inside.back()].into_iter().flatten() {
            assert!(subject.contains(key), "{key} is missing");
            count();
        }
        if out.len() < OUT
            && let Some(key) = inside.pop_front()
        {
            assert!(subject.remove(&key), "{key} cannot be removed");
            out.push_back(key);
            count();
        }
    }
    for key in inside {
        assert!(subject.remove(&key), "{key} cannot be removed");
    }
}

/// Returns the first of `attempts` attempts, if any, in which the threads that were not parked did
/// not get on.
fn first_standstill<S: Subject>(attempts: usize, patience: Duration) -> Option<usize> {
    // Tests share the process, and so the signal.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    parking::prepare();
    let workers = Workers::<S>::start();
    let mut random = SmallRng::seed_from_u64(1);
    let mut attempts = 1..=attempts;
    let standstill = attempts.find(|_| !workers.others_get_on(&mut random, patience));
    workers.finish();
    standstill
}

#[test]
fn parked_threads_hold_up_nobody_without_locks() {
    let standstill = first_standstill::<LockFree>(60, Duration::from_secs(20));
    assert_eq!(standstill, None);
}

/// The same check detects a lock.
#[test]
fn a_thread_parked_with_the_lock_holds_up_all_others() {
    let standstill = first_standstill::<GlobalLock>(100, Duration::from_secs(3));
    println!("standstill in attempt {standstill:?}");
    assert!(standstill.is_some());
}
