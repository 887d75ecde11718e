//! Servers with the module, each on a free port and in a directory of its own.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use redis::{Connection, FromRedisValue, RedisResult, ToRedisArgs, Value};
use tempfile::TempDir;

/// The module that was built with the tests.
fn module() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let profile = test.ancestors().nth(2).expect("it is in target/…/deps");
    profile.join("libcuckoo_redis.so")
}

/// A free port, which nobody else takes at once: the system gives them in turn.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there are free ports");
    listener.local_addr().expect("it is bound").port()
}

/// A server, which is killed when this is dropped.
pub(crate) struct Server {
    command: Command,
    child: Child,
    dir: TempDir,
    pub(crate) port: u16,
}

/// A server in this directory, with these settings besides the usual ones. The first ones may be arguments of the module.
fn command(dir: &TempDir, port: u16, args: &[&str]) -> Command {
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1"]);
    command.args(["--save", "", "--logfile", "log"]);
    command.args(["--enable-debug-command", "yes"]);
    command.arg("--dir").arg(dir.path());
    command.arg("--loadmodule").arg(module()).args(args);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

impl Server {
    /// Starts one with these settings besides the usual ones.
    pub(crate) fn start(args: &[&str]) -> Server {
        let server = Server::spawn(args);
        server.await_ready();
        server
    }

    /// Returns the log of one that does not start.
    pub(crate) fn log_of_refused(args: &[&str]) -> String {
        let mut server = Server::spawn(args);
        while server.child.try_wait().expect("it has run").is_none() {
            assert!(server.try_connect("2").is_err(), "the server has started");
            thread::sleep(Duration::from_millis(5));
        }
        server.log()
    }

    fn spawn(args: &[&str]) -> Server {
        let (dir, port) = (TempDir::new().expect("a directory"), free_port());
        let mut command = command(&dir, port, args);
        let child = command.spawn().expect("redis-server is installed");
        Server {
            command,
            child,
            dir,
            port,
        }
    }

    /// Ends it at once, as if the power had failed, and starts it again on the same files.
    pub(crate) fn kill_and_restart(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
        self.child = self.command.spawn().expect("it starts again");
        self.await_ready();
    }

    /// The same, with other settings.
    pub(crate) fn restart_with(&mut self, args: &[&str]) {
        self.command = command(&self.dir, self.port, args);
        self.kill_and_restart();
    }

    fn await_ready(&self) {
        until("the server answers", || {
            let ping = |mut c| redis::cmd("PING").query::<String>(&mut c);
            self.try_connect("2").and_then(ping).is_ok()
        });
    }

    /// Lets it take this many bytes more than now, or any number.
    pub(crate) fn limit_memory(&self, more: Option<u64>) {
        let id = self.child.id().to_string();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("it runs");
        let size = status.lines().find_map(|line| {
            let size = line.strip_prefix("VmSize:")?.strip_suffix("kB")?;
            size.trim().parse::<u64>().ok()
        });
        let size = size.expect("it has a size") << 10;
        let limit = more.map_or("unlimited".into(), |more| (size + more).to_string());
        let mut set = Command::new("prlimit");
        let set = set.args(["--pid", &id, &format!("--as={limit}:")]).status();
        assert!(set.expect("prlimit is installed").success());
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    pub(crate) fn try_connect(&self, protocol: &str) -> RedisResult<Connection> {
        let address = format!("redis://127.0.0.1:{}/?protocol=resp{protocol}", self.port);
        redis::Client::open(address)?.get_connection()
    }

    pub(crate) fn connect(&self) -> Connection {
        self.try_connect("2").expect("the server takes connections")
    }

    /// A number of `INFO`.
    pub(crate) fn info(&self, field: &str) -> u64 {
        let info: String = ask(&mut self.connect(), "INFO", &["everything"]);
        let number = |line: &str| {
            let number = line.strip_prefix(field)?.strip_prefix(':')?;
            number.trim().parse().ok()
        };
        let number = info.lines().find_map(number);
        number.unwrap_or_else(|| panic!("INFO has no number {field}"))
    }

    /// Rewrites the append-only file.
    pub(crate) fn rewrite(&self) {
        let before = self.info("aof_rewrites");
        line(&mut self.connect(), "BGREWRITEAOF");
        until("the file is rewritten", || {
            self.info("aof_rewrites") > before && self.info("aof_rewrite_in_progress") == 0
        });
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be dead already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until this is so, and fails if it is not within a minute.
pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        let waited = start.elapsed();
        assert!(waited < Duration::from_secs(60), "not in a minute: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn ask<T: FromRedisValue>(
    connection: &mut Connection,
    command: &str,
    args: &[impl ToRedisArgs],
) -> T {
    let reply = try_ask(connection, command, args);
    reply.unwrap_or_else(|error| panic!("{command}: {error}"))
}

pub(crate) fn try_ask<T: FromRedisValue>(
    connection: &mut Connection,
    command: &str,
    args: &[impl ToRedisArgs],
) -> RedisResult<T> {
    redis::cmd(command).arg(args).query(connection)
}

pub(crate) fn try_line(connection: &mut Connection, line: &str) -> RedisResult<Value> {
    let words: Vec<&str> = line.split(' ').collect();
    try_ask(connection, words[0], &words[1..])
}

/// Sends a command that must fail with an error that says this.
pub(crate) fn error(connection: &mut Connection, line: &str, says: &str) {
    match try_line(connection, line) {
        Ok(reply) => panic!("{line}: {reply:?}, and not an error"),
        Err(error) => assert!(error.to_string().contains(says), "{line}: {error}"),
    }
}

pub(crate) fn line(connection: &mut Connection, line: &str) -> Value {
    try_line(connection, line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// Sends a command for each number, many at a time; true for each that was added, found or removed.
pub(crate) fn in_batches(
    connection: &mut Connection,
    command: &str,
    key: &str,
    numbers: impl IntoIterator<Item = u64>,
) -> Vec<bool> {
    let numbers: Vec<u64> = numbers.into_iter().collect();
    let mut replies = Vec::with_capacity(numbers.len());
    for batch in numbers.chunks(1000) {
        let mut pipe = redis::pipe();
        for number in batch {
            pipe.cmd(command).arg(key).arg(number);
        }
        let some: Vec<bool> = pipe.query(connection).expect("the server answers");
        replies.extend(some);
    }
    replies
}

pub(crate) fn digest(connection: &mut Connection, key: &str) -> Vec<String> {
    ask(connection, "DEBUG", &["DIGEST-VALUE", key])
}
