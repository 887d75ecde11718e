//! The studies `memory` and `layouts` (the figures of these names): what a key takes in memory, how often a structure is wrong
//! for that, how fast it answers, and how full it gets.

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

use super::{check_loads, theory, within};
use crate::ending::Ending;
use crate::machine::{self, Cores};
use crate::operations::{Cycle, Lookups, Measured, Phase, Present, Watch};
use crate::row::Sample;
use crate::sheet::Sheet;
use crate::study::{Extras, Options, Quantity, Study, Subjects, Task, all_places, dedup};
use crate::subjects::{Laid, Registry, original};
use crate::wording::{counted, grouped, large, unnumbered};
use crate::workload::MIN_LOAD;

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
/// What the process took in addition once the keys were in.
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
/// Measures every subject with several numbers of keys, at the highest of some load factors at which
/// it refuses no key, each time in a process of its own: the memory it declares, the memory the
/// process took, the false positive rate, lookups per second, and the load factor at which it first
/// refuses a key. Prints one table, and writes memory.csv, memory.machine.toml and memory.svg. Takes
/// about 3 minutes on two cores, and needs them to itself.
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
    /// Load factors, above 0 and at most 1: the highest is tried first, and each of the others if
    /// one before it was too high.
    #[arg(
        long,
        value_name = "F,F,…",
        value_delimiter = ',',
        default_value = "0.95,0.92,0.83,0.5"
    )]
    pub loads: Vec<f64>,
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
    /// Threads that insert them.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = within(1..=1_024))]
    pub threads: usize,
    /// Number of absent keys to look up in each round.
    #[arg(long, value_name = "N", default_value_t = 2_000_000, value_parser = value_parser!(u64).range(1..1 << 40))]
    pub absent: u64,
}

pub static MEMORY: Study<Memory> = Study {
    name: "memory",
    title: "Filters to choose from: bits per key, error rate and speed of lookups",
    question: "Which filter takes how much memory, how often is it wrong, and how fast does it answer?",
    check: |memory| {
        check_loads(&memory.loads, 1.0)?;
        let keys = memory.keys.iter().copied().max().unwrap_or_default() as f64;
        // Loads are tried from the highest on.
        let slots = keys / memory.loads.iter().copied().fold(MIN_LOAD, f64::max);
        let bytes = keys * BYTES_PER_KEY + slots * BYTES_PER_SLOT;
        machine::check_memory("--keys and --loads", bytes)
    },
    subjects: Memory::described,
    alone: true,
    parts: |memory| memory.cases().iter().map(|of| part(*of)).collect(),
    measure: Memory::measure,
    quantities: &[DECLARED, RESIDENT, FALSE, LOOKUPS, REFUSED, FIRST_REFUSAL],
    axis: |_| ("load factor", Scale::Linear),
    tabled: all_places,
    how: |memory| {
        format!(
            "Keys were inserted by {}, into a table made for keys / load factor slots; in the figure is the highest load factor at \
             which a subject refused none. Bits per key: declared, or in addition resident. False positives: of {} absent keys \
             in each round, in the figure of all rounds together with 95 % confidence. Lookups: of one pinned thread, half present.",
            counted(memory.threads, "thread"),
            grouped(memory.absent),
        )
    },
    extras: Extras {
        is_needed,
        complete: draw_choices,
        ..Extras::NONE
    },
};

/// Upper bounds: of the list of keys, and of an exact set.
const BYTES_PER_KEY: f64 = 24.0;
const BYTES_PER_SLOT: f64 = 30.0;

/// How long lookups are timed.
const TIMED: Duration = Duration::from_millis(300);
/// Keys that are looked up, in a cycle: two for each in the table, but enough that the processor
/// cannot learn them, and no more than this.
const FEWEST_LOOKUPS: usize = 100_000;
const MOST_LOOKUPS: usize = 1 << 24;

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
fn part((keys, load): (u64, f64)) -> String {
    at_load(&large(keys, "key"), load)
}

