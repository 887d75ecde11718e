//! Cores and affinity: binds each thread of a measurement to a hardware thread.

use std::collections::HashSet;
use std::num::NonZero;
use std::path::Path;
use std::thread;

use anyhow::{Result, bail, ensure};
use core_affinity::CoreId;

use crate::machine::topology::{self, SYSTEM};
use crate::machine::{HardwareThread, Policy, show_list};
use crate::wording::counted;

/// The hardware threads to measure on, in the order in which threads are bound to them.
#[derive(Debug, Clone)]
pub struct Cores {
    order: Vec<HardwareThread>,
    /// `None` if they were chosen by hand.
    policy: Option<Policy>,
}

impl Cores {
    /// Returns all hardware threads that this process may run on, in the order of the default policy.
    pub fn detect() -> Self {
        Self::ordered(Policy::default())
    }

    /// Returns all hardware threads that this process may run on, in the order of a policy. If the
    /// operating system does not list them, they are only counted, and no thread is bound.
    pub fn ordered(policy: Policy) -> Self {
        Self {
            order: policy.order(topology::describe(Path::new(SYSTEM), &usable())),
            policy: Some(policy),
        }
    }

    /// Returns exactly these hardware threads of the usable ones, in this order.
    pub fn chosen(usable: &[usize], ids: &[usize]) -> Result<Self> {
        ensure!(!ids.is_empty(), "name at least one core");
        for (index, id) in ids.iter().enumerate() {
            if !usable.contains(id) {
                bail!(
                    "core {id} is not available to this process; available cores: {}",
                    show_list(usable.iter().copied())
                );
            }
            ensure!(!ids[..index].contains(id), "core {id} is named twice");
        }
        Ok(Self {
            order: topology::describe(Path::new(SYSTEM), ids),
            policy: None,
        })
    }

    /// Returns the number of hardware threads, from 1; more threads are oversubscribed.
    pub fn count(&self) -> usize {
        match self.order.len() {
            0 => thread::available_parallelism().map_or(1, NonZero::get),
            count => count,
        }
    }

    /// Binds the calling thread to its hardware thread. `thread` is its number in the measurement,
    /// from 0; after the last hardware thread, the first one follows. Returns `false` if threads are not to
    /// be bound, or the platform refuses.
    pub fn pin(&self, thread: usize) -> bool {
        let bound = self.policy != Some(Policy::None) && !self.order.is_empty();
        bound && {
            let HardwareThread { id, .. } = self.order[thread % self.order.len()];
            core_affinity::set_for_current(CoreId { id })
        }
    }

    pub fn describe(&self) -> String {
        if self.order.is_empty() {
            return "not pinned: the platform does not list its cores".into();
        }
        let different = |what: fn(&HardwareThread) -> usize| {
            let numbers: HashSet<usize> = self.order.iter().map(what).collect();
            numbers.len()
        };
        let (cores, nodes) = (
            different(|thread| thread.core),
            different(|thread| thread.node),
        );
        let order: Vec<_> = self
            .order
            .iter()
            .map(|thread| thread.id.to_string())
            .collect();
        let order = order.join(" ");
        let bound = match self.policy {
            Some(Policy::None) => "threads are not bound (policy none)".into(),
            Some(policy) => {
                format!("threads are bound in the order {order} (policy {policy})")
            }
            None => format!("threads are bound in the order {order} (as given)"),
        };
        let threads = counted(self.count(), "hardware thread");
        let (cores, nodes) = (counted(cores, "physical core"), counted(nodes, "NUMA node"));
        format!("{threads} on {cores} of {nodes}; {bound}")
    }
}

pub fn usable() -> Vec<usize> {
    let listed = core_affinity::get_core_ids().unwrap_or_default();
    listed.iter().map(|core| core.id).collect()
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn chosen_cores_keep_their_order() {
        let chosen = |ids: &[usize]| Cores::chosen(&[0, 1, 2, 8], ids);
        let cores = chosen(&[8, 1]).unwrap();
        assert_eq!(cores.count(), 2);
        let described = cores.describe();
        assert!(
            described.contains("in the order 8 1 (as given)"),
            "{described}"
        );
        let absent = "core 9 is not available to this process; available cores: 0-2,8";
        for (ids, error) in [
            (&[1, 9][..], absent),
            (&[1, 1], "core 1 is named twice"),
            (&[], "name at least one core"),
        ] {
            assert_eq!(chosen(ids).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn threads_wrap_round_the_cores() {
        for &policy in Policy::value_variants() {
            let cores = Cores::ordered(policy);
            assert!(cores.count() >= 1);
            let bound = policy != Policy::None && !cores.order.is_empty();
            // In a new thread, so that no other test runs pinned.
            let pinned = thread::spawn(move || cores.pin(cores.count())).join();
            assert_eq!(pinned.unwrap(), bound, "{policy}");
        }
    }

    #[test]
    fn thread_runs_where_it_is_bound() {
        for id in usable() {
            let cores = Cores::chosen(&usable(), &[id]).unwrap();
            let left = thread::spawn(move || (cores.pin(0), usable()));
            assert_eq!(left.join().unwrap(), (true, vec![id]));
        }
    }
}
