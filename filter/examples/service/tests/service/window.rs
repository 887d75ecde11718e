//! The service that forgets: for how long it remembers a key, under load and after kills.

use std::thread;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tempfile::TempDir;

use crate::answers::metric;
#[cfg(unix)]
use crate::program;
use crate::{Client, Ledger, Running, Shared, State};

const WINDOW: Duration = Duration::from_secs(2);

/// Asks for new keys, until nobody answers.
fn ask(shared: &Shared, client: &Client, _: StdRng) {
    loop {
        let (key, begun) = (shared.new_key(), Instant::now());
        let Ok((status, _, seen)) = client.post(&format!("/seen?key={key}")) else {
            return;
        };
        assert_eq!(status, 200, "{seen}");
        // One in some hundred thousand is taken for another one.
        if seen == "false" {
            shared.note(key, State::Held, begun);
        }
    }
}

/// Whatever was acknowledged before the last completed save began, and came within the window, is there
/// after a kill; and what is older than two windows is not: a window and a half, and half of one more if the file
/// was saved while a period began. `KILLS` sets how often it is killed.
#[test]
fn a_window_outlives_kills() {
    let kills: u32 = std::env::var("KILLS").map_or(8, |kills| kills.parse().unwrap());
    let mut rng = StdRng::seed_from_u64(8);
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("saved");
    let (mut kept, mut forgotten, mut wrongly_found) = (0, 0, 0);
    let shared = Shared::default();
    for _ in 0..kills {
        let service = Running::start(&file, &["--window", "2"]);
        let wait = rng.random_range(300..900);
        let end = |service: Running| {
            thread::sleep(Duration::from_millis(wait));
            service.kill();
        };
        let is_saved = |ledger: &Ledger| ledger.saves > 0;
        shared.run(service, &mut rng, ask, is_saved, end);
        let service = Running::start(&file, &["--window", "2"]);
        let client = service.client();
        let mut ledger = shared.ledger.lock().unwrap();
        let saved = ledger.saved.unwrap();
        for (key, (_, [begun, answered])) in &ledger.keys {
            let asked = Instant::now();
            let found = client.contains(*key);
            if *answered < saved && begun.elapsed() < WINDOW {
                assert!(found, "{key} came within the window, and is denied");
                kept += 1;
            } else if asked - *answered > WINDOW * 2 {
                wrongly_found += usize::from(found);
                forgotten += 1;
            }
        }
        // What a kill has forgotten may be forgotten; what is too old is of no interest any more.
        ledger.keys.retain(|_, (_, [begun, answered])| {
            *answered < saved && begun.elapsed() < WINDOW * 5 / 2
        });
        service.kill();
    }
    assert!(kept > 100 && forgotten > 100, "{kept} {forgotten}");
    let most = 2 + forgotten / 500;
    assert!(wrongly_found <= most, "{wrongly_found} of {forgotten}");
    println!(
        "{kills} kills: {kept} keys kept, {wrongly_found} of {forgotten} found that are too old"
    );
}

/// Nobody asks for keys meanwhile, which would make the service forget.
#[test]
fn metrics_do_not_count_what_is_forgotten() {
    let directory = TempDir::new().unwrap();
    let service = Running::start(&directory.path().join("saved"), &["--window", "2"]);
    let client = service.client();
    for key in 0..10 {
        assert_eq!(client.post(&format!("/seen?key={key}")).unwrap().2, "false");
    }
    thread::sleep(WINDOW * 3 / 2);
    let (status, _, metrics) = client.get("/metrics").unwrap();
    assert_eq!((status, metric(&metrics, "filter_keys")), (200, 0.0));
    service.kill();
}

#[cfg(unix)]
#[test]
fn a_file_is_of_one_kind_and_of_one_window() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("saved");
    let refused = |options: &[&str], says: &str| {
        // At the latest, it ends because of the address.
        let mut program = program(&file);
        let ended = program.args(["--address", "nowhere"]).args(options);
        let ended = ended.output().unwrap();
        let text = String::from_utf8(ended.stderr).unwrap();
        assert!(!ended.status.success() && text.contains(says), "{text}");
    };
    let service = Running::start(&file, &["--window", "60"]);
    service.client().post("/seen?key=1").unwrap();
    service.stop("TERM");
    refused(&[], "with or without --window as before");
    refused(&["--window", "600"], "with a shorter --window");
    refused(&["--window", "0"], "--window");
    for (window, found) in [("60", true), ("30", false)] {
        let service = Running::start(&file, &["--window", window]);
        let client = service.client();
        assert_eq!(client.contains(1), found, "a window of {window} s");
        service.stop("TERM");
    }
}
