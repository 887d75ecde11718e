//! The lines that cores contend for, by name.

use super::coherence::{Memory, Observed};

const MOST: usize = 10;

/// A line that cores contend for.
#[derive(Clone, Debug, PartialEq)]
pub struct Contended {
    /// What it holds, such as `buckets 16 to 23`.
    pub name: String,
    /// Hand-overs of it between cores.
    pub transfers: u64,
    /// Time for which cores waited while others got it first, in ns.
    pub waiting: f64,
}

/// Returns the lines for which cores waited longest, or which moved most often if they waited for
/// none. Cores have these thread ids.
pub(crate) fn contended(memory: &Memory, ids: &[usize]) -> Vec<Contended> {
    let mut lines: Vec<(u32, Observed)> = (0..)
        .zip(memory.observed())
        .filter(|(_, observed)| observed.transfers > 0)
        .collect();
    lines.sort_by_key(|(_, of)| std::cmp::Reverse((of.waiting, of.transfers)));
    lines.truncate(MOST);
    let contended = |(line, observed): (u32, Observed)| Contended {
        name: name(memory, line, ids),
        transfers: observed.transfers,
        waiting: observed.waiting as f64 / 1e3,
    };
    lines.into_iter().map(contended).collect()
}

fn name(memory: &Memory, line: u32, ids: &[usize]) -> String {
    let Some((what, first, last)) = memory.regions.of_line(line) else {
        return "a word without a name".into();
    };
    match what {
        // These are numbered by thread ids.
        "counter" | "descriptor" => match ids.iter().position(|&id| id == first) {
            Some(core) => format!("{what} of core {core}"),
            None => format!("{what} of thread id {first}"),
        },
        what if first == last => format!("{what} {first}"),
        what => format!("{what}s {first} to {last}"),
    }
}
