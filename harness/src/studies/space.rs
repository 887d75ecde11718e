//! The studies `memory` and `layouts` (the figures of these names): bits per key, error rate, speed of lookups, and the
//! load factor at the first refusal.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand, value_parser};
use figures::plot::{Form, Panel, Scale, Series};
use figures::stats::Summary;
use filter::CuckooFilter;
use filter::layout::Layout;
use histories::Event;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use relatives::theory::Trial;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};
use subject::calls::Operation;
use subject::{Operations, SLOTS_PER_BUCKET};

use super::{Value, samples, theory, values, within};
use crate::ending::Ending;
use crate::machine::{self, Cores};
use crate::operations::{Cycle, Lookups, Measured, Phase, Present, Watch};
use crate::row::Sample;
use crate::sheet::Sheet;
use crate::study::{Extras, Options, Quantity, Study, Subjects, Task, all_places, dedup};
use crate::subjects::{Laid, Registry, original};
use crate::wording::{counted, grouped, large, unnumbered};

/// The studies of space.
#[derive(Debug, Subcommand)]
pub enum Command {
    Memory(Options<Memory>),
    Layouts(Options<Layouts>),
    Theory(Options<theory::Theory>),
}

impl Command {
    /// Measures, and writes the results.
    pub fn run(&self, registry: &Registry) -> Result<Ending> {
        match self {
            Self::Memory(options) => MEMORY.run(options, registry),
            Self::Layouts(options) => LAYOUTS.run(options, registry),
            Self::Theory(options) => theory::STUDY.run(options, registry),
        }
    }
}

const DECLARED: Quantity = Quantity::new("bits per key, declared", None, None);
/// See [`resident`].
const RESIDENT: Quantity = Quantity::new("bits per key, resident", None, None);
const FALSE: Quantity = Quantity::new("false positive rate", None, None);
const ABSENT: Quantity = Quantity::new("absent keys", None, None);
/// Lookups of one thread, half of them of present keys, in random order.
const LOOKUPS: Quantity = Quantity::new("lookups, million/s", None, None);
const REFUSED: Quantity = Quantity::new("refused", None, None);
/// Load factor: keys that were in, over slots.
const FIRST_REFUSAL: Quantity = Quantity::new("first refusal", None, None);
const TIMESTAMP: Quantity = Quantity::new("timestamp bits", None, None);
const FALSE_THEORY: Quantity = Quantity::new("false positive rate, theory", None, None);
const BITS_THEORY: Quantity = Quantity::new("bits per key, theory", None, None);

/// Measure what matters when choosing a filter: bits per key, error rate and speed of lookups.
///
/// Measures every subject with several numbers of keys, inserted by eight threads, at the highest of four load factors
/// at which the subject refuses no key, each time in a process of its own: the memory that it declares, the memory that
/// the process needed, the false positive rate, lookups per second, and the load factor at the first refusal.
/// Prints one table, and writes memory.csv, memory.machine.toml and memory.svg. Takes about 3 minutes on two cores, and
/// needs them to itself.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Memory {
    /// Subjects to measure, by the names that `harness list` shows, or lock-free-SLOTSxBITS for our
    /// filter in another layout; each must support inserts and lookups.
    #[arg(
        long,
        value_name = "NAME,NAME,…",
        value_delimiter = ',',
        default_value = "lock-free,lock-free-8x7,lock-free-6x9,lock-free-5x11,lock-free-4x14,lock-free-3x16,\
                         lock-free-2x24,growing,vector-quotient,blocked-bloom,fastbloom,\
                         atomic-cuckoo-filter,cuckoofilter-mutex,exact-set"
    )]
    pub subjects: Vec<String>,
    /// Numbers of keys to insert. By default, tables of a power of two of buckets get nearly full; with
    /// few keys, threads and allocator weigh more.
    #[arg(
        long,
        value_name = "N,N,…",
        value_delimiter = ',',
        default_value = "60000,7680000",
        value_parser = value_parser!(u64).range(1_000..1 << 32)
    )]
    pub keys: Vec<u64>,
    /// Number of absent keys to look up in each round.
    #[arg(long, value_name = "N", default_value_t = 2_000_000, value_parser = value_parser!(u64).range(1..1 << 40))]
    pub absent: u64,
}

