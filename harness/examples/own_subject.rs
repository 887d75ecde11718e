//! A structure of your own, measured and checked beside ours: a hash map in shards, each behind a mutex.
//!
//! ```sh
//! cargo run --release -p harness --example own_subject -- sweep harness/examples/own_subject.toml
//! cargo run --release -p harness --example own_subject -- check --subjects sharded-map
//! ```
//!
//! In a project of your own, this file is `src/main.rs`, and `own_subject.Cargo.toml` beside it is `Cargo.toml`.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use harness::cli;
use harness::registry::Registry;
use harness::subject::{Class, FixedState, SLOTS_PER_BUCKET, Subject, class};

const SHARDS: usize = 64;

/// How many copies there are of each key, by the key's hash.
pub(crate) struct ShardedMap {
    shards: Vec<Mutex<HashMap<u64, u64>>>,
}

impl ShardedMap {
    /// The hash of a key, and the shard that holds it, locked.
    fn shard_of<K: Hash + ?Sized>(&self, key: &K) -> (u64, MutexGuard<'_, HashMap<u64, u64>>) {
        let hash = FixedState.hash_one(key);
        let shard = &self.shards[hash as usize % SHARDS];
        (hash, shard.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Subject for ShardedMap {
    const NAME: &'static str = "sharded-map";
    const DESCRIPTION: &'static str = "hash maps of 64-bit hashes, each behind a mutex";
    const GUARANTEES: &'static str = "linearizable; blocking";
    /// It never refuses a key.
    const GROWS: bool = true;

    /// Sizes are asked for in buckets of [`SLOTS_PER_BUCKET`] keys, as our filters have them.
    fn with_buckets(buckets: usize) -> Result<Self> {
        let each = buckets * SLOTS_PER_BUCKET / SHARDS;
        let shard = || Mutex::new(HashMap::with_capacity(each));
        Ok(Self {
            shards: (0..SHARDS).map(|_| shard()).collect(),
        })
    }

    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let (hash, mut shard) = self.shard_of(key);
        *shard.entry(hash).or_default() += 1;
        true
    }

    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let (hash, shard) = self.shard_of(key);
        shard.contains_key(&hash)
    }

    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let (hash, mut shard) = self.shard_of(key);
        match shard.get_mut(&hash) {
            None => return false,
            Some(1) => {
                shard.remove(&hash);
            }
            Some(copies) => *copies -= 1,
        }
        true
    }

    /// Keys of one hash are the same key. A map has no buckets, so all keys share two.
    fn class<K: Hash + ?Sized>(&self, key: &K) -> Option<Class> {
        Some(class(FixedState.hash_one(key), [0, 1]))
    }

    fn memory_bytes(&self) -> usize {
        // Hash, count, and a byte of the table, for each place.
        let places = |shard: &Mutex<HashMap<u64, u64>>| {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.capacity() * 17
        };
        self.shards.iter().map(places).sum()
    }
}

fn main() -> ExitCode {
    let mut registry = Registry::standard();
    registry.add::<ShardedMap>();
    // Your program, with its name, version and commit, is named in what it measures.
    cli::main(&registry, harness::program!())
}
