//! Why the filter does not use the published lookup: a schedule under which that lookup
//! (`two-phase`) misses a key that is present throughout. Ours (`lock-free`) finds it under this
//! schedule, and under all others of its kind.
//!
//! One thread does everything: the hook of a lookup does what others do between two of its steps.

use std::cell::Cell;
use std::rc::Rc;

use filter::internals::Location;
use harness::subject::Subject;
use harness::subject::layout::{self, Geometry};
use harness::subjects::{
    AblationControl, AblationOneRound, AblationTwoPhaseLookup, LockFree, Optimistic,
    StripedTimestamps, TwoPhase, WordLock,
};
use kcas_testing::steps::with_hook;

const BUCKETS: usize = 16;

fn locate(key: u64) -> Location {
    layout::locate(&Geometry::new(BUCKETS), &key)
}

/// Returns two keys of one class, each of which has its first bucket where the other has its second.
/// The bucket of the first key is the lower one: removes under stripes look there first.
fn twins() -> [u64; 2] {
    let is_ascending = |key: &u64| locate(*key).first < locate(*key).second;
    let a = (0..).find(is_ascending).unwrap();
    let location = locate(a);
    let is_twin = |&key: &u64| {
        let other = locate(key);
        other.fingerprint == location.fingerprint && other.first == location.second
    };
    let b = (0..).find(is_twin).unwrap();
    assert_eq!(locate(b).second, location.first);
    [a, b]
}

/// Which of the two buckets hold a copy of the class: at least one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Copies {
    InA,
    InB,
    InBoth,
}

/// What others do before a step: a sequence of moves, each of which leads to these copies.
type Moves = &'static [Copies];

/// Returns all moves: stay; move to one of the other two arrangements; go there and back.
fn all_moves(now: Copies) -> [Moves; 4] {
    use Copies::{InA, InB, InBoth};
    match now {
        InA => [&[], &[InB], &[InBoth], &[InB, InA]],
        InB => [&[], &[InA], &[InBoth], &[InA, InB]],
        InBoth => [&[], &[InA], &[InB], &[InA, InB]],
    }
}

/// A filter, and where copies are in it.
struct Table<S> {
    subject: S,
    twins: [u64; 2],
    copies: Cell<Copies>,
}

impl<S: Subject> Table<S> {
    fn new(twins: [u64; 2], copies: Copies) -> Rc<Self> {
        let table = Self {
            subject: S::with_buckets(BUCKETS).unwrap(),
            twins,
            copies: Cell::new(Copies::InA),
        };
        table.change(twins[0], true);
        table.rearrange(copies);
        Rc::new(table)
    }

    /// Inserts or removes a key, and checks that a copy is there. This shows it for every moment,
    /// since everything that happens to the filter is followed by this check.
    fn change(&self, key: u64, inserts: bool) {
        assert!(if inserts {
            self.subject.insert(&key)
        } else {
            self.subject.remove(&key)
        });
        assert!(self.twins.iter().all(|key| self.subject.contains(key)));
    }

    /// Inserts before it removes.
    fn rearrange(&self, to: Copies) {
        let [a, b] = self.twins;
        let from = self.copies.replace(to);
        for inserts in [true, false] {
            for (key, without) in [(a, Copies::InB), (b, Copies::InA)] {
                if (from == without) == inserts && (to != without) == inserts {
                    self.change(key, inserts);
                }
            }
        }
    }

    /// Looks a key up while `moves` happen before its steps; returns the answer and the steps.
    fn contains(self: &Rc<Self>, key: u64, moves: &[Moves]) -> (bool, usize) {
        let (table, moves) = (Rc::clone(self), moves.to_vec());
        let steps = Rc::new(Cell::new(0));
        let last = Rc::clone(&steps);
        let hook = move |step: u64| {
            last.set(step as usize + 1);
            let moves = moves.get(step as usize).copied().unwrap_or_default();
            moves.iter().for_each(|&copies| table.rearrange(copies));
        };
        let found = with_hook(hook, || self.subject.contains(&key));
        (found, steps.get())
    }
}

/// Three hops, each between two reads; the only copy is in the reader's second bucket at first.
const HOPS: [Moves; 4] = [&[], &[Copies::InA], &[Copies::InB], &[Copies::InA]];

#[test]
fn published_lookup_misses_key_present_throughout() {
    let twins = twins();
    let table = Table::<TwoPhase>::new(twins, Copies::InB);
    let (found, steps) = table.contains(twins[0], &HOPS);
    assert!(!found, "the published lookup has found the key after all");
    // Four reads: one before the hops and three after them.
    assert_eq!(steps, 4);
}

/// Number of steps of a lookup before which others move. For ours, these are the steps of the fast
/// round and of one slow round after it; for the published one, the four reads and two of another
/// round.
const STEPS: usize = 6;

/// Returns the sequence of this number of [`all_moves`] before [`STEPS`] steps, starting from one arrangement.
fn schedule(mut now: Copies, number: usize) -> Vec<Moves> {
    let moves = |step| {
        let moves: Moves = all_moves(now)[number >> (2 * step) & 3];
        now = moves.last().copied().unwrap_or(now);
        moves
    };
    (0..STEPS).map(moves).collect()
}

/// Returns under how many schedules a lookup misses the key, and the most steps that one had.
fn false_negatives<S: Subject>() -> (usize, usize) {
    let twins = twins();
    let (mut missed, mut tried, mut longest) = (0, 0, 0);
    for from in [Copies::InA, Copies::InB, Copies::InBoth] {
        for number in 0..4_usize.pow(STEPS as u32) {
            let schedule = schedule(from, number);
            for key in twins {
                let table = Table::<S>::new(twins, from);
                let (found, steps) = table.contains(key, &schedule);
                missed += usize::from(!found);
                tried += 1;
                longest = longest.max(steps);
            }
        }
    }
    println!("{}: missed under {missed} of {tried} schedules", S::NAME);
    assert_eq!(tried, 3 * 4_usize.pow(STEPS as u32) * 2);
    (missed, longest)
}

#[test]
fn our_lookup_finds_key_under_every_schedule() {
    for (missed, longest) in [
        false_negatives::<LockFree>(),
        false_negatives::<AblationControl>(),
        // Rivals with locks.
        false_negatives::<WordLock>(),
        false_negatives::<StripedTimestamps>(),
        false_negatives::<Optimistic>(),
    ] {
        assert_eq!(missed, 0);
        assert!(longest >= STEPS, "the schedules reach past the first round");
    }
}

/// No counter moves, so the published lookup never restarts; nor does one of a single round.
#[test]
fn same_schedules_mislead_other_lookups() {
    for ((missed, longest), steps) in [
        (false_negatives::<TwoPhase>(), 4),
        (false_negatives::<AblationTwoPhaseLookup>(), 4),
        (false_negatives::<AblationOneRound>(), 2),
    ] {
        assert!(missed > 0);
        assert_eq!(longest, steps);
    }
}
