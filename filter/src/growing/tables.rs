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
            return !self.look(key).matches();
        }
        self.table.seal(key)
    }

    /// What its table shows of a key.
    fn look(&self, key: Key) -> Look<'_> {
        let location = self.plan.locate(key);
        let wraps = self.view().wraps();
        Look {
            member: self,
            location,
            wraps,
            words: self.view().look(location),
        }
    }

    /// Whether the key had as many copies as a bucket has slots at some moment during the call, as long as this is the list
    /// of tables; false also when one of its buckets has changed meanwhile.
    pub(crate) fn has_most_copies(&self, key: Key) -> bool {
        let look = self.look(key);
        look.is_unchanged() && look.count() >= self.table.format().slots
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
        let older = self.older.as_deref().map_or(0, Table::memory_bytes);
        self.table.memory_bytes() + older + self.generation.memory_bytes()
    }
}

/// What a generation showed of a key.
#[derive(Debug)]
struct Look<'a> {
    member: &'a Member,
    location: Location,
    /// Read before the words.
    wraps: [u64; 2],
    /// As they stood, wherever they counted.
    words: [u64; 2],
}

impl Look<'_> {
    fn words(&self) -> [u64; 2] {
        self.member.view().seen(self.location, self.words)
    }

    /// Whether the key had a copy.
    fn matches(&self) -> bool {
        (self.member.plan).matches(self.words(), self.location.fingerprint)
    }

    /// How many copies the key had, if both words are of one moment.
    fn count(&self) -> usize {
        self.member.view().count(self.words(), self.location)
    }

    /// Whether nothing was added to the words since, nor taken out. The words stand where they stood: that of a bucket
    /// which was taken over meanwhile could be the same by chance, as its timestamp may have lost some bits. And no timestamp
    /// has wrapped.
    fn is_unchanged(&self) -> bool {
        let view = self.member.view();
        view.look(self.location) == self.words && view.wraps() == self.wraps
    }
}

/// The tables, the newest generation first. Never changed, but replaced by another list.
#[derive(Clone, Debug)]
pub(crate) struct Tables(ArrayVec<Member, MAX_GENERATIONS>);

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
        let newest = kept.0.first()?;
        if !std::ptr::eq(newest.table(), self.newest().table()) {
            newest.table().unseal();
        }
        newest.generation.reopen();
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
    /// as long as this is the list, which `holds` tells: a newer generation may have had a copy before this one lost its own.
    ///
    /// The protocol of the fixed filter ([`lookup`](crate::lookup)), and its linearization points; but that a timestamp has
    /// not come round to where it was is not left to chance. There, too, the answer is data.
    #[inline(always)]
    pub(crate) fn find_at_once(&self, key: Key, holds: impl FnOnce() -> bool) -> Option<bool> {
        let newest = self.newest();
        let location = newest.plan.locate(key);
        let (stand, words) = newest.table.look_twice(location, newest.among);
        let found = newest.plan.matches(words, location.fingerprint);
        let is_all = (self.0.len() == 1) & holds();
        (stand & (found | is_all)).then_some(found)
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
        let mut open = ArrayVec::<Look, MAX_GENERATIONS>::new();
        for member in self.iter() {
            // Before its words: what was added before it was closed is seen.
            let closed = member.generation.is_closed();
            let look = member.look(key);
            if look.matches() {
                return Some(true);
            }
            if !closed {
                open.push(look);
            }
        }
        open.iter().all(Look::is_unchanged).then_some(false)
    }

    /// How many copies the key has, as long as this is the list of tables; `None` when one of
    /// its buckets has changed meanwhile. Linearization point: between the two looks at all buckets.
    pub(crate) fn count(&self, key: Key) -> Option<usize> {
        let looks: ArrayVec<Look, MAX_GENERATIONS> =
            self.iter().map(|member| member.look(key)).collect();
        let unchanged = looks.iter().all(Look::is_unchanged);
        unchanged.then(|| looks.iter().map(Look::count).sum())
    }
}

