//! What matters when choosing a filter: memory, false positives, speed of lookups. Each measurement has a
//! process of its own, so that nothing that an earlier one left behind is counted.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, value_parser};
use histories::Event;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use relatives::theory::Trial;
use serde::{Deserialize, Serialize};
use subject::calls::Operation;
use subject::{Operations, SLOTS_PER_BUCKET};

use crate::machine::{self, Cores};
use crate::results::{INTERVAL, Record, Results, Summary, bounded, columns, distinct};
use crate::run::order;
use crate::show::chart::{Axis, Line, Look, Panel, Scale};
use crate::show::{Run, rounded};
use crate::studies::shown::Unit::{BitsAKey, Number, Rate, Throughput};
use crate::studies::subprocess::measure;
use crate::studies::{At, Progress, Quantity, Shown, Study, check_loads, joined, seeds, within};
use crate::subjects::{Laid, Registry};
use crate::wording::{counted, grouped, large, unnumbered};
use crate::workload::{Cycle, Lookups, MIN_LOAD, Measured, Phase, Present, Watch};

/// How long lookups are timed.
const TIMED: Duration = Duration::from_millis(300);
/// Keys that are looked up, in a cycle: two for each in the table, but enough that the processor
/// cannot learn them, and no more than this.
const FEWEST_LOOKUPS: usize = 100_000;
const MOST_LOOKUPS: usize = 1 << 24;

columns! {
    /// One measurement: one subject at one load factor.
    Row:
    /// Name of the structure that was measured.
    subject: String,
    /// Load factor at which all keys would be in: the table was made for keys / load factor slots.
    load_factor: f64,
    /// Keys that were inserted, all distinct.
    keys: u64,
    /// Keys among them that were refused.
    refused: u64,
    /// Threads that inserted them.
    threads: usize,
    /// What the structure says it takes, in bytes.
    declared_bytes: u64,
    /// What the process took in addition once the keys were in, in bytes of resident memory.
    resident_bytes: u64,
    /// Absent keys that were looked up.
    absent: u64,
    /// Absent keys that were found.
    wrong: u64,
    /// Load factor at which the structure first refused a key: keys that were in, over slots. Once
    /// everything else was measured, more keys were inserted until it did. Empty if it took as many
    /// keys as slots.
    first_refusal: Option<f64>,
    /// Round, from 1, each with other keys; the subjects of one round ran one after another.
    round: usize,
    /// Million lookups per second of one thread, half of them of keys that are in, in random order.
    /// Empty if a key was refused.
    lookup_mops: Option<f64>,
    /// Whether that thread was pinned to a core.
    pinned: bool,
}

/// Upper bounds: of the list of keys, and of an exact set.
const BYTES_PER_KEY: f64 = 24.0;
const BYTES_PER_SLOT: f64 = 30.0;

/// Measure what matters when choosing a filter: bits a key, error rate and speed of lookups.
///
/// Measures every subject with several numbers of keys, at the highest of some load factors at which
/// it refuses no key, each time in a process of its own: the memory it declares, the memory the
/// process took, the false positive rate, lookups a second, and the load factor at which it first
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
    /// Number of rounds; with fewer than 6, no interval can be given.
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = within(1..1 << 32))]
    pub rounds: usize,
    /// Seed of the keys.
    #[arg(long, default_value_t = 1, value_parser = seeds())]
    pub seed: u64,
}

impl Row {
    /// Returns the bits per key that the structure declares, and those that the process took.
    fn bits_a_key(&self) -> [f64; 2] {
        let inside = (self.keys - self.refused).max(1) as f64;
        [self.declared_bytes, self.resident_bytes].map(|bytes| 8.0 * bytes as f64 / inside)
    }

    fn rate(&self) -> f64 {
        self.wrong as f64 / self.absent.max(1) as f64
    }
}

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

