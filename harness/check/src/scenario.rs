//! The scenarios: what the threads of one round do. A scenario is the table, its keys, and a script
//! for each thread, all determined by the seed, the number of the round and the number of threads.
//!
//! Each kind of scenario ([`Kind`]) is designed to reach one part of a cuckoo filter that is hard
//! to get right. Tables are tiny, so that threads meet all the time.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Range;

use anyhow::{Context, Result};
use filter::Class;
use rand::rngs::SmallRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use subject::SLOTS_PER_BUCKET;
use subject::calls::{Calls, Operation};

use crate::candidate::Candidate;

/// Maximum number of threads that change the copies of one class; the others only look it up. Each
/// call under way that changes a class may or may not have taken effect, so each doubles the
/// checker's work.
const MOST_WRITERS: usize = 8;

/// Maximum number of threads that change a table that is checked as a whole.
const MOST_WRITERS_OF_WHOLE: usize = 6;

/// Maximum number of threads that renew the resident copy in [`Kind::Hops`].
const MOST_HOPPERS: usize = 4;

/// Keys of one class in [`Kind::Hops`]: with six, all prefer the same bucket in only one round of
/// 32.
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
    /// buckets, while others look it up: it must never be missed. Other keys come and go around it.
    Hops,
    /// A copy is only ever moved: keys that have a single bucket push it out of that bucket,
    /// alternating between its two, so that it is shifted to and fro while others look it up or
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
}

impl Kind {
    /// Returns the calls that it is designed to mislead, if any.
    pub fn misleads(self) -> Option<Operation> {
        match self {
            Self::Hops | Self::Tosses => Some(Operation::Contains),
            Self::Holes => Some(Operation::Insert),
            Self::TwoBuckets | Self::Chains | Self::Churn => None,
        }
    }

    /// Returns whether all keys share the only two buckets, so that the table can be checked as a
    /// whole.
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
    /// Some of its keys.
    pub keys: Vec<u64>,
}

impl Group {
    fn has_buckets(&self, buckets: [usize; 2]) -> bool {
        self.class.is_some_and(|class| class.buckets == buckets)
    }
}

/// A key of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// What is hashed.
    pub number: u64,
    /// Which of the [groups](Scenario::groups) it belongs to.
    pub group: usize,
}

/// A thread's next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A call.
    Call(Operation, Key),
    /// Inserts one more copy, and, unless it was refused, removes one.
    Renew {
        /// The key of which a copy is inserted.
        insert: Key,
        /// A key of the same group, of which one is removed.
        remove: Key,
    },
    /// Yields the core.
    Rest,
}

/// The script of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// The actions, one after another.
    pub actions: Vec<Action>,
    /// Whether it starts over, up to [`MOST_REPEATS`] times, while others are still at their first
    /// and only run: it is there to mislead them.
    pub repeats: bool,
}

/// How often a script that [repeats](Script::repeats) is run at most.
pub const MOST_REPEATS: usize = 20;

/// One round of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// What it is designed to reach.
    pub kind: Kind,
    /// Buckets of the table.
    pub buckets: usize,
    /// All keys.
    pub groups: Vec<Group>,
    /// Keys that are inserted before the threads start.
    pub residents: Vec<Key>,
    /// The script of each thread.
    pub scripts: Vec<Script>,
}

impl Script {
    /// Returns how often it is run at most.
    pub fn times(&self) -> usize {
        if self.repeats { MOST_REPEATS } else { 1 }
    }
}

impl Scenario {
    /// Counts the scripts that are run once.
    pub fn once_only(&self) -> usize {
        self.scripts.iter().filter(|script| !script.repeats).count()
    }

    /// Returns all keys.
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        let groups = self.groups.iter().enumerate();
        groups.flat_map(|(group, Group { keys, .. })| {
            keys.iter().map(move |&number| Key { number, group })
        })
    }
}

