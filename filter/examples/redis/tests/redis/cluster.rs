//! A set in a cluster: three masters and three replicas, slots that move, and a master that dies.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use redis::cluster::{ClusterClient, ClusterConnection};
use redis::{Connection, RedisResult};

use crate::server::{Server, ask, until};

// The recipe of README.md.
/// A set of any size: a filter is one key on one node, so there are many, and an item's hash says
/// which has it.
struct Sharded {
    cluster: ClusterConnection,
    /// It can never change. Many more than nodes, so that they can be spread.
    shards: u64,
}

impl Sharded {
    fn call(&mut self, command: &str, item: &str) -> RedisResult<bool> {
        let shard = filter::hashing::FixedState.hash_one(("shard", item)) % self.shards;
        let key = format!("seen:{shard}");
        redis::cmd(command)
            .arg(key)
            .arg(item)
            .query(&mut self.cluster)
    }
}
// The end of the recipe.

impl Sharded {
    /// Number of copies in a shard.
    fn held(&mut self, shard: u64) -> i64 {
        let info = redis::cmd("CF.INFO")
            .arg(format!("seen:{shard}"))
            .query(&mut self.cluster);
        let info: HashMap<String, i64> = info.expect("an answer");
        info["Number of items inserted"]
    }
}

/// Stops the client when it is dropped, even by a panic.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn run_cli(args: &[&str]) -> String {
    let output = Command::new("redis-cli")
        .args(args)
        .output()
        .expect("redis-cli is installed");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn cli(args: &[&str]) {
    let output = run_cli(args);
    assert!(!output.contains("[ERR]"), "{args:?}: {output}");
}

fn await_ok(nodes: &[Server], what: impl Fn(&mut Connection) -> bool) {
    until("the cluster agrees", || {
        nodes.iter().all(|node| what(&mut node.connect()))
    });
}

fn is_ok(c: &mut Connection) -> bool {
    ask::<String>(c, "CLUSTER", &["INFO"]).contains("cluster_state:ok")
}

fn start() -> Vec<Server> {
    let settings = [
        "--cluster-enabled",
        "yes",
        "--cluster-node-timeout",
        "2000",
        "--appendonly",
        "yes",
    ];
    let nodes: Vec<Server> = (0..6).map(|_| Server::start(&settings)).collect();
    let addresses: Vec<String> = nodes
        .iter()
        .map(|node| format!("127.0.0.1:{}", node.port))
        .collect();
    let mut args = vec!["--cluster", "create"];
    args.extend(addresses.iter().map(String::as_str));
    args.extend(["--cluster-replicas", "1", "--cluster-yes"]);
    cli(&args);
    await_ok(&nodes, is_ok);
    nodes
}

/// The name of a node.
fn name(node: &Server) -> String {
    ask(&mut node.connect(), "CLUSTER", &["MYID"])
}

fn is_master(node: &Server) -> bool {
    ask::<String>(&mut node.connect(), "INFO", &["replication"]).contains("role:master")
}

fn sharded(nodes: &[Server]) -> Sharded {
    let addresses = nodes
        .iter()
        .map(|node| format!("redis://127.0.0.1:{}", node.port));
    let client = ClusterClient::builder(addresses)
        .retries(30)
        .build()
        .expect("addresses");
    Sharded {
        cluster: client
            .get_connection()
            .expect("the cluster takes connections"),
        shards: 64,
    }
}

#[test]
fn a_set_in_a_cluster() {
    let mut nodes = start();
    let stop = AtomicBool::new(false);
    let mut held = HashSet::new();
    // Slots move while a client adds and deletes.
    let (operations, moved) = thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut set = sharded(&nodes);
            let mut held = HashSet::new();
            let mut number = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                let item = format!("item {number}");
                assert!(set.call("CF.ADD", &item).expect("it is added"));
                held.insert(number);
                if number.is_multiple_of(3) {
                    let old = number / 2;
                    let was = held.remove(&old);
                    let removed = set
                        .call("CF.DEL", &format!("item {old}"))
                        .expect("an answer");
                    assert!(removed || !was, "item {old} is denied");
                }
                let some = number / 7;
                let here = set
                    .call("CF.EXISTS", &format!("item {some}"))
                    .expect("an answer");
                assert!(here || !held.contains(&some), "item {some} is denied");
                number += 1;
            }
            (held, number)
        });
        let mut moved = 0;
        let stopping = Stop(&stop);
        for round in 0..4 {
            let any = format!("127.0.0.1:{}", nodes[0].port);
            until("the nodes agree", || {
                !run_cli(&["--cluster", "check", &any]).contains("[ERR]")
            });
            let masters: Vec<&Server> = nodes.iter().filter(|node| is_master(node)).collect();
            let (from, to) = (masters[round % 3], masters[(round + 1) % 3]);
            let before = slots(to);
            cli(&[
                "--cluster",
                "reshard",
                &format!("127.0.0.1:{}", nodes[0].port),
                "--cluster-from",
                &name(from),
                "--cluster-to",
                &name(to),
                "--cluster-slots",
                "2000",
                "--cluster-yes",
            ]);
            moved += slots(to).abs_diff(before);
        }
        drop(stopping);
        let (now_held, number) = client.join().expect("no item is denied");
        held = now_held;
        (number, moved)
    });
    let denied = denied(&mut sharded(&nodes), &held);
    println!(
        "{moved} slots moved during {operations} additions: {denied} of {} items denied",
        held.len()
    );
    assert_eq!(denied, 0);

    // A master dies. Replication is asynchronous: wait until the replicas have everything.
    for node in nodes.iter().filter(|node| is_master(node)) {
        until("a replica has everything", || {
            ask::<i64>(&mut node.connect(), "WAIT", &["1", "1000"]) >= 1
        });
    }
    let victim = nodes.iter().position(is_master).expect("there are masters");
    nodes[victim].kill();
    let dead = nodes.remove(victim);
    until("a replica has taken over", || {
        nodes.iter().filter(|node| is_master(node)).count() == 3
    });
    await_ok(&nodes, is_ok);
    let mut set = sharded(&nodes);
    let denied = self::denied(&mut set, &held);
    println!("a master killed: {denied} of {} items denied", held.len());
    assert_eq!(denied, 0);
    for number in &held {
        assert!(
            set.call("CF.DEL", &format!("item {number}"))
                .expect("an answer")
        );
    }
    // Neither an addition nor a removal was lost.
    let held: i64 = (0..set.shards).map(|shard| set.held(shard)).sum();
    assert_eq!(held, 0);
    drop(dead);
}

fn denied(set: &mut Sharded, held: &HashSet<u64>) -> usize {
    let denied = held.iter().filter(|number| {
        !set.call("CF.EXISTS", &format!("item {number}"))
            .expect("an answer")
    });
    denied.count()
}

/// How many slots a master has.
fn slots(node: &Server) -> u64 {
    let nodes: String = ask(&mut node.connect(), "CLUSTER", &["NODES"]);
    let own = nodes
        .lines()
        .find(|line| line.contains("myself"))
        .expect("it knows itself");
    let ranges = own
        .split(' ')
        .skip(8)
        .filter(|range| !range.starts_with('['));
    ranges
        .map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let [first, last] = [first, last].map(|slot| slot.parse::<u64>().expect("a slot"));
            last - first + 1
        })
        .sum()
}
