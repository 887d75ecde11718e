//! All tables of a filter at one time, and what their words say together.

use std::sync::Arc;

use arrayvec::ArrayVec;

use super::generation::Generation;
use super::schedule::MAX_GENERATIONS;
use super::table::{Among, Key, Plan, Table, View};
use crate::hashing::Location;

/// Buckets of tables that grow however empty they are: up to 1 MiB.
const SMALL: usize = 1 << 17;

/// A generation's table.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// That of the table, nearer at hand.
    plan: Plan,
    among: Among,
    table: Arc<Table>,
    /// What it takes over from, until it has all.
    older: Option<Arc<Table>>,
    pub(crate) generation: Arc<Generation>,
}

impl Member {
    /// The first table of a generation.
    pub(crate) fn first(table: Table) -> Member {
        Member::new(Arc::new(table), None, Arc::new(Generation::new()))
    }

    fn new(table: Arc<Table>, older: Option<Arc<Table>>, generation: Arc<Generation>) -> Member {
        let view = View {
            table: &table,
            older: older.as_deref(),
        };
        Member {
            plan: *table.plan(),
            among: view.among(),
            table,
            older,
            generation,
        }
    }

    /// Where its keys are.
    #[inline]
    pub(crate) fn view(&self) -> View<'_> {
        View {
            table: &self.table,
            older: self.older.as_deref(),
        }
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// Makes sure that the key never has a copy here again, in a generation that is known to be superseded; false when it
    /// has one.
    pub(crate) fn seal(&self, key: Key) -> bool {
        if self.generation.is_closed() {
            let location = self.plan.locate(key);
            return !self
                .plan
                .matches(self.view().read(location), location.fingerprint);
        }
        self.view().seal(key)
    }

    /// Whether it is large and has room for many times as many copies: distinct keys fill it to more than that before one
    /// finds no room.
    pub(crate) fn is_nearly_empty(&self) -> bool {
        let buckets = self.table.number_of_buckets();
        let slots = buckets * self.table.format().slots;
        // Of very small slices one is full when most others are empty.
        let share = 1_024 / self.table.slice().min(64);
        buckets > SMALL && self.generation.len() < slots / share
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let words =
            |table: &Table| table.number_of_buckets() * size_of::<u64>() + size_of::<Table>();
        words(&self.table) + self.older.as_deref().map_or(0, words) + self.generation.memory_bytes()
    }
}

/// The tables, the newest generation first. Never changed, but replaced by another list.
#[derive(Clone, Debug)]
pub(crate) struct Tables(ArrayVec<Member, MAX_GENERATIONS>);

/// What a table showed of a key.
type Seen<'a> = (&'a Member, Location, [u64; 2]);

impl Tables {
    /// One table alone.
    pub(crate) fn of(only: Member) -> Tables {
        Tables(ArrayVec::from_iter([only]))
    }

    /// The same, with another one in the place of the newest generation's table, which takes over from it.
    pub(crate) fn with_split(&self, split: Table) -> Tables {
        let newest = self.newest();
        let older = Some(Arc::clone(&newest.table));
        self.with_newest(Member::new(
            Arc::new(split),
            older,
            Arc::clone(&newest.generation),
        ))
    }

    /// The same, after the newest generation's table has taken over everything.
    pub(crate) fn with_all_taken_over(&self) -> Tables {
        let newest = self.newest();
        self.with_newest(Member::new(
            Arc::clone(&newest.table),
            None,
            Arc::clone(&newest.generation),
        ))
    }

    fn with_newest(&self, newest: Member) -> Tables {
        let older = self.0[1..].iter().cloned();
        Tables([newest].into_iter().chain(older).collect())
    }

    /// Those and a newer generation's first table.
    pub(crate) fn with(&self, newer: Table) -> Tables {
        let older = self.0.iter().cloned();
        Tables([Member::first(newer)].into_iter().chain(older).collect())
    }

