//! The study `theory` (the table of that name): what the literature claims of a structure, what the code computes from it,
//! and what was measured. The claims about structures that are no relatives are here.

use anyhow::{Context, Result, ensure};
use clap::{Args, value_parser};
use figures::plot::{Scale, number};
use figures::stats::Summary;
use relatives::theory::{Claim, Claims, LEAST_KEYS, SIGMAS, Trial};
use relatives::*;
use serde::{Deserialize, Serialize};
use subject::layout::Layout;
use subject::{SLOTS_PER_BUCKET, Subject};

use crate::machine;
use crate::row::Sample;
use crate::sheet::{Sheet, Table};
use crate::study::{Extras, Quantity, Study, Subjects, Task, all_places, dedup};
use crate::subjects::{Fastbloom, GlobalLock, Growing, LockFree, Registry, original};
use crate::wording::{counted, unknown};

/// Compare structures with what the literature says of them: formula, prediction, measurement.
///
/// Covers every structure with known formulas: how often it is wrong about absent keys, how full it
/// gets, what a key takes, what its parameters come to. Each line gives the range that is allowed if
/// the formula holds, which follows from statistics and not from the measurement; claims outside in any round are
/// named, and the exit code is 1. Prints one table, and writes theory.csv and theory.machine.toml.
/// With `--rounds 1`, takes less than half a minute.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Theory {
    /// Structures to measure, by the names that `harness list` shows; by default all that have
    /// formulas.
    #[arg(long, value_name = "NAME,NAME,…", value_delimiter = ',')]
    pub subjects: Vec<String>,
    /// Keys of each table, and absent keys to look up in it. The more keys, the narrower the
    /// allowed range.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = value_parser!(u64).range(LEAST_KEYS..=1 << 28))]
    pub keys: u64,
}

const PREDICTED: Quantity = Quantity::new("predicted", None, None);
const MEASURED: Quantity = Quantity::new("measured", None, None);
/// The least and the most that may be measured if the formula holds.
const LEAST: Quantity = Quantity::new("at least", None, None);
const MOST: Quantity = Quantity::new("at most", None, None);

pub static STUDY: Study<Theory> = Study {
    name: "theory",
    title: "Formulas beside measurements",
    question: "Do the structures do what the literature says of them?",
    // The largest structure, and the keys.
    check: |theory| machine::check_memory("--keys", theory.keys as f64 * 40.0),
    subjects: Theory::described,
    alone: true,
    parts: |_| vec!["claims".into()],
    measure: |theory, task, _| theory.measure(task),
    quantities: &[PREDICTED, MEASURED, LEAST, MOST],
    axis: |_| ("claim", Scale::Linear),
    tabled: all_places,
    how: |theory| {
        format!(
            "What the formulas say, and what was measured with about {}. Allowed: what may be measured if the formula holds; \
             if chance plays a part, {SIGMAS} standard deviations to either side.",
            counted(theory.keys as f64, "key")
        )
    },
    extras: Extras {
        complete: tabulate,
        judge,
        ..Extras::NONE
    },
};

impl Theory {
    fn described(&self, registry: &Registry) -> Result<Subjects> {
        let mut names = self.subjects.clone();
        if names.is_empty() {
            names.extend(STRUCTURES.iter().map(|(name, _)| (*name).to_owned()));
        }
        dedup(&mut names);
        let described = |name: String| {
            let known: Vec<_> = STRUCTURES.iter().map(|(name, _)| *name).collect();
            ensure!(
                known.contains(&&*name),
                "--subjects: no formulas for the structure {}",
                unknown(&name, &known)
            );
            let meaning = registry.get(&name)?.description.to_owned();
            Ok((name, meaning))
        };
        names.into_iter().map(described).collect()
    }

    fn measure(&self, task: &Task) -> Result<Vec<Sample>> {
        let name = original(&task.subjects[0]);
        let found = STRUCTURES.iter().find(|(of, _)| *of == name);
        let (_, claims) = found.with_context(|| format!("no formulas for {name}"))?;
        let claims = claims(Trial::new(self.keys, task.seed)).context(name.to_owned())?;
        let mut samples = Vec::new();
        for (number, claim) in claims.iter().enumerate() {
            let case = format!("{} = {}", claim.quantity, claim.formula);
            for (quantity, value) in [
                (PREDICTED, claim.predicted),
                (MEASURED, claim.measured),
                // No measurement is below 0.
                (LEAST, claim.allowed.start().max(0.0)),
                (MOST, *claim.allowed.end()),
            ] {
                let at = (&case, number as f64);
                samples.push(task.sample(&task.subjects[0], at, &quantity, value));
            }
        }
        Ok(samples)
    }
}

