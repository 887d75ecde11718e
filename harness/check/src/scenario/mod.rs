//! The scenarios: what the threads of one round do. A scenario is the table, its keys, and a script
//! for each thread, all determined by the seed, the number of the round and the number of threads.
//!
//! Each kind of scenario ([`Kind`]) is designed to reach one part of a cuckoo filter that is hard
//! to get right. Tables are tiny, so that threads meet all the time.

mod draft;

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use anyhow::{Context, Result};
use filter::Class;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use subject::calls::{Calls, Operation};

use crate::candidate::Candidate;
use draft::Draft;

/// Keys of one class in [`Kind::Hops`]. In one round of 32 all of them prefer the same bucket.
const KEYS_OF_HOPPER: usize = 6;

/// Number of keys searched for keys of the same class. In a table of six buckets some thirty
/// classes have [`KEYS_OF_HOPPER`] of them.
const CANDIDATES: u64 = 1 << 14;

/// What a scenario is designed to reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// All keys share the only two buckets, which are nearly full: the table is checked as a whole,
    /// so every refusal is checked exactly.
    TwoBuckets,
    /// A few buckets, so full that nearly every insert needs a chain of shifts.
    Chains,
    /// A copy is renewed (one more is inserted, then one is removed) so that it hops between its
    /// buckets, while others look it up: it must never be missed. Other keys are inserted and removed around it.
    Hops,
    /// A copy is only ever moved: keys that have a single bucket push it out of that bucket,
    /// alternating between its two, so that it is shifted back and forth while others look it up or
    /// remove it.
    Tosses,
    /// Exactly one slot of two buckets is empty at any time, in changing places, while others
    /// insert: the table is checked as a whole, and so is every refusal.
    Holes,
    /// Inserts, removes and lookups in a table of medium size.
    Churn,
}

impl Kind {
    /// All kinds, in the order in which rounds rotate through them.
    pub const ALL: [Self; 6] = [
        Self::TwoBuckets,
        Self::Chains,
        Self::Hops,
        Self::Tosses,
        Self::Holes,
        Self::Churn,
    ];

    /// Returns the kinds that suit a subject, in the order in which its rounds rotate through them.
    pub fn suiting(candidate: &Candidate) -> Result<Vec<Self>> {
        let kept = candidate.keeps_classes()?;
        // Without lasting classes it is unknown which keys have which buckets.
        let by_buckets = |kind: &Self| kind.is_of_two_buckets() || *kind == Self::Tosses;
        let suits = |kind: &Self| kept || !by_buckets(kind);
        Ok(Self::ALL.into_iter().filter(suits).collect())
    }

    /// Returns the operation that it is designed to mislead, if any.
    pub fn misleads(self) -> Option<Operation> {
        match self {
            Self::Hops | Self::Tosses => Some(Operation::Contains),
            Self::Holes => Some(Operation::Insert),
            Self::TwoBuckets | Self::Chains | Self::Churn => None,
        }
    }

    /// Returns whether all keys share the only two buckets: the table can be checked as a whole.
    pub fn is_of_two_buckets(self) -> bool {
        matches!(self, Self::TwoBuckets | Self::Holes)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TwoBuckets => "two buckets",
            Self::Chains => "chains",
            Self::Hops => "hops",
            Self::Tosses => "tosses",
            Self::Holes => "holes",
            Self::Churn => "churn",
        })
    }
}

/// Keys that the filter cannot tell apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Their class; `None` if the subject does not reveal it, and then there is a single key.
    pub class: Option<Class>,
    pub keys: Vec<u64>,
}

