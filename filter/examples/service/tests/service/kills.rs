//! Ending the service under load: after a kill, what was acknowledged before the last completed save
//! is there; after a signal, all of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use filter::CuckooFilter;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tempfile::TempDir;

use crate::{Client, Running};

/// Number of keys that a client holds, about; then it removes as often as it inserts.
const HELD: usize = 300;

#[derive(Clone, Copy, PartialEq)]
enum State {
    Held,
    /// It asked for the key to be removed, and has no answer: it may be there or not.
    Removing,
    Removed,
}

/// What all clients know of the keys.
#[derive(Default)]
struct Ledger {
    now: BTreeMap<u64, State>,
    /// What was known when the last completed save began.
    saved: BTreeMap<u64, State>,
    saves: u32,
    changes: u32,
}

#[derive(Default)]
struct Shared {
    ledger: Mutex<Ledger>,
    next_key: AtomicU64,
}

impl Shared {
    fn note(&self, key: u64, state: State) {
        let mut ledger = self.ledger.lock().unwrap();
        ledger.now.insert(key, state);
        ledger.changes += 1;
    }

    /// Inserts new keys, and removes some of them, until nobody answers.
    fn change(&self, client: &Client, mut rng: StdRng) {
        let mut held = Vec::new();
        loop {
            if rng.random_range(0..2 * HELD) >= held.len() {
                let key = self.next_key.fetch_add(1, Ordering::Relaxed);
                let Ok((status, ..)) = client.post(&format!("/insert?key={key}")) else {
                    return;
                };
                assert_eq!(status, 200);
                self.note(key, State::Held);
                held.push(key);
            } else {
                let key = held.swap_remove(rng.random_range(0..held.len()));
                self.note(key, State::Removing);
                let Ok((_, _, removed)) = client.post(&format!("/remove?key={key}")) else {
                    return;
                };
                assert_eq!(removed, "true", "{key} was there");
                self.note(key, State::Removed);
            }
        }
    }

    fn save(&self, client: &Client) {
        let before = || self.ledger.lock().unwrap().now.clone();
        client.save_on(before, |before| {
            let mut ledger = self.ledger.lock().unwrap();
            (ledger.saved, ledger.saves) = (before, ledger.saves + 1);
        });
    }

    /// Starts the service, and ends it while clients change and save the filter, once `is_enough`.
    fn run(
        &self,
        file: &Path,
        rng: &mut StdRng,
        is_enough: impl Fn(&Ledger) -> bool,
        end: impl FnOnce(Running),
    ) {
        let service = Running::start(file, &[]);
        thread::scope(|scope| {
            let mut threads = Vec::new();
            for _ in 0..3 {
                let (client, rng) = (service.client(), StdRng::seed_from_u64(rng.random()));
                threads.push(scope.spawn(move || self.change(&client, rng)));
            }
            let client = service.client();
            threads.push(scope.spawn(move || self.save(&client)));
            // A thread that ends by itself has failed.
            let alive = || !threads.iter().any(|thread| thread.is_finished());
            while !is_enough(&self.ledger.lock().unwrap()) && alive() {
                thread::sleep(Duration::from_millis(1));
            }
            end(service);
        });
    }
}

#[test]
fn a_kill_keeps_what_was_acknowledged_before_a_save() {
    let mut rng = StdRng::seed_from_u64(6);
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("saved");
    let (mut kept, mut absent, mut wrongly_found) = (0, 0, 0);
    for _ in 0..10 {
        let shared = Shared::default();
        let (saves, wait) = (rng.random_range(1..8), rng.random_range(0..20_000));
        let is_enough = |ledger: &Ledger| ledger.saves >= saves;
        shared.run(&file, &mut rng, is_enough, |service| {
            // Into the middle of a save, wherever that is.
            thread::sleep(Duration::from_micros(wait));
            service.kill();
        });
        let ledger = shared.ledger.into_inner().unwrap();
        let service = Running::start(&file, &[]);
        let client = service.client();
        for (key, state) in ledger.saved {
            if state == State::Held && ledger.now[&key] == State::Held {
                assert!(client.contains(key), "{key} was saved, and is denied");
                kept += 1;
            } else if state == State::Removed {
                wrongly_found += usize::from(client.contains(key));
                absent += 1;
            }
        }
        service.kill();
        std::fs::remove_file(&file).unwrap();
        let files = std::fs::read_dir(directory.path()).unwrap();
        let left: BTreeSet<_> = files.map(|entry| entry.unwrap().file_name()).collect();
        // Only the lock and one begun file.
        assert!(left.len() <= 2, "{left:?}");
    }
    assert!(kept > 0 && absent > 0);
    // The filter is nearly empty, and wrong about fewer than one in ten thousand.
    let most = 2 + absent / 1_000;
    assert!(wrongly_found <= most, "{wrongly_found} of {absent}");
}

/// A signal ends it while clients change the filter: nothing is acknowledged that its last save lacks.
#[cfg(unix)]
#[test]
fn a_signal_saves_what_was_acknowledged() {
    let mut rng = StdRng::seed_from_u64(7);
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("saved");
    let shared = Shared::default();
    for round in 0..10 {
        let changes = 100 * (round + 1);
        let signal = ["TERM", "INT"][round as usize % 2];
        let is_enough = |ledger: &Ledger| ledger.changes >= changes;
        shared.run(&file, &mut rng, is_enough, |service| service.stop(signal));
        let service = Running::start(&file, &[]);
        for (key, state) in &shared.ledger.lock().unwrap().now {
            if *state == State::Held {
                assert!(service.client().contains(*key), "{key} is denied");
            }
        }
        service.kill();
    }
}

/// Of two saves at the same time, the older does not replace the file of the younger.
#[test]
fn saves_that_meet_keep_their_order() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("saved");
    let service = Running::start(&file, &[]);
    let (client, shared) = (service.client(), Shared::default());
    thread::scope(|scope| {
        for client in [service.client(), service.client()] {
            let shared = &shared;
            scope.spawn(move || shared.save(&client));
        }
        for key in 0..100 {
            client.post(&format!("/insert?key={key}")).unwrap();
            assert_eq!(client.post("/save").unwrap().0, 200);
            for _ in 0..3 {
                let saved = CuckooFilter::read_from(File::open(&file).unwrap()).unwrap();
                assert!(saved.contains(key.to_string().as_bytes()), "{key} is lost");
            }
        }
        service.kill();
    });
}
