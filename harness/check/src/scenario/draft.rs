//! How a scenario of each kind is made: its keys, its residents and its scripts.

use std::ops::Range;

use rand::RngExt;
use rand::rngs::SmallRng;
use rand::seq::{IndexedRandom, SliceRandom};
use subject::SLOTS_PER_BUCKET;
use subject::calls::Operation;

use super::{Action, Group, KEYS_OF_HOPPER, Key, Kind, Scenario, Script};

/// Maximum number of threads that change the copies of one class; the others only look it up. Each
/// call under way that changes a class may or may not have taken effect, so each doubles the
/// checker's work.
pub(super) const MOST_WRITERS: usize = 8;

/// Maximum number of threads that change a table that is checked as a whole.
pub(super) const MOST_WRITERS_OF_WHOLE: usize = 6;

/// Maximum number of threads that renew the resident copy in [`Kind::Hops`].
pub(super) const MOST_HOPPERS: usize = 4;

/// How many of 100 calls are inserts and removes; the others are lookups.
#[derive(Clone, Copy)]
struct Mix {
    insert: u32,
    remove: u32,
}

pub(super) struct Draft<'a> {
    pub(super) kind: Kind,
    pub(super) random: &'a mut SmallRng,
    pub(super) pool: &'a [Group],
    pub(super) threads: usize,
    pub(super) buckets: usize,
    /// Number of copies that the table holds.
    pub(super) room: usize,
    /// Whether the subject supports insert-if-absent and counting.
    pub(super) unique: bool,
    /// Number of keys of the class that hops.
    pub(super) keys_of_hopper: usize,
}

impl Draft<'_> {
    pub(super) fn scenario(self) -> Option<Scenario> {
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
        let residents = self.residents(&groups, 0, self.room);
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
        let residents = self.residents(&groups, 0, self.room * 19 / 20);
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
            residents = self.residents(&groups, 1, self.room * 2 / 3);
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
                0 => self.with_rests(tossed.clone(), true),
                1 if renewed => {
                    let actions = (0..shortened(500, self.threads))
                        .flat_map(|_| [Operation::Remove, Operation::Insert])
                        .map(|operation| Action::Call(operation, first_key(0)))
                        .collect();
                    self.with_rests(actions, false)
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
        let residents = self.residents(&groups, 1, self.room - 1);
        let moves: Vec<Action> = (0..2 * shortened(500, self.threads))
            .flat_map(|_| {
                let group = self.random.random_range(1..groups.len());
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
                0 => self.with_rests(moves.clone(), true),
                thread if thread <= knockers => self.with_rests(knocks.clone(), false),
                _ => self.script(200, mix, &groups, &all, &[]),
            })
            .collect();
        Some(self.finish(groups, residents, scripts))
    }

    fn churn(mut self) -> Option<Scenario> {
        let groups = self.choose(self.room, 2, |_| true)?;
        let residents = self.residents(&groups, 0, self.room * 9 / 10);
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

    /// Returns `count` keys, taken in turn from the groups from `first` on.
    fn residents(&mut self, groups: &[Group], first: usize, count: usize) -> Vec<Key> {
        (0..count)
            .map(|n| self.key_of(groups, first + n % (groups.len() - first)))
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
        self.with_rests(calls, false)
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
        self.with_rests(actions, true)
    }

    /// Returns a script in which the thread occasionally yields its core, so that it meets other
    /// threads than its neighbour. Rarely, since on a busy machine another program gets the core.
    fn with_rests(&mut self, mut actions: Vec<Action>, repeats: bool) -> Script {
        let rests = self.random.random_range(0..=actions.len() / 100);
        for _ in 0..rests {
            let at = self.random.random_range(0..actions.len());
            actions[at] = Action::Rest;
        }
        Script { actions, repeats }
    }
}

/// Returns a length of script with which a round takes some milliseconds, or some tens of them when
/// threads are stopped.
fn shortened(calls: usize, threads: usize) -> usize {
    const MANY: usize = 8;
    calls * MANY / threads.max(MANY)
}

fn indices(groups: &[Group]) -> Vec<usize> {
    (0..groups.len()).collect()
}