pub static MEMORY: Study<Memory> = Study {
    name: "memory",
    title: "Filters to choose from: bits per key, error rate and speed of lookups",
    question: "Which filter takes how much memory, how often is it wrong, and how fast does it answer?",
    check: |memory| {
        let keys = memory.keys.iter().copied().max().unwrap_or_default() as f64;
        machine::check_memory("--keys", keys * BYTES_PER_KEY)
    },
    subjects: Memory::describe,
    alone: true,
    parts: |memory| {
        memory
            .cases()
            .map(|(keys, load)| part(keys, load))
            .collect()
    },
    measure: Memory::measure,
    quantities: &[DECLARED, RESIDENT, FALSE, LOOKUPS, REFUSED, FIRST_REFUSAL],
    axis: |_| ("load factor", Scale::Linear),
    tabled: all_places,
    how: |memory| {
        format!(
            "Keys were inserted by {}, into a table made for keys / load factor slots; in the figure is the highest load factor at \
             which a subject refused none. Bits per key: declared, or in addition resident. False positives: of {} absent keys \
             in each round, in the figure of all rounds together with 95 % confidence. Lookups: of one pinned thread, half present.",
            counted(THREADS, "thread"),
            grouped(memory.absent),
        )
    },
    extras: Extras {
        is_needed,
        complete: draw_choices,
        ..Extras::NONE
    },
};

/// The highest is tried first, and each of the others if the one before it was too high.
const LOADS: [f64; 4] = [0.95, 0.92, 0.83, 0.5];
/// Threads that insert and look up, except where speed is measured.
const THREADS: usize = 8;
/// An upper bound: the list of keys, and an exact set.
const BYTES_PER_KEY: f64 = 84.0;
/// How long lookups are timed.
const TIMED: Duration = Duration::from_millis(300);
/// The processor could learn fewer lookups that repeat in a cycle.
const MIN_LOOKUPS: usize = 100_000;
const MAX_LOOKUPS: usize = 1 << 24;

/// Adds other layouts of our filter to those that are measured.
fn with_layouts(registry: &Registry) -> Registry {
    let mut registry = registry.clone();
    registry.add::<Laid<8, 7>>();
    registry.add::<Laid<6, 9>>();
    registry.add::<Laid<5, 11>>();
    registry.add::<Laid<4, 14>>();
    registry.add::<Laid<3, 16>>();
    registry.add::<Laid<2, 24>>();
    registry
}

/// Names a number of keys and a load factor.
fn part(keys: u64, load: f64) -> String {
    at_load(&large(keys, "key"), load)
}

fn at_load(case: &str, load: f64) -> String {
    format!("{case} at load factor {load}")
}

/// Returns whether a load factor is to be measured: the subject has refused a key at all higher ones in this round, and
/// never at this one.
fn is_needed(task: &Task, samples: &[Sample]) -> bool {
    let refusals = samples.iter().filter(|sample| {
        let is_case = task.part.starts_with(&sample.case);
        is_case && sample.quantity == REFUSED.name && sample.subject == task.subjects[0]
    });
    refusals.into_iter().all(|sample| {
        let has_refused = sample.value > 0.0;
        let is_same = task.part == at_load(&sample.case, sample.place);
        !(is_same && has_refused) && (sample.round < task.round || has_refused)
    })
}

impl Memory {
    fn describe(&self, registry: &Registry) -> Result<Subjects> {
        let registry = &with_layouts(registry);
        let mut names = self.subjects.clone();
        dedup(&mut names);
        let describe = |name: String| {
            let entry = registry.get(&name).context("--subjects")?;
            ensure!(
                entry.holds_keys,
                "--subjects: {name} holds no keys, so it has no bits per key"
            );
            if let Some(missing) = entry.operations.missing(Operations::INSERT) {
                bail!("--subjects: {name} cannot {missing}");
            }
            Ok((name, entry.description.to_owned()))
        };
        names.into_iter().map(describe).collect()
    }

    /// Returns the numbers of keys and the load factors, the highest first.
    fn cases(&self) -> impl Iterator<Item = (u64, f64)> {
        let mut keys = self.keys.clone();
        dedup(&mut keys);
        keys.into_iter()
            .flat_map(|keys| LOADS.map(|load| (keys, load)))
    }