/// Generates the scenarios of one subject.
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
    /// Creates the generator of a subject's scenarios for this many threads.
    ///
    /// # Errors
    ///
    /// Fails if the subject cannot be built.
    pub fn new(candidate: &'a Candidate, threads: usize, seed: u64) -> Result<Self> {
        let named = candidate.names_classes()?;
        let mut kinds = Kind::ALL.to_vec();
        // Without classes it is unknown which keys have which buckets.
        let by_buckets = |kind: Kind| kind.is_of_two_buckets() || kind == Kind::Tosses;
        // The same holds if the table grows.
        kinds.retain(|&kind| named && !candidate.grows || !by_buckets(kind));
        Ok(Self {
            candidate,
            threads,
            seed,
            kinds,
            pools: HashMap::new(),
        })
    }

    /// Returns the scenario of a round.
    ///
    /// # Errors
    ///
    /// Fails if the subject cannot be built with so few buckets, or spreads keys too unevenly.
    pub fn of_round(&mut self, round: u64) -> Result<Scenario> {
        let random = &mut SmallRng::seed_from_u64(mixed(self.seed, round));
        let kind = self.kinds[(round % self.kinds.len() as u64) as usize];
        let buckets = match kind {
            Kind::TwoBuckets | Kind::Holes | Kind::Tosses => 2,
            Kind::Chains => random.random_range(3..=16),
            Kind::Hops => random.random_range(2..=6),
            Kind::Churn => 100,
        };
        if !self.pools.contains_key(&buckets) {
            let table = self.candidate.build(buckets)?;
            let mut pool = groups(&*table, self.seed);
            if self.candidate.grows {
                // Keys that are equal at first may be distinguished later.
                pool.iter_mut().for_each(|group| group.keys.truncate(1));
            }
            self.pools.insert(buckets, pool);
        }
        let pool = &self.pools[&buckets];
        let draft = Draft {
            kind,
            random,
            pool,
            threads: self.threads,
            buckets,
            room: buckets * SLOTS_PER_BUCKET + self.candidate.stash,
            unique: self.candidate.operations.unique,
            keys_of_hopper: if self.candidate.grows {
                1
            } else {
                KEYS_OF_HOPPER
            },
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

/// Returns keys that the seed determines, by their classes in this table.
fn groups(table: &dyn Calls, seed: u64) -> Vec<Group> {
    let mut random = SmallRng::seed_from_u64(seed);
    let keys: Vec<u64> = (0..CANDIDATES).map(|_| random.random()).collect();
    let mut named: BTreeMap<Class, Vec<u64>> = BTreeMap::new();
    let mut groups = Vec::new();
    for key in keys {
        match table.class(key) {
            Some(class) => named.entry(class).or_default().push(key),
            None => groups.push(Group {
                class: None,
                keys: vec![key],
            }),
        }
    }
    groups.extend(named.into_iter().map(|(class, keys)| Group {
        class: Some(class),
        keys,
    }));
    groups
}

/// How many of 100 calls are inserts and removes; the others are lookups.
#[derive(Clone, Copy)]
struct Mix {
    insert: u32,
    remove: u32,
}

/// A scenario under construction.
struct Draft<'a> {
    kind: Kind,
    random: &'a mut SmallRng,
    pool: &'a [Group],
    threads: usize,
    buckets: usize,
    /// Number of copies that the table holds.
    room: usize,
    /// Whether the subject supports insert-if-absent and counting.
    unique: bool,
    /// Number of keys of the class that hops.
    keys_of_hopper: usize,
}

impl Draft<'_> {
    fn scenario(self) -> Option<Scenario> {
        match self.kind {
            Kind::TwoBuckets => self.two_buckets(),
            Kind::Chains => self.chains(),
            Kind::Hops => self.hops(),
            Kind::Tosses => self.tosses(),
            Kind::Holes => self.holes(),
            Kind::Churn => self.churn(),
        }
    }

    fn two_buckets(mut self) -> Option<Scenario> {
        let classes = self.random.random_range(3..=12);
        let groups = self.choose(classes, 2, |group| group.has_buckets([0, 1]))?;
        let residents = self.residents(&groups, self.room);
        let (mix, all) = (self.mix(35..50, 35..45), indices(&groups));
        let scripts = (0..self.threads)
            .map(|thread| {
                let writes = thread < MOST_WRITERS_OF_WHOLE;
                self.script(500, mix, &groups, &all, if writes { &all } else { &[] })
            })
            .collect();
        Some(self.finish(groups, residents, scripts))
    }

    fn chains(mut self) -> Option<Scenario> {
        let classes = self
            .random
            .random_range(self.room * 3 / 4..self.room * 3 / 2);
        let groups = self.choose(classes, 3, |_| true)?;
        let residents = self.residents(&groups, self.room * 19 / 20);
        let mix = self.mix(28..38, 38..48);
        let scripts = self.same_for_all(1_000, mix, &groups);
        Some(self.finish(groups, residents, scripts))
    }

    fn hops(mut self) -> Option<Scenario> {
        let keys = self.keys_of_hopper;
        let mut groups = self.choose(1, keys, |group| match group.class {
            Some(class) => group.keys.len() >= keys && class.buckets[0] != class.buckets[1],
            // If classes are unknown, there is only a single key.
            None => true,
        })?;
        let hopper = groups[0].keys[0];
        let mut residents = Vec::new();
        // In half of the rounds it has the table for itself: then a word returns to an old value.
        if self.random.random() {
            groups.extend(self.choose(self.room, 2, |group| !group.keys.contains(&hopper))?);
            // Enough for shifts to be needed, and few enough for the hopper to have room.
            residents = self.residents(&groups[1..], self.room * 2 / 3);
            for key in &mut residents {
                key.group += 1;
            }
        }
        residents.push(self.key_of(&groups, 0));

        // With few hoppers, there is often a single copy.
        let hoppers = self.random.random_range(1..=MOST_HOPPERS);
        let mix = self.mix(30..45, 45..55);
        let scripts = (0..self.threads)
            .map(|thread| match thread % 4 {
                0 | 2 if thread / 2 < hoppers => self.renewals(400, &groups),
                3 => {
                    let mut around = self.written_by(thread, &groups);
                    around.retain(|&group| group != 0);
                    self.script(1_000, mix, &groups, &[0], &around)
                }
                _ => self.script(1_000, mix, &groups, &[0], &[]),
            })
            .collect();
        Some(self.finish(groups, residents, scripts))
    }

    fn tosses(mut self) -> Option<Scenario> {
        // The first key of every class but the first pushes, and is removed again; the others fill
        // the buckets, so that there is one empty slot in all, and no copy but the first can move.
        let mut groups = self.choose(1, 2, |group| group.has_buckets([0, 1]))?;
        for bucket in [0, 1] {
            groups.extend(self.choose(SLOTS_PER_BUCKET, 1, |group| {
                group.has_buckets([bucket, bucket])
            })?);
        }
        let pushing = [1, 1 + SLOTS_PER_BUCKET];
        if groups.len() != 1 + 2 * SLOTS_PER_BUCKET {
            return None;
        }
        let residents = (0..groups.len())
            .filter(|group| !pushing.contains(group))
            .map(|group| self.key_of(&groups, group))
            .collect();
        let first_key = |group: usize| Key {
            number: groups[group].keys[0],
            group,
        };
        let push = |group| {
            let key = first_key(group);
            [
                Action::Call(Operation::Insert, key),
                Action::Call(Operation::Remove, key),
                Action::Call(Operation::Contains, first_key(0)),
            ]
        };
        let tossed: Vec<Action> = (0..shortened(200, self.threads))
            .flat_map(|_| pushing.map(push))
            .flatten()
            .collect();
        // In half of the rounds it is also removed and put back.
        let renewed = self.random.random();
        let mix = self.mix(0..1, 0..1);
        let scripts = (0..self.threads)
            .map(|thread| match thread {
                0 => Script {
                    actions: self.with_rests(tossed.clone()),
                    repeats: true,
                },
                1 if renewed => {
                    let actions = (0..shortened(500, self.threads))
                        .flat_map(|_| [Operation::Remove, Operation::Insert])
                        .map(|operation| Action::Call(operation, first_key(0)))
                        .collect();
                    once(self.with_rests(actions))
                }
                _ => self.script(1_000, mix, &groups, &[0], &[]),
            })
            .collect();
        Some(self.finish(groups, residents, scripts))
    }

    fn holes(mut self) -> Option<Scenario> {
        // With this many keys some prefer the one bucket, and some the other.
        let groups = self.choose(4, KEYS_OF_HOPPER, |group| {
            group.has_buckets([0, 1]) && group.keys.len() >= KEYS_OF_HOPPER
        })?;
        // The first class knocks, the others reside.
        let residing = &groups[1..];
        let mut residents = self.residents(residing, self.room - 1);
        for key in &mut residents {
            key.group += 1;
        }
        let moves: Vec<Action> = (0..2 * shortened(500, self.threads))
            .flat_map(|_| {
                let group = 1 + self.random.random_range(0..residing.len());
                [Operation::Remove, Operation::Insert, Operation::Contains]
                    .map(|operation| Action::Call(operation, self.key_of(&groups, group)))
            })
            .collect();
        let knocks: Vec<Action> = (0..shortened(1_000, self.threads))
            .map(|_| Action::Renew {
                insert: self.key_of(&groups, 0),
                remove: self.key_of(&groups, 0),
            })
            .collect();
        let (mix, all) = (self.mix(0..1, 0..1), indices(&groups));
        // If only one thread inserts, there is never a reason to refuse.
        let knockers = self.random.random_range(1..=2);
        let scripts = (0..self.threads)
            .map(|thread| match thread {
                0 => Script {
                    actions: self.with_rests(moves.clone()),
                    repeats: true,
                },
                thread if thread <= knockers => once(self.with_rests(knocks.clone())),
                _ => self.script(200, mix, &groups, &all, &[]),
            })
            .collect();
        Some(self.finish(groups, residents, scripts))
    }

    fn churn(mut self) -> Option<Scenario> {
        let groups = self.choose(self.room, 2, |_| true)?;
        let residents = self.residents(&groups, self.room * 9 / 10);
        let mix = self.mix(18..24, 26..32);
        let scripts = self.same_for_all(1_500, mix, &groups);
        Some(self.finish(groups, residents, scripts))
    }

    fn finish(self, groups: Vec<Group>, residents: Vec<Key>, scripts: Vec<Script>) -> Scenario {
        Scenario {
            kind: self.kind,
            buckets: self.buckets,
            groups,
            residents,
            scripts,
        }
    }

    /// Returns at most `groups` suitable groups, each with at most `keys` keys; `None` if there is
    /// none.
    fn choose(
        &mut self,
        groups: usize,
        keys: usize,
        suits: impl Fn(&Group) -> bool,
    ) -> Option<Vec<Group>> {
        let suited: Vec<&Group> = self.pool.iter().filter(|group| suits(group)).collect();
        let mut chosen: Vec<Group> = (suited.sample(self.random, groups))
            .map(|&group| group.clone())
            .collect();
        chosen.shuffle(self.random);
        for group in &mut chosen {
            group.keys.truncate(keys);
        }
        (!chosen.is_empty()).then_some(chosen)
    }

    fn mix(&mut self, insert: Range<u32>, remove: Range<u32>) -> Mix {
        Mix {
            insert: self.random.random_range(insert),
            remove: self.random.random_range(remove),
        }
    }

    fn key_of(&mut self, groups: &[Group], group: usize) -> Key {
        let keys = &groups[group].keys;
        Key {
            number: keys[self.random.random_range(0..keys.len())],
            group,
        }
    }

    /// Returns `count` keys, taken from the groups in turn.
    fn residents(&mut self, groups: &[Group], count: usize) -> Vec<Key> {
        (0..count)
            .map(|n| self.key_of(groups, n % groups.len()))
            .collect()
    }

    /// Returns the groups that a thread changes.
    fn written_by(&self, thread: usize, groups: &[Group]) -> Vec<usize> {
        let shares = self.threads.div_ceil(MOST_WRITERS);
        let mine = |group: &usize| group % shares == thread % shares;
        indices(groups).into_iter().filter(mine).collect()
    }

    /// Returns scripts for all threads, which look up all groups.
    fn same_for_all(&mut self, calls: usize, mix: Mix, groups: &[Group]) -> Vec<Script> {
        (0..self.threads)
            .map(|thread| {
                let written = self.written_by(thread, groups);
                self.script(calls, mix, groups, &indices(groups), &written)
            })
            .collect()
    }

    /// Returns a script of lookups of the groups `read`, and, if there are any, changes of the
    /// groups `written`. It has `calls` calls, or fewer if there are many threads.
    fn script(
        &mut self,
        calls: usize,
        mix: Mix,
        groups: &[Group],
        read: &[usize],
        written: &[usize],
    ) -> Script {
        let length = shortened(calls, self.threads);
        let call = |_| {
            let drawn = self.random.random_range(0..100);
            let (operation, among) = match drawn {
                _ if written.is_empty() => (Operation::Contains, read),
                drawn if drawn < mix.insert => (Operation::Insert, written),
                drawn if drawn < mix.insert + mix.remove => (Operation::Remove, written),
                _ => (Operation::Contains, read),
            };
            let operation = match operation {
                Operation::Insert if self.unique && self.random.random_ratio(1, 4) => {
                    Operation::InsertUnique
                }
                Operation::Contains if self.unique && self.random.random_ratio(1, 4) => {
                    Operation::Count
                }
                other => other,
            };
            let group = among[self.random.random_range(0..among.len())];
            Action::Call(operation, self.key_of(groups, group))
        };
        let calls = (0..length).map(call).collect();
        once(self.with_rests(calls))
    }

    /// Returns a script of renewals of the first group, with lookups between them.
    fn renewals(&mut self, renewals: usize, groups: &[Group]) -> Script {
        let actions = (0..2 * shortened(renewals, self.threads))
            .map(|n| match n % 2 {
                0 => Action::Renew {
                    insert: self.key_of(groups, 0),
                    remove: self.key_of(groups, 0),
                },
                _ => Action::Call(Operation::Contains, self.key_of(groups, 0)),
            })
            .collect();
        Script {
            actions: self.with_rests(actions),
            repeats: true,
        }
    }

    /// Lets the thread occasionally yield its core, so that it meets other threads than its
    /// neighbour. Rarely, since on a busy machine another program gets the core.
    fn with_rests(&mut self, mut actions: Vec<Action>) -> Vec<Action> {
        let rests = self.random.random_range(0..=actions.len() / 100);
        for _ in 0..rests {
            let at = self.random.random_range(0..actions.len());
            actions[at] = Action::Rest;
        }
        actions
    }
}

