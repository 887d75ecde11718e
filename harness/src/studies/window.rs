//! The `window` study: filters that forget (the figure of that name). A window is cut into twelve ticks. In each tick, threads
//! insert new keys, renew the keys of each period, and look keys up; after two windows and a half, they also look up
//! keys of every age up to then. The last two windows count. Subjects take turns with each tick.

use std::cell::RefCell;
use std::hint::black_box;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, anyhow, bail};
use arc_swap::{ArcSwap, Cache};
use clap::Args;
use cuckoo_clock::config::{BitCount, ConfigError, CuckooConfiguration, TtlConfig};
use cuckoo_clock::{InsertValues, LookupValues};
use figures::plot::Scale;
use filter::{CuckooFilter, ExpiringCuckooFilter, Filter};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use super::{described, within};
use crate::crew::ThreadGroup;
use crate::experiment::MAX_THREADS;
use crate::machine::Cores;
use crate::operations::Tally;
use crate::row::Sample;
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

pub static STUDY: Study<Window> = Study {
    name: "window",
    title: "Filters that forget",
    question: "What does it cost to remember a key for a window of time, and for how long is it remembered?",
    check: unchecked,
    subjects: |_, _| described(&SUBJECTS),
    alone: false,
    parts: |window| {
        let threads = window.threads.iter();
        threads.map(|threads| counted(*threads, "thread")).collect()
    },
    measure: |window, task, _| window.measure(task),
    quantities: &[THROUGHPUT, FOUND, BITS],
    axis: |case| {
        if case.starts_with(OF_ONE_AGE) {
            ("age of the key in windows", Scale::Zero)
        } else {
            ("threads", Scale::Log)
        }
    },
    // The ages at which some filter must forget a key.
    tabled: |case, mut places| {
        places.retain(|place| !case.starts_with(OF_ONE_AGE) || [1.0, 1.5, 2.0].contains(place));
        places
    },
    how: |window| {
        format!(
            "Each window has {} keys, a quarter of them twice; each filter must remember a key for a window. Inserts include \
             the beginning of periods. Ages are in windows.",
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

/// Lets a filter take the turn of one tick.
type Turns<'a> = Box<dyn FnMut(usize) -> Result<()> + 'a>;

impl Window {
    fn measure(&self, task: &Task) -> Result<Vec<Sample>> {
        let plan = &Plan {
            keys: self.keys,
            seed: task.seed,
            threads: task.part.split(' ').next().unwrap_or_default().parse()?,
            cores: Cores::detect(),
        };
        let samples = RefCell::new(Vec::new());
        let mut turns: Vec<Turns> = Vec::new();
        for name in &task.subjects {
            turns.push(match original(name) {
                "expiring" => turns_of::<Expiring>(plan, task, name, &samples)?,
                "rotating" => turns_of::<Rotating>(plan, task, name, &samples)?,
                "cuckoo-clock" => turns_of::<CuckooClock>(plan, task, name, &samples)?,
                other => bail!("no filter that forgets is called {other}"),
            });
        }
        for tick in 0..LAST {
            turns.iter_mut().try_for_each(|take_turn| take_turn(tick))?;
        }
        drop(turns);
        Ok(samples.into_inner())
    }
}

/// Returns the turns of a filter, the last of which adds its samples.
fn turns_of<'a, F: Remembers + 'a>(
    plan: &'a Plan,
    task: &'a Task,
    name: &'a str,
    samples: &'a RefCell<Vec<Sample>>,
) -> Result<Turns<'a>> {
    let (filter, mut counts) = (F::for_window(plan.keys)?, Counts::default());
    Ok(Box::new(move |tick| {
        if tick == FIRST {
            counts = Counts::default();
        }
        let done = plan.tick(&filter, tick, &mut counts);
        done.with_context(|| name.to_owned())?;
        if tick + 1 == LAST {
            samples
                .borrow_mut()
                .extend(counts.samples(plan, task, name));
        }
        Ok(())
    }))
}

/// What is done to each filter.
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

    /// Keys that are renewed in a tick, each of them in every half window.
    fn renewed(&self) -> usize {
        self.keys / RENEWED / (TICKS / 2)
    }

    fn key(&self, tick: usize, number: usize) -> u64 {
        let number = tick * self.new_keys() + number;
        self.seed.wrapping_add(number as u64)
    }

    fn old_key(&self, tick: usize, number: usize) -> u64 {
        let number = tick % (TICKS / 2) * self.renewed() + number;
        self.seed.wrapping_sub(1 + number as u64)
    }

    fn absent(&self, random: &mut SmallRng) -> u64 {
        self.seed.wrapping_add(1 << 40) ^ (random.random::<u64>() >> 24 << 8)
    }

    /// Divides `number` operations, which are numbered, among the threads, and adds them to `sum`. `operation` returns
    /// whether its key was found, or not refused. `first` is run once before, on one of the threads.
    fn all<F: Remembers>(
        &self,
        filter: &F,
        (number, sum): (usize, &mut Sum),
        first: impl FnOnce() + Send,
        operation: impl Fn(&mut F::View<'_>, usize, &mut SmallRng) -> bool + Sync,
    ) -> Result<()> {
        let first = Mutex::new(Some(first));
        let prepare = |thread, own| {
            let (first, operation) = (&first, &operation);
            let mut random = SmallRng::seed_from_u64(self.seed ^ thread as u64);
            move || {
                if thread == 0
                    && let Some(first) = first.lock().expect("no thread panics").take()
                {
                    first();
                }
                let (mut tally, mut view) = (Tally::default(), filter.view());
                for number in own {
                    tally.operations += 1;
                    let answer = black_box(operation(&mut view, number as usize, &mut random));
                    tally.missing += u64::from(!answer);
                }
                (tally, Vec::new())
            }
        };
        let done = ThreadGroup::share(&self.cores, self.threads, 0..number as u64, prepare)?;
        sum.operations += done.tally.operations;
        sum.failures += done.tally.missing;
        sum.seconds += done.seconds();
        Ok(())
    }

    fn tick<F: Remembers>(&self, filter: &F, tick: usize, counts: &mut Counts) -> Result<()> {
        let [new, renewed] = [self.new_keys(), self.renewed()];
        let [inserts, renewals, lookups] = &mut counts.timed;
        let mut begun = Ok(());
        let begin = || begun = filter.begin(tick);
        self.all(filter, (new, inserts), begin, |view, number, _| {
            F::insert(view, self.key(tick, number))
        })?;
        begun?;
        self.all(
            filter,
            (renewed, renewals),
            || (),
            |view, number, _| F::insert(view, self.old_key(tick, number)),
        )?;
        counts.memory_bytes = counts.memory_bytes.max(filter.memory_bytes());
        let oldest = tick.saturating_sub(TICKS - 1);
        let look_up = |view: &mut F::View<'_>, number, random: &mut SmallRng| {
            let key = if number % 2 == 0 {
                let tick = random.random_range(oldest..=tick);
                self.key(tick, random.random_range(0..new))
            } else {
                self.absent(random)
            };
            F::contains(view, key)
        };
        self.all(filter, (LOOKUPS * new, lookups), || (), look_up)?;
        if tick < FIRST {
            return Ok(());
        }
        for (age, remembered) in counts.remembered.iter_mut().enumerate() {
            let then = tick - age;
            self.all(
                filter,
                (new, remembered),
                || (),
                |view, number, _| F::contains(view, self.key(then, number)),
            )?;
            // Later, they have been renewed again.
            if age < TICKS / 2 {
                self.all(
                    filter,
                    (renewed, remembered),
                    || (),
                    |view, number, _| F::contains(view, self.old_key(then, number)),
                )?;
            }
        }
        Ok(())
    }
}

/// Operations of one kind of all threads together.
#[derive(Clone, Copy, Default)]
struct Sum {
    operations: u64,
    /// Operations whose key was not found, or was refused.
    failures: u64,
    seconds: f64,
}

/// What was done to a filter so far.
#[derive(Default)]
struct Counts {
    timed: [Sum; 3],
    remembered: [Sum; OLDEST + 1],
    memory_bytes: usize,
}

impl Counts {
    fn samples(&self, plan: &Plan, task: &Task, name: &str) -> Vec<Sample> {
        let threads = plan.threads as f64;
        let timed = TIMED.into_iter().zip(&self.timed).map(|(case, sum)| {
            let throughput = sum.operations as f64 / sum.seconds / 1e6;
            task.sample(name, (case, threads), &THROUGHPUT, throughput)
        });
        let bits = 8.0 * self.memory_bytes as f64 / plan.keys as f64;
        let bits = task.sample(name, (TIMED[0], threads), &BITS, bits);
        let case = format!("{OF_ONE_AGE}, {}", task.part);
        let remembered = self.remembered.iter().zip(0..).map(|(sum, age)| {
            let place = (&case, f64::from(age) / TICKS as f64);
            let lost = sum.failures as f64 / sum.operations as f64;
            task.sample(name, place, &FOUND, 1.0 - lost)
        });
        timed.chain([bits]).chain(remembered).collect()
    }
}

/// A filter that remembers keys for at least a window.
trait Remembers: Sized + Send + Sync {
    /// Creates a filter for this many keys in a window.
    fn for_window(keys: usize) -> Result<Self>;

    /// The filter as one thread uses it for a while.
    type View<'a>
    where
        Self: 'a;

    fn view(&self) -> Self::View<'_>;

    /// Inserts or renews a key; false if it is refused.
    fn insert(view: &mut Self::View<'_>, key: u64) -> bool;

    fn contains(view: &mut Self::View<'_>, key: u64) -> bool;

    /// Begins a tick, and with some of them a period.
    fn begin(&self, tick: usize) -> Result<()>;

    fn memory_bytes(&self) -> usize;
}

/// Ticks of a period: half a window.
const PERIOD: usize = TICKS / 2;
/// Periods after which a key is forgotten.
const PERIODS: u32 = 3;

/// Returns the keys of [`PERIODS`].
const fn remembered(keys_of_window: usize) -> usize {
    keys_of_window / 2 * PERIODS as usize
}

struct Expiring(ExpiringCuckooFilter);

impl Remembers for Expiring {
    fn for_window(keys: usize) -> Result<Self> {
        let builder = ExpiringCuckooFilter::builder().capacity(remembered(keys));
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

    fn begin(&self, tick: usize) -> Result<()> {
        self.0.advance_to((tick / PERIOD) as u64)?;
        Ok(())
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}

/// The filter for inserts, and that of the window before.
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
        // While one replaces the other, inserts still use the other for up to a tick.
        let keys = keys + keys / TICKS;
        let filters = [Self::new_filter(keys)?, Self::new_filter(1)?];
        let filters = ArcSwap::from_pointee(filters);
        Ok(Self { filters, keys })
    }

    /// Counts no references while the filters are the current ones.
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

    fn begin(&self, tick: usize) -> Result<()> {
        if tick > 0 && tick.is_multiple_of(TICKS) {
            let older = Arc::clone(&self.filters.load()[0]);
            let both = [Self::new_filter(self.keys)?, older];
            self.filters.store(Arc::new(both));
        }
        Ok(())
    }

    fn memory_bytes(&self) -> usize {
        let filters = self.filters.load();
        filters.iter().map(|filter| filter.memory_bytes()).sum()
    }
}

/// The published crate. Each bucket has a mutex and an allocation: a lookup of an absent key uses two of both, and
/// compares each slot bit by bit. That is why it is so much slower.
struct CuckooClock(cuckoo_clock::CuckooFilter<filter::FixedState>);

impl Remembers for CuckooClock {
    fn for_window(keys: usize) -> Result<Self> {
        let error = |error: ConfigError| anyhow!("cuckoo-clock: {error}");
        let bits = |bits: usize| BitCount::try_from(bits).map_err(error);
        let config = CuckooConfiguration::builder(remembered(keys))
            .fingerprint_bits(bits(12)?)
            .bucket_size(4.try_into()?)
            .with_ttl(TtlConfig {
                ttl: PERIODS.try_into()?,
                ttl_bits: bits(2)?,
            });
        let config = config.build().map_err(error)?;
        let filter = cuckoo_clock::CuckooFilter::new(config, filter::FixedState);
        Ok(Self(filter))
    }

    type View<'a> = &'a Self;

    fn view(&self) -> Self::View<'_> {
        self
    }

    /// An insert that drops another key counts as refused.
    #[inline]
    fn insert(clock: &mut Self::View<'_>, key: u64) -> bool {
        let renewed = LookupValues {
            ttl: Some(PERIODS),
            counter_diff: None,
        };
        let (filter, new) = (&clock.0, InsertValues::default());
        let dropped = filter.insert_if_not_present_with_update(&key, new, renewed);
        dropped.is_none()
    }

    #[inline]
    fn contains(clock: &mut Self::View<'_>, key: u64) -> bool {
        clock.0.contains(&key)
    }

    fn begin(&self, tick: usize) -> Result<()> {
        if tick > 0 && tick.is_multiple_of(PERIOD) {
            self.0.scan_and_update_ttl();
        }
        Ok(())
    }

    fn memory_bytes(&self) -> usize {
        self.0.get_memory_usage()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::measured;

    /// The expiring filter forgets a key half a window later; two filters that alternate need a whole one.
    #[test]
    fn keys_are_remembered_for_window_then_forgotten() {
        let window = Window {
            keys: 12_000,
            threads: vec![1, 3],
        };
        let samples = measured(&STUDY, &window);
        // No quantity but bits shares its case with another one.
        let value = |subject: &str, case: &str, place: f64| {
            let is_it = |sample: &&Sample| {
                (&*sample.subject, &*sample.case, sample.place) == (subject, case, place)
            };
            samples.iter().find(is_it).unwrap().value
        };
        for part in (STUDY.parts)(&window) {
            let case = format!("{OF_ONE_AGE}, {part}");
            let share = |subject, age| value(subject, &case, age);
            for age in (0..TICKS).map(|tick| tick as f64 / TICKS as f64) {
                assert_eq!([share("expiring", age), share("rotating", age)], [1.0; 2]);
            }
            assert!(share("expiring", 1.5) < 0.01);
            assert!(share("rotating", 1.5) > 0.3);
            assert!(share("rotating", 2.0) < 0.01 && share("cuckoo-clock", 2.0) < 0.01);
        }
        for case in TIMED {
            for threads in [1.0, 3.0] {
                assert!(value("expiring", case, threads) > 0.0);
            }
        }
    }
}
