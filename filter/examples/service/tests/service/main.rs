//! The service: what it answers, what it refuses, and what a kill leaves.

mod answers;
mod kills;
mod window;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

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

    /// Saves again and again, until nobody answers; `saved` gets what was so before each save that ended.
    fn save_on<T>(&self, before: impl Fn() -> T, saved: impl Fn(T)) {
        let mut begun = before();
        while let Ok((status, ..)) = self.post("/save") {
            assert_eq!(status, 200);
            saved(begun);
            begun = before();
        }
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