/// The samples of one claim, by round.
struct Checked<'a>(Vec<&'a Sample>);

impl<'a> Checked<'a> {
    /// Returns all claims, in their order.
    fn all(samples: &'a [Sample]) -> Vec<Self> {
        let mut claims: Vec<_> = samples.iter().map(|of| (&of.subject, &of.case)).collect();
        dedup(&mut claims);
        let of_claim = |claim: (&String, &String)| {
            let own = samples.iter().filter(|of| (&of.subject, &of.case) == claim);
            Self(own.collect())
        };
        claims.into_iter().map(of_claim).collect()
    }

    fn values(&self, quantity: &Quantity) -> impl Iterator<Item = f64> {
        let own = self.0.iter().filter(|of| of.quantity == quantity.name);
        own.map(|of| of.value)
    }

    /// Returns the rounds in which it does not hold: what was measured, and what is allowed.
    fn broken(&self) -> Vec<String> {
        let allowed = self.values(&LEAST).zip(self.values(&MOST));
        let rounds = self.values(&MEASURED).zip(allowed);
        let broken =
            rounds.filter(|(measured, (least, most))| !(*least..=*most).contains(measured));
        broken
            .map(|(measured, (least, most))| {
                let Sample { subject, case, .. } = self.0[0];
                format!("\n  {subject}, {case}: measured {measured}, allowed {least} to {most}")
            })
            .collect()
    }
}

/// Replaces the table of each claim by one of all claims.
fn tabulate(samples: &[Sample], sheet: &mut Sheet) {
    let line = |claim: &Checked| {
        let show = |quantity| {
            let summary = Summary::new(claim.values(quantity));
            summary.map_or("–".into(), |of| number(of.median))
        };
        let Sample { subject, case, .. } = claim.0[0];
        let measured = Summary::new(claim.values(&MEASURED));
        let holds = if claim.broken().is_empty() {
            "yes"
        } else {
            "NO"
        };
        vec![
            format!("{subject}, {case}"),
            show(&PREDICTED),
            measured.map_or("–".into(), |of| of.format(number)),
            format!("{} to {}", show(&LEAST), show(&MOST)),
            holds.into(),
        ]
    };
    let header = [
        "quantity = formula",
        "predicted",
        "measured",
        "allowed",
        "holds",
    ];
    sheet.tables = vec![Table {
        title: String::new(),
        header: header.map(str::to_owned).into(),
        lines: Checked::all(samples).iter().map(line).collect(),
    }];
    sheet.notes = vec!["Medians over the rounds [interval of 95 %]. Holds: in all rounds.".into()];
    sheet.figure = None;
}

/// Fails with the names of the claims that do not hold, if there are any.
fn judge(samples: &[Sample]) -> Result<()> {
    let claims = Checked::all(samples);
    let broken: Vec<_> = claims
        .iter()
        .map(Checked::broken)
        .filter(|of| !of.is_empty())
        .collect();
    let (all, number) = (counted(claims.len() as f64, "claim"), broken.len());
    let does = if number == 1 { "does" } else { "do" };
    ensure!(
        broken.is_empty(),
        "of {all}, {number} {does} not hold:{}",
        broken.concat().concat()
    );
    Ok(())
}

/// All structures with claims, by the names that `harness list` shows, in the order in which they are
/// shown.
const STRUCTURES: &[(&str, Claims)] = &[
    (LockFree::NAME, lock_free),
    (Growing::NAME, growing),
    (GlobalLock::NAME, global_lock),
    (Bloom::NAME, bloom::claims),
    (CountingBloom::NAME, bloom::claims_of_counters),
    (ScalableBloom::NAME, scalable_bloom::claims),
    (BlockedBloom::NAME, blocked_bloom::claims),
    (<Fastbloom>::NAME, fastbloom),
    (VectorQuotient::NAME, vector_quotient::claims),
    (SmartCuckooMutex::NAME, smart_cuckoo::claims),
    (CountMin::NAME, count_min::claims),
    (HyperLogLog::NAME, hyper_log_log::claims),
];

/// The load factor that tables with two choices of buckets of four slots cannot exceed, however
/// keys are shifted (Cain, Sanders, Wormald 2007; Fernholz, Ramachandran 2007).
const THRESHOLD: f64 = 0.9803;

