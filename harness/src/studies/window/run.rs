//! Runs one contender for four windows, of which the last two count.

use std::hint::black_box;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::Result;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::{OLDEST, Row, TICKS};
use crate::machine::Cores;
use crate::run::Crew;
use crate::workload::Tally;

/// The kinds of rows.
pub(super) const INSERT: &str = "insert";
pub(super) const RENEW: &str = "renew";
pub(super) const LOOKUP: &str = "lookup";
pub(super) const REMEMBERED: &str = "remembered";

/// Of the keys of a window, a quarter come twice in each.
const RENEWED: usize = 4;
/// Lookups for each key of a tick.
const LOOKUPS: usize = 4;
/// The first tick in which there are keys of all ages.
const FIRST: usize = OLDEST;
const LAST: usize = FIRST + 2 * TICKS;

/// A filter that remembers keys for a window at least.
pub(super) trait Remembers: Sized + Send + Sync {
    const NAME: &'static str;
    /// What it is, and how it divides a window.
    const MEANING: &'static str;

    /// Makes a filter for so many keys in a window.
    fn for_window(keys: usize) -> Result<Self>;

    /// The filter as one thread uses it for a while.
    type View<'a>
    where
        Self: 'a;

    fn view(&self) -> Self::View<'_>;

    /// Inserts or renews a key; false if it is refused.
    fn insert(view: &mut Self::View<'_>, key: u64) -> bool;

    fn contains(view: &mut Self::View<'_>, key: u64) -> bool;

    /// Begins a tick: a twelfth of a window has passed. Returns whether a period has begun with it.
    fn begin(&self, tick: usize) -> Result<bool>;

    fn memory_bytes(&self) -> usize;
}

pub(super) struct Plan<'a> {
    pub(super) keys: usize,
    pub(super) seed: u64,
    pub(super) threads: usize,
    pub(super) round: usize,
    pub(super) cores: &'a Cores,
}

/// What all threads together did of one kind, keys not found counted as missing, and in how many seconds.
type Sum = (Tally, f64);

impl Plan<'_> {
    fn new_keys(&self) -> usize {
        (self.keys - self.keys / RENEWED) / TICKS
    }

    /// Keys that are renewed in a tick; each of them comes every half window.
    fn renewed(&self) -> usize {
        self.keys / RENEWED / (TICKS / 2)
    }

    fn key(&self, tick: usize, nth: usize) -> u64 {
        self.seed
            .wrapping_add((tick * self.new_keys() + nth) as u64)
    }

    fn old_key(&self, tick: usize, nth: usize) -> u64 {
        let which = tick % (TICKS / 2) * self.renewed() + nth;
        self.seed.wrapping_sub(1 + which as u64)
    }

    fn absent(&self, random: &mut SmallRng) -> u64 {
        self.seed.wrapping_add(1 << 40) ^ (random.random::<u64>() >> 24 << 8)
    }

    /// Lets all threads do their part of `number` operations, which are numbered. `each` performs one, and says
    /// whether its key was found, or not refused. `first` is run once before, on one of the threads.
    fn all<C: Remembers>(
        &self,
        (contender, number): (&C, usize),
        first: impl FnOnce() + Send,
        each: impl Fn(&mut C::View<'_>, usize, &mut SmallRng) -> bool + Sync,
        sum: &mut Sum,
    ) -> Result<bool> {
        let first = Mutex::new(Some(first));
        let done = Crew::share(self.cores, self.threads, 0..number as u64, |thread, own| {
            let (first, each) = (&first, &each);
            let mut random = SmallRng::seed_from_u64(self.seed ^ thread as u64);
            move || {
                if thread == 0
                    && let Some(first) = first.lock().expect("nobody panics").take()
                {
                    first();
                }
                let (mut tally, mut view) = (Tally::default(), contender.view());
                for nth in own {
                    tally.operations += 1;
                    let answer = black_box(each(&mut view, nth as usize, &mut random));
                    tally.missing += u64::from(!answer);
                }
                (tally, None)
            }
        })?;
        sum.0.add(&done.tally);
        sum.1 += done.seconds();
        Ok(done.pinned)
    }
}

pub(super) fn run<C: Remembers>(plan: &Plan) -> Result<Vec<Row>> {
    let contender = &C::for_window(plan.keys)?;
    let mut sums = [INSERT, RENEW, LOOKUP].map(|kind| (kind, Sum::default()));
    let mut remembered = [Sum::default(); OLDEST + 1];
    let (mut pinned, mut begin_ms, mut memory_bytes) = (true, 0.0_f64, 0);
    for tick in 0..LAST {
        if tick == FIRST {
            sums.iter_mut().for_each(|(_, sum)| *sum = Sum::default());
            begin_ms = 0.0;
        }
        let [(_, insert), (_, renew), (_, lookup)] = &mut sums;
        let mut begun = Ok(false);
        let begin = || {
            let start = Instant::now();
            begun = contender.begin(tick);
            if matches!(begun, Ok(true)) {
                begin_ms = begin_ms.max(start.elapsed().as_secs_f64() * 1e3);
            }
        };
        let new =
            |view: &mut C::View<'_>, nth, _: &mut SmallRng| C::insert(view, plan.key(tick, nth));
        pinned &= plan.all((contender, plan.new_keys()), begin, new, insert)?;
        begun?;
        let old = |view: &mut C::View<'_>, nth, _: &mut SmallRng| {
            C::insert(view, plan.old_key(tick, nth))
        };
        pinned &= plan.all((contender, plan.renewed()), || (), old, renew)?;
        memory_bytes = memory_bytes.max(contender.memory_bytes() as u64);
        let newer = tick.saturating_sub(TICKS - 1);
        let look = |view: &mut C::View<'_>, nth, random: &mut SmallRng| {
            let key = if nth % 2 == 0 {
                let tick = random.random_range(newer..=tick);
                plan.key(tick, random.random_range(0..plan.new_keys()))
            } else {
                plan.absent(random)
            };
            C::contains(view, key)
        };
        pinned &= plan.all((contender, LOOKUPS * plan.new_keys()), || (), look, lookup)?;
        if tick >= FIRST {
            for (age, sum) in remembered.iter_mut().enumerate() {
                let then = tick - age;
                let ask = |view: &mut C::View<'_>, nth, _: &mut SmallRng| {
                    C::contains(view, plan.key(then, nth))
                };
                plan.all((contender, plan.new_keys()), || (), ask, sum)?;
                // Later, they have been renewed again.
                if age < TICKS / 2 {
                    let ask = |view: &mut C::View<'_>, nth, _: &mut SmallRng| {
                        C::contains(view, plan.old_key(then, nth))
                    };
                    plan.all((contender, plan.renewed()), || (), ask, sum)?;
                }
            }
        }
    }
    let row = |kind: &str, age: usize, sum: Tally, mops| Row {
        subject: C::NAME.into(),
        round: plan.round,
        threads: plan.threads,
        kind: kind.into(),
        age: age as f64 / TICKS as f64,
        operations: sum.operations,
        found: sum.operations - sum.missing,
        mops,
        memory_bytes,
        keys: plan.keys as u64,
        begin_ms,
        oversubscribed: plan.threads > plan.cores.count(),
        pinned,
    };
    let timed = sums.into_iter().map(|(kind, (sum, seconds))| {
        let mops = sum.operations as f64 / seconds / 1e6;
        row(kind, 0, sum, mops)
    });
    let by_age = remembered.into_iter().enumerate();
    let by_age = by_age.map(|(age, (sum, _))| row(REMEMBERED, age, sum, 0.0));
    Ok(timed.chain(by_age).collect())
}