    /// Measures in this process, which should do nothing else.
    fn measure(&self, task: &Task, registry: &Registry) -> Result<Vec<Sample>> {
        let mut cases = self.cases();
        let case = cases.find(|&(keys, load)| part(keys, load) == task.part);
        let (keys, load) = case.with_context(|| format!("unknown part {:?}", task.part))?;
        let values = self.measure_at(keys, load, task, registry)?;
        Ok(samples(task, (&large(keys, "key"), load), values))
    }

    fn measure_at(
        &self,
        keys: u64,
        load: f64,
        task: &Task,
        registry: &Registry,
    ) -> Result<Vec<Value>> {
        let registry = with_layouts(registry);
        // The system keeps the stacks of threads for later ones; they are not part of the structure.
        count(keys, |_| false);
        let before = resident()?;
        let buckets = (keys as f64 / load / SLOTS_PER_BUCKET as f64).ceil() as usize;
        let subject = (registry.get(original(&task.subjects[0]))?.build)(buckets)?;
        let trial = Trial::new(self.absent, task.seed);
        let (inside, full) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
        let is_refused = |index| {
            let answer = subject.call(Operation::Insert, trial.key(index));
            let refused = answer != Event::Insert(Ok(()));
            if refused {
                full.fetch_min(inside.load(Relaxed), Relaxed);
            } else {
                inside.fetch_add(1, Relaxed);
            }
            refused
        };
        let found = |index| {
            let answer = subject.call(Operation::Contains, trial.key(index));
            answer == Event::Contains(true)
        };
        let refused = count(keys, is_refused);
        let resident = resident()?.saturating_sub(before);
        let bits = |bytes: usize| 8.0 * bytes as f64 / (keys - refused).max(1) as f64;
        let mut values = vec![
            (DECLARED, bits(subject.memory_bytes())),
            (RESIDENT, bits(resident)),
            (REFUSED, refused as f64),
        ];
        if refused == 0 {
            let lost = count(keys, |index| !found(index));
            ensure!(lost == 0, "{lost} of {keys} keys are missing");
            let timed = || look_up(&*subject, trial, keys as usize);
            let speed = thread::scope(|scope| scope.spawn(timed).join()).ok();
            values.push((LOOKUPS, speed.context("a thread panicked")?));
        }
        let wrong = count(self.absent, |index| found(keys + index));
        values.push((FALSE, wrong as f64 / self.absent as f64));
        values.push((ABSENT, self.absent as f64));
        // Once everything else was measured, more keys are inserted until one is refused.
        let has_refused = || full.load(Relaxed) != u64::MAX;
        let slots = subject.slots(buckets) as u64;
        count(slots.saturating_sub(keys), |index| {
            !has_refused() && is_refused(keys + index)
        });
        if has_refused() {
            values.push((FIRST_REFUSAL, full.load(Relaxed) as f64 / slots as f64));
        }
        Ok(values)
    }
}

/// Counts the numbers below `end` for which `is_counted` is true, on all threads.
fn count(end: u64, is_counted: impl Fn(u64) -> bool + Sync) -> u64 {
    let is_counted = &is_counted;
    thread::scope(|scope| {
        let threads = (0..THREADS as u64).map(|first| {
            let numbers = (first..end).step_by(THREADS);
            scope.spawn(move || numbers.filter(|&number| is_counted(number)).count() as u64)
        });
        let threads: Vec<_> = threads.collect();
        let count = |thread: thread::ScopedJoinHandle<u64>| thread.join().unwrap_or(end);
        threads.into_iter().map(count).sum()
    })
}

/// Times lookups on this thread, which is pinned. Returns million lookups per second.
fn look_up(subject: &dyn Measured, trial: Trial, keys: usize) -> f64 {
    Cores::detect().pin(0);
    let count = (2 * keys).clamp(MIN_LOOKUPS, MAX_LOOKUPS);
    let mut random = SmallRng::seed_from_u64(trial.seed);
    let drawn = (0..count).map(|_| random.random_range(0..2 * keys));
    let drawn: Vec<_> = drawn.collect();
    let list = drawn.iter().map(|&index| trial.key(index as u64));
    let (list, stop) = (list.collect::<Vec<u64>>(), AtomicBool::new(false));
    let mut lookups = Phase::Lookup(Lookups {
        cycle: Cycle::new(0..count, 0),
        present: Present::Drawn(drawn.into(), keys),
    });
    let mut timed = |length| {
        let start = Instant::now();
        let watch = Watch {
            deadline: Some(start + length),
            ..Watch::new(&stop)
        };
        let done = subject.perform(&list, &mut lookups, &watch, None);
        done.operations as f64 / start.elapsed().as_secs_f64() / 1e6
    };
    timed(TIMED / 10);
    timed(TIMED)
}

