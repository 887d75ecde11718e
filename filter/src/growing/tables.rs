//! All tables of a filter at one time, and the answers that their words give together.

use std::sync::Arc;

use arrayvec::ArrayVec;

use super::generation::Generation;
use super::schedule::MAX_GENERATIONS;
use super::table::{Among, Key, Plan, Table, View};
use crate::hashing::Location;

/// Number of buckets up to which a table grows however empty it is: 1 MiB.
const SMALL: usize = 1 << 17;

/// The table of a generation.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// A copy of the table's plan, at hand without a pointer.
    plan: Plan,
    among: Among,
    table: Arc<Table>,
    /// The table that it takes over from, until that is complete.
    older: Option<Arc<Table>>,
    pub(crate) generation: Arc<Generation>,
}

impl Member {
    fn alone(table: Arc<Table>, generation: Generation) -> Member {
        Member::new(table, None, Arc::new(generation))
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

    /// Returns the tables that hold its keys.
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

    /// Returns its table, to be kept when the list is gone.
    pub(crate) fn shared_table(&self) -> Arc<Table> {
        Arc::clone(&self.table)
    }

    /// Makes sure that the key never has a copy here again, in a generation that is known to be
    /// superseded; false if it has one.
    pub(crate) fn seal(&self, key: Key) -> bool {
        if self.generation.is_closed() {
            return !self.look(key).matches();
        }
        self.table.seal(key)
    }

    /// Reads what its table shows about a key.
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

    /// True if, at some moment during the call, the key had as many copies as a bucket has slots,
    /// provided that this is still the list of tables. Also false if one of the key's buckets
    /// changed meanwhile.
    pub(crate) fn has_most_copies(&self, key: Key) -> bool {
        let look = self.look(key);
        look.is_unchanged() && look.count() >= self.table.format().slots
    }

    /// True if the table is large and has room for many times as many copies as it holds: distinct
    /// keys fill a table further than that before one of them finds no room.
    pub(crate) fn is_nearly_empty(&self) -> bool {
        let buckets = self.table.number_of_buckets();
        let slots = buckets * self.table.format().slots;
        // If slices are very small, one is full while most others are empty.
        let share = 1_024 / self.table.slice().min(64);
        buckets > SMALL && self.generation.len() < slots / share
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let older = self.older.as_deref().map_or(0, Table::memory_bytes);
        self.table.memory_bytes() + older + self.generation.memory_bytes()
    }
}

/// What a generation showed about a key.
#[derive(Debug)]
struct Look<'a> {
    member: &'a Member,
    location: Location,
    /// Read before the words.
    wraps: [u64; 2],
    /// The raw words, from whichever table they counted in.
    words: [u64; 2],
}

impl Look<'_> {
    fn words(&self) -> [u64; 2] {
        self.member.view().seen(self.location, self.words)
    }

    /// True if the key had a copy.
    fn matches(&self) -> bool {
        (self.member.plan).matches(self.words(), self.location.fingerprint)
    }

    /// Returns how many copies the key had, if both words belong to one moment.
    fn count(&self) -> usize {
        self.member.view().count(self.words(), self.location)
    }

    /// True if nothing was added to or removed from the words since, and no timestamp has wrapped.
    /// Raw words are compared: the converted word of a bucket that was migrated meanwhile could be
    /// the same by chance, since its timestamp may have lost bits.
    fn is_unchanged(&self) -> bool {
        let view = self.member.view();
        view.look(self.location) == self.words && view.wraps() == self.wraps
    }
}

/// The tables, the newest generation first. The list is never changed, but replaced by another one.
#[derive(Clone, Debug)]
pub(crate) struct Tables(ArrayVec<Member, MAX_GENERATIONS>);

impl Tables {
    /// Makes a list of at least one table, each with its number of copies: one per generation, the
    /// oldest first.
    pub(crate) fn of_all(tables: impl IntoIterator<Item = (Table, usize)>) -> Tables {
        let members = tables
            .into_iter()
            .enumerate()
            .map(|(number, (table, copies))| {
                Member::alone(Arc::new(table), Generation::holding(number, copies))
            });
        let mut members: ArrayVec<Member, MAX_GENERATIONS> = members.collect();
        members.reverse();
        let tables = Tables(members);
        tables.close_older();
        tables
    }