fn at_load(case: &str, load: f64) -> String {
    format!("{case} at load factor {load}")
}

/// A lower load factor is tried if the subject refused a key at all higher ones, and none that it refused a key at before.
fn is_needed(task: &Task, samples: &[Sample]) -> bool {
    let of_subject = |of: &&Sample| of.quantity == REFUSED.name && of.subject == task.subjects[0];
    let mut same = samples
        .iter()
        .filter(of_subject)
        .filter(|of| task.part.starts_with(&of.case));
    same.all(|of| {
        let is_it = task.part == at_load(&of.case, of.place);
        !(is_it && of.value > 0.0) && (of.round < task.round || of.value > 0.0)
    })
}

impl Memory {
    fn described(&self, registry: &Registry) -> Result<Subjects> {
        let registry = &with_layouts(registry);
        let mut names = self.subjects.clone();
        dedup(&mut names);
        let described = |name: String| {
            let entry = registry.get(&name).context("--subjects")?;
            ensure!(
                entry.holds_keys,
                "--subjects: {name} holds no keys, and so takes no memory for them; leave it out"
            );
            if let Some(missing) = entry.operations.missing(Operations::INSERT) {
                bail!("--subjects: {name} cannot {missing}");
            }
            Ok((name, entry.description.to_owned()))
        };
        names.into_iter().map(described).collect()
    }

    /// Returns the numbers of keys and the load factors, the highest first.
    fn cases(&self) -> Vec<(u64, f64)> {
        let (mut keys, mut loads) = (self.keys.clone(), self.loads.clone());
        dedup(&mut keys);
        loads.sort_unstable_by(|a, b| b.total_cmp(a));
        loads.dedup();
        let of_keys = |keys| loads.iter().map(move |load| (keys, *load));
        keys.into_iter().flat_map(of_keys).collect()
    }

    /// Measures in this process, which should do nothing else.
    fn measure(&self, task: &Task, registry: &Registry) -> Result<Vec<Sample>> {
        let case = self.cases().into_iter().find(|of| part(*of) == task.part);
        let (keys, load) = case.with_context(|| format!("nothing is called {:?}", task.part))?;
        let (registry, name) = (&with_layouts(registry), &task.subjects[0]);
        // The system keeps stacks for later threads, which are not part of the structure: start
        // threads once before measuring.
        self.count(keys, |_| false);
        let before = resident()?;
        let buckets = (keys as f64 / load / SLOTS_PER_BUCKET as f64).ceil() as usize;
        let subject = (registry.get(original(name))?.build)(buckets)?;
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
        let refused = self.count(keys, is_refused);
        let resident = resident()?.saturating_sub(before);
        let (mut samples, case) = (Vec::new(), large(keys, "key"));
        let mut add = |of, value| samples.push(task.sample(name, (&case, load), of, value));
        let bits = |bytes: usize| 8.0 * bytes as f64 / (keys - refused).max(1) as f64;
        add(&DECLARED, bits(subject.memory_bytes()));
        add(&RESIDENT, bits(resident));
        add(&REFUSED, refused as f64);
        if refused == 0 {
            let lost = self.count(keys, |index| !found(index));
            ensure!(lost == 0, "{lost} of {keys} keys are missing");
            let timed = || look_up(&*subject, trial, keys as usize);
            let timed = thread::scope(|scope| scope.spawn(timed).join());
            add(
                &LOOKUPS,
                timed.ok().context("the thread that looks up panicked")?,
            );
        }
        let wrong = self.count(self.absent, |index| found(keys + index));
        add(&FALSE, wrong as f64 / self.absent as f64);
        add(&ABSENT, self.absent as f64);
        // Once everything else was measured, more keys are inserted until one is refused.
        let has_refused = || full.load(Relaxed) != u64::MAX;
        let slots = subject.slots(buckets) as u64;
        self.count(slots.saturating_sub(keys), |index| {
            !has_refused() && is_refused(keys + index)
        });
        if has_refused() {
            add(&FIRST_REFUSAL, full.load(Relaxed) as f64 / slots as f64);
        }
        Ok(samples)
    }