/// Returns the memory of this process that belongs to no file, in bytes: heap, tables and stacks. Pages of code would count
/// when they first run, up to a megabyte, which depends on what the program ran before.
fn resident() -> Result<usize> {
    let Ok(text) = fs::read_to_string("/proc/self/smaps_rollup") else {
        let memory = memory_stats::memory_stats();
        let memory = memory.context("the system does not report on this process")?;
        return Ok(memory.physical_mem);
    };
    let anonymous = text
        .lines()
        .find_map(|line| line.strip_prefix("Anonymous:"));
    let kib = anonymous.and_then(|text| text.trim().strip_suffix(" kB")?.parse::<usize>().ok());
    Ok(1024 * kib.context("/proc/self/smaps_rollup has no number of anonymous memory")?)
}

/// Returns the samples of a subject in a case at the load factor that was tried last: the highest at which the subject
/// refused no key.
fn choice<'a>(samples: &'a [Sample], case: &str, subject: &str) -> Option<Vec<&'a Sample>> {
    let is_own = |sample: &&Sample| (&*sample.case, &*sample.subject) == (case, subject);
    let own: Vec<_> = samples.iter().filter(is_own).collect();
    let fits = |sample: &&&Sample| sample.quantity == REFUSED.name && sample.value == 0.0;
    let load = own.iter().rev().find(fits)?.place;
    Some(
        own.into_iter()
            .filter(|sample| sample.place == load)
            .collect(),
    )
}

/// Returns the false positive rate of all rounds together; `None` if no answer was wrong.
fn rate(samples: &[&Sample]) -> Option<Summary> {
    let (rates, absent) = (values(samples, &FALSE), values(samples, &ABSENT));
    let wrong: f64 = rates
        .iter()
        .zip(&absent)
        .map(|(rate, absent)| rate * absent)
        .sum();
    (wrong > 0.5).then(|| share(wrong.round(), absent.iter().sum()))
}

/// Adds a point at the declared bits per key to the series of this name.
fn add_point(
    all: &mut Vec<Series>,
    (name, label): (&str, &str),
    samples: &[&Sample],
    value: Option<Summary>,
) {
    let (Some(bits), Some(value)) = (values(samples, &DECLARED).first().copied(), value) else {
        return;
    };
    let place = all.iter().position(|series| series.name == name);
    let place = place.unwrap_or_else(|| {
        all.push(Series {
            name: name.into(),
            form: Form::Dots,
            ..Series::default()
        });
        all.len() - 1
    });
    all[place].points.push((bits, value));
    all[place].labels.push(label.into());
}

/// Draws error rates and speed against bits per key, for each number of keys. Subjects that were never wrong are not
/// drawn.
fn draw_choices(samples: &[Sample], sheet: &mut Sheet) {
    let names = |name: fn(&Sample) -> &str| {
        let mut names: Vec<_> = samples.iter().map(name).collect();
        dedup(&mut names);
        names
    };
    let (cases, mut subjects) = (
        names(|sample| &sample.case),
        names(|sample| &sample.subject),
    );
    let is_wrong = |case: &&str, subject: &str| {
        choice(samples, case, subject).is_some_and(|choice| rate(&choice).is_some())
    };
    subjects.retain(|subject| cases.iter().any(|case| is_wrong(case, subject)));
    let series = |case: &str, value: fn(&[&Sample]) -> Option<Summary>| {
        let mut all = Vec::new();
        for subject in &subjects {
            // Layouts of a filter are a series.
            let family = unnumbered(subject, |_| false);
            let layout = subject[family.len()..].strip_prefix('-').unwrap_or(family);
            if let Some(choice) = choice(samples, case, subject) {
                add_point(&mut all, (family, layout), &choice, value(&choice));
            }
        }
        all
    };
    let speed = |samples: &[&Sample]| Summary::new(values(samples, &LOOKUPS));
    let rates = cases.iter().map(|case| rates(case, series(case, rate)));
    let speeds = cases.iter().map(|case| Panel {
        title: (*case).into(),
        names: [DECLARED.name.into(), LOOKUPS.name.into()],
        series: series(case, speed),
        ..Panel::default()
    });
    if let Some(figure) = &mut sheet.figure {
        let panels = rates.chain(speeds).filter(|panel| !panel.series.is_empty());
        figure.panels = panels.collect();
        figure.columns = 2;
    }
}