    /// Says that nothing is added to older generations any more.
    pub(crate) fn close_older(&self) {
        self.older().for_each(|member| member.generation.close());
    }

    /// Returns the list in which `successor` replaces the newest generation's table, and takes over
    /// from it.
    pub(crate) fn with_successor(&self, successor: Table) -> Tables {
        let newest = self.newest();
        let older = Some(Arc::clone(&newest.table));
        self.with_newest(Member::new(
            Arc::new(successor),
            older,
            Arc::clone(&newest.generation),
        ))
    }

    /// Returns the list after the newest generation's table has taken over everything.
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

    /// Returns the list with the first table of a newer generation added.
    pub(crate) fn with(&self, newer: Table) -> Tables {
        let older = self.0.iter().cloned();
        let newer = Member::alone(Arc::new(newer), self.newest().generation.next());
        Tables([newer].into_iter().chain(older).collect())
    }

    /// Returns the list of this empty table.
    pub(crate) fn cleared(&self, first: Arc<Table>) -> Tables {
        let generation = self.newest().generation.first_after_clearing();
        Tables(ArrayVec::from_iter([Member::alone(first, generation)]))
    }

    /// Returns the list without the older generations that are spent; `None` if there are none.
    pub(crate) fn without_spent(&self) -> Option<Tables> {
        if !self.older().any(|member| member.generation.is_spent()) {
            return None;
        }
        let kept = |member: &&Member| !member.generation.is_spent();
        let older = self.0[1..].iter().filter(kept);
        Some(Tables(self.0[..1].iter().chain(older).cloned().collect()))
    }

    /// Returns the generation that keys are inserted into.
    #[inline]
    pub(crate) fn newest(&self) -> &Member {
        &self.0[0]
    }

    /// Returns all others, the newest first.
    #[inline]
    pub(crate) fn older(&self) -> impl DoubleEndedIterator<Item = &Member> {
        self.0[1..].iter()
    }

