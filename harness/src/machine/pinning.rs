//! Cores and affinity: binds each thread of a measurement to a hardware thread.

use std::collections::HashMap;
use std::fs;
use std::num::NonZero;
use std::path::Path;
use std::thread;

use anyhow::{Context, Result, ensure};
use core_affinity::CoreId;
use serde::{Deserialize, Serialize};

/// The hardware threads to measure on, in the order in which threads are bound to them. Empty if the operating
/// system does not list them: then no thread is bound.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cores(Vec<usize>);

impl Cores {
    /// Returns all hardware threads that this process may run on: one of every core of a NUMA node, then of the next
    /// node, with siblings last. Few threads then share no core and stay on one node.
    pub fn detect() -> Self {
        Self(ordered(Path::new("/sys/devices/system"), usable()))
    }

    /// Returns exactly these hardware threads of the usable ones, in this order.
    pub fn chosen(usable: &[usize], ids: &[usize]) -> Result<Self> {
        ensure!(!ids.is_empty(), "name at least one core");
        for (index, id) in ids.iter().enumerate() {
            ensure!(
                usable.contains(id),
                "core {id} is not available to this process; available cores: {usable:?}"
            );
            ensure!(!ids[..index].contains(id), "core {id} is named twice");
        }
        Ok(Self(ids.to_vec()))
    }

    /// Returns the number of hardware threads, from 1; more threads are oversubscribed.
    pub fn count(&self) -> usize {
        match self.0.len() {
            0 => thread::available_parallelism().map_or(1, NonZero::get),
            count => count,
        }
    }

    /// Binds the calling thread to its hardware thread. `thread` is its number in the measurement,
    /// from 0; after the last hardware thread, the first one follows. Returns whether it is bound.
    pub fn pin(&self, thread: usize) -> bool {
        let id = self.0.get(thread % self.count());
        id.is_some_and(|&id| core_affinity::set_for_current(CoreId { id }))
    }

    pub fn describe(&self) -> String {
        format!("threads are bound to hardware threads {:?}", self.0)
    }
}

pub fn usable() -> Vec<usize> {
    let listed = core_affinity::get_core_ids().unwrap_or_default();
    listed.iter().map(|core| core.id).collect()
}

/// Orders hardware threads as [`Cores::detect`] describes, by the files of Linux. One without files shares nothing.
fn ordered(system: &Path, mut ids: Vec<usize>) -> Vec<usize> {
    let list = |path: &Path| parse_list(&fs::read_to_string(path).ok()?).ok();
    let core = |id: usize| {
        let siblings = format!("cpu/cpu{id}/topology/thread_siblings_list");
        let siblings = list(&system.join(siblings)).unwrap_or_default();
        siblings.into_iter().min().unwrap_or(id)
    };
    let mut nodes = HashMap::new();
    for node in list(&system.join("node/has_cpu")).unwrap_or_default() {
        let ids = list(&system.join(format!("node/node{node}/cpulist")));
        nodes.extend(ids.unwrap_or_default().into_iter().map(|id| (id, node)));
    }
    ids.sort_by_key(|&id| (nodes.get(&id), core(id), id));
    let mut siblings = HashMap::new();
    let mut next_sibling = |id| {
        let count = siblings.entry(core(id)).or_insert(0);
        *count += 1;
        *count
    };
    let mut keyed: Vec<_> = ids.into_iter().map(|id| (next_sibling(id), id)).collect();
    keyed.sort_by_key(|(sibling, _)| *sibling);
    keyed.into_iter().map(|(_, id)| id).collect()
}

/// Parses a list such as `0,4` or `0-1,8-9`, which may be empty.
pub fn parse_list(text: &str) -> Result<Vec<usize>> {
    let mut ids = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.parse::<u16>().map(usize::from);
        let (first, last) = number(first)
            .and_then(|first| Ok((first, number(last)?)))
            .with_context(|| format!("{text:?} is not a list such as 0-3,8"))?;
        ids.extend(first..=last);
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two nodes of four cores of two siblings, numbered as on most servers: first siblings are 0 to 7, second ones 8
    /// to 15.
    #[test]
    fn cores_of_node_come_before_siblings() {
        let system = tempfile::tempdir().unwrap();
        let write = |path: String, text: String| {
            let path = system.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for id in 0..16 {
            let siblings = format!("{},{}\n", id % 8, id % 8 + 8);
            write(
                format!("cpu/cpu{id}/topology/thread_siblings_list"),
                siblings,
            );
        }
        write("node/has_cpu".into(), "1,3\n".into());
        write("node/node1/cpulist".into(), "0-1,4-5,8-9,12-13\n".into());
        write("node/node3/cpulist".into(), "2-3,6-7,10-11,14-15\n".into());
        for (usable, expected) in [
            (
                "0-15",
                [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15].to_vec(),
            ),
            // Both threads of core 2, and only the second one of core 1.
            ("2,9,10", vec![9, 2, 10]),
        ] {
            let usable = parse_list(usable).unwrap();
            assert_eq!(ordered(system.path(), usable), expected);
        }
        assert_eq!(ordered(Path::new("nowhere"), vec![3, 1]), [1, 3]);
    }

    #[test]
    fn impossible_cores_are_refused() {
        let chosen = |list: &str| Cores::chosen(&[0, 1, 2, 8], &parse_list(list)?);
        assert_eq!(chosen("8,1").unwrap().0, [8, 1]);
        for (list, expected) in [
            (
                "1,9",
                "core 9 is not available to this process; available cores: [0, 1, 2, 8]",
            ),
            ("1,1", "core 1 is named twice"),
            ("", "name at least one core"),
            ("many", "\"many\" is not a list such as 0-3,8"),
            (
                "0-99999999999",
                "\"0-99999999999\" is not a list such as 0-3,8",
            ),
        ] {
            assert_eq!(chosen(list).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn thread_runs_where_it_is_bound() {
        for id in usable() {
            let cores = Cores::chosen(&usable(), &[id]).unwrap();
            // In a new thread, so that no other test runs pinned. After the last hardware thread, the first one
            // follows.
            let left = thread::spawn(move || (cores.pin(1), usable()));
            assert_eq!(left.join().unwrap(), (true, vec![id]));
        }
    }
}