/// Returns what share `hits` are of `trials`, with its 95 % confidence interval (Wilson 1927).
fn share(hits: f64, trials: f64) -> Summary {
    let z = Normal::standard().inverse_cdf(0.975);
    let rate = hits / trials;
    let whole = 1.0 + z * z / trials;
    let middle = (rate + z * z / (2.0 * trials)) / whole;
    let half = z / whole * (rate * (1.0 - rate) / trials + (z / (2.0 * trials)).powi(2)).sqrt();
    Summary {
        low: (middle - half).max(0.0),
        high: (middle + half).min(1.0),
        ..Summary::exact(rate)
    }
}

/// Draws false positive rates against bits per key, with the least memory possible for a rate, and
/// that of a Bloom filter.
fn rates(title: &str, mut series: Vec<Series>) -> Panel {
    let bound = |name: &str, bits_per_halving: f64| {
        let point = |halvings| {
            let rate = Summary::exact(0.5_f64.powi(halvings));
            (f64::from(halvings) * bits_per_halving, rate)
        };
        Series {
            name: name.into(),
            form: Form::Guide,
            points: (0..=60).map(point).collect(),
            ..Series::default()
        }
    };
    if !series.is_empty() {
        let bloom = std::f64::consts::LOG2_E;
        series.push(bound("least possible for any filter: log₂(1/ε)", 1.0));
        series.push(bound("Bloom filter: 1.44 log₂(1/ε)", bloom));
    }
    Panel {
        title: title.into(),
        names: ["bits per key".into(), "false positive rate ε".into()],
        scales: [Scale::Zero, Scale::Log],
        series,
        ..Panel::default()
    }
}

/// Measure the filter's layouts against theory: false positives, how full a table gets, and bits
/// per key.
///
/// In each round, fills a table of each layout until an insert is refused, and another one to the planned load factor.
/// Prints one table, and writes layouts.csv, layouts.machine.toml and layouts.svg. Takes a minute.
#[derive(Clone, Copy, Debug, Args, Serialize, Deserialize)]
pub struct Layouts {
    /// Buckets of each table.
    #[arg(long, default_value_t = 1 << 18, value_parser = within(1_000..1 << 32))]
    pub buckets: usize,
    /// Number of absent keys to look up in a table of each layout.
    #[arg(long, default_value_t = 20_000_000, value_parser = value_parser!(u64).range(1..1 << 50))]
    pub absent: u64,
}

pub static LAYOUTS: Study<Layouts> = Study {
    name: "layouts",
    title: "False positives and memory of the layouts",
    question: "What does a lower false positive rate cost in memory?",
    check: |layouts| machine::check_memory("--buckets", layouts.buckets as f64 * BYTES_PER_BUCKET),
    subjects: |_, _| {
        let meaning = |name: &str| name.replace('×', " slots per bucket, bits per fingerprint: ");
        Ok(ALL_LAYOUTS
            .map(|(name, _)| (name.into(), meaning(name)))
            .into())
    },
    alone: true,
    parts: |_| vec!["layouts".into()],
    measure: |layouts, task, _| {
        let name = original(&task.subjects[0]);
        let layout = ALL_LAYOUTS.iter().find(|(known, _)| *known == name);
        let (_, measure) = layout.with_context(|| format!("no layout is called {name}"))?;
        measure(layouts, task)
    },
    quantities: &[
        TIMESTAMP,
        FIRST_REFUSAL,
        FALSE,
        FALSE_THEORY,
        DECLARED,
        BITS_THEORY,
    ],
    axis: |_| ("planned load factor", Scale::Linear),
    tabled: all_places,
    how: |layouts| {
        format!(
            "Slots × bits of a fingerprint, in tables of {} buckets. False positives: of {} absent keys in each round, at the load \
             factor planned for the layout; theory: 2 × slots / 2^bits × load. Bits per key: of the whole filter at that load; \
             theory: 64 / slots / load. In the figure of all rounds together, with 95 % confidence.",
            grouped(layouts.buckets as u64),
            grouped(layouts.absent),
        )
    },
    extras: Extras {
        complete: draw_layouts,
        ..Extras::NONE
    },
};

