//! The `window` study: filters that forget (the figure of that name). A window is cut into twelve ticks. In each, threads
//! insert new keys, renew keys that come in each period, and look keys up; after two windows and a half, they also ask for
//! keys of every age up to then. The last two of four windows count. Subjects take turns with each tick.

use std::hint::black_box;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use arc_swap::{ArcSwap, Cache};
use clap::Args;
use cuckoo_clock::config::{BitCount, ConfigError, CuckooConfiguration, TtlConfig};
use cuckoo_clock::{InsertValues, LookupValues};
use figures::plot::Scale;
use filter::{CuckooFilter, ExpiringCuckooFilter, Filter};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::crew::Crew;
use crate::experiment::MAX_THREADS;
use crate::machine::Cores;
use crate::operations::Tally;
use crate::row::Sample;
use crate::studies::within;
use crate::study::{Better, Extras, Quantity, Study, Task, unchecked};
use crate::subjects::original;
use crate::wording::{counted, grouped};

/// Measure filters that forget: throughput, memory, and the age at which a key is forgotten.
///
/// The expiring filter is compared with two filters of fixed size that take turns, and with the
/// published crate cuckoo-clock. Each is built to remember the keys of a window, as many as --keys says. Threads
/// insert new keys and renew old ones all the time, one of them begins the periods, and all look keys up.
///
/// Prints one table, and writes window.csv, window.machine.toml and window.svg. Takes a minute, and
/// needs the cores to itself. Ctrl-C ends it after the current process, and keeps what is finished.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Window {
    /// Keys that come in a window.
    #[arg(long, value_name = "N", default_value_t = 116_000, value_parser = within(1_200..=100_000_000))]
    pub keys: usize,
    /// Numbers of threads, separated by commas.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values = ["1", "2", "8"], value_parser = within(1..=MAX_THREADS as u64))]
    pub threads: Vec<usize>,
}

const THROUGHPUT: Quantity = Quantity::new(
    "throughput, million/s",
    Some(Better::More),
    Some(Scale::Zero),
);
const FOUND: Quantity = Quantity::new("share found", None, Some(Scale::Zero));
const BITS: Quantity = Quantity::new("bits for each key of a window", None, None);
const LONGEST: Quantity = Quantity::new("longest beginning of a period, ms", None, None);

pub static STUDY: Study<Window> = Study {
    name: "window",
    title: "Filters that forget",
    question: "What does it cost to remember a key for a window of time, and for how long is it remembered?",
    check: unchecked,
    subjects: |_, _| {
        Ok(SUBJECTS
            .map(|(name, meaning)| (name.into(), meaning.into()))
            .into())
    },
    alone: false,
    parts: |window| {
        window
            .threads
            .iter()
            .map(|of| counted(*of, "thread"))
            .collect()
    },
    measure: |window, task, _| window.measure(task),
    quantities: &[THROUGHPUT, FOUND, BITS, LONGEST],
    axis: |case| {
        if case.starts_with(OF_ONE_AGE) {
            ("age of the key in windows", Scale::Zero)
        } else {
            ("threads", Scale::Log)
        }
    },
    // Of ages, those at which some are to be forgotten.
    tabled: |case, mut places| {
        places.retain(|place| !case.starts_with(OF_ONE_AGE) || [1.0, 1.5, 2.0].contains(place));
        places
    },
    how: |window| {
        format!(
            "{} keys come in each window, a quarter of them twice; each filter must remember a key for a window. The beginning \
             of periods is part of inserts. Ages are in windows.",
            grouped(window.keys as u64)
        )
    },
    extras: Extras::NONE,
};

/// What is compared, ours first.
const SUBJECTS: [(&str, &str); 3] = [
    (
        "expiring",
        "the lock-free filter that forgets: three periods of half a window, with room for all three",
    ),
    (
        "rotating",
        "two lock-free filters that take turns: keys go into one of them for a window, which is then kept for another one and \
         thrown away; each has room for a window",
    ),
    (
        "cuckoo-clock",
        "the crate cuckoo-clock, a mutex for each bucket of four slots of 12 bits with two bits of age: three periods of half \
         a window, with room for all three, rounded up to a power of two",
    ),
];

/// The cases of what is timed.
const TIMED: [&str; 3] = ["inserts of new keys", "renewals", "lookups, half present"];
/// How cases begin that have an axis of ages.
const OF_ONE_AGE: &str = "keys of one age";

