//! The study `memory` (the figure of that name): bits per key, error rate, speed of lookups, and the load factor at the
//! first refusal.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, value_parser};
use figures::plot::{Form, Panel, Scale, Series};
use figures::stats::Summary;
use histories::Event;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};
use subject::calls::Operation;
use subject::{Operations, SLOTS_PER_BUCKET};

use super::{samples, values};
use crate::machine::{self, Cores};
use crate::operations::{Cycle, Lookups, Measured, Phase, Present, Watch};
use crate::row::Sample;
use crate::sheet::Sheet;
use crate::study::{Extras, Quantity, Study, Subjects, Task, all_places, dedup};
use crate::subjects::{Registry, SubjectInfo, WithLayout, original};
use crate::wording::{counted, grouped, large, unnumbered};

const DECLARED: Quantity = Quantity::new("bits per key", None, None);
const FALSE: Quantity = Quantity::new("false positive rate", None, None);
const ABSENT: Quantity = Quantity::new("absent keys", None, None);
/// Lookups of one thread, half of them of present keys, in random order.
const LOOKUPS: Quantity = Quantity::new("lookups, million/s", None, None);
/// Load factor: keys that were in, over slots.
const FIRST_REFUSAL: Quantity = Quantity::new("first refusal", None, None);

/// Measure what matters when choosing a filter: bits per key, error rate and speed of lookups.
///
/// For each subject and number of keys, eight threads of a new process fill a table until it refuses a key. A second
/// table, at the highest of the loads 0.95, 0.92, 0.83 and 0.5 below that, then shows the declared memory, the false
/// positive rate and lookups per second.
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
    /// few keys, memory outside the table counts for more.
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

pub static STUDY: Study<Memory> = Study {
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
        let mut parts: Vec<_> = memory.keys.iter().map(|&keys| large(keys, "key")).collect();
        dedup(&mut parts);
        parts
    },
    measure: Memory::measure,
    quantities: &[DECLARED, FALSE, LOOKUPS, FIRST_REFUSAL],
    axis: |_| ("load factor", Scale::Linear),
    tabled: all_places,
    how: |memory| {
        format!(
            "Keys were inserted by {}, up to the highest load of {LOADS:?} that is at least {MARGIN} below the first refusal. False \
             positives: of {} absent keys per round; bars: 95 %. Bits per key: as declared. Lookups: of one thread, half present.",
            counted(THREADS, "thread"),
            grouped(memory.absent),
        )
    },
    extras: Extras {
        complete: draw,
        ..Extras::NONE
    },
};

const LOADS: [f64; 4] = [0.95, 0.92, 0.83, 0.5];
/// Tables of one size differ less in the load factor of the first refusal.
const MARGIN: f64 = 0.01;
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
    registry.add::<WithLayout<8, 7>>();
    registry.add::<WithLayout<7, 8>>();
    registry.add::<WithLayout<6, 8>>();
    registry.add::<WithLayout<6, 9>>();
    registry.add::<WithLayout<5, 10>>();
    registry.add::<WithLayout<5, 11>>();
    registry.add::<WithLayout<4, 8>>();
    registry.add::<WithLayout<4, 13>>();
    registry.add::<WithLayout<4, 14>>();
    registry.add::<WithLayout<3, 16>>();
    registry.add::<WithLayout<2, 24>>();
    registry
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

    /// Measures in this process, which should do nothing else.
    fn measure(&self, task: &Task, registry: &Registry) -> Result<Vec<Sample>> {
        let mut all = self.keys.iter();
        let keys = all.find(|&&keys| large(keys, "key") == task.part);
        let keys = *keys.with_context(|| format!("unknown part {:?}", task.part))?;
        let registry = with_layouts(registry);
        let subject = registry.get(original(&task.subjects[0]))?;
        let trial = Trial::new(task.seed);
        let refusal = first_refusal(subject, buckets(keys, LOADS[0]), trial)?;
        let fits = |load: &f64| refusal.is_none_or(|refusal| load + MARGIN <= refusal);
        let load = LOADS.into_iter().find(fits);
        let load = load.with_context(|| {
            let refusal = refusal.unwrap_or_default();
            format!(
                "it refuses a key at load factor {refusal:.2}; at least {} is needed",
                LOADS[3] + MARGIN
            )
        })?;

        let table = (subject.build)(buckets(keys, load))?;
        let refused = count(keys, |index| !inserts(&*table, trial.key(index)));
        ensure!(refused == 0, "{refused} of {keys} keys were refused");
        let bits = 8.0 * table.memory_bytes() as f64 / keys as f64;
        let found = |index| {
            let answer = table.call(Operation::Contains, trial.key(index));
            answer == Event::Contains(true)
        };
        let lost = count(keys, |index| !found(index));
        ensure!(lost == 0, "{lost} of {keys} keys are missing");
        let timed = || look_up(&*table, trial, keys as usize);
        let speed = thread::scope(|scope| scope.spawn(timed).join()).ok();
        let wrong = count(self.absent, |index| found(keys + index));
        let mut values = vec![
            (DECLARED, bits),
            (FALSE, wrong as f64 / self.absent as f64),
            (ABSENT, self.absent as f64),
            (LOOKUPS, speed.context("a thread panicked")?),
        ];
        values.extend(refusal.map(|load| (FIRST_REFUSAL, load)));
        Ok(samples(task, (&task.part, load), values))
    }
}

