//! Lookups of many items, in a worker thread: other clients are served meanwhile. No lock is taken,
//! since the filter needs none.

use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, OnceLock};
use std::thread;

use filter::Filter;
use filter::growing::GrowingCuckooFilter;
use redis_module::{
    BlockedClient, Context, ContextFlags, RedisError, RedisResult, RedisValue, ThreadSafeContext,
};

use crate::caught;

/// From this number of items on, lookups are made in the worker thread.
const MANY: usize = 1000;

type Job = (BlockedClient, Arc<GrowingCuckooFilter>, Vec<u64>);

/// Answers which keys with these hashes are in the filter.
pub(crate) fn exist(
    ctx: &Context,
    filter: &Arc<GrowingCuckooFilter>,
    hashes: Vec<u64>,
) -> RedisResult {
    // In a script or a transaction, nobody waits.
    let here = hashes.len() < MANY || ctx.get_flags().contains(ContextFlags::DENY_BLOCKING);
    match worker() {
        Some(worker) if !here => {
            let job = (ctx.block_client(), Arc::clone(filter), hashes);
            if let Err(refused) = worker.send(job) {
                answer(refused.0);
            }
            Ok(RedisValue::NoReply)
        }
        _ => Ok(found(filter, &hashes)),
    }
}

/// The worker, if there could be one. It is started by the first caller.
fn worker() -> Option<&'static Sender<Job>> {
    static WORKER: OnceLock<Option<Sender<Job>>> = OnceLock::new();
    let start = || {
        let (sender, jobs) = mpsc::channel();
        let work = move || jobs.into_iter().for_each(answer);
        let started = thread::Builder::new().name("cf-lookups".into()).spawn(work);
        started.is_ok().then_some(sender)
    };
    WORKER.get_or_init(start).as_ref()
}

fn found(filter: &GrowingCuckooFilter, hashes: &[u64]) -> RedisValue {
    let mut found = vec![false; hashes.len()];
    filter.contains_hash_batch(hashes, &mut found);
    RedisValue::Array(found.into_iter().map(RedisValue::Bool).collect())
}

fn answer((client, filter, hashes): Job) {
    let panicked = RedisError::Str("ERR a bug in the module, which is in the server's log");
    let reply = caught(|| Ok(found(&filter, &hashes)), || Err(panicked));
    // Whoever waits for it to be free waits no longer.
    drop(filter);
    // A reply needs no lock either. The client goes on when both are dropped.
    let send = || _ = ThreadSafeContext::with_blocked_client(client).reply(reply);
    caught(send, || ());
}