    /// The newest and, of the older ones, those that are not spent; nothing when none is.
    pub(crate) fn without_spent(&self) -> Option<Tables> {
        if !self.older().any(|member| member.generation.is_spent()) {
            return None;
        }
        let kept = |member: &&Member| !member.generation.is_spent();
        let older = self.0[1..].iter().filter(kept);
        Some(Tables(self.0[..1].iter().chain(older).cloned().collect()))
    }

    /// Those that are not empty, of which the newest takes inserts again; nothing when all are empty. For who has the
    /// filter alone.
    pub(crate) fn without_empty(&self) -> Option<Tables> {
        let kept = self.0.iter().filter(|member| member.generation.len() != 0);
        let kept = Tables(kept.cloned().collect());
        kept.0.first()?.generation.reopen();
        for member in kept.older() {
            let generation = &member.generation;
            generation.close(generation.turn());
        }
        Some(kept)
    }

    /// The one that inserts go to.
    #[inline]
    pub(crate) fn newest(&self) -> &Member {
        &self.0[0]
    }

    /// All others, the newest first.
    #[inline]
    pub(crate) fn older(&self) -> impl DoubleEndedIterator<Item = &Member> {
        self.0[1..].iter()
    }

    /// All, the newest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Member> {
        self.0.iter()
    }

    /// Whether the key has a copy, if that can be told from the words of the newest generation's table alone, and at
    /// once. True is so whatever the list of tables is by now, as words that have been taken over do not count; false,
    /// as long as this is the list: a newer generation may have had a copy before this one lost its own.
    ///
    /// The protocol of the fixed filter ([`lookup`](crate::lookup)), and its linearization points.
    #[inline(always)]
    pub(crate) fn find_at_once(&self, key: Key) -> Option<bool> {
        let newest = self.newest();
        let location = newest.plan.locate(key);
        let words = newest.table.peek(location, newest.among)?;
        if newest.plan.matches(words, location.fingerprint) {
            return Some(true);
        }
        let unchanged = newest.table.peek_again(location.first) == words[0];
        (self.0.len() == 1 && unchanged).then_some(false)
    }

    /// Whether the key has a copy, as long as this is the list of tables; `None` when something was
    /// added to the key's buckets meanwhile.
    ///
    /// Nothing is added to closed generations, so a key that is not there will not be there. Of the others, in most
    /// lists the newest alone, it takes two looks. Had a copy been in any of them between the looks, it would have been
    /// seen by the first, or been added since and seen by the second. So between them was a moment at which none had
    /// one: the linearization point.
    #[cold]
    pub(crate) fn find(&self, key: Key) -> Option<bool> {
        let mut open = ArrayVec::<Seen, MAX_GENERATIONS>::new();
        for member in self.iter() {
            // Before its words: what was added before it was closed is seen.
            let closed = member.generation.is_closed();
            let location = member.plan.locate(key);
            let words = member.view().read(location);
            if member.plan.matches(words, location.fingerprint) {
                return Some(true);
            }
            if !closed {
                open.push((member, location, words));
            }
        }
        are_unchanged(&open).then_some(false)
    }

    /// How many copies the key has, as long as this is the list of tables; `None` when one of
    /// its buckets has changed meanwhile. Linearization point: between the two looks at all buckets.
    pub(crate) fn count(&self, key: Key) -> Option<usize> {
        let seen: ArrayVec<Seen, MAX_GENERATIONS> = (self.iter())
            .map(|member| {
                let location = member.plan.locate(key);
                (member, location, member.view().read(location))
            })
            .collect();
        let count = |&(member, location, words): &Seen| member.view().count(words, location);
        are_unchanged(&seen).then(|| seen.iter().map(count).sum())
    }
}

fn are_unchanged(seen: &[Seen]) -> bool {
    let unchanged = |&(member, location, words): &Seen| member.view().read(location) == words;
    seen.iter().all(unchanged)
}
