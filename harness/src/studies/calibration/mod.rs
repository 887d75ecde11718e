//! The `calibrate` command: measures this machine, and writes what `simulate` needs to know about it.

mod probes;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use simulator::{Alone, HandOver, Level, MOST_CORES, Model, Overlap, Waiting};
use sysinfo::System;

use crate::experiment::Experiment;
use crate::machine::{Cores, Machine, hand_over};
use crate::results::median;
use crate::run::{Ending, runner};
use crate::show::{files, note, say};
use crate::subjects::Registry;
use crate::wording::counted;
use crate::workload::KeySource;

/// Takes the times of one thread.
const ALONE: &str = include_str!("alone.toml");

/// Where Linux describes the caches of a core.
const CACHES: &str = "/sys/devices/system/cpu/cpu0/cache";

#[derive(Debug, Args)]
pub struct Options {
    /// The file to write. An existing file is not overwritten.
    #[arg(long, value_name = "FILE.toml", default_value = "calibrated.toml")]
    out: PathBuf,
}

/// Measures this machine: hand-over of a line between each pair of cores, hits by level, overlap of
/// misses, waiting, and the time of each subject's operations on one thread.
pub fn calibrate(registry: &Registry, options: &Options) -> Result<Ending> {
    ensure!(
        !cfg!(any(feature = "simulation", feature = "steps")),
        "this build observes every access, which makes them slower: calibrate with \
         `cargo run --release -p harness -- calibrate`"
    );
    let out = &options.out;
    ensure!(
        !out.exists(),
        "{} exists already; name another file with --out",
        out.display()
    );
    let cores = Cores::detect();
    ensure!(
        cores.count() >= 2,
        "calibration needs two cores: it measures how long a cache line takes from one to another"
    );
    ensure!(
        cores.count() <= MOST_CORES,
        "the simulator has {MOST_CORES} cores at most, and this process may use {}: start it on fewer, with taskset",
        cores.count()
    );
    let busy = System::load_average().map_or(0.0, |load| load.one);
    if busy > cores.count() as f64 / 4.0 {
        note!(
            "note: the load average is {busy:.1} on {}: where others run, two threads of a measurement \
             hardly ever run at the same time, and what they do to each other is not seen",
            counted(cores.count(), "core")
        );
    }
    let mut model = measure(&cores)?;
    model.alone = alone(registry)?;
    files::write(out, &file_of(&model)?)?;
    say!("{}", out.display());
    Ok(Ending::Complete)
}

/// Returns the machine's file. An error if `simulate` would refuse it.
fn file_of(model: &Model) -> Result<String> {
    let model = toml::to_string(model)?;
    let text = format!("# Written by `harness calibrate`.\n\n{model}");
    Model::parse(&text).context(
        "what was measured cannot be right, probably because something else used the cores: calibrate again",
    )?;
    Ok(text)
}