    /// Counts the numbers below `end` for which `counted` is true, on all threads.
    fn count(&self, end: u64, counted: impl Fn(u64) -> bool + Sync) -> u64 {
        let counted = &counted;
        thread::scope(|scope| {
            let parts = (0..self.threads as u64).map(|part| {
                let numbers = (part..end).step_by(self.threads);
                scope.spawn(move || numbers.filter(|&number| counted(number)).count() as u64)
            });
            let parts: Vec<_> = parts.collect();
            let count = |part: thread::ScopedJoinHandle<u64>| part.join().unwrap_or(end);
            parts.into_iter().map(count).sum()
        })
    }
}

/// Times lookups on this thread, which is pinned. Returns million lookups per second.
fn look_up(subject: &dyn Measured, trial: Trial, keys: usize) -> f64 {
    Cores::detect().pin(0);
    let count = (2 * keys).clamp(FEWEST_LOOKUPS, MOST_LOOKUPS);
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

fn resident() -> Result<usize> {
    let memory = memory_stats::memory_stats();
    Ok(memory
        .context("the system does not report on this process")?
        .physical_mem)
}

/// A subject in a case, with the samples at one load factor.
struct Choice<'a>(Vec<&'a Sample>);

impl<'a> Choice<'a> {
    /// Returns the samples at the load factor that was tried last: the highest at which none was refused.
    fn new(samples: &'a [Sample], case: &str, subject: &str) -> Option<Self> {
        let own = samples
            .iter()
            .filter(|of| (&*of.case, &*of.subject) == (case, subject));
        let mut own: Vec<_> = own.collect();
        let taken = own
            .iter()
            .rev()
            .find(|of| of.quantity == REFUSED.name && of.value == 0.0);
        let load = taken?.place;
        own.retain(|of| of.place == load);
        Some(Self(own))
    }

    fn values(&self, of: &Quantity) -> Vec<f64> {
        let own = self.0.iter().filter(|sample| sample.quantity == of.name);
        own.map(|sample| sample.value).collect()
    }

    /// Returns a point of a figure against the bits per key.
    fn point(&self, value: Option<Summary>) -> Option<(f64, Summary)> {
        Some((*self.values(&DECLARED).first()?, value?))
    }

    /// Returns the false positive rate of all rounds together, with its confidence; `None` if nothing was wrong.
    fn rate(&self) -> Option<Summary> {
        let (rates, absent) = (self.values(&FALSE), self.values(&ABSENT));
        let wrong: f64 = rates
            .iter()
            .zip(&absent)
            .map(|(rate, absent)| rate * absent)
            .sum();
        (wrong > 0.5).then(|| share(wrong.round(), absent.iter().sum()))
    }
}

