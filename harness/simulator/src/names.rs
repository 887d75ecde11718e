//! The names of lines that cores contend for.

use kcas::simulation::{self, Named};

use crate::caches::LINE_BYTES;
use crate::coherence::{Memory, Observed};

/// The most lines that are named.
const MOST: usize = 10;

/// A line that cores contend for.
#[derive(Clone, Debug, PartialEq)]
pub struct Contended {
    /// What it holds, such as `buckets 16 to 23`.
    pub name: String,
    /// Hand-overs of it between cores.
    pub transfers: u64,
    /// Time for which cores waited for others that were to get it first, in ns.
    pub waiting: f64,
}

/// Returns the lines for which cores waited longest, or which moved most often if they waited for
/// none.
pub(crate) fn contended(memory: &Memory, named: &[Named], ids: &[usize]) -> Vec<Contended> {
    let mut lines: Vec<(usize, Observed)> = memory
        .observed()
        .filter(|(_, observed)| observed.transfers > 0)
        .collect();
    // Where two are equal, in the order in which they were first used: addresses differ from run to
    // run.
    lines.sort_by_key(|(_, of)| std::cmp::Reverse((of.waiting, of.transfers)));
    lines.truncate(MOST);
    let contended = |(address, observed): (usize, Observed)| Contended {
        name: name(address, named, ids),
        transfers: observed.transfers,
        waiting: observed.waiting as f64 / 1e3,
    };
    lines.into_iter().map(contended).collect()
}

/// Names the line at this address.
fn name(address: usize, named: &[Named], ids: &[usize]) -> String {
    let end = address + LINE_BYTES;
    for (core, &id) in ids.iter().enumerate() {
        let record = simulation::record(id).unwrap_or_default();
        if record.start < end && address < record.end {
            return format!("descriptor of core {core}");
        }
    }
    // What was named last is what is there now.
    let there = named
        .iter()
        .rev()
        .find(|named| named.start < end && address < named.start + named.bytes * named.len);
    let Some(named) = there else {
        return "a line without a name".into();
    };
    let place = |at: usize| at.saturating_sub(named.start) / named.bytes;
    let (first, last) = (place(address), place(end - 1).min(named.len - 1));
    let (first, last) = (named.first + first, named.first + last);
    match named.what {
        // Counters are numbered by thread ids.
        "counter" => match ids.iter().position(|&id| id == first) {
            Some(core) => format!("counter of core {core}"),
            None => format!("counter of thread id {first}"),
        },
        what if first == last => format!("{what} {first}"),
        what => format!("{what}s {first} to {last}"),
    }
}
