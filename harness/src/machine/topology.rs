//! Finds out which hardware threads there are, and what they share: a core, a NUMA node.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::Path;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use serde::{Deserialize, Serialize};

/// Where Linux describes processors and nodes.
pub(super) const SYSTEM: &str = "/sys/devices/system";

/// A hardware thread, which the operating system calls a processor or CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HardwareThread {
    /// The number by which threads are bound to it.
    pub id: usize,
    /// The node whose memory is nearest.
    pub node: usize,
    /// The lowest number among the hardware threads of its core, available or not.
    pub core: usize,
}

/// The order in which the threads of a measurement are bound to hardware threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// One hardware thread of every core of a node, then of the next node; siblings only once every
    /// core has a thread. Few threads then share no core, and stay on one node.
    #[default]
    Cores,
    /// All siblings of a core, then the next core, then the next node: few caches and nodes.
    Compact,
    /// The cores are as far apart as possible: nodes take turns, each with one thread per core first.
    Scatter,
    /// No thread is bound; the operating system moves them.
    None,
}

impl Policy {
    /// Returns these hardware threads in the order of the policy.
    pub fn order(self, mut threads: Vec<HardwareThread>) -> Vec<HardwareThread> {
        threads.sort_by_key(|thread| (thread.node, thread.core, thread.id));
        // Counts of earlier threads: of each core, and of each node at the same place in their cores.
        let (mut siblings, mut ranks) = (HashMap::new(), HashMap::new());
        let next = |count: &mut usize| std::mem::replace(count, *count + 1);
        let keyed = threads.into_iter().map(|thread| {
            let sibling = next(siblings.entry(thread.core).or_default());
            let rank = next(ranks.entry((thread.node, sibling)).or_default());
            let key = match self {
                Self::Compact | Self::None => (0, 0),
                Self::Cores => (sibling, 0),
                Self::Scatter => (sibling, rank),
            };
            (key, thread)
        });
        let mut keyed: Vec<_> = keyed.collect();
        keyed.sort_by_key(|&(key, _)| key);
        keyed.into_iter().map(|(_, thread)| thread).collect()
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let value = self.to_possible_value();
        formatter.write_str(value.as_ref().map_or("", PossibleValue::get_name))
    }
}

/// Describes these hardware threads. One that the system does not describe is assumed to share nothing
/// with others.
pub(super) fn describe(system: &Path, ids: &[usize]) -> Vec<HardwareThread> {
    let nodes = nodes(system);
    let describe = |&id: &usize| {
        // The second name is the older one.
        let siblings = ["core_cpus_list", "thread_siblings_list"]
            .into_iter()
            .find_map(|file| {
                let path = system.join(format!("cpu/cpu{id}/topology/{file}"));
                parse_list(&fs::read_to_string(path).ok()?)
            });
        let node = nodes.iter().find(|(_, threads)| threads.contains(&id));
        HardwareThread {
            id,
            node: node.map_or(0, |&(node, _)| node),
            core: siblings.into_iter().flatten().min().unwrap_or(id),
        }
    };
    ids.iter().map(describe).collect()
}

/// Returns the nodes, each with its hardware threads. Empty if there are no files about them.
fn nodes(system: &Path) -> Vec<(usize, Vec<usize>)> {
    let read = |entry: fs::DirEntry| {
        let name = entry.file_name();
        let number = name.to_str()?.strip_prefix("node")?.parse().ok()?;
        let list = fs::read_to_string(entry.path().join("cpulist")).ok()?;
        Some((number, parse_list(&list)?))
    };
    let entries = fs::read_dir(system.join("node")).into_iter().flatten();
    entries.filter_map(|entry| read(entry.ok()?)).collect()
}

/// Parses a list such as `0,4` or `0-1,8-9`. An empty list belongs to a node that has only memory.
pub fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut ids = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<usize>().ok();
        let (first, last) = (number(first)?, number(last)?);
        if first > last || last > MAX_ID {
            return None;
        }
        ids.extend(first..=last);
    }
    Some(ids)
}