fn measure(cores: &Cores) -> Result<Model> {
    let [mut l1, mut l2, mut llc] = caches(Path::new(CACHES))?;
    note!("Measuring hand-overs between cores ...");
    let count = cores.count();
    let mut pairs = Vec::new();
    for one in 0..count {
        for other in one + 1..count {
            let ns = hand_over(cores, [one, other], probes::TIMES);
            note!("  cores {one} and {other}: {ns:.1} ns");
            pairs.push(ns);
        }
    }
    let hand_over = median(&mut pairs);
    note!("Measuring hits and misses ...");
    cores.pin(0);
    l1.ns = tenth(probes::dependent_loads(l1.kib * 1024 / 2));
    l2.ns = tenth(probes::dependent_loads(l2.kib * 1024 / 2));
    let between = (l2.kib * 4).min(llc.kib / 2) * 1024;
    let ns = probes::dependent_loads(between);
    llc.ns = tenth(ns);
    let memory = probes::dependent_loads((llc.kib * 8 * 1024).min(1 << 29));
    let loads = [ns - l1.ns, probes::independent_loads(between)];
    let exchange = probes::exchange_alone();
    note!("Measuring exchanges of two cores ...");
    let small = l2.kib * 1024 / 8;
    let unawaited = probes::written_elsewhere(cores, small);
    let exchanges = probes::shared_updates(cores, small, probes::exchange);
    let both = probes::shared_updates(cores, small, probes::load_then_exchange);
    let overlap = overlap(loads, unawaited, [exchanges, both]);
    // The number of exchanges that a core makes for each hand-over, the one that caused it included.
    let in_a_row = 1.0 / probes::contended_exchange(cores);
    let kept = ((in_a_row - 1.0) * exchange / hand_over).clamp(0.0, 1.0);
    note!("Measuring pauses and sleep ...");
    let ([pause, give, call], [wake, awake]) = (probes::waiting(), probes::wake(cores));
    let [pause, give, call, wake, awake] = [pause, give, call, wake, awake].map(tenth);
    let [memory, exchange, hand_over] = [memory, exchange, hand_over].map(tenth);
    let machine = Machine::describe()?;
    Ok(Model {
        // The name in results. Anyone who calibrates several machines changes it in their files.
        name: "calibrated".into(),
        description: format!("{}, {count} cores, as calibrated", machine.processor),
        sockets: 1,
        cores_per_socket: count,
        cores_per_group: count,
        llc_of_group: false,
        assumed: vec!["mispredicted".into()],
        hand_over: HandOver {
            group: hand_over,
            socket: hand_over,
            other_socket: hand_over,
        },
        l1,
        l2,
        llc,
        memory,
        exchange,
        mispredicted: 5.0,
        kept: (kept * 1e3).round() / 1e3,
        unawaited: (unawaited * 1e2).round() / 1e2,
        overlap,
        waiting: Waiting {
            pause,
            give,
            call,
            wake,
            awake,
        },
        alone: Alone::new(),
    })
}

/// Returns how many accesses overlap: of loads beyond the nearest cache, from how much longer one takes there that depends on
/// the load before, and one that does not; of updates of shared words, from how much longer they take on two cores, an exchange
/// alone and one after a load, as shares of a hand-over.
fn overlap(
    [dependent, independent]: [f64; 2],
    unawaited: f64,
    [exchange, both]: [f64; 2],
) -> Overlap {
    // Half of the words were last written by the other core, and nobody is waiting for them.
    let half = unawaited / 2.0;
    let loads = clamped(dependent / independent);
    Overlap {
        loads: tenth(loads),
        exchanges: tenth(clamped(half / exchange)),
        upgrades: tenth(clamped(half / (both - half / loads))),
    }
}

/// Overlap is 1 at least; what is too fast to be measured overlaps without limit.
fn clamped(overlap: f64) -> f64 {
    if overlap > 0.0 {
        overlap.clamp(1.0, 100.0)
    } else {
        100.0
    }
}

fn tenth(ns: f64) -> f64 {
    (ns * 10.0).round() / 10.0
}

/// Returns sizes and ways of the three levels of data caches.
fn caches(directory: &Path) -> Result<[Level; 3]> {
    let mut levels = [None; 3];
    for index in 0..10 {
        let index = directory.join(format!("index{index}"));
        let read = |file: &str| fs::read_to_string(index.join(file)).unwrap_or_default();
        let kib = read("size").trim().trim_end_matches('K').parse().ok();
        let ways = read("ways_of_associativity").trim().parse().ok();
        let level: usize = read("level").trim().parse().unwrap_or_default();
        if let (Some(kib), Some(ways), 1..=3, false) =
            (kib, ways, level, read("type").starts_with("Instruction"))
        {
            levels[level - 1] = Some(Level { kib, ways, ns: 0.0 });
        }
    }
    let [Some(l1), Some(l2), Some(llc)] = levels else {
        anyhow::bail!(
            "{} does not describe three levels of caches: write the machine file by hand, after one in \
             harness/simulator/machines",
            directory.display()
        );
    };
    Ok([l1, l2, llc])
}

