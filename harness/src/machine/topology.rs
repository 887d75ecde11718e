//! Finds out which hardware threads there are, and what they share: a core, a package, a NUMA node.

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
    /// The package, or socket, it belongs to.
    pub package: usize,
    /// The lowest number among the hardware threads of its core, whether they may be used or not.
    pub core: usize,
}

/// The order in which the threads of a measurement are bound to hardware threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// One hardware thread of every core of a node, then of the next node; siblings only once every
    /// core has a thread. Few threads then share neither a core nor their way to memory, and do not
    /// pay for the distance between nodes; only measurements with more threads than a node has
    /// cores do.
    #[default]
    Cores,
    /// All siblings of a core, then the next core, then the next node: few caches and nodes.
    Compact,
    /// As far apart as possible: nodes take turns, each with one thread per core first.
    Scatter,
    /// No thread is bound; the operating system moves them as it likes.
    None,
}

impl Policy {
    /// Returns these hardware threads in the order of the policy.
    pub fn order(self, mut threads: Vec<HardwareThread>) -> Vec<HardwareThread> {
        threads.sort_by_key(|of| (of.node, of.core, of.id));
        // How many of each core, and of each node at the same place in their cores, came before.
        let (mut of_core, mut of_node) = (HashMap::new(), HashMap::new());
        let next = |count: &mut usize| std::mem::replace(count, *count + 1);
        let mut keyed = Vec::new();
        for of in threads {
            let sibling = next(of_core.entry(of.core).or_default());
            let rank = next(of_node.entry((of.node, sibling)).or_default());
            let key = match self {
                Self::Compact | Self::None => (0, 0),
                Self::Cores => (sibling, 0),
                Self::Scatter => (sibling, rank),
            };
            keyed.push((key, of));
        }
        keyed.sort_by_key(|&(key, _)| key);
        keyed.into_iter().map(|(_, of)| of).collect()
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let value = self.to_possible_value();
        formatter.write_str(value.as_ref().map_or("", PossibleValue::get_name))
    }
}

/// Returns the online cores of this machine, each as a line such as `node 0, package 0: hardware
/// threads 0,8`. Empty if the system does not list them.
pub(super) fn cores(system: &Path) -> Vec<String> {
    let online = fs::read_to_string(system.join("cpu/online")).ok();
    let online = online.and_then(|list| parse_list(&list));
    let online = online.unwrap_or_default();
    let threads = Policy::Compact.order(describe(system, &online));
    let cores = threads.chunk_by(|a, b| a.core == b.core).map(|core| {
        let HardwareThread { node, package, .. } = core[0];
        let ids = show_list(core.iter().map(|thread| thread.id));
        format!("node {node}, package {package}: hardware threads {ids}")
    });
    cores.collect()
}

/// Describes these hardware threads. One that the system does not describe is assumed to share nothing
/// with others.
pub(super) fn describe(system: &Path, ids: &[usize]) -> Vec<HardwareThread> {
    let nodes = nodes(system);
    let describe = |&id: &usize| {
        let topology = system.join(format!("cpu/cpu{id}/topology"));
        let read = |file: &str| fs::read_to_string(topology.join(file)).ok();
        // The second name is the older one.
        let siblings = read("core_cpus_list").or_else(|| read("thread_siblings_list"));
        let siblings = siblings.and_then(|list| parse_list(&list));
        let node = nodes.iter().find(|(_, of_node)| of_node.contains(&id));
        let package = read("physical_package_id").and_then(|text| text.trim().parse().ok());
        HardwareThread {
            id,
            node: node.map_or(0, |&(node, _)| node),
            package: package.unwrap_or(0),
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
            let topology = format!("cpu/cpu{id}/topology");
            write(format!("{topology}/core_cpus_list"), siblings + "\n");
            let package = format!("{}\n", core / 4);
            write(format!("{topology}/physical_package_id"), package);
        }
        write("node/node0/cpulist".into(), "0-3,8-11\n".into());
        write("node/node1/cpulist".into(), "4-7,12-15\n".into());
        let online = show_list((0..16).filter(|id| !offline.contains(id)));
        write("cpu/online".into(), online + "\n");
        // A node with memory but no processors, and a file that is no node.
        write("node/node2/cpulist".into(), "\n".into());
        write("node/possible".into(), "0-2\n".into());
        system
    }

    #[test]
    fn every_policy_has_its_order() {
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
            let order: Vec<_> = order.iter().map(|of| of.id.to_string()).collect();
            assert_eq!(order.join(" "), expected, "{policy}");
        }
    }

    #[test]
    fn without_topology_nothing_is_shared() {
        let nowhere = tempfile::tempdir().unwrap();
        let threads = describe(nowhere.path(), &[1, 3]);
        let is_alone = |of: &HardwareThread| (of.node, of.package, of.core) == (0, 0, of.id);
        assert!(threads.iter().all(is_alone));
        assert!(cores(nowhere.path()).is_empty());
    }

    #[test]
    fn cores_are_listed_with_their_siblings() {
        let lines = cores(server(&[8]).path());
        assert_eq!(lines.len(), 8);
        assert_eq!(lines[0], "node 0, package 0: hardware threads 0");
        assert_eq!(lines[7], "node 1, package 1: hardware threads 7,15");
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
