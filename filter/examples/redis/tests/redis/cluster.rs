//! A set in a cluster of three nodes, while slots move.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use redis::RedisResult;
use redis::cluster::{ClusterClient, ClusterConnection};

use crate::server::{Server, ask, until};

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

/// Stops the client when it is dropped, even by a panic.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn cli(args: &[&str]) -> String {
    let output = Command::new("redis-cli").args(args).output();
    let output = output.expect("redis-cli is installed");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn address(node: &Server) -> String {
    format!("127.0.0.1:{}", node.port)
}

fn await_ok(nodes: &[Server]) {
    until("the cluster agrees", || {
        let is_ok = |node: &Server| {
            let info: String = ask(&mut node.connect(), "CLUSTER", &["INFO"]);
            let check = cli(&["--cluster", "check", &address(node)]);
            info.contains("cluster_state:ok") && !check.contains("[ERR]")
        };
        nodes.iter().all(is_ok)
    });
}

fn sharded(nodes: &[Server]) -> Sharded {
    let addresses = nodes
        .iter()
        .map(|node| format!("redis://{}", address(node)));
    let client = ClusterClient::builder(addresses).retries(30).build();
    let cluster = client.expect("addresses").get_connection();
    Sharded {
        cluster: cluster.expect("the cluster takes connections"),
        shards: 64,
    }
}

/// Adds and deletes items until it is stopped; returns those that must be there.
fn change(set: &mut Sharded, stop: &AtomicBool) -> HashSet<u64> {
    let mut call = |command, number| {
        let reply = set.call(command, &format!("item {number}"));
        reply.expect("an answer")
    };
    let mut held = HashSet::new();
    for number in 0_u64.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        assert!(call("CF.ADD", number));
        held.insert(number);
        if number.is_multiple_of(3) {
            let old = number / 2;
            let was = held.remove(&old);
            assert!(call("CF.DEL", old) || !was, "item {old} is denied");
        }
        let some = number / 7;
        let here = call("CF.EXISTS", some);
        assert!(here || !held.contains(&some), "item {some} is denied");
    }
    held
}

#[test]
fn a_set_in_a_cluster() {
    let start = |_| Server::start(&["--cluster-enabled", "yes"]);
    let nodes: Vec<Server> = (0..3).map(start).collect();
    let addresses: Vec<String> = nodes.iter().map(address).collect();
    let mut create = vec!["--cluster", "create", "--cluster-yes"];
    create.extend(addresses.iter().map(String::as_str));
    let created = cli(&create);
    assert!(!created.contains("[ERR]"), "{created}");
    await_ok(&nodes);

    // Slots move while a client adds and deletes.
    let stop = AtomicBool::new(false);
    let held = thread::scope(|scope| {
        let client = scope.spawn(|| change(&mut sharded(&nodes), &stop));
        let stopping = Stop(&stop);
        for round in 0..4 {
            await_ok(&nodes);
            let name = |number: usize| -> String {
                ask(&mut nodes[number % 3].connect(), "CLUSTER", &["MYID"])
            };
            let mut reshard = vec!["--cluster", "reshard", &addresses[0], "--cluster-from"];
            let (from, to) = (name(round), name(round + 1));
            reshard.extend([&from, "--cluster-to", &to, "--cluster-slots", "2000"]);
            reshard.push("--cluster-yes");
            let moved = cli(&reshard);
            assert!(
                moved.contains("Moving slot") && !moved.contains("[ERR]"),
                "{moved}"
            );
        }
        drop(stopping);
        client.join().expect("no item is denied")
    });
    assert!(held.len() > 1_000, "{} items", held.len());

    // Neither an addition nor a removal was lost.
    let mut set = sharded(&nodes);
    for number in &held {
        let removed = set.call("CF.DEL", &format!("item {number}"));
        assert!(removed.expect("an answer"), "item {number} is denied");
    }
    for shard in 0..set.shards {
        let mut info = redis::cmd("CF.INFO");
        let info = info.arg(format!("seen:{shard}")).query(&mut set.cluster);
        let info: HashMap<String, i64> = info.expect("an answer");
        assert_eq!(info["Number of items inserted"], 0);
    }
}
