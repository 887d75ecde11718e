//! The study `theory` (the table of that name): claims of the literature about structures, computed and measured. The
//! claims about structures that are no relatives are here.

use anyhow::{Context, Result, ensure};
use clap::{Args, value_parser};
use figures::plot::{Scale, number};
use figures::stats::Summary;
use relatives::theory::{Claim, Claims, LEAST_KEYS, SIGMAS, Trial};
use relatives::*;
use serde::{Deserialize, Serialize};
use subject::layout::Layout;
use subject::{SLOTS_PER_BUCKET, Subject};

use super::{samples, values};
use crate::machine;
use crate::row::Sample;
use crate::sheet::{Sheet, Table};
use crate::study::{Extras, Quantity, Study, Subjects, Task, all_places, dedup};
use crate::subjects::{Fastbloom, GlobalLock, Growing, LockFree, Registry, original};
use crate::wording::counted;

/// Compare structures with the literature: formula, prediction, measurement.
///
/// Covers every structure with known formulas: error rate, load factor at the first refusal, bits per key, and the
/// effect of its parameters. Each line gives the range that is allowed if the formula holds, which follows from
/// statistics and not from the measurement. Claims outside of it in any round are named, and the exit code is 1.
/// Prints one table, and writes theory.csv and theory.machine.toml. With `--rounds 1`, takes less than half a minute.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Theory {
    /// Keys of each table, and absent keys to look up in it. The more keys, the narrower the
    /// allowed range.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = value_parser!(u64).range(LEAST_KEYS..=1 << 28))]
    pub keys: u64,
}

const PREDICTED: Quantity = Quantity::new("predicted", None, None);
const MEASURED: Quantity = Quantity::new("measured", None, None);
/// The ends of the range of measurements if the formula holds.
const LEAST: Quantity = Quantity::new("at least", None, None);
const MOST: Quantity = Quantity::new("at most", None, None);

pub static STUDY: Study<Theory> = Study {
    name: "theory",
    title: "Formulas beside measurements",
    question: "Do the structures do what the literature says of them?",
    // The largest structure, and the keys.
    check: |theory| machine::check_memory("--keys", theory.keys as f64 * 40.0),
    subjects: describe,
    alone: true,
    parts: |_| vec!["claims".into()],
    measure: |theory, task, _| measure(theory.keys, task),
    quantities: &[PREDICTED, MEASURED, LEAST, MOST],
    axis: |_| ("claim", Scale::Linear),
    tabled: all_places,
    how: |theory| {
        format!(
            "Formulas, and measurements with about {}. Allowed: the measurements if the formula holds; if chance plays a \
             part, {SIGMAS} standard deviations to either side.",
            counted(theory.keys as f64, "key")
        )
    },
    extras: Extras {
        complete: tabulate,
        judge,
        ..Extras::NONE
    },
};

fn describe(_: &Theory, registry: &Registry) -> Result<Subjects> {
    let describe = |(name, _): &(&str, Claims)| {
        let meaning = registry.get(name)?.description;
        Ok(((*name).to_owned(), meaning.to_owned()))
    };
    STRUCTURES.iter().map(describe).collect()
}

fn measure(keys: u64, task: &Task) -> Result<Vec<Sample>> {
    let name = original(&task.subjects[0]);
    let structure = STRUCTURES.iter().find(|(known, _)| *known == name);
    let (_, claims) = structure.with_context(|| format!("no formulas for {name}"))?;
    let claims = claims(Trial::new(keys, task.seed)).context(name.to_owned())?;
    let samples = claims.iter().zip(0..).map(|(claim, number)| {
        let case = format!("{} = {}", claim.quantity, claim.formula);
        let values = vec![
            (PREDICTED, claim.predicted),
            (MEASURED, claim.measured),
            // No measurement is below 0.
            (LEAST, claim.allowed.start().max(0.0)),
            (MOST, *claim.allowed.end()),
        ];
        samples(task, (&case, f64::from(number)), values)
    });
    Ok(samples.flatten().collect())
}

/// Returns the samples of each claim.
fn by_claim(samples: &[Sample]) -> Vec<Vec<&Sample>> {
    let mut claims: Vec<_> = samples
        .iter()
        .map(|sample| (&sample.subject, &sample.case))
        .collect();
    dedup(&mut claims);
    let own = |claim| {
        let own = samples
            .iter()
            .filter(|sample| (&sample.subject, &sample.case) == claim);
        own.collect()
    };
    claims.into_iter().map(own).collect()
}