/// Returns a length of script with which a round takes some milliseconds, or some tens of them when
/// threads are stopped.
fn shortened(calls: usize, threads: usize) -> usize {
    const MANY: usize = 8;
    calls * MANY / threads.max(MANY)
}

fn once(actions: Vec<Action>) -> Script {
    Script {
        actions,
        repeats: false,
    }
}

fn indices(groups: &[Group]) -> Vec<usize> {
    (0..groups.len()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use harness::subjects::{GlobalLock, Growing, LockFree, SegmentLock};
    use subject::layout::{geometry, locate};

    use super::*;

    const ROUNDS: Range<u64> = 0..60;

    fn candidate(subject: &str) -> Candidate {
        let all = [
            Candidate::of::<LockFree>(),
            Candidate::of::<Growing>(),
            Candidate::of::<GlobalLock>(),
            Candidate::of::<SegmentLock>(),
        ];
        all.into_iter().find(|of| of.name == subject).unwrap()
    }

    fn scenarios(subject: &str, threads: usize, seed: u64) -> Vec<Scenario> {
        let candidate = candidate(subject);
        let mut scenarios = Scenarios::new(&candidate, threads, seed).unwrap();
        ROUNDS
            .map(|round| scenarios.of_round(round).unwrap())
            .collect()
    }

    fn of_kind(kind: Kind, threads: usize) -> Vec<Scenario> {
        let mut scenarios = scenarios("lock-free", threads, 1);
        scenarios.retain(|scenario| scenario.kind == kind);
        assert_eq!(scenarios.len() as u64, ROUNDS.end / Kind::ALL.len() as u64);
        scenarios
    }

    /// Returns the operations of a script one by one, with the groups.
    fn operations(script: &Script) -> impl Iterator<Item = (Operation, usize)> {
        script.actions.iter().flat_map(|action| match *action {
            Action::Call(operation, key) => vec![(operation, key.group)],
            Action::Renew { insert, remove } => vec![
                (Operation::Insert, insert.group),
                (Operation::Remove, remove.group),
            ],
            Action::Rest => vec![],
        })
    }

    fn changes(operation: Operation) -> bool {
        !matches!(operation, Operation::Contains | Operation::Count)
    }

    /// Returns the number of threads that change a group.
    fn writers(scenario: &Scenario, group: usize) -> usize {
        let writes = |script: &&Script| {
            operations(script).any(|(operation, of)| changes(operation) && of == group)
        };
        scenario.scripts.iter().filter(writes).count()
    }

    #[test]
    fn a_round_follows_from_its_seed_and_number() {
        let first = scenarios("lock-free", 3, 1);
        assert_eq!(first, scenarios("lock-free", 3, 1));
        assert_ne!(first, scenarios("lock-free", 3, 2));
        let candidate = candidate("lock-free");
        let mut alone = Scenarios::new(&candidate, 3, 1).unwrap();
        assert_eq!(alone.of_round(37).unwrap(), first[37]);
        assert_ne!(first[0].groups, first[4].groups);
    }

    #[test]
    fn keys_have_the_class_of_their_group() {
        for scenario in scenarios("lock-free", 3, 1) {
            let geometry = geometry(scenario.buckets).unwrap();
            let classes: HashSet<_> = scenario.groups.iter().map(|group| group.class).collect();
            assert_eq!(
                classes.len(),
                scenario.groups.len(),
                "no class is two groups"
            );
            for key in scenario.keys() {
                let class: Class = locate(&geometry, &key.number).into();
                assert_eq!(Some(class), scenario.groups[key.group].class);
            }
        }
    }

    #[test]
    fn all_classes_of_two_buckets_share_both() {
        for scenario in of_kind(Kind::TwoBuckets, 9) {
            assert_eq!((scenario.buckets, scenario.residents.len()), (2, 8));
            let geometry = geometry(2).unwrap();
            for key in scenario.keys() {
                let location = locate(&geometry, &key.number);
                assert_ne!(location.first, location.second);
            }
            assert_eq!(writers(&scenario, 0), MOST_WRITERS_OF_WHOLE);
        }
    }

    #[test]
    fn chains_have_few_buckets_that_are_full() {
        let chains = of_kind(Kind::Chains, 2);
        let sizes: HashSet<usize> = chains.iter().map(|scenario| scenario.buckets).collect();
        assert!(sizes.len() > 3 && sizes.iter().all(|size| (3..=16).contains(size)));
        for scenario in chains {
            let slots = scenario.buckets * SLOTS_PER_BUCKET;
            assert_eq!(scenario.residents.len(), slots * 19 / 20);
            assert!(scenario.groups.len() >= slots * 3 / 4);
        }
    }

    #[test]
    fn the_keys_that_hop_prefer_different_buckets() {
        let hops = of_kind(Kind::Hops, 8);
        let differ = |scenario: &&Scenario| {
            let geometry = geometry(scenario.buckets).unwrap();
            let keys = scenario.groups[0].keys.iter();
            let preferred: HashSet<_> = keys.map(|key| locate(&geometry, key).first).collect();
            assert_eq!(scenario.groups[0].keys.len(), KEYS_OF_HOPPER);
            preferred.len() == 2
        };
        assert!(hops.iter().filter(differ).count() >= hops.len() - 3);
        let alone = |scenario: &&Scenario| scenario.groups.len() == 1;
        assert!((1..hops.len()).contains(&hops.iter().filter(alone).count()));
        let hoppers = |scenario| writers(scenario, 0);
        let numbers: HashSet<usize> = hops.iter().map(hoppers).collect();
        assert!(numbers.len() > 1 && numbers.iter().all(|n| (1..=MOST_HOPPERS).contains(n)));
        for scenario in hops {
            assert_eq!(
                scenario
                    .residents
                    .iter()
                    .filter(|key| key.group == 0)
                    .count(),
                1
            );
            // An unconditional remove could take the last copy.
            for action in scenario.scripts.iter().flat_map(|script| &script.actions) {
                assert!(!matches!(action, Action::Call(Operation::Remove, key) if key.group == 0));
            }
            let fillers = (1..scenario.groups.len()).map(|group| writers(&scenario, group));
            assert_eq!(fillers.sum::<usize>() > 0, scenario.groups.len() > 1);
        }
    }

    #[test]
    fn a_tossed_copy_can_move_and_nothing_else_can() {
        for scenario in of_kind(Kind::Tosses, 8) {
            assert_eq!(scenario.residents.len(), 2 * SLOTS_PER_BUCKET - 1);
            let buckets = |group: usize| scenario.groups[group].class.unwrap().buckets;
            assert_eq!(buckets(0), [0, 1]);
            assert!((1..scenario.groups.len()).all(|group| buckets(group)[0] == buckets(group)[1]));
            let repeating: Vec<_> = (scenario.scripts.iter())
                .filter(|script| script.repeats)
                .collect();
            assert_eq!(repeating.len(), 1);
            let pushing: HashSet<usize> = operations(repeating[0])
                .filter(|call| changes(call.0))
                .map(|call| call.1)
                .collect();
            assert_eq!(pushing.len(), 2);
            assert!(
                scenario
                    .residents
                    .iter()
                    .all(|key| !pushing.contains(&key.group))
            );
        }
    }

    #[test]
    fn a_hole_is_always_there() {
        for scenario in of_kind(Kind::Holes, 8) {
            assert_eq!(scenario.residents.len(), 2 * SLOTS_PER_BUCKET - 1);
            let moves = &scenario.scripts[0];
            assert!(moves.repeats);
            for [remove, insert, _] in moves.actions.as_chunks().0 {
                let (Action::Call(removes, left), Action::Call(inserts, come)) = (remove, insert)
                else {
                    assert!([remove, insert].contains(&&Action::Rest));
                    continue;
                };
                assert_eq!((removes, inserts), (&Operation::Remove, &Operation::Insert));
                assert_eq!(left.group, come.group);
            }
            assert!((1..=2).contains(&writers(&scenario, 0)));
            let geometry = geometry(2).unwrap();
            let preferred: HashSet<_> = (scenario.keys())
                .map(|key| locate(&geometry, &key.number).first)
                .collect();
            assert_eq!(preferred.len(), 2);
        }
    }

    #[test]
    fn what_only_some_subjects_can_do_is_asked_of_those_only() {
        let asked = |subject: &str| -> HashSet<Operation> {
            (scenarios(subject, 4, 1)
                .iter()
                .flat_map(|scenario| &scenario.scripts))
            .flat_map(operations)
            .map(|call| call.0)
            .collect()
        };
        assert_eq!(asked("lock-free").len(), 5);
        assert_eq!(asked("segment-lock").len(), 3);
    }

    #[test]
    fn of_a_subject_that_grows_each_class_has_one_key() {
        let scenarios = scenarios("growing", 4, 1);
        let kinds: HashSet<Kind> = scenarios.iter().map(|scenario| scenario.kind).collect();
        assert_eq!(kinds, [Kind::Chains, Kind::Hops, Kind::Churn].into());
        for group in scenarios.iter().flat_map(|scenario| &scenario.groups) {
            assert!(group.class.is_some() && group.keys.len() == 1);
        }
    }

    #[test]
    fn few_threads_change_a_class_and_all_look_it_up() {
        for threads in [1, 8, 64] {
            for scenario in of_kind(Kind::Churn, threads) {
                for group in [0, 7] {
                    let writers = writers(&scenario, group);
                    assert!(writers <= MOST_WRITERS, "{writers} of {threads}");
                }
                for script in &scenario.scripts {
                    let count = |wanted| operations(script).filter(|call| call.0 == wanted).count();
                    assert!(count(Operation::Insert) > 0 && count(Operation::Remove) > 0);
                    let looked_up: HashSet<usize> = operations(script).map(|call| call.1).collect();
                    assert!(looked_up.len() > scenario.groups.len() / 5);
                }
            }
        }
    }

    #[test]
    fn one_thread_alone_does_every_kind() {
        for scenario in scenarios("global-lock", 1, 3) {
            let kinds: HashSet<bool> = operations(&scenario.scripts[0])
                .map(|call| changes(call.0))
                .collect();
            assert_eq!(kinds.len(), 2, "{}", scenario.kind);
        }
    }
}
