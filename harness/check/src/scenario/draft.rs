//! How a scenario of each kind is made: its keys, its residents and its scripts.

use std::ops::Range;

use rand::RngExt;
use rand::rngs::SmallRng;
use rand::seq::{IndexedRandom, SliceRandom};
use subject::SLOTS_PER_BUCKET;
use subject::calls::Operation;

use super::{Action, Candidate, Group, KEYS_OF_HOPPER, Key, Kind, Scenario, Script};

/// Maximum number of threads that change the copies of one class; the others only look it up. Each
/// call under way that changes a class may or may not have taken effect, so each doubles the
/// checker's work.
pub(super) const MAX_WRITERS: usize = 8;

/// Maximum number of threads that change a table that is checked as a whole.
pub(super) const MAX_WRITERS_OF_WHOLE: usize = 6;

/// Maximum number of threads that renew the resident copy in [`Kind::Hops`].
pub(super) const MAX_HOPPERS: usize = 4;

/// How many of 100 calls are inserts, and how many removes; the others are lookups.
type Mix = [u32; 2];

pub(super) struct Draft<'a> {
    pub(super) candidate: &'a Candidate,
    pub(super) kind: Kind,
    pub(super) random: &'a mut SmallRng,
    pub(super) pool: &'a [Group],
    pub(super) threads: usize,
    pub(super) buckets: usize,
    /// Number of copies for which the table has room.
    pub(super) room: usize,
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
        self.finish(groups, residents, |draft, groups, thread| {
            let writes = thread < MAX_WRITERS_OF_WHOLE;
            draft.script(500, mix, groups, &all, if writes { &all } else { &[] })
        })
    }

    fn chains(mut self) -> Option<Scenario> {
        let classes = self.room * 3 / 4..self.room * 3 / 2;
        let classes = self.random.random_range(classes);
        let groups = self.choose(classes, 3, |_| true)?;
        let residents = self.residents(&groups, 0, self.room * 19 / 20);
        let mix = self.mix(28..38, 38..48);
        self.same_for_all(groups, residents, 1_000, mix)
    }

    fn hops(mut self) -> Option<Scenario> {
        // In a subject that grows, keys that are equal at first may be distinguished later.
        let grows = self.candidate.grows;
        let keys = if grows { 1 } else { KEYS_OF_HOPPER };
        let mut groups = self.choose(1, keys, |group| match group.class {
            Some(class) => {
                let [first, second] = class.buckets();
                group.keys.len() >= keys && first != second
            }
            // If classes are unknown, there is only a single key.
            None => true,
        })?;
        let hopper = groups[0].keys[0];
        let mut residents = Vec::new();
        // In half of the rounds it has the table to itself, so that a word can return to an old value.
        if self.random.random() {
            groups.extend(self.choose(self.room, 2, |group| !group.keys.contains(&hopper))?);
            // Enough for shifts to be needed, and few enough for the hopper to have room.
            residents = self.residents(&groups, 1, self.room * 2 / 3);
        }
        residents.push(self.key_of(&groups, 0));
        // With few hoppers, there is often a single copy.
        let hoppers = self.random.random_range(1..=MAX_HOPPERS);
        let mix = self.mix(30..45, 45..55);
        self.finish(groups, residents, |draft, groups, thread| {
            match thread % 4 {
                0 | 2 if thread / 2 < hoppers => {
                    let actions = (0..shortened(400, draft.threads))
                        .flat_map(|_| [draft.renew(groups), draft.look_up(groups, 0)])
                        .collect();
                    draft.with_rests(actions, true)
                }
                3 => {
                    let mut around = draft.written_by(thread, groups);
                    around.retain(|&group| group != 0);
                    draft.script(1_000, mix, groups, &[0], &around)
                }
                _ => draft.script(1_000, mix, groups, &[0], &[]),
            }
        })
    }

    fn tosses(mut self) -> Option<Scenario> {
        // The first key of every class but the first pushes, and is removed again; the others fill
        // the buckets, so that there is one empty slot in all, and no copy but the first can move.
        let mut groups = self.choose(1, 2, |group| group.has_buckets([0, 1]))?;
        for bucket in [0, 1] {
            let only = |group: &Group| group.has_buckets([bucket, bucket]);
            groups.extend(self.choose(SLOTS_PER_BUCKET, 1, only)?);
        }
        let pushing = [1, 1 + SLOTS_PER_BUCKET];
        if groups.len() != 1 + 2 * SLOTS_PER_BUCKET {
            return None;
        }
        let residing = (0..groups.len()).filter(|group| !pushing.contains(group));
        let residents = residing.map(|group| self.key_of(&groups, group)).collect();
        let call = |operation, groups: &[Group], group: usize| {
            let number = groups[group].keys[0];
            Action::Call(operation, Key { number, group })
        };
        // In half of the rounds the copy is also removed and put back.
        let renewed = self.random.random();
        let mix = self.mix(0..1, 0..1);
        self.finish(groups, residents, |draft, groups, thread| match thread {
            0 => {
                let push = |group| {
                    let [insert, remove] = [Operation::Insert, Operation::Remove]
                        .map(|operation| call(operation, groups, group));
                    [insert, remove, call(Operation::Contains, groups, 0)]
                };
                let tosses = (0..shortened(200, draft.threads)).flat_map(|_| pushing.map(push));
                draft.with_rests(tosses.flatten().collect(), true)
            }
            1 if renewed => {
                let both = [Operation::Remove, Operation::Insert];
                let both = both.map(|operation| call(operation, groups, 0));
                draft.with_rests(both.repeat(shortened(500, draft.threads)), false)
            }
            _ => draft.script(1_000, mix, groups, &[0], &[]),
        })
    }

    fn holes(mut self) -> Option<Scenario> {
        // With this many keys, some prefer one bucket and some the other.
        let groups = self.choose(4, KEYS_OF_HOPPER, |group| {
            group.has_buckets([0, 1]) && group.keys.len() >= KEYS_OF_HOPPER
        })?;
        // The first class tries to get in; the others are in.
        let residents = self.residents(&groups, 1, self.room - 1);
        let (mix, all) = (self.mix(0..1, 0..1), indices(&groups));
        // If only one thread inserts, there is never a reason to refuse.
        let knockers = self.random.random_range(1..=2);
        self.finish(groups, residents, |draft, groups, thread| {
            let calls = shortened(1_000, draft.threads);
            if thread == 0 {
                let moves = (0..calls).flat_map(|_| {
                    let group = draft.random.random_range(1..groups.len());
                    [Operation::Remove, Operation::Insert, Operation::Contains]
                        .map(|operation| Action::Call(operation, draft.key_of(groups, group)))
                });
                let moves = moves.collect();
                draft.with_rests(moves, true)
            } else if thread <= knockers {
                let knocks = (0..calls).map(|_| draft.renew(groups)).collect();
                draft.with_rests(knocks, false)
            } else {
                draft.script(200, mix, groups, &all, &[])
            }
        })
    }

    fn churn(mut self) -> Option<Scenario> {
        let groups = self.choose(self.room, 2, |_| true)?;
        let residents = self.residents(&groups, 0, self.room * 9 / 10);
        let mix = self.mix(18..24, 26..32);
        self.same_for_all(groups, residents, 1_500, mix)
    }

    fn finish(
        mut self,
        groups: Vec<Group>,
        residents: Vec<Key>,
        script: impl Fn(&mut Self, &[Group], usize) -> Script,
    ) -> Option<Scenario> {
        let scripts = (0..self.threads).map(|thread| script(&mut self, &groups, thread));
        Some(Scenario {
            scripts: scripts.collect(),
            kind: self.kind,
            buckets: self.buckets,
            groups,
            residents,
        })
    }

    /// Returns the scenario in which all threads look up all groups, and share in changing them.
    fn same_for_all(
        self,
        groups: Vec<Group>,
        residents: Vec<Key>,
        calls: usize,
        mix: Mix,
    ) -> Option<Scenario> {
        self.finish(groups, residents, |draft, groups, thread| {
            let written = draft.written_by(thread, groups);
            draft.script(calls, mix, groups, &indices(groups), &written)
        })
    }

    /// Returns at most `groups` suitable groups of at most `keys` keys; `None` if there is none.
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

    fn mix(&mut self, inserts: Range<u32>, removes: Range<u32>) -> Mix {
        [inserts, removes].map(|range| self.random.random_range(range))
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

    fn written_by(&self, thread: usize, groups: &[Group]) -> Vec<usize> {
        let shares = self.threads.div_ceil(MAX_WRITERS);
        let mine = |group: &usize| group % shares == thread % shares;
        indices(groups).into_iter().filter(mine).collect()
    }

    /// Returns a script of lookups of the groups `read`, and, if there are any, changes of the
    /// groups `written`. It has `calls` calls, or fewer if there are many threads.
    fn script(
        &mut self,
        calls: usize,
        [inserts, removes]: Mix,
        groups: &[Group],
        read: &[usize],
        written: &[usize],
    ) -> Script {
        let length = shortened(calls, self.threads);
        let unique = self.candidate.operations.unique;
        let call = |_| {
            let drawn = self.random.random_range(0..100);
            let (operation, among) = match drawn {
                _ if written.is_empty() => (Operation::Contains, read),
                drawn if drawn < inserts => (Operation::Insert, written),
                drawn if drawn < inserts + removes => (Operation::Remove, written),
                _ => (Operation::Contains, read),
            };
            let mut one_in_four = || unique && self.random.random_ratio(1, 4);
            let operation = match operation {
                Operation::Insert if one_in_four() => Operation::InsertIfAbsent,
                Operation::Contains if one_in_four() => Operation::Count,
                other => other,
            };
            let group = among[self.random.random_range(0..among.len())];
            Action::Call(operation, self.key_of(groups, group))
        };
        let calls = (0..length).map(call).collect();
        self.with_rests(calls, false)
    }

    /// Returns a renewal of the first group.
    fn renew(&mut self, groups: &[Group]) -> Action {
        Action::Renew {
            insert: self.key_of(groups, 0),
            remove: self.key_of(groups, 0),
        }
    }

    fn look_up(&mut self, groups: &[Group], group: usize) -> Action {
        Action::Call(Operation::Contains, self.key_of(groups, group))
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

/// Shortens scripts of many threads, so that a round takes milliseconds, or tens of them if threads are stopped.
fn shortened(calls: usize, threads: usize) -> usize {
    const MANY: usize = 8;
    calls * MANY / threads.max(MANY)
}

fn indices(groups: &[Group]) -> Vec<usize> {
    (0..groups.len()).collect()
}
