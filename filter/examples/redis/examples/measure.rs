//! Measures the module beside a plain set, in one run, and writes the tables of README.md.
//!
//! ```sh
//! cargo build --release && cargo run --release --example measure
//! ```

#[path = "../tests/redis/server.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod server;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use server::{Server, ask, line};

const KEYS: u64 = 10_000_000;
const ROUNDS: u64 = 10;
const CLIENTS: u64 = 8;
/// Commands that a client sends before it reads the replies.
const PIPELINED: u64 = 500;

fn main() {
    println!("{KEYS} keys, {CLIENTS} clients, {PIPELINED} commands at a time, {ROUNDS} rounds\n");
    beside_a_set();
    waiting();
}

/// Sends a command for each number from all clients; returns the seconds, and how many replies were
/// 1. The others were 0: anything else is a panic.
fn run(server: &Server, command: &str, key: &str, numbers: Range<u64>) -> (f64, u64) {
    let share = (numbers.end - numbers.start) / CLIENTS;
    let start = Instant::now();
    let ones = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let first = numbers.start + client * share;
                scope.spawn(move || send(server.port, command, key, first..first + share))
            })
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().expect("a client ends"))
            .sum()
    });
    (start.elapsed().as_secs_f64(), ones)
}

fn send(port: u16, command: &str, key: &str, numbers: Range<u64>) -> u64 {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the server takes connections");
    stream.set_nodelay(true).expect("it can be set");
    let mut request = Vec::new();
    let mut replies = Vec::new();
    let mut ones = 0;
    for first in numbers.clone().step_by(PIPELINED as usize) {
        let last = (first + PIPELINED).min(numbers.end);
        request.clear();
        for number in first..last {
            let item = number.to_string();
            write!(
                request,
                "*3\r\n${}\r\n{command}\r\n${}\r\n{key}\r\n${}\r\n{item}\r\n",
                command.len(),
                key.len(),
                item.len()
            )
            .expect("a vector takes it");
        }
        stream.write_all(&request).expect("the server reads");
        replies.resize(4 * (last - first) as usize, 0);
        stream.read_exact(&mut replies).expect("the server answers");
        for reply in replies.chunks_exact(4) {
            match reply {
                b":1\r\n" => ones += 1,
                b":0\r\n" => {}
                other => panic!("a reply begins with {}", String::from_utf8_lossy(other)),
            }
        }
    }
    ones
}

/// The middle of some numbers, the least and the greatest.
fn spread(mut numbers: Vec<f64>) -> [f64; 3] {
    numbers.sort_by(f64::total_cmp);
    [
        numbers[numbers.len() / 2],
        numbers[0],
        numbers[numbers.len() - 1],
    ]
}

fn beside_a_set() {
    let server = Server::start(&[]);
    let c = &mut server.connect();
    println!(
        "| | filter, thousands a second | set, thousands a second | ratio |\n|---|---:|---:|---:|"
    );
    let mut memory = [0; 2];
    let phases = [
        ("add", "CF.ADD", "SADD", 0, KEYS),
        ("look up, present", "CF.EXISTS", "SISMEMBER", 0, KEYS),
        ("look up, absent", "CF.EXISTS", "SISMEMBER", KEYS, 0),
        ("delete", "CF.DEL", "SREM", 0, KEYS),
    ];
    let mut facts = Vec::new();
    for (name, of_filter, of_set, offset, expected) in phases {
        let mut rates = [Vec::new(), Vec::new()];
        let mut ones = [0; 2];
        for round in 0..ROUNDS {
            let share = KEYS / ROUNDS;
            let numbers = offset + round * share..offset + (round + 1) * share;
            for (which, (command, key)) in [(of_filter, "f"), (of_set, "s")].into_iter().enumerate()
            {
                let before = server.info("used_memory");
                let (seconds, found) = run(&server, command, key, numbers.clone());
                rates[which].push(share as f64 / seconds / 1e3);
                ones[which] += found;
                if name == "add" {
                    memory[which] += server.info("used_memory") - before;
                }
            }
        }
        let ratios = rates[0]
            .iter()
            .zip(&rates[1])
            .map(|(filter, set)| filter / set)
            .collect();
        let [filter, set] = rates.map(spread);
        let [ratio, least, most] = spread(ratios);
        println!(
            "| {name} | {:.0} [{:.0}–{:.0}] | {:.0} [{:.0}–{:.0}] | {ratio:.2} [{least:.2}–{most:.2}] |",
            filter[0], filter[1], filter[2], set[0], set[1], set[2]
        );
        assert_eq!(ones[1], expected);
        if name == "look up, absent" {
            facts.push(format!(
                "- {} of {KEYS} absent keys were found by chance: one in {:.0}.",
                ones[0],
                KEYS as f64 / ones[0] as f64
            ));
        } else {
            facts.push(format!("- {name}: {} of {KEYS} replies were 1.", ones[0]));
        }
        if name == "add" {
            let told: u64 = ask(c, "MEMORY", &["USAGE", "f"]);
            facts.push(format!(
                "- Memory: the filter takes {:.1} bits a key (the server's memory grew by {:.1}), the set {:.0}.",
                (told * 8) as f64 / KEYS as f64,
                (memory[0] * 8) as f64 / KEYS as f64,
                (memory[1] * 8) as f64 / KEYS as f64
            ));
        }
    }
    println!("\n{}\n", facts.join("\n"));
}

