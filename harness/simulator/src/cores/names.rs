//! The lines that cores contend for, by name.

use super::coherence::{Memory, Observed};

const MOST: usize = 10;

/// Returns the lines for which cores waited longest, or which moved most often if they waited for
/// none. Cores have these thread ids.
pub(crate) fn contended(memory: &Memory, ids: &[usize]) -> Vec<(String, Observed)> {
    let mut lines: Vec<(u32, Observed)> = (0..)
        .zip(memory.observed())
        .filter(|(_, observed)| observed.transfers > 0)
        .collect();
    lines.sort_by_key(|(_, of)| std::cmp::Reverse((of.waiting, of.transfers)));
    lines.truncate(MOST);
    let named = |(line, observed)| (name(memory, line, ids), observed);
    lines.into_iter().map(named).collect()
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