/// Describes the rounds in which a claim does not hold.
fn broken(claim: &[&Sample]) -> Vec<String> {
    let Sample { subject, case, .. } = claim[0];
    let [measured, least, most] = [MEASURED, LEAST, MOST].map(|quantity| values(claim, &quantity));
    let rounds = measured.into_iter().zip(least.into_iter().zip(most));
    let broken = rounds.filter(|(measured, (least, most))| !(*least..=*most).contains(measured));
    let describe = |(measured, (least, most))| {
        format!("\n  {subject}, {case}: measured {measured}, allowed {least} to {most}")
    };
    broken.map(describe).collect()
}

/// Replaces the table of each claim by one of all claims.
fn tabulate(samples: &[Sample], sheet: &mut Sheet) {
    let line = |claim: Vec<&Sample>| {
        let summary = |quantity| Summary::new(values(&claim, &quantity));
        let median =
            |quantity| summary(quantity).map_or("–".into(), |found| number(found.median));
        let Sample { subject, case, .. } = claim[0];
        vec![
            format!("{subject}, {case}"),
            median(PREDICTED),
            summary(MEASURED).map_or("–".into(), |measured| measured.format(number)),
            format!("{} to {}", median(LEAST), median(MOST)),
            if broken(&claim).is_empty() {
                "yes"
            } else {
                "NO"
            }
            .into(),
        ]
    };
    let header = "quantity = formula|predicted|measured|allowed|holds".split('|');
    sheet.tables = vec![Table {
        title: String::new(),
        header: header.map(str::to_owned).collect(),
        lines: by_claim(samples).into_iter().map(line).collect(),
    }];
    sheet.notes = vec!["Medians over the rounds [interval of 95 %]. Holds: in all rounds.".into()];
    sheet.figure = None;
}

/// Fails if a claim does not hold, and names all of these.
fn judge(samples: &[Sample]) -> Result<()> {
    let claims = by_claim(samples);
    let mut all_broken: Vec<_> = claims.iter().map(|claim| broken(claim)).collect();
    all_broken.retain(|rounds| !rounds.is_empty());
    let (all, number) = (counted(claims.len() as f64, "claim"), all_broken.len());
    let does = if number == 1 { "does" } else { "do" };
    let rounds = all_broken.concat().concat();
    ensure!(number == 0, "of {all}, {number} {does} not hold:{rounds}");
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
        assert!(describe(&Theory { keys: 0 }, &Registry::standard()).is_ok());
        for (name, claims) in STRUCTURES {
            // The fewest keys that suffice.
            let keys = match *name {
                Bloom::NAME => 20_000,
                ScalableBloom::NAME => 70_000,
                VectorQuotient::NAME => 200_000,
                SmartCuckooMutex::NAME | CountMin::NAME | HyperLogLog::NAME => LEAST_KEYS,
                _ => 100_000,
            };
            let claims = claims(Trial::new(keys, 1 ^ 1 << 32)).unwrap();
            assert!(!claims.is_empty());
            assert!(claims.iter().all(Claim::holds), "{name}: {claims:?}");
        }
    }

    #[test]
    fn claims_broken_in_one_round_are_named() {
        let task = Task {
            study: STUDY.name.into(),
            part: String::new(),
            subjects: vec!["bloom".into()],
            round: 1,
            seed: 1,
        };
        let claim = |measured| {
            let ends = [PREDICTED, LEAST, MOST].map(|quantity| (quantity, 0.5));
            let values = [&ends[..], &[(MEASURED, measured)]].concat();
            samples(&task, ("fill = 1/2", 0.0), values)
        };
        assert!(judge(&claim(0.5)).is_ok());
        let both = [claim(0.5), claim(0.6)].concat();
        let error = judge(&both).unwrap_err().to_string();
        let expected =
            "of 1 claim, 1 does not hold:\n  bloom, fill = 1/2: measured 0.6, allowed 0.5 to 0.5";
        assert_eq!(error, expected);
        let mut sheet = Sheet::default();
        tabulate(&both, &mut sheet);
        assert_eq!(sheet.tables[0].lines[0].last().unwrap(), "NO");
    }
}
