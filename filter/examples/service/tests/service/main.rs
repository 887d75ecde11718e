//! The service: what it answers, what it refuses, and what a kill leaves.

mod answers;
mod kills;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use ureq::Agent;

/// Returns the program, with the name of its file.
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
    fn start(file: &Path) -> Running {
        let mut command = program(file);
        command.args(["--address", "127.0.0.1:0", "--capacity", "100000"]);
        command.stderr(Stdio::piped());
        let mut running = Running {
            child: command.spawn().unwrap(),
            url: String::new(),
        };
        let mut said = Vec::new();
        for line in BufReader::new(running.child.stderr.take().unwrap()).lines() {
            let line = line.unwrap();
            if let Some(url) = line.strip_prefix("listening on ") {
                running.url = url.to_owned();
                return running;
            }
            said.push(line);
        }
        panic!("it ended: {said:?}");
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
    fn stop(mut self, signal: &str) -> ExitStatus {
        let mut kill = Command::new("kill");
        let id = self.child.id().to_string();
        assert!(kill.args(["-s", signal, &id]).status().unwrap().success());
        self.child.wait().unwrap()
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

impl Client {
    /// Returns the status and the text of the answer, without the line's end; an error if there is
    /// none.
    fn post(&self, request: &str) -> Result<(u16, String), ureq::Error> {
        let answer = self.agent.post(format!("{}{request}", self.url));
        read(answer.send_empty()?)
    }

    /// Returns which methods the answer to GET names in its header.
    fn allowed(&self, request: &str) -> String {
        let answer = self.agent.get(format!("{}{request}", self.url)).call();
        let header = answer.unwrap().headers().get("allow").cloned();
        header.unwrap().to_str().unwrap().to_owned()
    }

    fn get(&self, request: &str) -> Result<(u16, String), ureq::Error> {
        read(self.agent.get(format!("{}{request}", self.url)).call()?)
    }
}

fn read(mut answer: ureq::http::Response<ureq::Body>) -> Result<(u16, String), ureq::Error> {
    let text = answer.body_mut().read_to_string()?;
    Ok((answer.status().as_u16(), text.trim_end().to_owned()))
}
