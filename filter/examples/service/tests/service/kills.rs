//! Ending the service under load: after a kill, what was acknowledged before the last completed save
//! is there; after a signal, all of it.

use std::collections::BTreeSet;
use std::fs::File;
use std::thread;
use std::time::{Duration, Instant};

use filter::CuckooFilter;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tempfile::TempDir;

use crate::{Client, Ledger, Running, Shared, State};

/// Number of keys that a client holds, about; then it removes as often as it inserts.
const HELD: usize = 300;

/// Inserts new keys, and removes some of them, until nobody answers.
fn change(shared: &Shared, client: &Client, mut rng: StdRng) {
    let mut held = Vec::new();
    loop {
        let begun = Instant::now();
        if rng.random_range(0..2 * HELD) >= held.len() {
            let key = shared.new_key();
            let Ok((status, ..)) = client.post(&format!("/insert?key={key}")) else {
                return;
            };
            assert_eq!(status, 200);
            shared.note(key, State::Held, begun);
            held.push(key);
        } else {
            let key = held.swap_remove(rng.random_range(0..held.len()));
            shared.note(key, State::Removing, begun);
            let Ok((_, _, removed)) = client.post(&format!("/remove?key={key}")) else {
                return;
            };
            assert_eq!(removed, "true", "{key} was there");
            shared.note(key, State::Removed, begun);
        }
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
        let service = Running::start(&file, &[]);
        shared.run(service, &mut rng, change, is_enough, |service| {
            // Into the middle of a save, wherever that is.
            thread::sleep(Duration::from_micros(wait));
            service.kill();
        });
        let ledger = shared.ledger.into_inner().unwrap();
        let service = Running::start(&file, &[]);
        let client = service.client();
        let saved = ledger.saved.unwrap();
        for (key, (state, [_, answered])) in ledger.keys {
            if state == State::Held && answered < saved {
                assert!(client.contains(key), "{key} was saved, and is denied");
                kept += 1;
            } else if state == State::Removed && answered < saved {
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

#[test]
fn a_save_removes_what_one_that_was_killed_has_left() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("saved");
    std::fs::write(directory.path().join("saved.partial0"), "a part").unwrap();
    let service = Running::start(&file, &[]);
    assert_eq!(service.client().post("/save").unwrap().0, 200);
    service.kill();
    let files = std::fs::read_dir(directory.path()).unwrap();
    let left = BTreeSet::from_iter(files.map(|entry| entry.unwrap().file_name()));
    assert_eq!(left, BTreeSet::from(["saved".into(), "saved.lock".into()]));
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
        let service = Running::start(&file, &[]);
        let end = |service: Running| service.stop(signal);
        shared.run(service, &mut rng, change, is_enough, end);
        let service = Running::start(&file, &[]);
        for (key, (state, _)) in &shared.ledger.lock().unwrap().keys {
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