impl Memory {
    /// Measures the first subject with the first number of keys at the first load in this process,
    /// which should do nothing else.
    pub(crate) fn measure_here(&self, registry: &Registry) -> Result<Row> {
        let registry = &with_layouts(registry);
        let (keys, absent, load) = (self.keys[0], self.absent, self.loads[0]);
        // The system keeps stacks for later threads, which are not part of the structure: start
        // threads once before measuring.
        self.count(keys, |_| false);
        let before = resident()?;
        let buckets = (keys as f64 / load / SLOTS_PER_BUCKET as f64).ceil() as usize;
        let subject = (registry.get(&self.subjects[0])?.build)(buckets)?;
        let trial = Trial::new(absent, self.seed);
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
        let resident_bytes = resident()?.saturating_sub(before);
        let (mut lookup_mops, mut pinned) = (None, true);
        if refused == 0 {
            let lost = self.count(keys, |index| !found(index));
            ensure!(lost == 0, "{lost} of {keys} keys are missing");
            let timed = || self.look_up(&*subject, trial);
            let timed = thread::scope(|scope| scope.spawn(timed).join());
            let mops;
            (mops, pinned) = timed.ok().context("the thread that looks up panicked")?;
            lookup_mops = Some(mops);
        }
        let wrong = self.count(absent, |index| found(keys + index));
        let declared_bytes = subject.memory_bytes() as u64;
        let has_refused = || full.load(Relaxed) != u64::MAX;
        let slots = subject.slots(buckets) as u64;
        self.count(slots.saturating_sub(keys), |index| {
            !has_refused() && is_refused(keys + index)
        });
        Ok(Row {
            subject: self.subjects[0].clone(),
            load_factor: load,
            keys,
            refused,
            threads: self.threads,
            declared_bytes,
            resident_bytes,
            absent,
            wrong,
            first_refusal: has_refused().then(|| full.load(Relaxed) as f64 / slots as f64),
            round: 1,
            lookup_mops,
            pinned,
        })
    }

    /// Times lookups on this thread. Returns million lookups a second, and whether it could be pinned.
    fn look_up(&self, subject: &dyn Measured, trial: Trial) -> (f64, bool) {
        let (pinned, keys) = (Cores::detect().pin(0), self.keys[0] as usize);
        let count = (2 * keys).clamp(FEWEST_LOOKUPS, MOST_LOOKUPS);
        let mut random = SmallRng::seed_from_u64(self.seed);
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
        (timed(TIMED), pinned)
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

fn resident() -> Result<u64> {
    let memory = memory_stats::memory_stats();
    let memory = memory.context("the system does not report on this process")?;
    Ok(memory.physical_mem as u64)
}

impl Study for Memory {
    type Row = Row;

    const NAME: &'static str = "memory";

    fn about(&self, registry: &Registry) -> Result<(Run, Vec<(String, String)>)> {
        let registry = &with_layouts(registry);
        // Layouts of a filter are described once.
        let described = |name: &String| {
            let family = unnumbered(name, |_| false).to_owned();
            Ok((family, registry.get(name)?.description.to_owned()))
        };
        let about = [
            "Filters to choose from: bits a key, error rate and speed of lookups",
            "Which filter takes how much memory, how often is it wrong, and how fast does it answer?",
        ];
        let cores = Cores::detect().describe();
        let pinning = format!("the one thread whose lookups are timed; {cores}");
        let subjects = self.subjects.iter().map(described).collect::<Result<_>>()?;
        Ok((Run::seeded(about, self.seed, pinning), subjects))
    }

    fn check(&self, registry: &Registry) -> Result<bool> {
        let registry = &with_layouts(registry);
        for subject in &self.subjects {
            let entry = registry.get(subject).context("--subjects")?;
            ensure!(
                entry.holds_keys,
                "--subjects: {subject} holds no keys, and so takes no memory for them; leave it out"
            );
            if let Some(missing) = entry.operations.missing(Operations::INSERT) {
                bail!("--subjects: {subject} cannot {missing}");
            }
        }
        check_loads(&self.loads, 1.0)?;
        let keys = self.keys.iter().copied().max().unwrap_or_default() as f64;
        // Loads are tried from the highest on.
        let slots = keys / self.loads.iter().copied().fold(MIN_LOAD, f64::max);
        machine::check_memory(
            "--keys and --loads",
            keys * BYTES_PER_KEY + slots * BYTES_PER_SLOT,
        )?;
        Ok(true)
    }

    fn steps(&self) -> u64 {
        (self.rounds * self.keys.len() * self.subjects.len()) as u64
    }

    fn measure(&self, progress: &mut Progress, rows: &mut Vec<Row>) -> Result<()> {
        let mut loads = self.loads.clone();
        loads.sort_unstable_by(|a, b| b.total_cmp(a));
        let rounds = (self.seed, self.rounds);
        order::in_rounds(rounds, &self.keys, &self.subjects, |round, &keys, name| {
            progress(&format!("round {round}, {keys} keys, {name}"))?;
            for &load in &loads {
                let refuses = |row: &Row| {
                    let is_it = (&row.subject, row.keys, row.load_factor) == (name, keys, load);
                    row.refused > 0 && is_it
                };
                if rows.iter().any(refuses) {
                    continue;
                }
                let one = Self {
                    subjects: vec![name.clone()],
                    loads: vec![load],
                    keys: vec![keys],
                    seed: self.seed ^ (round as u64) << 32,
                    ..self.clone()
                };
                let row: Result<Row> = measure(Memory::NAME, &one);
                let row = row.with_context(|| format!("{name} at load factor {load}"))?;
                rows.push(Row { round, ..row });
                if !rows.last().is_some_and(refuses) {
                    break;
                }
            }
            Ok(())
        })
    }
}

impl Record for Row {
    fn check(&self) -> Result<()> {
        bounded("load_factor", self.load_factor, 1e-9..=1.0)?;
        let fits = self.refused <= self.keys && self.wrong <= self.absent;
        ensure!(fits, "more keys were refused or found than there are");
        let refusal = self.first_refusal.unwrap_or_default();
        bounded("first_refusal", refusal, 0.0..=1.0)
    }
}

type Of = Quantity<Row>;

impl Shown for Row {
    const QUANTITIES: &'static [Of] = &[
        Of::column("bits a key, declared", BitsAKey, |row| {
            Some(row.bits_a_key()[0])
        }),
        Of::column("bits a key, resident", BitsAKey, |row| {
            Some(row.bits_a_key()[1])
        }),
        Of::column("false positive rate", Rate, |row| Some(row.rate())),
        Of::column("lookups", Throughput, |row| row.lookup_mops),
        Of::column("refused", Number, |row| Some(row.refused as f64)),
        Of::column("first refusal", Number, |row| row.first_refusal),
    ];

    fn at(&self) -> At<'_> {
        At {
            subject: &self.subject,
            round: self.round,
            case: large(self.keys, "key").into(),
            place: self.load_factor,
            pinned: self.pinned,
        }
    }