/// What a client waits for `PING` while another looks up many items: in the worker thread, and, in a
/// transaction, in the main thread.
fn waiting() {
    let server = Server::start(&[]);
    line(&mut server.connect(), &format!("CF.RESERVE f {KEYS}"));
    run(&server, "CF.ADD", "f", 0..KEYS / 5);
    println!(
        "| items of `CF.MEXISTS` | in | lookups a second, thousands | others wait, µs: median | 99 % | longest |"
    );
    println!("|---:|---|---:|---:|---:|---:|");
    for items in [1_000, 10_000, 100_000] {
        let mut waits = [Vec::new(), Vec::new()];
        let mut rates = [Vec::new(), Vec::new()];
        for _ in 0..5 {
            for within in [false, true] {
                let (wait, rate) = wait_beside(&server, items, within);
                waits[usize::from(within)].extend(wait);
                rates[usize::from(within)].push(rate);
            }
        }
        for ((name, mut waits), rates) in ["worker", "main"].into_iter().zip(waits).zip(rates) {
            waits.sort_by(f64::total_cmp);
            let at = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize];
            println!(
                "| {items} | {name} | {:.0} | {:.0} | {:.0} | {:.0} |",
                spread(rates)[0],
                at(0.5),
                at(0.99),
                at(1.0)
            );
        }
    }
}

/// Returns the microseconds that each of some pings took, and the rate of the lookups beside them.
fn wait_beside(server: &Server, items: u64, in_main_thread: bool) -> (Vec<f64>, f64) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let lookups = scope.spawn(|| {
            let c = &mut server.connect();
            let mut pipe = redis::pipe();
            if in_main_thread {
                pipe.atomic();
            }
            pipe.cmd("CF.MEXISTS").arg("f");
            for item in 0..items {
                pipe.arg(item * 7_919 % KEYS);
            }
            let request = pipe.get_packed_pipeline();
            let (start, mut done) = (Instant::now(), 0);
            while !stop.load(Ordering::Relaxed) {
                c.send_packed_command(&request).expect("the server reads");
                // MULTI and the command's place in the queue are answered, too.
                for _ in 0..if in_main_thread { 3 } else { 1 } {
                    c.recv_response().expect("the server answers");
                }
                done += items;
            }
            done as f64 / start.elapsed().as_secs_f64() / 1e3
        });
        let c = &mut server.connect();
        let end = Instant::now() + Duration::from_secs(2);
        let mut waits = Vec::new();
        while Instant::now() < end {
            let start = Instant::now();
            let _: String = ask(c, "PING", &[] as &[&str]);
            waits.push(start.elapsed().as_secs_f64() * 1e6);
            thread::sleep(Duration::from_micros(200));
        }
        stop.store(true, Ordering::Relaxed);
        (waits, lookups.join().expect("the lookups end"))
    })
}