/// Draws error rates and speed against bits per key, of each number of keys; what is never wrong is not there.
fn draw_choices(samples: &[Sample], sheet: &mut Sheet) {
    let of_all = |name: fn(&Sample) -> &str| {
        let mut names: Vec<_> = samples.iter().map(name).collect();
        dedup(&mut names);
        names
    };
    let (cases, subjects) = (of_all(|of| &of.case), of_all(|of| &of.subject));
    let is_wrong = |subject: &&str| {
        let mut choices = cases
            .iter()
            .filter_map(|case| Choice::new(samples, case, subject));
        choices.any(|choice| choice.rate().is_some())
    };
    let series = |case: &str, of: fn(&Choice) -> Option<Summary>| {
        let mut all: Vec<Series> = Vec::new();
        for subject in subjects.iter().filter(|subject| is_wrong(subject)) {
            let choice = Choice::new(samples, case, subject);
            let point = choice.and_then(|choice| choice.point(of(&choice)));
            // Layouts of a filter are a series.
            let family = unnumbered(subject, |_| false);
            let layout = subject[family.len()..].strip_prefix('-').unwrap_or(family);
            let Some(point) = point else { continue };
            match all.iter_mut().find(|of| of.name == family) {
                Some(of) => {
                    of.points.push(point);
                    of.labels.push(layout.into());
                }
                None => all.push(named(family, layout, point)),
            }
        }
        all
    };
    let speed = |choice: &Choice| Summary::new(choice.values(&LOOKUPS));
    let rates = cases
        .iter()
        .map(|case| rates(case, series(case, |of| of.rate())));
    let speeds = cases.iter().map(|case| Panel {
        title: (*case).into(),
        names: [DECLARED.name.into(), LOOKUPS.name.into()],
        series: series(case, speed),
        ..Panel::default()
    });
    if let Some(figure) = &mut sheet.figure {
        figure.panels = rates
            .chain(speeds)
            .filter(|of| !of.series.is_empty())
            .collect();
        figure.columns = 2;
    }
}