/// Measures the operations of each subject on one thread, with a table in its own caches.
fn alone(registry: &Registry) -> Result<Alone> {
    let experiment = Experiment::parse(ALONE).context("in the experiment of one thread")?;
    let count = experiment.subjects.len();
    note!("Measuring {count} subjects on one thread ...");
    let mut times: BTreeMap<String, BTreeMap<String, Vec<f64>>> = BTreeMap::new();
    let keys = KeySource::generated(experiment.most_keys(), experiment.seed);
    let mut rows = runner::rows(&experiment, registry, &keys)?;
    rows.retain(|row| row.mops > 0.0);
    for row in rows {
        let of_subject = times.entry(row.subject).or_default();
        let times = of_subject.entry(row.workload).or_default();
        times.push(1e3 / row.mops);
    }
    // The median, as of the predictions that are made from it.
    let median = |(workload, mut times): (_, Vec<_>)| (workload, tenth(median(&mut times)));
    let medians =
        |(subject, of): (_, BTreeMap<_, _>)| (subject, of.into_iter().map(median).collect());
    Ok(times.into_iter().map(medians).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_parsed_from_sysfs() {
        let directory = tempfile::tempdir().unwrap();
        for (index, level, kind, size, ways) in [
            (0, 1, "Data", "48K", 12),
            (1, 1, "Instruction", "32K", 8),
            (2, 2, "Unified", "1024K", 8),
            (3, 3, "Unified", "32768K", 16),
        ] {
            let index = directory.path().join(format!("index{index}"));
            fs::create_dir(&index).unwrap();
            let write = |name: &str, text: String| fs::write(index.join(name), text).unwrap();
            write("level", format!("{level}\n"));
            write("type", format!("{kind}\n"));
            write("size", format!("{size}\n"));
            write("ways_of_associativity", format!("{ways}\n"));
        }
        let levels = caches(directory.path()).unwrap();
        let sizes = levels.map(|level| (level.kib, level.ways));
        assert_eq!(sizes, [(48, 12), (1024, 8), (32_768, 16)]);
        let none = caches(&directory.path().join("none")).err().unwrap();
        assert!(none.to_string().contains("by hand"), "{none}");
    }

    /// The times are those that the model takes, for the overlaps that come out.
    #[test]
    fn overlaps_are_found_in_times() {
        let [loads, exchanges, upgrades] = [4.0, 3.0, 5.0];
        let [of_load, of_exchange, of_upgrade] = [loads, exchanges, upgrades].map(|of| 0.6 / of);
        let found = overlap(
            [20.0, 20.0 / loads],
            1.2,
            [of_exchange, of_load + of_upgrade],
        );
        assert_eq!(
            [found.loads, found.exchanges, found.upgrades],
            [loads, exchanges, upgrades]
        );
        // What takes no longer overlaps without limit, and nothing overlaps with less than itself.
        let found = overlap([20.0, 0.0], 1.2, [-0.1, 9.0]);
        assert_eq!(
            [found.loads, found.exchanges, found.upgrades],
            [100.0, 100.0, 1.0]
        );
    }

    #[test]
    fn no_file_is_written_that_cannot_be_read() {
        let mut model = Model::named_or_read("milan-7r13").unwrap();
        let text = file_of(&model).unwrap();
        assert_eq!(Model::parse(&text).unwrap(), model);
        model.unawaited = 0.1;
        let error = format!("{:#}", file_of(&model).unwrap_err());
        assert!(
            error.contains("calibrate again") && error.contains("unawaited"),
            "{error}"
        );
    }

    /// What `simulate` can simulate is measured on one thread, under the same names, with tables of
    /// the size from which it subtracts the model's share.
    #[cfg(feature = "simulation")]
    #[test]
    fn calibration_measures_every_simulated_subject() {
        let experiment = Experiment::parse(ALONE).unwrap();
        let is_measured = |name: &str| experiment.subjects.iter().any(|subject| subject == name);
        let of_name = |name| crate::wording::unnumbered(name, is_measured);
        let mut simulated = crate::subjects::SIMULATED.map(of_name).to_vec();
        simulated.dedup();
        assert_eq!(experiment.subjects, simulated);
        assert_eq!(experiment.keys, [crate::run::simulated::ALONE_KEYS]);
    }
}
