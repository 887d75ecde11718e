//! The rivals that need other programs: this project's cuckoo filter in Redis, and pybloomfiltermmap3.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{env, io};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::super::described;
use super::{Call, InFile, Turn};
use crate::study::Subjects;

pub(super) const REDIS: &str = "Redis";
pub(super) const PIPELINED: &str = "Redis, pipelined";
pub(super) const PYBLOOM: &str = "pybloomfiltermmap3";

/// The module for Redis.
const MODULE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../filter/examples/redis/target/release/libcuckoo_redis.so"
);

/// A rival that needs another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rival {
    /// A cuckoo filter in Redis, on a Unix socket.
    Redis,
    /// A Bloom filter in a mapped file, for Python.
    Pybloomfiltermmap3,
}

impl Rival {
    /// Returns names and meanings of its subjects.
    ///
    /// # Errors
    /// If something is not installed.
    pub(super) fn subjects(self) -> Result<Subjects> {
        match self {
            Self::Redis => {
                let version = print(Command::new("redis-server").arg("--version")).context(
                    "--with redis needs the program `redis-server`; on Debian: apt-get install redis-server",
                )?;
                let is_number = |word: &&str| word.starts_with("v=");
                let version = version.split(' ').find(is_number).unwrap_or("v=unknown");
                ensure!(
                    Path::new(MODULE).exists(),
                    "--with redis needs {MODULE}: cd filter/examples/redis && cargo build --release"
                );
                let [one, ten] = ["a call", "ten calls"].map(|calls| {
                    format!(
                        "this project's module in redis-server {version}, on a Unix socket, without persistence; {calls} per round trip"
                    )
                });
                described(&[(REDIS, &one), (PIPELINED, &ten)])
            }
            Self::Pybloomfiltermmap3 => {
                const IMPORTS: &str = "import lfcf, pybloomfilter; from importlib.metadata import version; \
                                       print(version('pybloomfiltermmap3'))";
                let python = python();
                let version = print(Command::new(&python).args(["-c", IMPORTS])).with_context(|| {
                    format!(
                        "--with pybloomfiltermmap3 needs its module, `{python} -m pip install pybloomfiltermmap3`, and this project's, \
                         filter/python/README.md; PYTHON names another interpreter"
                    )
                })?;
                let meaning = format!(
                    "version {version}, a Bloom filter in a file for Python; it cannot remove, so it inserts two keys instead"
                );
                described(&[(PYBLOOM, &meaning)])
            }
        }
    }
}

/// Returns what a command prints.
fn print(command: &mut Command) -> Result<String> {
    let output = command.output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.lines().last().unwrap_or("it failed");
    ensure!(output.status.success(), "{last}");
    Ok(String::from_utf8_lossy(&output.stdout).trim().into())
}

fn python() -> String {
    env::var("PYTHON").unwrap_or_else(|_| "python3".into())
}

/// Returns the command of a process in Python, except for its numbers.
pub(super) fn python_member() -> Command {
    let mut command = Command::new(python());
    command.args(["-c", include_str!("member.py")]);
    command
}

/// Returns the command of a server that listens at this socket.
pub(super) fn server(socket: &Path) -> Command {
    let mut command = Command::new("redis-server");
    command.args("--port 0 --appendonly no --loglevel warning --loadmodule".split(' '));
    command.args([MODULE, "--save", "", "--unixsocket"]);
    command.arg(socket);
    command
}

/// A connection to a server, and how many calls it sends at a time.
pub(super) struct Redis(UnixStream, usize);

impl Redis {
    pub(super) fn connect(socket: &Path, calls_at_once: usize) -> io::Result<Self> {
        Ok(Self(UnixStream::connect(socket)?, calls_at_once))
    }

    /// Makes the filter in a server that is starting.
    pub(super) fn reserve(socket: &Path, keys: usize) -> Result<()> {
        const PATIENCE: Duration = Duration::from_secs(10);
        let start = Instant::now();
        let advice = "redis-server does not start; try: redis-server --loadmodule";
        let mut stream = loop {
            match UnixStream::connect(socket) {
                Err(_) if start.elapsed() < PATIENCE => sleep(PATIENCE / 1_000),
                connected => break connected.with_context(|| format!("{advice} {MODULE}"))?,
            }
        };
        write!(stream, "CF.RESERVE f {keys}\r\n")?;
        let mut reply = [0; 5];
        stream.read_exact(&mut reply)?;
        let is_made = &reply == b"+OK\r\n";
        ensure!(is_made, "Redis refuses CF.RESERVE for {keys} keys");
        Ok(())
    }

    /// Sends calls without waiting in between. Returns their answers.
    fn send(&self, calls: &[(Call, u64)]) -> Vec<bool> {
        let mut text = Vec::with_capacity(64 * calls.len());
        for (call, key) in calls {
            text.extend_from_slice(match call {
                Call::Contains => b"*3\r\n$9\r\nCF.EXISTS\r\n$1\r\nf\r\n$8\r\n",
                Call::Insert => b"*3\r\n$6\r\nCF.ADD\r\n$1\r\nf\r\n$8\r\n",
                Call::Remove => b"*3\r\n$6\r\nCF.DEL\r\n$1\r\nf\r\n$8\r\n",
            });
            text.extend(key.to_le_bytes());
            text.extend(b"\r\n");
        }
        let (mut stream, mut replies) = (&self.0, vec![0; 4 * calls.len()]);
        let received = stream
            .write_all(&text)
            .and_then(|()| stream.read_exact(&mut replies));
        received.expect("the server runs as long as its clients");
        let answer = |reply: &[u8]| match reply {
            b":1\r\n" => true,
            b":0\r\n" => false,
            other => panic!("Redis replied: {}", String::from_utf8_lossy(other)),
        };
        replies.chunks(4).map(answer).collect()
    }
}

impl InFile for Redis {
    fn call(&self, call: Call, key: u64) -> bool {
        self.send(&[(call, key)])[0]
    }

    fn count_false(&self, call: Call, keys: impl Iterator<Item = u64>) -> u64 {
        let calls: Vec<_> = keys.map(|key| (call, key)).collect();
        let answers = calls.chunks(512).flat_map(|calls| self.send(calls));
        answers.filter(|answer| !answer).count() as u64
    }

    fn work(&self, turn: &Turn) -> u64 {
        let to_pair = |call| move |key| (call, key);
        let mut calls = Vec::from(turn.present.map(to_pair(Call::Contains)));
        calls.extend([(Call::Insert, turn.insert), (Call::Remove, turn.remove)]);
        let right = calls.len();
        calls.extend(turn.absent.map(to_pair(Call::Contains)));
        let answers: Vec<_> = calls
            .chunks(self.1)
            .flat_map(|calls| self.send(calls))
            .collect();
        answers[..right].iter().filter(|answer| !**answer).count() as u64
    }
}