/// The keys of a measurement: consecutive numbers from one of the seed.
#[derive(Clone, Copy)]
struct Trial {
    seed: u64,
    first: u64,
}

impl Trial {
    fn new(seed: u64) -> Self {
        let first = SmallRng::seed_from_u64(seed).random();
        Self { seed, first }
    }

    fn key(self, index: u64) -> u64 {
        self.first.wrapping_add(index)
    }
}

/// Returns the buckets of a table in which this many keys have this load factor.
fn buckets(keys: u64, load: f64) -> usize {
    (keys as f64 / load / SLOTS_PER_BUCKET as f64).ceil() as usize
}

fn inserts(table: &dyn Measured, key: u64) -> bool {
    table.call(Operation::Insert, key) == Event::Insert(Ok(()))
}

/// Fills a table until it refuses a key. Returns its load factor then; `None` if it takes as many keys as it has slots.
fn first_refusal(subject: &SubjectInfo, buckets: usize, trial: Trial) -> Result<Option<f64>> {
    let table = (subject.build)(buckets)?;
    let slots = table.slots(buckets) as u64;
    let (inside, full) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
    count(slots, |index| {
        if full.load(Relaxed) < u64::MAX {
            return false;
        }
        let inserted = inserts(&*table, trial.key(index));
        let before = inside.fetch_add(u64::from(inserted), Relaxed);
        if !inserted {
            full.fetch_min(before, Relaxed);
        }
        inserted
    });
    let full = full.into_inner();
    Ok((full < u64::MAX).then(|| full as f64 / slots as f64))
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

/// Draws error rates and speed against bits per key, for each number of keys.
fn draw(samples: &[Sample], sheet: &mut Sheet) {
    let mut cases: Vec<_> = samples.iter().map(|sample| &*sample.case).collect();
    dedup(&mut cases);
    let speed = |samples: &[&Sample]| Summary::new(values(samples, &LOOKUPS));
    let rates = cases.iter().map(|case| Panel {
        title: (*case).into(),
        names: [DECLARED.name.into(), "false positive rate ε".into()],
        scales: [Scale::Zero, Scale::Log],
        series: [series(samples, case, rate), bounds()].concat(),
        ..Panel::default()
    });
    let speeds = cases.iter().map(|case| Panel {
        title: (*case).into(),
        names: [DECLARED.name.into(), LOOKUPS.name.into()],
        series: series(samples, case, speed),
        ..Panel::default()
    });
    if let Some(figure) = &mut sheet.figure {
        figure.panels = rates.chain(speeds).collect();
        figure.columns = 2;
    }
}

/// Returns a value of each subject at its bits per key; those that were never wrong are not drawn. Layouts of a filter
/// are a series.
fn series(samples: &[Sample], case: &str, value: fn(&[&Sample]) -> Option<Summary>) -> Vec<Series> {
    let mut subjects: Vec<_> = samples.iter().map(|sample| &*sample.subject).collect();
    dedup(&mut subjects);
    let mut all: Vec<Series> = Vec::new();
    for subject in subjects {
        let is_own = |sample: &&Sample| (&*sample.case, &*sample.subject) == (case, subject);
        let own: Vec<_> = samples.iter().filter(is_own).collect();
        let bits = values(&own, &DECLARED).first().copied();
        let (Some(bits), Some(_), Some(value)) = (bits, rate(&own), value(&own)) else {
            continue;
        };
        let family = unnumbered(subject, |_| false);
        let layout = subject[family.len()..].strip_prefix('-').unwrap_or(family);
        let place = all.iter().position(|series| series.name == family);
        let place = place.unwrap_or_else(|| {
            all.push(Series {
                name: family.into(),
                form: Form::Dots,
                ..Series::default()
            });
            all.len() - 1
        });
        all[place].points.push((bits, value));
        all[place].labels.push(layout.into());
    }
    // The legend names the others.
    for series in &mut all {
        series.labels.retain(|_| series.points.len() > 1);
    }
    all
}

/// Returns the false positive rate of all rounds together; `None` if no answer was wrong.
fn rate(samples: &[&Sample]) -> Option<Summary> {
    let (rates, absent) = (values(samples, &FALSE), values(samples, &ABSENT));
    let wrong = rates
        .iter()
        .zip(&absent)
        .map(|(rate, absent)| rate * absent);
    let wrong = wrong.sum::<f64>().round();
    (wrong > 0.0).then(|| share(wrong, absent.iter().sum()))
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

/// Returns the least memory possible for a false positive rate, and that of a Bloom filter.
fn bounds() -> Vec<Series> {
    let bound = |(name, bits_per_halving): (&str, f64)| {
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
    let bounds = [
        ("least possible for any filter: log₂(1/ε)", 1.0),
        ("Bloom filter: 1.44 log₂(1/ε)", std::f64::consts::LOG2_E),
    ];
    bounds.map(bound).into()
}

#[cfg(test)]
mod tests {
    use filter::layout::Layout;

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

    #[test]
    fn layouts_fill_and_err_as_predicted() {
        let layouts = [
            ("lock-free", Layout::<4, 12>::FALSE_POSITIVE_RATE, 0.95, 4.0),
            (
                "lock-free-8x7",
                Layout::<8, 7>::FALSE_POSITIVE_RATE,
                0.95,
                8.0,
            ),
            (
                "lock-free-3x16",
                Layout::<3, 16>::FALSE_POSITIVE_RATE,
                0.92,
                3.0,
            ),
            (
                "lock-free-2x24",
                Layout::<2, 24>::FALSE_POSITIVE_RATE,
                0.83,
                2.0,
            ),
            ("blocked-bloom", 0.19e-2 / 0.95, 0.95, 4.0),
        ];
        let memory = Memory {
            subjects: layouts.map(|(name, ..)| name.into()).into(),
            keys: vec![50_000],
            absent: 200_000,
        };
        let samples = measured(&STUDY, &memory);
        for (name, full, load, slots) in layouts {
            let own = samples.iter().filter(|sample| sample.subject == name);
            let own: Vec<_> = own.collect();
            assert_eq!(own[0].place, load, "{name}");
            let refusal = values(&own, &FIRST_REFUSAL).pop();
            assert_eq!(refusal.is_none(), name == "blocked-bloom");
            // Of 2×24, hardly one answer is wrong; of 8×7 so many that the rate is not quite the sum over the slots.
            let wrong = 200_000.0 * values(&own, &FALSE)[0];
            let expected = 200_000.0 * full * load;
            let allowed = 5.0 * expected.sqrt() + 0.05 * expected + 1.0;
            assert!((wrong - expected).abs() <= allowed, "{name}: {wrong}");
            let bits = values(&own, &DECLARED)[0];
            let least = 64.0 / slots / load;
            assert!(
                (least * 0.99..least * 1.1).contains(&bits),
                "{name}: {bits}"
            );
        }
    }
}