/// The buckets of two tables, and their part of the counters.
const BYTES_PER_BUCKET: f64 = 18.0;

type Measure = fn(&Layouts, &Task) -> Result<Vec<Sample>>;

/// The layouts that are measured: the named ones, and some more.
const ALL_LAYOUTS: [(&str, Measure); 11] = [
    ("8×7", Layouts::measure::<8, 7>),
    ("7×8", Layouts::measure::<7, 8>),
    ("6×8", Layouts::measure::<6, 8>),
    ("6×9", Layouts::measure::<6, 9>),
    ("4×8", Layouts::measure::<4, 8>),
    ("5×10", Layouts::measure::<5, 10>),
    ("5×11", Layouts::measure::<5, 11>),
    ("4×12", Layouts::measure::<4, 12>),
    ("4×13", Layouts::measure::<4, 13>),
    ("3×16", Layouts::measure::<3, 16>),
    ("2×24", Layouts::measure::<2, 24>),
];

impl Layouts {
    /// Fills a table until it refuses a key; and one to the planned load, for lookups of absent keys.
    fn measure<const SLOTS: usize, const BITS: usize>(&self, task: &Task) -> Result<Vec<Sample>> {
        let empty = || {
            let builder = CuckooFilter::builder().layout::<SLOTS, BITS>();
            anyhow::Ok(builder.buckets(self.buckets).build()?)
        };
        let mut random = SmallRng::seed_from_u64(task.seed);
        let full = empty()?;
        while full.insert(&random.random::<u64>()).is_ok() {}
        let filter = empty()?;
        let planned_load = Layout::<SLOTS, BITS>::WORKABLE_LOAD;
        let keys = (planned_load * filter.slots() as f64) as u64;
        let trial = Trial::new(self.absent, task.seed);
        for index in 0..keys {
            filter.insert(&trial.key(index))?;
        }
        let absent = keys..keys + self.absent;
        let wrong = absent.filter(|&index| filter.contains(&trial.key(index)));
        let rate = wrong.count() as f64 / self.absent as f64;
        let theory = Layout::<SLOTS, BITS>::FALSE_POSITIVE_RATE * filter.load_factor();
        let timestamp = Layout::<SLOTS, BITS>::TIMESTAMP_BITS as f64;
        let bits = filter.memory_bytes() as f64 * 8.0 / keys as f64;
        let values = vec![
            (TIMESTAMP, timestamp),
            (FIRST_REFUSAL, full.load_factor()),
            (FALSE, rate),
            (ABSENT, self.absent as f64),
            (FALSE_THEORY, theory),
            (DECLARED, bits),
            (BITS_THEORY, Layout::<SLOTS, BITS>::BITS_PER_KEY),
        ];
        Ok(samples(task, (&task.part, planned_load), values))
    }
}

