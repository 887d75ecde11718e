//! Cores and affinity: which core each thread of a measurement is bound to.

use std::collections::HashSet;
use std::fs;
use std::num::NonZero;
use std::thread;

use core_affinity::CoreId;

/// The cores this process may run on, in the order in which threads are bound to them: one of every
/// physical core first, then their siblings.
#[derive(Debug, Clone)]
pub struct Cores {
    order: Vec<CoreId>,
    physical: usize,
    count: usize,
}

impl Cores {
    /// Asks the operating system. Where it does not list the cores, they are counted, and no thread
    /// is pinned.
    pub fn detect() -> Self {
        let listed = core_affinity::get_core_ids().unwrap_or_default();
        let ids: Vec<usize> = listed.iter().map(|core| core.id).collect();
        let (order, physical) = physical_first(&ids, siblings);
        let counted = || thread::available_parallelism().map_or(1, NonZero::get);
        Self {
            count: if order.is_empty() {
                counted()
            } else {
                order.len()
            },
            order: order.into_iter().map(|id| CoreId { id }).collect(),
            physical,
        }
    }

    /// Hardware threads this process may use, from 1. More threads than this are oversubscribed.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Binds the calling thread, the `thread`th of a measurement counted from 0, to its core; past
    /// the last core it wraps round. `false` if the platform refuses.
    pub fn pin(&self, thread: usize) -> bool {
        !self.order.is_empty()
            && core_affinity::set_for_current(self.order[thread % self.order.len()])
    }

    /// How threads are bound, for the description of a run.
    pub fn describe(&self) -> String {
        if self.order.is_empty() {
            return "not pinned: the platform does not list its cores".into();
        }
        let order: Vec<String> = self.order.iter().map(|core| core.id.to_string()).collect();
        format!(
            "{} hardware threads on {} physical cores; threads are bound in the order {}",
            self.count,
            self.physical,
            order.join(" ")
        )
    }
}

/// Orders cores so that every first sibling comes before every second one, and counts the first
/// ones. `siblings` tells the cores that share a physical core with the one given, itself among
/// them; unknown means it has none.
fn physical_first(
    ids: &[usize],
    siblings: impl Fn(usize) -> Option<Vec<usize>>,
) -> (Vec<usize>, usize) {
    let usable: HashSet<usize> = ids.iter().copied().collect();
    let rank = |id: usize| {
        let shared = siblings(id).unwrap_or_default();
        shared
            .iter()
            .filter(|&&other| other < id && usable.contains(&other))
            .count()
    };
    let mut ranked: Vec<(usize, usize)> = ids.iter().map(|&id| (rank(id), id)).collect();
    ranked.sort_by_key(|&(rank, _)| rank);
    let physical = ranked.iter().filter(|&&(rank, _)| rank == 0).count();
    (ranked.into_iter().map(|(_, id)| id).collect(), physical)
}

/// What Linux says of a core's siblings; elsewhere nothing is known.
fn siblings(id: usize) -> Option<Vec<usize>> {
    let path = format!("/sys/devices/system/cpu/cpu{id}/topology/thread_siblings_list");
    parse_list(fs::read_to_string(path).ok()?.trim())
}

/// Parses a list of cores such as `0,4` or `0-1,8-9`.
fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut ids = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        ids.extend(first.parse().ok()?..=last.parse::<usize>().ok()?);
    }
    Some(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_each_physical_core_comes_first() {
        let neighbours = |id: usize| parse_list(["0-1", "0-1", "2-3", "2-3"][id]);
        assert_eq!(
            physical_first(&[0, 1, 2, 3], neighbours),
            (vec![0, 2, 1, 3], 2)
        );
        let halves = |id: usize| parse_list(["0,2", "1,3", "0,2", "1,3"][id]);
        assert_eq!(physical_first(&[0, 1, 2, 3], halves), (vec![0, 1, 2, 3], 2));
    }

    #[test]
    fn a_sibling_that_may_not_be_used_does_not_count() {
        let neighbours = |id: usize| parse_list(["0-1", "0-1", "2-3", "2-3"][id]);
        assert_eq!(physical_first(&[1, 2, 3], neighbours), (vec![1, 2, 3], 2));
    }

    #[test]
    fn without_topology_cores_stay_as_listed() {
        assert_eq!(physical_first(&[3, 1, 2], |_| None), (vec![3, 1, 2], 3));
    }

    #[test]
    fn a_list_that_is_not_one_is_nothing() {
        assert_eq!(parse_list("0,4-6"), Some(vec![0, 4, 5, 6]));
        assert_eq!(parse_list("many"), None);
    }

    #[test]
    fn threads_wrap_round_the_cores() {
        let cores = Cores::detect();
        assert!(cores.count() >= 1);
        // In a thread of its own, so that no other test runs pinned.
        let pin_past_the_last =
            thread::spawn(move || cores.order.is_empty() || cores.pin(cores.count()));
        assert!(pin_past_the_last.join().unwrap());
    }
}