    fn axis(_: &str) -> Axis {
        Axis::measured("load factor", Scale::Linear, rounded)
    }

    fn placed(_: &str, places: &[f64]) -> String {
        joined(places, |load| format!("load factor {load}"))
    }

    fn how(rows: &[Self]) -> String {
        let first = &rows[0];
        let rounds = distinct(rows.iter().map(|row| row.round)).len();
        format!(
            "Keys were inserted by {}, into a table made for keys / load factor slots: of the load factors that were tried, the highest \
             at which a subject refused none is in the figure. Bits a key: declared is what a subject says it takes, and in the figure; resident what the \
             process took in addition, of which stacks and whole pages are much where keys are few. Where buckets are a power of two, other numbers of keys may take up to twice as much. False positives: of {} absent \
             keys in each of {}, and in the figure of all rounds together, with 95 % confidence; what is never wrong is not there. Lookups: of one \
             pinned thread, half of them of keys that are in, in random order; median over the rounds [{INTERVAL}]. lock-free stands there in its default layout of 4x12, \
             and beside its other layouts, slots x bits of a fingerprint. First refusal: load factor at which a key was \
             first refused, as keys came on; a dash where none was up to load factor 1.",
            counted(first.threads, "thread"),
            grouped(first.absent),
            counted(rounds, "round"),
        )
    }

    /// Draws error rates and speed against bits a key, of each number of keys.
    fn complete(rows: &[Self], panels: &mut Vec<Panel>) {
        let results = Results::along((), rows);
        let is_exact = |of: &Choice| {
            let mut all = rows.iter().filter(|row| row.subject == of.subject);
            all.all(|row| row.wrong == 0)
        };
        let lines = |case: &String, of: fn(&Choice) -> Option<Summary>| -> Vec<Line> {
            let mut choices = choices(&results, case);
            choices.retain(|choice| !is_exact(choice) && of(choice).is_some());
            let families = distinct(choices.iter().map(|choice| choice.family().0));
            let line = |family| {
                let alike = choices.iter().filter(|choice| choice.family().0 == family);
                let point = |choice: &Choice| Some((choice.bits_a_key()[0], of(choice)?));
                let points = alike.clone().filter_map(point);
                Line {
                    look: Look::Named(alike.map(|of| of.family().1.to_owned()).collect()),
                    ..Line::new(family, points.collect())
                }
            };
            families.into_iter().map(line).collect()
        };
        let cases = results.cases();
        let rates = cases.iter().map(|case| {
            let rates = lines(case, |of| (of.wrong() > 0).then(|| of.rate()));
            super::rates(case, case, rates)
        });
        let speeds = cases.iter().map(|case| {
            let speed = Axis::new("million lookups/s", Scale::FromZero, rounded);
            let lines = lines(case, |of| of.speed());
            Panel::new(case, case, [super::bits(), speed], lines)
        });
        panels.extend(rates.chain(speeds).filter(|panel| !panel.lines.is_empty()));
        // Panels below one another have the same axis.
        let lines = panels.iter().flat_map(|panel| &panel.lines);
        let points = lines.flat_map(|line| &line.points);
        let bits: Vec<_> = points.map(|of| of.0).collect();
        for panel in panels {
            panel.x.includes.clone_from(&bits);
        }
    }
}