/// Draws error rates against bits per key. If no answer was wrong, a mark is at the rate of theory.
fn draw_layouts(samples: &[Sample], sheet: &mut Sheet) {
    let mut subjects: Vec<_> = samples.iter().map(|sample| &*sample.subject).collect();
    dedup(&mut subjects);
    let (mut measured, mut predicted) = (Vec::new(), Vec::new());
    for subject in subjects {
        let own = samples.iter().filter(|sample| sample.subject == subject);
        let own: Vec<_> = own.collect();
        let rate = rate(&own);
        if rate.is_some() {
            add_point(&mut measured, ("lock-free", subject), &own, rate);
        } else {
            let theory = values(&own, &FALSE_THEORY)
                .first()
                .copied()
                .map(Summary::exact);
            let name = "none was wrong: rate of theory";
            add_point(&mut predicted, (name, subject), &own, theory);
        }
    }
    if let Some(figure) = &mut sheet.figure {
        figure
            .panels
            .push(rates("", [measured, predicted].concat()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::measured;

    #[test]
    fn interval_of_share_is_wilsons() {
        for (hits, expected) in [(10.0, [552.0, 1000.0, 1744.0]), (0.0, [0.0, 0.0, 370.0])] {
            let share = share(hits, 100.0);
            let found = [share.low, share.median, share.high].map(|end| (end * 1e4).round());
            assert_eq!(found, expected);
        }
    }

    fn task(subject: &str, part: String, round: usize) -> Task {
        Task {
            study: MEMORY.name.into(),
            subjects: vec![subject.into()],
            part,
            round,
            seed: 1,
        }
    }

    /// Measures 100,000 keys.
    fn memory(subject: &str, load: f64) -> impl Fn(&Quantity) -> Option<f64> {
        let memory = Memory {
            subjects: Vec::new(),
            keys: Vec::new(),
            absent: 100_000,
        };
        let task = task(subject, String::new(), 1);
        let measured = memory.measure_at(100_000, load, &task, &Registry::standard());
        let samples = samples(&task, ("", load), measured.unwrap());
        move |quantity| values(&samples.iter().collect::<Vec<_>>(), quantity).pop()
    }

    #[test]
    fn filter_needs_memory_and_errs_as_predicted() {
        let value = memory("lock-free", 0.9);
        assert_eq!(value(&REFUSED), Some(0.0));
        // 64 bits for four slots, 0.9 of them occupied.
        assert!((17.7..18.5).contains(&value(&DECLARED).unwrap()));
        // 2 buckets of 4 slots, 0.9 occupied, 12 bits.
        let theory = 8.0 * 0.9 / 4096.0;
        assert!((0.7..1.3).contains(&(value(&FALSE).unwrap() / theory)));
    }

    /// Among the planned keys or after them.
    #[test]
    fn first_refusal_is_found_at_any_load() {
        for (subject, load, expected) in [
            ("lock-free", 0.5, true),
            ("segment-lock", 1.0, true),
            ("blocked-bloom", 0.5, false),
        ] {
            let value = memory(subject, load);
            assert_eq!(value(&REFUSED) > Some(0.0), load == 1.0, "{subject}");
            let refusal = value(&FIRST_REFUSAL);
            assert_eq!(refusal.is_some(), expected, "{subject}");
            // Buckets of four slots get 98 % full in the limit.
            assert!(refusal.is_none_or(|load| (0.9..0.99).contains(&load)));
        }
    }

    /// In its second round, the first refuses a key at the load that it took before; the other one does
    /// at every load.
    #[test]
    fn lower_load_is_tried_after_refusal_alone() {
        let sample = |subject: &str, round, place, value| Sample {
            subject: subject.into(),
            case: "10 keys".into(),
            quantity: REFUSED.name.into(),
            place,
            value,
            round,
            ..Sample::default()
        };
        let samples = [
            sample("lock-free", 1, 0.95, 0.0),
            sample("lock-free", 2, 0.95, 1.0),
            sample("lock-free", 2, 0.9, 0.0),
            sample("cuckoofilter-mutex", 1, 0.95, 1.0),
        ];
        let needed = |count: usize, round, load| {
            let task = task("lock-free", part(10, load), round);
            is_needed(&task, &samples[..count])
        };
        assert!(needed(0, 1, 0.95) && !needed(1, 1, 0.9), "one is enough");
        assert!(needed(1, 2, 0.95) && needed(2, 2, 0.9) && !needed(3, 2, 0.8));
        assert!(!needed(3, 3, 0.95) && needed(3, 3, 0.9));
        let load = |subject| Some(choice(&samples, "10 keys", subject)?[0].place);
        assert_eq!(load("lock-free"), Some(0.9));
        assert_eq!(load("cuckoofilter-mutex"), None);
    }

    #[test]
    fn layouts_agree_with_theory() {
        let layouts = Layouts {
            buckets: 2_000,
            absent: 200_000,
        };
        let samples = measured(&LAYOUTS, &layouts);
        for (name, _) in ALL_LAYOUTS {
            let own: Vec<_> = samples
                .iter()
                .filter(|sample| sample.subject == name)
                .collect();
            let value = |quantity| values(&own, &quantity)[0];
            assert!(value(FIRST_REFUSAL) > own[0].place);
            let (rate, theory) = (value(FALSE), value(FALSE_THEORY));
            // Where hundreds of answers were wrong, the rate agrees with theory; at 2×24 hardly one
            // is wrong.
            let most = if rate < 2e-3 { 2.0 } else { 1.1 };
            let least = if rate < 2e-3 { 0.0 } else { 0.8 };
            assert!((least..most).contains(&(rate / theory)), "{name}: {rate}");
            // In such a small table the counters add noticeably.
            let spent = value(DECLARED) / value(BITS_THEORY);
            assert!((0.99..1.8).contains(&spent), "{name}: {spent}");
        }
    }
}