/// Far above any number that Linux uses.
const MAX_ID: usize = 1 << 16;

/// Formats a list as [`parse_list`] reads it.
pub fn show_list(ids: impl IntoIterator<Item = usize>) -> String {
    let mut ids: Vec<usize> = ids.into_iter().collect();
    ids.sort_unstable();
    let runs = ids.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        _ => run.iter().map(usize::to_string).collect(),
    });
    runs.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two nodes of four cores of two siblings, numbered as on most servers: first siblings are 0
    /// to 7, second ones 8 to 15, and node 0 has 0-3 and 8-11.
    fn server(offline: &[usize]) -> tempfile::TempDir {
        let system = tempfile::tempdir().unwrap();
        let write = |path: String, text: String| {
            let path = system.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for id in (0..16).filter(|id| !offline.contains(id)) {
            let core = id % 8;
            let there = [core, core + 8];
            let siblings = show_list(there.into_iter().filter(|id| !offline.contains(id)));
            let path = format!("cpu/cpu{id}/topology/core_cpus_list");
            write(path, siblings + "\n");
        }
        write("node/node0/cpulist".into(), "0-3,8-11\n".into());
        write("node/node1/cpulist".into(), "4-7,12-15\n".into());
        // A node with memory but no processors, and a file that is no node.
        write("node/node2/cpulist".into(), "\n".into());
        write("node/possible".into(), "0-2\n".into());
        system
    }

    #[test]
    fn each_policy_has_its_order() {
        // Which hardware threads may be used, which are offline, and the order.
        for line in [
            "cores | 0-15 | | 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15",
            "compact | 0-15 | | 0 8 1 9 2 10 3 11 4 12 5 13 6 14 7 15",
            "scatter | 0-15 | | 0 4 1 5 2 6 3 7 8 12 9 13 10 14 11 15",
            // Both threads of core 2, and only the second ones of cores 1 and 5.
            "cores | 2,9,10,13 | | 9 2 13 10",
            "compact | 2,9,10,13 | | 9 2 10 13",
            "scatter | 2,9,10,13 | | 9 13 2 10",
            // Without the first threads of cores 0 and 4, and all of core 1.
            "cores | 2-3,5-8,10-15 | 0-1,4,9 | 2 3 8 5 6 7 12 10 11 13 14 15",
            "scatter | 2-3,5-8,10-15 | 0-1,4,9 | 2 5 3 6 8 7 12 10 13 11 14 15",
        ] {
            let parts: Vec<_> = line.split('|').map(str::trim).collect();
            let [policy, ids, offline, expected] = parts[..].try_into().unwrap();
            let [ids, offline] = [ids, offline].map(|list| parse_list(list).unwrap());
            let threads = describe(server(&offline).path(), &ids);
            let order = Policy::from_str(policy, false).unwrap().order(threads);
            let order: Vec<_> = order.iter().map(|thread| thread.id.to_string()).collect();
            assert_eq!(order.join(" "), expected, "{policy}");
        }
    }

    #[test]
    fn without_topology_nothing_is_shared() {
        let nowhere = tempfile::tempdir().unwrap();
        let threads = describe(nowhere.path(), &[1, 3]);
        let is_alone = |thread: &HardwareThread| (thread.node, thread.core) == (0, thread.id);
        assert!(threads.iter().all(is_alone));
    }

    #[test]
    fn lists_are_read_and_written() {
        assert_eq!(parse_list("0,4-6\n"), Some(vec![0, 4, 5, 6]));
        assert_eq!(parse_list(""), Some(vec![]));
        for not_a_list in ["many", "1-", "3-1", "0-99999999999", "-1"] {
            assert_eq!(parse_list(not_a_list), None, "{not_a_list}");
        }
        assert_eq!(show_list([6, 0, 4, 5]), "0,4-6");
    }
}