#[cfg(all(test, not(kcas_loom)))]
mod tests {
    use super::*;

    /// A key that prefers a bucket of two, and has the `nth` fingerprint.
    fn key(bucket: u64, nth: u64) -> Key {
        Key::new(bucket << 63 | (1 + nth), 2)
    }

    fn of_bits(bits: u32) -> Tables {
        Tables::of(Member::first(Table::try_new(bits, 2, 0).unwrap()))
    }

    /// Adds a copy of the one key, and takes one of the other.
    fn hop(tables: &Tables, from: Key, to: Key) {
        let view = tables.newest().view();
        assert_eq!(view.insert(to, || true), Ok(()));
        assert_eq!(view.remove(from, || true), Some(true));
    }

    fn hammer(tables: &Tables, bucket: u64, additions: usize) {
        let any = key(bucket, 99);
        (0..additions).for_each(|_| hop(tables, any, any));
    }

    /// A bucket is looked at before it is taken over, and after. One who knows the older table only adds the one fingerprint
    /// that makes those bits of the timestamp zero that are handed on; others add as many as they can count to.
    #[test]
    fn a_bucket_that_was_taken_over_has_changed() {
        let older = of_bits(19);
        hammer(&older, 0, (1 << 7) - 1);
        let split = older.newest().table().try_split().unwrap();
        let both = older.with_split(split.unwrap());
        let look = both.newest().look(key(0, 99));
        assert!(look.is_unchanged());
        let words = look.words();
        hammer(&older, 0, 1);
        assert!(!look.is_unchanged());
        hammer(&both, 0, (1 << 7) - 1);
        assert_eq!(both.newest().look(key(0, 99)).words(), words);
        assert!(!look.is_unchanged());
    }

    /// Asks for a key that has a copy all the time, in its second bucket. Before any step the copy moves to the first bucket;
    /// before any later one back, and so much is added to the first bucket that its timestamp comes round; before any later
    /// one away again, and so much is added to the second one.
    #[cfg(feature = "steps")]
    fn is_not_fooled<R: PartialEq + std::fmt::Debug>(ask: fn(&Tables, Key) -> R, wrong: R) {
        let pair = |nth: &u64| key(0, *nth).short.first == key(1, *nth).short.second;
        let nth = (0..99).find(pair).expect("half of them have two buckets");
        let [here, there] = [key(0, nth), key(1, nth)];
        let triples = (0..10_u64.pow(3)).map(|n| (n % 10, n / 10 % 10, n / 100));
        for (away, back, again) in
            triples.filter(|(away, back, again)| away <= back && back <= again)
        {
            let tables = of_bits(14);
            assert_eq!(tables.newest().view().insert(there, || true), Ok(()));
            // A timestamp is zero only while it is turned over: 2^5 − 1 additions bring it round.
            hammer(&tables, 0, 1);
            let others = tables.clone();
            let hook = move |step| {
                if step == away {
                    hop(&others, there, here);
                }
                if step == back {
                    hop(&others, here, there);
                    hammer(&others, 0, (1 << 5) - 2);
                }
                if step == again {
                    hop(&others, there, here);
                    hammer(&others, 1, (1 << 5) - 2);
                }
            };
            let answer = kcas::steps::with_hook(hook, || ask(&tables, here));
            assert_ne!(answer, wrong, "before the steps {away}, {back} and {again}");
        }
    }

    #[cfg(feature = "steps")]
    #[test]
    fn no_answer_is_fooled_by_a_timestamp_that_comes_round() {
        let at_once = |tables: &Tables, key| tables.find_at_once(key, || true);
        // A remove that wrongly finds no copy goes on to an older generation, and may take another key's there.
        let remove = |tables: &Tables, key| tables.newest().view().remove(key, || true);
        is_not_fooled(at_once, Some(false));
        is_not_fooled(Tables::find, Some(false));
        is_not_fooled(Tables::count, Some(0));
        is_not_fooled(remove, Some(false));
    }
}