/// A subject at the last load, which is the highest at which it refused no key, with its rows.
struct Choice<'a> {
    subject: &'a str,
    rows: Vec<&'a Row>,
}

fn choices<'a>(results: &Results<'a, Row>, case: &String) -> Vec<Choice<'a>> {
    let choice = |subject| {
        let mut rows: Vec<_> = results.rows(case, subject).collect();
        rows.retain(|row| row.refused == 0);
        let load = rows.last()?.load_factor;
        rows.retain(|row| row.load_factor == load);
        Some(Choice { subject, rows })
    };
    results.subjects().into_iter().filter_map(choice).collect()
}

impl Choice<'_> {
    /// Returns the filter of which the subject is a layout, and the name of that layout; of others
    /// their name, twice.
    fn family(&self) -> (&str, &str) {
        let family = unnumbered(self.subject, |_| false);
        let layout = self.subject[family.len()..].strip_prefix('-');
        (family, layout.unwrap_or(family))
    }

    fn bits_a_key(&self) -> [f64; 2] {
        self.rows[0].bits_a_key()
    }

    fn wrong(&self) -> u64 {
        self.rows.iter().map(|row| row.wrong).sum()
    }

    /// Returns the error rate of all rounds together, with its confidence.
    fn rate(&self) -> Summary {
        super::share(self.wrong(), self.rows.iter().map(|row| row.absent).sum())
    }

    fn speed(&self) -> Option<Summary> {
        Summary::of(self.rows.iter().filter_map(|row| row.lookup_mops).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(subject: &str, load: f64) -> Row {
        let memory = Memory {
            subjects: vec![subject.into()],
            loads: vec![load],
            keys: vec![100_000],
            threads: 3,
            absent: 100_000,
            rounds: 1,
            seed: 1,
        };
        memory.measure_here(&Registry::standard()).unwrap()
    }

    #[test]
    fn the_filter_takes_what_theory_says() {
        let row = measured("lock-free", 0.9);
        assert_eq!((row.keys, row.refused, row.threads), (100_000, 0, 3));
        // 64 bits for four slots, 0.9 of them occupied.
        let [bits, _] = row.bits_a_key();
        assert!((17.7..18.5).contains(&bits), "{row:?}");
        // 2 buckets of 4 slots, 0.9 occupied, 12 bits.
        let theory = 8.0 * 0.9 / 4096.0;
        assert!((0.7..1.3).contains(&(row.rate() / theory)), "{row:?}");
    }

    /// Whether among the keys that were to be in or after them.
    #[test]
    fn the_first_refusal_is_found_at_any_load() {
        for (subject, load, expected) in [
            ("lock-free", 0.5, true),
            ("segment-lock", 1.0, true),
            ("blocked-bloom", 0.5, false),
        ] {
            let row = measured(subject, load);
            assert_eq!(row.refused > 0, load == 1.0, "{row:?}");
            assert_eq!(row.first_refusal.is_some(), expected, "{row:?}");
            // Buckets of four slots get 98 % full in the limit.
            let range = 0.9..0.99;
            let is_near = row.first_refusal.is_none_or(|load| range.contains(&load));
            assert!(is_near, "{row:?}");
        }
    }

    /// In its second round, the first refuses a key at the load that it took before; the other one does
    /// at every load.
    #[test]
    fn a_filter_is_shown_at_the_highest_load_that_it_takes() {
        let row = |subject: &str, round, load_factor, refused| Row {
            subject: subject.into(),
            load_factor,
            refused,
            round,
            ..Row::default()
        };
        let rows = [
            row("lock-free", 1, 0.95, 0),
            row("lock-free", 2, 0.95, 1),
            row("lock-free", 2, 0.9, 0),
            row("cuckoofilter-mutex", 1, 0.95, 1),
        ];
        let results = Results::along((), &rows);
        let choices = choices(&results, &results.cases()[0]);
        let shown = choices.iter().map(|of| (of.subject, &of.rows[..]));
        assert!(shown.eq([("lock-free", &[&rows[2]][..])]));
    }
}