/// From the formulas in `filter::layout`.
fn lock_free(trial: Trial) -> Result<Vec<Claim>> {
    trial.full_table::<LockFree>(
        (
            "Layout::WORKABLE_LOAD, to plan for",
            Layout::WORKABLE_LOAD..=THRESHOLD,
        ),
        ("64 / 4 / α, Layout::BITS_PER_KEY", |load| {
            Layout::BITS_PER_KEY * Layout::WORKABLE_LOAD / load
        }),
        ("Layout::FALSE_POSITIVE_RATE · α", |load| {
            Layout::FALSE_POSITIVE_RATE * load
        }),
    )
}

/// The single-threaded filter has a victim slot.
fn global_lock(trial: Trial) -> Result<Vec<Claim>> {
    trial.full_table::<GlobalLock>(
        ("0.95 for b = 4, Fan et al. 2014, table 2", 0.95..=THRESHOLD),
        ("64 / b / α: f = 12 bits a slot, and 4 unused", |load| {
            64.0 / SLOTS_PER_BUCKET as f64 / load
        }),
        ("1 − (1 − 2^−f)^(2bα), Fan et al. 2014", |load| {
            let slots = 2.0 * SLOTS_PER_BUCKET as f64 * load;
            1.0 - (1.0 - 1.0 / (Layout::MAX_FINGERPRINT + 1) as f64).powf(slots)
        }),
    )
}

/// The error of the filter that grows, here from a hundredth of the size, follows from how full its
/// table is, and never exceeds the stated rate.
fn growing(trial: Trial) -> Result<Vec<Claim>> {
    let growing = Growing::with_buckets(trial.keys.div_ceil(SLOTS_PER_BUCKET as u64) as usize)?;
    trial.insert(&growing, 0..trial.keys)?;
    let stated = growing.0.false_positive_rate();
    let load = trial.keys as f64 / growing.0.slots() as f64;
    let now = trial.false_positive_rate(
        &growing,
        trial.keys,
        format!("grown a hundredfold, load factor {load:.2}"),
        "Layout::FALSE_POSITIVE_RATE · α of its table",
        (stated * load, 0.0),
    );
    let bound = Claim::exact(
        "false positive rate, at most what it states",
        "Σ Layout::FALSE_POSITIVE_RATE of its tables",
        stated,
        now.measured,
    );
    // The measurement may deviate as much as that of the claim before.
    let most = stated + (now.allowed.end() - now.predicted);
    Ok(vec![now, bound.allowing(0.0..=most)])
}

/// The crate is wrong as often as a Bloom filter of its bits and hashes.
fn fastbloom(trial: Trial) -> Result<Vec<Claim>> {
    let buckets = (trial.keys / SLOTS_PER_BUCKET as u64) as usize;
    let filter = Fastbloom::with_buckets(buckets)?;
    let (n, size) = (filter.slots(buckets) as u64, filter.size());
    trial.insert(&filter, 0..n)?;
    let at = format!("{:.1} bits per key", size.cells as f64 / n as f64);
    Ok(vec![size.claim(trial, &filter, n, at)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_subjects_whose_claims_hold() {
        let registry = Registry::standard();
        // The fewest keys that suffice for each.
        let enough = |name: &str| match name {
            Bloom::NAME => 20_000,
            ScalableBloom::NAME => 70_000,
            VectorQuotient::NAME => 200_000,
            SmartCuckooMutex::NAME | CountMin::NAME | HyperLogLog::NAME => LEAST_KEYS,
            _ => 100_000,
        };
        for (name, _) in STRUCTURES {
            let theory = Theory {
                subjects: vec![(*name).into()],
                keys: enough(name),
            };
            assert_eq!(theory.described(&registry).unwrap().len(), 1);
            let samples = crate::study::measured(&STUDY, &theory);
            assert!(!samples.is_empty());
            judge(&samples).unwrap();
        }
    }

    #[test]
    fn claims_broken_in_one_round_are_named() {
        let samples = |round, measured| {
            let values = [
                (PREDICTED, 0.5),
                (MEASURED, measured),
                (LEAST, 0.5),
                (MOST, 0.5),
            ];
            values.map(|(quantity, value)| Sample {
                subject: "bloom".into(),
                case: "fill = 1/2".into(),
                quantity: quantity.name.into(),
                round,
                value,
                ..Sample::default()
            })
        };
        assert!(judge(&samples(1, 0.5)).is_ok());
        let both = [samples(1, 0.5), samples(2, 0.6)].concat();
        let error = judge(&both).unwrap_err().to_string();
        let expected =
            "of 1 claim, 1 does not hold:\n  bloom, fill = 1/2: measured 0.6, allowed 0.5 to 0.5";
        assert_eq!(error, expected);
        let mut sheet = Sheet::default();
        tabulate(&both, &mut sheet);
        assert_eq!(sheet.tables[0].lines[0].last().unwrap(), "NO");
    }
}