fn named(name: &str, label: &str, point: (f64, Summary)) -> Series {
    Series {
        name: name.into(),
        form: Form::Dots,
        points: vec![point],
        labels: vec![label.into()],
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
    let bound = |name: &str, bits_a_halving: f64| Series {
        name: name.into(),
        form: Form::Guide,
        points: (0..=60)
            .map(|halvings| {
                let rate = 0.5_f64.powi(halvings);
                (f64::from(halvings) * bits_a_halving, Summary::exact(rate))
            })
            .collect(),
        ..Series::default()
    };
    if !series.is_empty() {
        series.push(bound("least possible for any filter: log₂(1/ε)", 1.0));
        let bloom = std::f64::consts::LOG2_E;
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
        let meaning = |of: &str| of.replace('×', " slots per bucket, bits per fingerprint: ");
        Ok(ALL_LAYOUTS
            .map(|(name, _)| (name.into(), meaning(name)))
            .into())
    },
    alone: true,
    parts: |_| vec!["layouts".into()],
    measure: |layouts, task, _| {
        let name = original(&task.subjects[0]);
        let layout = ALL_LAYOUTS.iter().find(|(of, _)| *of == name);
        layout
            .with_context(|| format!("no layout is called {name}"))?
            .1(layouts, task)
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

type OfLayout = fn(&Layouts, &Task) -> Result<Vec<Sample>>;

/// The layouts that are measured: the named ones, and some more.
const ALL_LAYOUTS: [(&str, OfLayout); 11] = [
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
        let values = [
            (TIMESTAMP, timestamp),
            (FIRST_REFUSAL, full.load_factor()),
            (FALSE, rate),
            (ABSENT, self.absent as f64),
            (FALSE_THEORY, theory),
            (DECLARED, bits),
            (BITS_THEORY, Layout::<SLOTS, BITS>::BITS_PER_KEY),
        ];
        let at = (&task.part, planned_load);
        let sample = |(of, value)| task.sample(&task.subjects[0], at, &of, value);
        Ok(values.map(sample).into())
    }
}

/// Draws error rates against bits per key. Where no key was wrong, an open mark is at the rate of theory.
fn draw_layouts(samples: &[Sample], sheet: &mut Sheet) {
    let mut all: [Vec<Series>; 2] = Default::default();
    let mut subjects: Vec<_> = samples.iter().map(|of| &*of.subject).collect();
    dedup(&mut subjects);
    for subject in subjects {
        let choice = Choice(samples.iter().filter(|of| of.subject == subject).collect());
        let theory = choice.values(&FALSE_THEORY).first().copied();
        let (name, which, rate) = match choice.rate() {
            Some(rate) => ("lock-free", 0, Some(rate)),
            None => (
                "none was wrong: rate of theory",
                1,
                theory.map(Summary::exact),
            ),
        };
        let Some(point) = choice.point(rate) else {
            continue;
        };
        match &mut all[which][..] {
            [of] => {
                of.points.push(point);
                of.labels.push(subject.into());
            }
            _ => all[which].push(named(name, subject, point)),
        }
    }
    if let Some(figure) = &mut sheet.figure {
        figure.panels.push(rates("", all.concat()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::measured;

    #[test]
    fn interval_of_share_is_wilsons() {
        for (hits, expected) in [(10.0, [552.0, 1000.0, 1744.0]), (0.0, [0.0, 0.0, 370.0])] {
            let of = share(hits, 100.0);
            let found = [of.low, of.median, of.high].map(|of| (of * 1e4).round());
            assert_eq!(found, expected);
        }
    }

    fn memory(subject: &str, load: f64) -> impl Fn(&Quantity) -> Option<f64> {
        let memory = Memory {
            subjects: vec![subject.into()],
            loads: vec![load],
            keys: vec![100_000],
            threads: 3,
            absent: 100_000,
        };
        let samples = measured(&MEMORY, &memory);
        move |of| {
            Some(
                samples
                    .iter()
                    .find(|sample| sample.quantity == of.name)?
                    .value,
            )
        }
    }

    #[test]
    fn filter_takes_memory_and_errs_as_theory_predicts() {
        let of = memory("lock-free", 0.9);
        assert_eq!(of(&REFUSED), Some(0.0));
        // 64 bits for four slots, 0.9 of them occupied.
        assert!((17.7..18.5).contains(&of(&DECLARED).unwrap()));
        // 2 buckets of 4 slots, 0.9 occupied, 12 bits.
        let theory = 8.0 * 0.9 / 4096.0;
        assert!((0.7..1.3).contains(&(of(&FALSE).unwrap() / theory)));
    }

    /// Whether among the keys that were to be in or after them.
    #[test]
    fn first_refusal_is_found_at_any_load() {
        for (subject, load, expected) in [
            ("lock-free", 0.5, true),
            ("segment-lock", 1.0, true),
            ("blocked-bloom", 0.5, false),
        ] {
            let of = memory(subject, load);
            assert_eq!(of(&REFUSED) > Some(0.0), load == 1.0, "{subject}");
            let refusal = of(&FIRST_REFUSAL);
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
            let task = Task {
                study: MEMORY.name.into(),
                part: part((10, load)),
                subjects: vec!["lock-free".into()],
                round,
                seed: 1,
            };
            is_needed(&task, &samples[..count])
        };
        assert!(needed(0, 1, 0.95) && !needed(1, 1, 0.9), "one is enough");
        assert!(needed(1, 2, 0.95) && needed(2, 2, 0.9) && !needed(3, 2, 0.8));
        assert!(!needed(3, 3, 0.95) && needed(3, 3, 0.9));
        let load = |subject| Some(Choice::new(&samples, "10 keys", subject)?.0[0].place);
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
            let of = |quantity: Quantity| {
                let mut own = samples.iter().filter(|of| of.subject == name);
                own.find(|of| of.quantity == quantity.name).unwrap()
            };
            assert!(of(FIRST_REFUSAL).value > of(FIRST_REFUSAL).place);
            let (rate, theory) = (of(FALSE).value, of(FALSE_THEORY).value);
            // Where hundreds of answers were wrong, the rate agrees with theory; at 2×24 hardly one
            // is wrong.
            let most = if rate < 2e-3 { 2.0 } else { 1.1 };
            let least = if rate < 2e-3 { 0.0 } else { 0.8 };
            assert!((least..most).contains(&(rate / theory)), "{name}: {rate}");
            // In such a small table the counters add noticeably.
            let spent = of(DECLARED).value / of(BITS_THEORY).value;
            assert!((0.99..1.8).contains(&spent), "{name}: {spent}");
        }
    }
}