/// Ticks of a window.
const TICKS: usize = 12;
/// Ages up to which keys are asked for, in ticks.
const OLDEST: usize = 2 * TICKS + TICKS / 2;
/// A quarter of the keys of a window come twice in each.
const RENEWED: usize = 4;
/// Lookups for each key of a tick.
const LOOKUPS: usize = 4;
/// The first tick in which there are keys of all ages.
const FIRST: usize = OLDEST;
const LAST: usize = FIRST + 2 * TICKS;

impl Window {
    fn measure(&self, task: &Task) -> Result<Vec<Sample>> {
        let threads = task.part.split(' ').next().unwrap_or_default().parse()?;
        let plan = &Plan {
            keys: self.keys,
            seed: task.seed,
            threads,
            cores: Cores::detect(),
        };
        let run = |name: &String| -> Result<Box<dyn Run + '_>> {
            Ok(match original(name) {
                "expiring" => Box::new(One::new(plan, Expiring::for_window(self.keys)?)),
                "rotating" => Box::new(One::new(plan, Rotating::for_window(self.keys)?)),
                "cuckoo-clock" => Box::new(One::new(plan, CuckooClock::for_window(self.keys)?)),
                other => return Err(anyhow!("no filter that forgets is called {other}")),
            })
        };
        let mut all = task.subjects.iter().map(run).collect::<Result<Vec<_>>>()?;
        for tick in 0..LAST {
            for (one, name) in all.iter_mut().zip(&task.subjects) {
                one.tick(tick).with_context(|| name.clone())?;
            }
        }
        let samples = all.iter().zip(&task.subjects);
        Ok(samples
            .flat_map(|(one, name)| one.samples(task, name))
            .collect())
    }
}

/// What all of them do.
struct Plan {
    keys: usize,
    seed: u64,
    threads: usize,
    cores: Cores,
}

impl Plan {
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
}

/// What all threads together did of one kind, keys not found counted as missing, and in how many seconds.
type Sum = (Tally, f64);

/// A filter, and what was done to it so far.
struct One<'a, C> {
    plan: &'a Plan,
    contender: C,
    timed: [Sum; 3],
    remembered: [Sum; OLDEST + 1],
    begin_ms: f64,
    memory_bytes: usize,
}

/// [`One`], whatever its filter.
trait Run {
    fn tick(&mut self, tick: usize) -> Result<()>;

    fn samples(&self, task: &Task, name: &str) -> Vec<Sample>;
}

impl<'a, C: Remembers> One<'a, C> {
    fn new(plan: &'a Plan, contender: C) -> Self {
        Self {
            plan,
            contender,
            timed: Default::default(),
            remembered: [Sum::default(); OLDEST + 1],
            begin_ms: 0.0,
            memory_bytes: 0,
        }
    }

    /// Lets all threads do their part of `number` operations, which are numbered. `each` performs one, and says
    /// whether its key was found, or not refused. `first` is run once before, on one of the threads.
    fn all(
        &self,
        number: usize,
        first: impl FnOnce() + Send,
        each: impl Fn(&mut C::View<'_>, usize, &mut SmallRng) -> bool + Sync,
    ) -> Result<Sum> {
        let Plan { cores, threads, .. } = self.plan;
        let first = Mutex::new(Some(first));
        let done = Crew::share(cores, *threads, 0..number as u64, |thread, own| {
            let (first, each) = (&first, &each);
            let mut random = SmallRng::seed_from_u64(self.plan.seed ^ thread as u64);
            move || {
                if thread == 0
                    && let Some(first) = first.lock().expect("nobody panics").take()
                {
                    first();
                }
                let (mut tally, mut view) = (Tally::default(), self.contender.view());
                for nth in own {
                    tally.operations += 1;
                    let answer = black_box(each(&mut view, nth as usize, &mut random));
                    tally.missing += u64::from(!answer);
                }
                (tally, Vec::new())
            }
        })?;
        Ok((done.tally, done.seconds()))
    }
}

fn add(sum: &mut Sum, (tally, seconds): Sum) {
    sum.0.add(&tally);
    sum.1 += seconds;
}

impl<C: Remembers> Run for One<'_, C> {
    fn tick(&mut self, tick: usize) -> Result<()> {
        if tick == FIRST {
            self.timed = Default::default();
            self.begin_ms = 0.0;
        }
        let plan = self.plan;
        let (mut begun, mut begin_ms) = (Ok(false), self.begin_ms);
        let begin = || {
            let start = Instant::now();
            begun = self.contender.begin(tick);
            if matches!(begun, Ok(true)) {
                begin_ms = begin_ms.max(start.elapsed().as_secs_f64() * 1e3);
            }
        };
        let inserted = self.all(plan.new_keys(), begin, |view, nth, _| {
            C::insert(view, plan.key(tick, nth))
        })?;
        begun?;
        self.begin_ms = begin_ms;
        let renewed = self.all(
            plan.renewed(),
            || (),
            |view, nth, _| C::insert(view, plan.old_key(tick, nth)),
        )?;
        self.memory_bytes = self.memory_bytes.max(self.contender.memory_bytes());
        let newer = tick.saturating_sub(TICKS - 1);
        let looked_up = self.all(
            LOOKUPS * plan.new_keys(),
            || (),
            |view, nth, random| {
                let key = if nth % 2 == 0 {
                    let tick = random.random_range(newer..=tick);
                    plan.key(tick, random.random_range(0..plan.new_keys()))
                } else {
                    plan.absent(random)
                };
                C::contains(view, key)
            },
        )?;
        for (sum, more) in self.timed.iter_mut().zip([inserted, renewed, looked_up]) {
            add(sum, more);
        }
        for age in (0..=OLDEST).filter(|_| tick >= FIRST) {
            let then = tick - age;
            let asked = self.all(
                plan.new_keys(),
                || (),
                |view, nth, _| C::contains(view, plan.key(then, nth)),
            )?;
            add(&mut self.remembered[age], asked);
            // Later, they have been renewed again.
            if age < TICKS / 2 {
                let asked = self.all(
                    plan.renewed(),
                    || (),
                    |view, nth, _| C::contains(view, plan.old_key(then, nth)),
                )?;
                add(&mut self.remembered[age], asked);
            }
        }
        Ok(())
    }