    /// Returns all generations, the newest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Member> {
        self.0.iter()
    }

    /// Whether the key has a copy, if the words of the newest generation's table alone can say so
    /// at the first attempt. True holds even if the list of tables has changed: what a frozen word
    /// holds was there when it was frozen, during the call. False holds while this is the list,
    /// which `holds` checks: a newer generation may have had a copy before this one lost its own.
    ///
    /// The protocol and its linearization points are those of the fixed-size filter
    /// ([`lookup`](crate::lookup)), except that it is not left to chance whether a timestamp has
    /// come round to where it was. Here, too, the answer is data, not a branch.
    #[inline(always)]
    pub(crate) fn find_at_once(&self, key: Key, holds: impl FnOnce() -> bool) -> Option<bool> {
        let newest = self.newest();
        let location = newest.plan.locate(key);
        let (stand, words) = newest.table.look_twice(location, newest.among);
        let found = newest.plan.matches(words, location.fingerprint);
        let is_all = (self.0.len() == 1) & holds();
        (stand & (found | is_all)).then_some(found)
    }

    /// Whether the key has a copy, provided that this is still the list of tables; `None` if
    /// something was added to the key's buckets meanwhile.
    ///
    /// Nothing is added to closed generations: a key that is absent from one stays absent. The
    /// others, in most lists only the newest, are read twice. Had a copy been in any of them
    /// between the two reads, then the first would have seen it, or it would have been added since
    /// and the second would have seen it. So there was a moment between them at which none had a
    /// copy: the linearization point.
    #[cold]
    pub(crate) fn find(&self, key: Key) -> Option<bool> {
        let mut open = ArrayVec::<Look, MAX_GENERATIONS>::new();
        for member in self.iter() {
            // Read before the words, so that whatever was added before closing is seen.
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

    /// Returns how many copies the key has, provided that this is still the list of tables; `None`
    /// if one of its buckets changed meanwhile. Linearization point: between the two reads of all
    /// buckets.
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

    /// Returns a key that prefers this one of two buckets, and has the `nth` fingerprint.
    fn key(bucket: u64, nth: u64) -> Key {
        Key::new(bucket << 63 | (1 + nth), 2)
    }

    fn of_bits(bits: u32) -> Tables {
        Tables::of_all([(Table::try_new(bits, 2, 0).unwrap(), 0)])
    }

    /// Adds a copy of one key, and removes one of the other.
    fn hop(tables: &Tables, from: Key, to: Key) {
        let view = tables.newest().view();
        assert_eq!(view.insert(to, || true), Ok(()));
        assert_eq!(view.remove(from, || true), Some(true));
    }

    fn hammer(tables: &Tables, bucket: u64, additions: usize) {
        let any = key(bucket, 99);
        (0..additions).for_each(|_| hop(tables, any, any));
    }

    /// A bucket is read before it is migrated, and again afterwards. In between, a thread that
    /// knows only the older table adds the one fingerprint that zeroes those bits of the timestamp
    /// that are handed on; others add as many as a timestamp can count.
    #[test]
    fn a_bucket_that_was_taken_over_has_changed() {
        let older = of_bits(19);
        hammer(&older, 0, (1 << 7) - 1);
        let split = older.newest().table().try_split().unwrap();
        let both = older.with_successor(split.unwrap());
        let look = both.newest().look(key(0, 99));
        assert!(look.is_unchanged());
        let words = look.words();
        hammer(&older, 0, 1);
        assert!(!look.is_unchanged());
        hammer(&both, 0, (1 << 7) - 1);
        assert_eq!(both.newest().look(key(0, 99)).words(), words);
        assert!(!look.is_unchanged());
    }

    /// Asks for a key that has a copy all the time, in its second bucket at first. Before some
    /// step, the copy moves to the first bucket. Before some later step it moves back, and so much
    /// is added to the first bucket that its timestamp comes round. Before some still later step it
    /// moves away again, and so much is added to the second bucket.
    #[cfg(feature = "steps")]
    fn is_not_fooled<R: PartialEq + std::fmt::Debug>(
        bits: u32,
        ask: fn(&Tables, Key) -> R,
        wrong: R,
    ) {
        // Two bits of the 63 are flags. A timestamp is zero only while turned over, so one addition
        // less than its numbers brings it round.
        let slots = super::super::table::format(bits).slots as u32;
        let turn = (1 << (61 - slots * bits)) - 1;
        let pair = |nth: &u64| key(0, *nth).short.first == key(1, *nth).short.second;
        let nth = (0..99).find(pair).expect("half of them have two buckets");
        let [here, there] = [key(0, nth), key(1, nth)];
        let triples = (0..10_u64.pow(3)).map(|n| (n % 10, n / 10 % 10, n / 100));
        for (away, back, again) in
            triples.filter(|(away, back, again)| away <= back && back <= again)
        {
            let tables = of_bits(bits);
            assert_eq!(tables.newest().view().insert(there, || true), Ok(()));
            hammer(&tables, 0, 1);
            let others = tables.clone();
            let hook = move |step| {
                if step == away {
                    hop(&others, there, here);
                }
                if step == back {
                    hop(&others, here, there);
                    hammer(&others, 0, turn - 1);
                }
                if step == again {
                    hop(&others, there, here);
                    hammer(&others, 1, turn - 1);
                }
            };
            let answer = kcas::steps::with_hook(hook, || ask(&tables, here));
            assert_ne!(
                answer, wrong,
                "{bits} bits, before {away}, {back} and {again}"
            );
        }
    }

    #[cfg(feature = "steps")]
    #[test]
    fn no_answer_is_fooled_by_a_timestamp_that_comes_round() {
        let at_once = |tables: &Tables, key| tables.find_at_once(key, || true);
        // A remove that wrongly finds no copy goes on to an older generation, and may take another
        // key's copy there.
        let remove = |tables: &Tables, key| tables.newest().view().remove(key, || true);
        // Every number of slots, and timestamps that are short enough.
        for bits in [25, 18, 17, 14, 13] {
            is_not_fooled(bits, at_once, Some(false));
            is_not_fooled(bits, Tables::find, Some(false));
            is_not_fooled(bits, Tables::count, Some(0));
            is_not_fooled(bits, remove, Some(false));
        }
    }
}
