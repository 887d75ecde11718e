//! The registry: the subjects by name.
//!
//! To measure your own filter beside ours, implement [`Subject`] in your crate, add it to a
//! [`Registry`], and pass that to [`cli::main`](crate::cli::main) with an experiment that names it.

use anyhow::{Result, bail};
use check::Candidate;
use subject::{Operations, Subject, built};

use super::*;
use crate::operations::Measured;
use crate::wording::unknown;

#[derive(Debug, Clone, Copy)]
pub struct SubjectInfo {
    pub name: &'static str,
    pub description: &'static str,
    pub guarantees: &'static str,
    pub operations: Operations,
    pub holds_keys: bool,
    /// Creates an empty filter with room for this many buckets of fingerprints.
    pub build: fn(usize) -> Result<Box<dyn Measured>>,
    pub candidate: Candidate,
}

#[derive(Debug, Clone, Default)]
pub struct Registry {
    entries: Vec<SubjectInfo>,
}

impl Registry {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn standard() -> Self {
        let mut registry = Self::new();
        registry.add::<LockFree>();
        registry.add::<Batched<LockFree>>();
        registry.add::<LockFreeFitted>();
        registry.add::<LockFreeCopies>();
        registry.add::<Growing>();
        registry.add::<Batched<Growing>>();
        registry.add::<Expiring>();
        registry.add::<SegmentLock>();
        registry.add::<SegmentLock<16_384>>();
        registry.add::<StripedTimestamps>();
        registry.add::<Optimistic>();
        registry.add::<Optimistic<16_384>>();
        registry.add::<WordLock>();
        registry.add::<GlobalLock>();
        registry.add::<RwLock>();
        registry.add::<TwoPhase>();
        registry.add::<VectorQuotient>();
        registry.add::<AtomicCuckooFilter>();
        registry.add::<CuckoofilterMutex>();
        registry.add::<BlockedBloom>();
        registry.add::<Fastbloom>();
        registry.add::<Fastbloom4>();
        registry.add::<Bloom>();
        registry.add::<CountingBloom>();
        registry.add::<ScalableBloom>();
        registry.add::<ExactSet>();
        registry.add::<SmartCuckooMutex>();
        registry.add::<PlainCuckooMutex>();
        registry.add::<CountMin>();
        registry.add::<HyperLogLog>();
        registry.add::<Roofline>();
        registry.add::<BatchedRoofline>();
        registry.add::<UpdateRoofline>();
        registry.add::<Null>();
        registry.add::<AblationControl>();
        registry.add::<AblationTwoPhaseLookup>();
        registry.add::<AblationOneRound>();
        registry.add::<AblationHopByHop>();
        registry.add::<AblationRandomWalk>();
        registry.add::<AblationEpoch>();
        registry.add::<AblationHelpingReaders>();
        registry.add::<AblationDcss>();
        registry.add::<AblationUncounted>();
        registry
    }

    #[cfg(all(test, feature = "simulation"))]
    pub(crate) fn only(mut self, names: &[&str]) -> Self {
        self.entries.retain(|entry| names.contains(&entry.name));
        self
    }

    /// Adds a subject; one of the same name is replaced.
    pub fn add<S: Subject>(&mut self) {
        self.entries.retain(|entry| entry.name != S::NAME);
        self.entries.push(SubjectInfo {
            name: S::NAME,
            description: S::DESCRIPTION,
            guarantees: S::GUARANTEES,
            operations: S::OPERATIONS,
            holds_keys: S::HOLDS_KEYS,
            build: |buckets| Ok(Box::new(built::<S>(buckets)?)),
            candidate: Candidate::new::<S>(),
        });
    }

    /// Returns all subjects, in the order in which they were added.
    pub fn entries(&self) -> &[SubjectInfo] {
        &self.entries
    }

    /// Returns all names, in the order in which they were added.
    pub fn names(&self) -> Vec<&'static str> {
        self.entries.iter().map(|entry| entry.name).collect()
    }

    /// Returns the subject with this name, which may be that of a [copy](original).
    pub fn get(&self, name: &str) -> Result<&SubjectInfo> {
        let original = original(name);
        match self.entries.iter().find(|entry| entry.name == original) {
            Some(entry) => Ok(entry),
            None => bail!("unknown subject {}", unknown(name, &self.names())),
        }
    }
}

/// Returns the name before `#`. With `NAME#2` an experiment measures a subject beside itself, to see
/// by how much two measurements of the same differ.
pub fn original(name: &str) -> &str {
    name.split_once('#').map_or(name, |(original, _)| original)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_copy_is_same_subject() {
        let registry = Registry::standard();
        assert_eq!(registry.get("lock-free#2").unwrap().name, "lock-free");
        let error = registry.get("#lock-free").unwrap_err().to_string();
        let expected = "lock-free, lock-free-batch, ";
        assert!(error.contains(expected) && error.contains('\n'), "{error}");
    }

    #[test]
    fn subject_added_twice_is_known_once() {
        let mut registry = Registry::new();
        registry.add::<Roofline>();
        registry.add::<Roofline>();
        assert_eq!(registry.names(), ["roofline"]);
    }
}