    fn samples(&self, task: &Task, name: &str) -> Vec<Sample> {
        let share = |(of, _): &Sum| (of.operations - of.missing) as f64 / of.operations as f64;
        let (mut samples, threads) = (Vec::new(), self.plan.threads as f64);
        for (case, sum) in TIMED.into_iter().zip(&self.timed) {
            let mut add = |of, value| samples.push(task.sample(name, (case, threads), of, value));
            add(&THROUGHPUT, sum.0.operations as f64 / sum.1 / 1e6);
            if case == TIMED[0] {
                let bits = 8.0 * self.memory_bytes as f64 / self.plan.keys as f64;
                add(&BITS, bits);
                add(&LONGEST, self.begin_ms);
            }
        }
        for (age, sum) in self.remembered.iter().enumerate() {
            let age = age as f64 / TICKS as f64;
            let case = format!("{OF_ONE_AGE}, {}", task.part);
            samples.push(task.sample(name, (case, age), &FOUND, share(sum)));
        }
        samples
    }
}

/// A filter that remembers keys for a window at least.
trait Remembers: Sized + Send + Sync {
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

/// A period, of which two make a window, and the number of periods after which the first keys are forgotten.
const PERIOD: usize = TICKS / 2;
const PERIODS: u32 = 3;

/// Room for the keys of three periods.
const fn of_three_periods(keys: usize) -> usize {
    keys / 2 * PERIODS as usize
}

struct Expiring(ExpiringCuckooFilter);

impl Remembers for Expiring {
    fn for_window(keys: usize) -> Result<Self> {
        let builder = ExpiringCuckooFilter::builder().capacity(of_three_periods(keys));
        Ok(Self(builder.build()?))
    }

    type View<'a> = &'a ExpiringCuckooFilter;

    fn view(&self) -> Self::View<'_> {
        &self.0
    }

    #[inline]
    fn insert(filter: &mut Self::View<'_>, key: u64) -> bool {
        filter.insert_or_renew(&key).is_ok()
    }

    #[inline]
    fn contains(filter: &mut Self::View<'_>, key: u64) -> bool {
        filter.contains(&key)
    }

    fn begin(&self, tick: usize) -> Result<bool> {
        let before = self.0.period();
        self.0.advance_to((tick / PERIOD) as u64)?;
        Ok(self.0.period() != before)
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}

/// What keys are inserted into, and what they were inserted into in the window before.
struct Rotating {
    filters: ArcSwap<Two>,
    keys: usize,
}

type Two = [Arc<CuckooFilter>; 2];

impl Rotating {
    fn new_filter(keys: usize) -> Result<Arc<CuckooFilter>> {
        Ok(Arc::new(CuckooFilter::builder().capacity(keys).build()?))
    }
}

impl Remembers for Rotating {
    fn for_window(keys: usize) -> Result<Self> {
        // While one takes over, keys still go into the other for up to a tick.
        let keys = keys + keys / TICKS;
        let filters = [Self::new_filter(keys)?, Self::new_filter(1)?];
        let filters = ArcSwap::from_pointee(filters);
        Ok(Self { filters, keys })
    }

    /// It keeps the filters at hand as long as they are the current ones, and counts no references.
    type View<'a> = Cache<&'a ArcSwap<Two>, Arc<Two>>;

