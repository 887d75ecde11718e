//! The service: what it answers, what it refuses, and what a kill leaves.

mod answers;
mod kills;
mod window;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use ureq::Agent;

fn program(file: &Path) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_service"));
    program.env("RUST_BACKTRACE", "0").arg(file);
    program
}

/// A service that listens.
struct Running {
    child: Child,
    url: String,
}

impl Running {
    /// Starts it, and waits until it listens.
    fn start(file: &Path, options: &[&str]) -> Running {
        let mut command = program(file);
        command.args(["--address", "127.0.0.1:0", "--capacity", "100000"]);
        command.args(options);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut lines = lines.map(Result::unwrap);
        let url = lines.find_map(|line| Some(line.strip_prefix("listening on ")?.to_owned()));
        Running {
            child,
            url: url.expect("it listens"),
        }
    }

    fn client(&self) -> Client {
        let config = Agent::config_builder().http_status_as_error(false);
        Client {
            agent: config.build().into(),
            url: self.url.clone(),
        }
    }

    /// Ends it at once, wherever it is.
    fn kill(mut self) {
        self.child.kill().unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), None, "it ended by itself");
    }

    /// Asks it to end, and waits until it has.
    #[cfg(unix)]
    fn stop(mut self, signal: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &id]).status();
        assert!(sent.unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }
}

/// No test that fails leaves a service behind.
impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}

struct Client {
    agent: Agent,
    url: String,
}

/// The status, the header `Allow`, and the text without the line's end; an error if nobody answers.
type Answer = Result<(u16, String, String), ureq::Error>;

impl Client {
    fn post(&self, request: &str) -> Answer {
        let url = format!("{}{request}", self.url);
        read(self.agent.post(url).send_empty()?)
    }

    fn get(&self, request: &str) -> Answer {
        read(self.agent.get(format!("{}{request}", self.url)).call()?)
    }

    fn contains(&self, key: u64) -> bool {
        self.get(&format!("/contains?key={key}")).unwrap().2 == "true"
    }
}

fn read(mut answer: ureq::http::Response<ureq::Body>) -> Answer {
    let text = answer.body_mut().read_to_string()?.trim_end().to_owned();
    let allowed = answer.headers().get("allow");
    let allowed = allowed.map_or("", |value| value.to_str().unwrap());
    Ok((answer.status().as_u16(), allowed.to_owned(), text))
}

#[derive(PartialEq)]
enum State {
    Held,
    /// A client asked for the key to be removed, and has no answer: it may be there or not.
    Removing,
    Removed,
}

/// What clients know that change and save the filter.
#[derive(Default)]
struct Ledger {
    /// What was learnt last of each key, when its request began, and when that was answered.
    keys: BTreeMap<u64, (State, [Instant; 2])>,
    changes: u32,
    /// When the last completed save began.
    saved: Option<Instant>,
    saves: u32,
}

#[derive(Default)]
struct Shared {
    ledger: Mutex<Ledger>,
    next_key: AtomicU64,
}

impl Shared {
    fn new_key(&self) -> u64 {
        self.next_key.fetch_add(1, Ordering::Relaxed)
    }

    fn note(&self, key: u64, state: State, begun: Instant) {
        let known = (state, [begun, Instant::now()]);
        let mut ledger = self.ledger.lock().unwrap();
        ledger.keys.insert(key, known);
        ledger.changes += 1;
    }

    /// Saves again and again, until nobody answers.
    fn save(&self, client: &Client) {
        loop {
            let begun = Instant::now();
            let Ok((status, ..)) = client.post("/save") else {
                return;
            };
            assert_eq!(status, 200);
            let mut ledger = self.ledger.lock().unwrap();
            (ledger.saved, ledger.saves) = (Some(begun), ledger.saves + 1);
        }
    }

    /// Ends the service while three clients `change` the filter and one saves it, once `is_enough`.
    fn run(
        &self,
        service: Running,
        rng: &mut StdRng,
        change: fn(&Shared, &Client, StdRng),
        is_enough: impl Fn(&Ledger) -> bool,
        end: impl FnOnce(Running),
    ) {
        thread::scope(|scope| {
            let mut threads = Vec::new();
            for _ in 0..3 {
                let (client, rng) = (service.client(), StdRng::seed_from_u64(rng.random()));
                threads.push(scope.spawn(move || change(self, &client, rng)));
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
