//! Servers with the module, each on a free port and in a directory of its own.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redis::{Connection, FromRedisValue, RedisResult, ToRedisArgs, Value};
use tempfile::TempDir;

/// The module that is tested: `CUCKOO_MODULE`, or what was built with the tests.
pub(crate) fn module() -> PathBuf {
    match std::env::var_os("CUCKOO_MODULE") {
        Some(path) => path.into(),
        None => {
            let test = std::env::current_exe().expect("a test has a path");
            let profile = test.ancestors().nth(2).expect("it is in target/…/deps");
            profile.join("libcuckoo_redis.so")
        }
    }
}

/// A free port, of which the one that a cluster's bus takes (10,000 more) is free too.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + (std::process::id() % 100) as u16 * 80;
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed);
        let free = |port| TcpListener::bind(("127.0.0.1", port)).is_ok();
        if free(port) && free(port + 10_000) {
            return port;
        }
    }
}

/// A server, which is killed when this is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) dir: TempDir,
    pub(crate) port: u16,
    args: Vec<String>,
    module: PathBuf,
}

impl Server {
    /// Starts one with these settings besides the usual ones.
    pub(crate) fn start(args: &[&str]) -> Server {
        Server::with_module(&module(), args)
    }

    pub(crate) fn with_module(module: &Path, args: &[&str]) -> Server {
        let dir = tempfile::tempdir().expect("there is room for a directory");
        let port = free_port();
        let args: Vec<String> = args.iter().map(|&arg| arg.into()).collect();
        let child = spawn(module, dir.path(), port, &args);
        let server = Server {
            child,
            dir,
            port,
            args,
            module: module.into(),
        };
        server.await_ready();
        server
    }

    /// Ends it at once, as if the power had failed, and starts it again on the same files.
    pub(crate) fn kill_and_restart(&mut self) {
        self.kill();
        self.child = spawn(&self.module, self.dir.path(), self.port, &self.args);
        self.await_ready();
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    /// Starts another module on the same files.
    pub(crate) fn restart_with(&mut self, module: &Path) {
        self.module = module.into();
        self.kill_and_restart();
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().expect("it is a child").is_none()
    }

    fn await_ready(&self) {
        let start = Instant::now();
        loop {
            if let Ok(mut connection) = self.try_connect("2")
                && redis::cmd("PING").query::<String>(&mut connection).is_ok()
            {
                return;
            }
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "the server does not start: {}",
                self.log()
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    fn try_connect(&self, protocol: &str) -> RedisResult<Connection> {
        let address = format!("redis://127.0.0.1:{}/?protocol=resp{protocol}", self.port);
        redis::Client::open(address)?.get_connection()
    }

    pub(crate) fn connect(&self) -> Connection {
        self.try_connect("2").expect("the server takes connections")
    }

    pub(crate) fn connect_resp3(&self) -> Connection {
        self.try_connect("3").expect("the server takes connections")
    }

    /// A number of `INFO`.
    pub(crate) fn info(&self, field: &str) -> u64 {
        let info: String = ask(&mut self.connect(), "INFO", &["everything"]);
        let line = info
            .lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        line.and_then(|number| number.trim().parse().ok())
            .unwrap_or_else(|| panic!("INFO has no number {field}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be dead already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(module: &Path, dir: &Path, port: u16, args: &[String]) -> Child {
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1"]);
    command.args([
        "--save",
        "",
        "--enable-debug-command",
        "yes",
        "--logfile",
        "log",
    ]);
    command
        .arg("--dir")
        .arg(dir)
        .arg("--loadmodule")
        .arg(module)
        .args(args);
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("redis-server is installed")
}

/// Waits until this is so, and fails if it is not within a minute.
pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "in a minute: {what}"
        );
        thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a command and returns its reply.
pub(crate) fn ask<T: FromRedisValue>(
    connection: &mut Connection,
    command: &str,
    args: &[impl ToRedisArgs],
) -> T {
    match try_ask(connection, command, args) {
        Ok(reply) => reply,
        Err(error) => panic!("{command}: {error}"),
    }
}

pub(crate) fn try_ask<T: FromRedisValue>(
    connection: &mut Connection,
    command: &str,
    args: &[impl ToRedisArgs],
) -> RedisResult<T> {
    redis::cmd(command).arg(args).query(connection)
}

/// Sends a command that must fail, and returns the error.
pub(crate) fn error(connection: &mut Connection, line: &str) -> String {
    let mut words = line.split(' ');
    let command = words.next().expect("a line has a command");
    let args: Vec<&str> = words.collect();
    match try_ask::<Value>(connection, command, &args) {
        Ok(reply) => panic!("{line}: {reply:?}, and not an error"),
        Err(error) => error.to_string(),
    }
}

/// Sends a command in one line, and returns its reply.
pub(crate) fn line(connection: &mut Connection, line: &str) -> Value {
    let mut words = line.split(' ');
    let command = words.next().expect("a line has a command");
    ask(connection, command, &words.collect::<Vec<_>>())
}

/// Adds the numbers in the range to the filter, many at a time; true for each that was added.
pub(crate) fn add_numbers(
    connection: &mut Connection,
    key: &str,
    numbers: std::ops::Range<u64>,
) -> Vec<bool> {
    in_batches(connection, "CF.ADD", key, numbers)
}

/// Sends a command for each number, many at a time.
pub(crate) fn in_batches(
    connection: &mut Connection,
    command: &str,
    key: &str,
    numbers: std::ops::Range<u64>,
) -> Vec<bool> {
    let numbers: Vec<u64> = numbers.collect();
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

/// A digest of the content of a key.
pub(crate) fn digest(connection: &mut Connection, key: &str) -> Vec<String> {
    ask(connection, "DEBUG", &["DIGEST-VALUE", key])
}