    fn view(&self) -> Self::View<'_> {
        Cache::new(&self.filters)
    }

    #[inline]
    fn insert(filters: &mut Self::View<'_>, key: u64) -> bool {
        filters.load()[0].insert_if_absent(&key).is_ok()
    }

    #[inline]
    fn contains(filters: &mut Self::View<'_>, key: u64) -> bool {
        let [newest, older] = &**filters.load();
        let (newest, older): (&CuckooFilter, &CuckooFilter) = (newest, older);
        let hash = newest.hash_one(&key);
        newest.contains_hash(hash) || older.contains_hash(hash)
    }

    fn begin(&self, tick: usize) -> Result<bool> {
        let begins = tick > 0 && tick.is_multiple_of(TICKS);
        if begins {
            let newest = Self::new_filter(self.keys)?;
            let older = Arc::clone(&self.filters.load()[0]);
            self.filters.store(Arc::new([newest, older]));
        }
        Ok(begins)
    }

    fn memory_bytes(&self) -> usize {
        let filters = self.filters.load();
        filters.iter().map(|filter| filter.memory_bytes()).sum()
    }
}

/// The published crate, whose buckets have a mutex and a piece of memory on the heap each: a lookup of an
/// absent key takes two of both, and looks at each slot bit by bit. That is why it is so much slower.
struct CuckooClock(cuckoo_clock::CuckooFilter<filter::FixedState>);

impl Remembers for CuckooClock {
    fn for_window(keys: usize) -> Result<Self> {
        let wrong = |error: ConfigError| anyhow!("cuckoo-clock: {error}");
        let bits = |bits: usize| BitCount::try_from(bits).map_err(wrong);
        let config = CuckooConfiguration::builder(of_three_periods(keys))
            .fingerprint_bits(bits(12)?)
            .bucket_size(4.try_into()?)
            .with_ttl(TtlConfig {
                ttl: PERIODS.try_into()?,
                ttl_bits: bits(2)?,
            });
        let filter =
            cuckoo_clock::CuckooFilter::new(config.build().map_err(wrong)?, filter::FixedState);
        Ok(Self(filter))
    }

    type View<'a> = &'a Self;

    fn view(&self) -> Self::View<'_> {
        self
    }

    /// A key that it drops instead, to make room, counts as refused.
    #[inline]
    fn insert(clock: &mut Self::View<'_>, key: u64) -> bool {
        let renewed = LookupValues {
            ttl: Some(PERIODS),
            counter_diff: None,
        };
        let new = InsertValues::default();
        let dropped = clock
            .0
            .insert_if_not_present_with_update(&key, new, renewed);
        dropped.is_none()
    }

    #[inline]
    fn contains(clock: &mut Self::View<'_>, key: u64) -> bool {
        clock.0.contains(&key)
    }

    fn begin(&self, tick: usize) -> Result<bool> {
        let begins = tick > 0 && tick.is_multiple_of(PERIOD);
        if begins {
            self.0.scan_and_update_ttl();
        }
        Ok(begins)
    }

    fn memory_bytes(&self) -> usize {
        self.0.get_memory_usage()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::measured;

    /// Every contender remembers a key for a window, and the expiring one forgets it half a window
    /// later; two filters that take turns need a whole one.
    #[test]
    fn keys_are_remembered_for_a_window_and_then_forgotten() {
        let window = Window {
            keys: 12_000,
            threads: vec![1, 3],
        };
        let samples = measured(&STUDY, &window);
        let of = |subject: &str, case: &str, place: f64, quantity: Quantity| {
            let is = |sample: &&Sample| {
                (&*sample.subject, &*sample.case, sample.place) == (subject, case, place)
                    && sample.quantity == quantity.name
            };
            samples.iter().find(is).unwrap().value
        };
        for part in (STUDY.parts)(&window) {
            let share =
                |subject: &str, age| of(subject, &format!("{OF_ONE_AGE}, {part}"), age, FOUND);
            for age in (0..TICKS).map(|tick| tick as f64 / TICKS as f64) {
                assert_eq!(share("expiring", age), 1.0);
                assert_eq!(share("rotating", age), 1.0);
            }
            assert!(share("expiring", 1.5) < 0.01);
            assert!(share("rotating", 1.5) > 0.3);
            assert!(share("rotating", 2.0) < 0.01);
            assert!(share("cuckoo-clock", 2.0) < 0.01);
        }
        for case in TIMED {
            for threads in [1.0, 3.0] {
                assert!(of("expiring", case, threads, THROUGHPUT) > 0.0);
            }
        }
    }
}
