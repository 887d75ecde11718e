//! Processes that a test starts and kills: each is this program again, as that one test.

use std::io::{BufRead, BufReader};
use std::os::unix::process::{ExitStatusExt, parent_id};
use std::process::{Child, Command, Stdio};
use std::{env, process};

use nix::sys::prctl;
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

const VARIABLE: &str = "FILTER_SHARED_WORKER";

/// A process that is killed when it is dropped, or when the thread that has started it ends.
pub(crate) struct Worker {
    pub(crate) process: Child,
    pub(crate) is_stopped: bool,
}

/// Returns the task of this process, if it is a worker.
pub(crate) fn task() -> Option<String> {
    let variable = env::var(VARIABLE).ok()?;
    let (parent, task) = variable.split_once(' ').unwrap();
    prctl::set_pdeathsig(Signal::SIGKILL).unwrap();
    assert_eq!(parent, parent_id().to_string(), "the test has ended");
    Some(task.to_owned())
}

impl Worker {
    pub(crate) fn start(test: &str, task: &str) -> Worker {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "--nocapture", test]);
        command.env(VARIABLE, format!("{} {task}", process::id()));
        let process = command.stdout(Stdio::piped()).spawn();
        Worker {
            process: process.unwrap(),
            is_stopped: false,
        }
    }

    /// Returns what the process prints.
    pub(crate) fn lines(&mut self) -> impl Iterator<Item = String> + use<> {
        let output = self.process.stdout.take().unwrap();
        BufReader::new(output).lines().map_while(Result::ok)
    }

    /// Stops the process, or lets it go on.
    pub(crate) fn stop_or_continue(&mut self) {
        let signals = [Signal::SIGSTOP, Signal::SIGCONT];
        let id = Pid::from_raw(self.process.id() as i32);
        signal::kill(id, signals[usize::from(self.is_stopped)]).unwrap();
        self.is_stopped = !self.is_stopped;
    }

    pub(crate) fn assert_lives(&mut self) {
        let ended = self.process.try_wait().unwrap();
        assert!(ended.is_none(), "a worker has ended: {ended:?}");
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        let status = self.process.wait().unwrap();
        assert_eq!(status.signal(), Some(9), "a worker has ended: {status}");
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