impl Group {
    fn has_buckets(&self, buckets: [usize; 2]) -> bool {
        self.class.is_some_and(|class| class.buckets() == buckets)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub number: u64,
    /// Which of the [groups](Scenario::groups) it belongs to.
    pub group: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Call(Operation, Key),
    /// Inserts one more copy, and, unless it was refused, removes one.
    Renew {
        insert: Key,
        /// A key of the same group, of which one is removed.
        remove: Key,
    },
    Rest,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    pub actions: Vec<Action>,
    /// Whether it starts over, up to [`MAX_REPEATS`] times, while others are still at their first
    /// and only run, to mislead them.
    pub repeats: bool,
}

/// The maximum number of runs of a script that [repeats](Script::repeats).
pub const MAX_REPEATS: usize = 20;

/// One round of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    pub kind: Kind,
    pub buckets: usize,
    pub groups: Vec<Group>,
    /// Keys that are inserted before the threads start.
    pub residents: Vec<Key>,
    pub scripts: Vec<Script>,
}

impl Script {
    /// Returns the maximum number of runs.
    pub fn times(&self) -> usize {
        if self.repeats { MAX_REPEATS } else { 1 }
    }
}

impl Scenario {
    pub fn once_only(&self) -> usize {
        self.scripts.iter().filter(|script| !script.repeats).count()
    }

    pub fn keys(&self) -> impl Iterator<Item = Key> {
        let groups = self.groups.iter().enumerate();
        groups.flat_map(|(group, Group { keys, .. })| {
            keys.iter().map(move |&number| Key { number, group })
        })
    }
}

#[derive(Debug)]
pub struct Scenarios<'a> {
    candidate: &'a Candidate,
    threads: usize,
    seed: u64,
    kinds: Vec<Kind>,
    /// Groups to choose from, by the number of buckets.
    pools: HashMap<usize, Vec<Group>>,
}

impl<'a> Scenarios<'a> {
    pub fn new(candidate: &'a Candidate, threads: usize, seed: u64) -> Result<Self> {
        Ok(Self {
            candidate,
            threads,
            seed,
            kinds: Kind::suiting(candidate)?,
            pools: HashMap::new(),
        })
    }

    pub fn in_round(&mut self, round: u64) -> Result<Scenario> {
        let random = &mut SmallRng::seed_from_u64(mixed(self.seed, round));
        let kind = self.kinds[(round % self.kinds.len() as u64) as usize];
        let buckets = match kind {
            Kind::TwoBuckets | Kind::Holes | Kind::Tosses => 2,
            Kind::Chains => random.random_range(3..=16),
            Kind::Hops => random.random_range(2..=6),
            Kind::Churn => 100,
        };
        if !self.pools.contains_key(&buckets) {
            let table = (self.candidate.build)(buckets)?;
            let mut pool = groups(&*table, self.seed);
            if self.candidate.grows {
                // Keys that are equal at first may be distinguished later.
                pool.iter_mut().for_each(|group| group.keys.truncate(1));
            }
            self.pools.insert(buckets, pool);
        }
        let pool = &self.pools[&buckets];
        let draft = Draft {
            candidate: self.candidate,
            kind,
            random,
            pool,
            threads: self.threads,
            buckets,
            room: self.candidate.room(buckets),
        };
        draft.scenario().with_context(|| {
            format!(
                "no scenario {kind} for {:?}: too few keys share a class",
                self.candidate.name
            )
        })
    }
}

/// Derives a seed for each number from one seed.
pub(crate) fn mixed(seed: u64, number: u64) -> u64 {
    SmallRng::seed_from_u64(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).random()
}

/// Returns keys drawn from the seed, grouped by their classes in this table.
fn groups(table: &dyn Calls, seed: u64) -> Vec<Group> {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut groups: BTreeMap<(Option<Class>, u64), Vec<u64>> = BTreeMap::new();
    for number in 0..CANDIDATES {
        let key = random.random();
        let class = table.class(key);
        // Without a class, each key is a group of its own.
        let own = if class.is_none() { number } else { 0 };
        groups.entry((class, own)).or_default().push(key);
    }
    let group = |((class, _), keys)| Group { class, keys };
    groups.into_iter().map(group).collect()
}

#[cfg(test)]
mod tests;
