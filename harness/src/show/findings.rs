//! Rows → sentences: who is faster, by how much, and where the data allow no claim.

use crate::relatives::smart_cuckoo::{CuckooTable, PlainCuckoo, SmartCuckoo};
use crate::results::statistics::{Axis, Case, Quantity, Results, Summary};
use crate::results::verdict::Verdict;
use crate::show::chart::duration;
use crate::studies::kcas::contest::Workload;
use crate::studies::kcas::engines::{Entry, MAX_ENTRIES};
use crate::studies::{cuckoo_hashing, growth, kcas as kcas_cost, layouts, memory};
use crate::subjects::BOUNDS;
use crate::wording::grouped;
use crate::wording::{counted, noun};

/// What the rows say of the first subject and another one under one workload.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Finding {
    /// The workload, and what else is the same throughout.
    pub(super) case: String,
    /// The other subject.
    pub(super) other: String,
    /// The sentence.
    pub(super) text: String,
    /// Whether the first subject is slower somewhere.
    pub(super) lost: bool,
}

/// What throughputs say of the first subject against each other one; nothing of bounds. `title` names a case.
pub(super) fn of_throughput(results: &Results, title: impl Fn(&Case) -> String) -> Vec<Finding> {
    let subjects = results.subjects();
    let Some((first, others)) = subjects.split_first() else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for case in results.cases() {
        for other in others.iter().filter(|other| !BOUNDS.contains(other)) {
            let mut at = Vec::new();
            for place in results.places(&case) {
                let verdict = Verdict::on(results, &case, place, first, other);
                let ratio = results.ratio(&case, place, first, other);
                at.extend(
                    verdict
                        .zip(ratio)
                        .map(|(verdict, ratio)| (verdict, place, ratio)),
                );
            }
            if at.is_empty() {
                continue;
            }
            findings.push(Finding {
                case: title(&case),
                other: (*other).to_owned(),
                lost: at.iter().any(|(verdict, ..)| *verdict == Verdict::Slower),
                text: format!(
                    "{first} against {other}: {}.",
                    clauses(&THROUGHPUT, |places| named(results.axis(), places), &at)
                ),
            });
        }
    }
    findings
}

/// How a ratio is told.
struct Words {
    above_one: &'static str,
    below_one: &'static str,
    quantity: &'static str,
}

const THROUGHPUT: Words = Words {
    above_one: "faster",
    below_one: "slower",
    quantity: "the throughput",
};

/// One clause for each verdict, with the places at which it holds, which are to be named.
fn clauses(
    words: &Words,
    named: impl Fn(&[f64]) -> String,
    at: &[(Verdict, f64, Summary)],
) -> String {
    let Words {
        above_one,
        below_one,
        quantity,
    } = words;
    let clause = |verdict: Verdict| {
        let of = at.iter().filter(|(is, ..)| *is == verdict);
        let places: Vec<f64> = of.clone().map(|&(_, place, _)| place).collect();
        let ratios = of.map(|(.., ratio)| ratio.median);
        let least = ratios.clone().fold(f64::INFINITY, f64::min);
        let most = ratios.fold(0.0, f64::max);
        let times = match format!("{least:.2}") == format!("{most:.2}") {
            true => format!("{least:.2} times"),
            false => format!("{least:.2} to {most:.2} times"),
        };
        let where_at = match places.len() == at.len() && at.len() > 1 {
            true => format!("throughout, at {}", named(&places)),
            false => format!("at {}", named(&places)),
        };
        (!places.is_empty()).then(|| match verdict {
            Verdict::Faster => format!("{above_one}, {times} {quantity}, {where_at}"),
            Verdict::Slower => format!("{below_one}, {times} {quantity}, {where_at}"),
            Verdict::TooCloseToCall => format!("too close to call {where_at} ({times})"),
            Verdict::TooNoisy => {
                format!("no claim {where_at}, as the machine was too noisy ({times})")
            }
            Verdict::TooFewRounds => format!("no claim {where_at}, for want of rounds ({times})"),
        })
    };
    let verdicts = [
        Verdict::Faster,
        Verdict::Slower,
        Verdict::TooCloseToCall,
        Verdict::TooNoisy,
        Verdict::TooFewRounds,
    ];
    let clauses: Vec<_> = verdicts.into_iter().filter_map(clause).collect();
    clauses.join("; ")
}

/// Places on an axis, as a sentence names them.
fn named(axis: Axis, places: &[f64]) -> String {
    let list: Vec<_> = places.iter().map(f64::to_string).collect();
    let list = list.join(", ");
    let last = places.last().copied().unwrap_or_default();
    match axis {
        Axis::Threads => format!("{list} {}", noun(last, "thread")),
        Axis::Frozen => format!("{list} frozen {}", noun(last, "thread")),
        Axis::Offered => format!("{list} million operations per second due"),
        Axis::Load => format!("load factor {list}"),
        Axis::Hit => format!("{list} % present"),
        Axis::Skew => format!("skew {list}"),
    }
}

/// What a sentence adds whose values are over so many rounds, or more.
fn reservation(fewest_rounds: usize) -> &'static str {
    Verdict::of_rounds(fewest_rounds).map_or("", Verdict::reservation)
}

/// For each case, how long 999 of 1,000 operations take at most where most is asked of the subjects: at its last
/// place, the shortest first.
pub(super) fn of_latency(results: &Results, title: impl Fn(&Case) -> String) -> Vec<String> {
    let sentence = |case: Case| {
        let place = *results.places(&case).last()?;
        let subjects = results.subjects().into_iter();
        let mut fewest = usize::MAX;
        let mut waits: Vec<(f64, &str)> = subjects
            .filter_map(|subject| {
                let wait = results.summary(&case, place, subject, Quantity::P999)?;
                fewest = fewest.min(wait.count);
                Some((wait.median, subject))
            })
            .collect();
        waits.sort_by(|a, b| a.0.total_cmp(&b.0));
        let waits: Vec<_> = (waits.into_iter())
            .map(|(wait, subject)| format!("{} with {subject}", duration(wait)))
            .collect();
        Some(format!(
            "{}, at {}: 999 of 1,000 operations end within {}{}.",
            title(&case),
            named(results.axis(), &[place]),
            waits.join(", "),
            reservation(fewest)
        ))
    };
    results.cases().into_iter().filter_map(sentence).collect()
}

/// For each case, what is left of every subject's throughput with the most frozen threads.
pub(super) fn of_frozen(results: &Results, title: impl Fn(&Case) -> String) -> Vec<String> {
    let sentence = |case: Case| {
        let places = results.places(&case);
        let (&none, &most) = (places.first()?, places.last()?);
        let mut fewest = usize::MAX;
        let left: Vec<_> = (results.subjects().into_iter())
            .filter_map(|subject| {
                let left = results.ratio_across(&case, (most, subject), (none, subject))?;
                fewest = fewest.min(left.count);
                let Summary {
                    low, median, high, ..
                } = left;
                let [low, median, high] = [low, median, high].map(|share| (100.0 * share).round());
                Some(format!("{subject} {median} % [{low}–{high}]"))
            })
            .collect();
        Some(format!(
            "{}, with {}, of the throughput with {none} there is left: {}{}.",
            title(&case),
            named(Axis::Frozen, &[most]),
            left.join(", "),
            reservation(fewest)
        ))
    };
    results.cases().into_iter().filter_map(sentence).collect()
}

/// For each kind of contest and each other engine: in how many cases, of threads and words, ours is ahead of it.
pub(super) fn of_kcas(rows: &[kcas_cost::Row]) -> Vec<String> {
    let results = kcas_cost::Results(rows);
    let engines = results.engines();
    let Some((ours, others)) = engines.split_first() else {
        return Vec::new();
    };
    let sentence = |(workload, other): (Workload, &&Entry)| {
        let mut ratios = Vec::new();
        for threads in results.threads() {
            let case = |entries| kcas_cost::Case {
                workload: workload.label().into(),
                threads,
                entries,
            };
            let ratio = |entries| results.ratio(&case(entries), ours.name, other.name);
            ratios.extend((1..=MAX_ENTRIES).filter_map(ratio));
        }
        let verdicts: Vec<_> = ratios.iter().map(Verdict::of).collect();
        let count = |of| verdicts.iter().filter(|verdict| **verdict == of).count();
        let (faster, slower) = (count(Verdict::Faster), count(Verdict::Slower));
        let too_few = count(Verdict::TooFewRounds);
        let untold = match too_few {
            0 => String::new(),
            _ => format!(", no claim for want of rounds in {too_few}"),
        };
        let medians = ratios.iter().map(|ratio| ratio.median);
        (!ratios.is_empty()).then(|| {
            format!(
                "Words {}: {} against {}: of {} cases of threads and k, faster in {faster}, slower in {slower}, too close \
                 or too noisy to call in {}{untold}; {:.2} to {:.2} times the throughput.",
                workload.label(),
                ours.name,
                other.name,
                ratios.len(),
                ratios.len() - faster - slower - too_few,
                medians.clone().fold(f64::INFINITY, f64::min),
                medians.fold(0.0, f64::max),
            )
        })
    };
    let pairs = Workload::ALL
        .into_iter()
        .flat_map(|workload| others.iter().map(move |other| (workload, other)));
    pairs.filter_map(sentence).collect()
}

/// What each layout is wrong by and costs, beside a Bloom filter that is wrong as often.
pub(super) fn of_layouts(rows: &[layouts::Row]) -> Vec<String> {
    let sentence = |row: &layouts::Row| {
        let bloom = -row.rate_theory.log2() * std::f64::consts::LOG2_E;
        format!(
            "{}×{}: {:.1} bits a key, wrong about {:.2e} of absent keys by theory ({:.2e} measured); a Bloom filter as good \
             takes {bloom:.1} bits, and cannot remove.",
            row.slots, row.bits, row.bits_a_key, row.rate_theory, row.rate
        )
    };
    rows.iter().map(sentence).collect()
}

/// What each structure takes and is wrong by where it is fullest, if all keys are in.
pub(super) fn of_memory(rows: &[memory::Row]) -> Vec<String> {
    let mut sentences = Vec::new();
    for of_subject in rows.chunk_by(|a, b| a.subject == b.subject) {
        let whole = of_subject.iter().filter(|row| row.refused == 0);
        let fullest = whole.max_by(|a, b| a.load_factor.total_cmp(&b.load_factor));
        sentences.extend(fullest.map(|row| {
            format!(
                "{}: {:.1} bits a key at load factor {} ({:.1} by its own account), and {:.2e} of absent keys found.",
                row.subject,
                row.resident_bits_a_key(),
                row.load_factor,
                row.bits_a_key(),
                row.rate(),
            )
        }));
    }
    sentences
}

/// Under each mix, where SmartCuckoo is faster than plain cuckoo hashing, and where it is slower.
pub(super) fn of_cuckoo_hashing(rows: &[cuckoo_hashing::Row]) -> Vec<String> {
    let results = cuckoo_hashing::Results(rows);
    let [smart, plain] = [SmartCuckoo::NAME, PlainCuckoo::NAME];
    let sentence = |mix: cuckoo_hashing::Mix| {
        let ratio = |load| Some((load, results.ratio((mix, load), smart, plain)?));
        let ratios = results.loads().into_iter().filter_map(ratio);
        let told: Vec<_> = ratios
            .map(|(load, ratio)| {
                let verdict = match Verdict::of(&ratio) {
                    Verdict::Faster => "faster",
                    Verdict::Slower => "slower",
                    Verdict::TooCloseToCall => "too close to call",
                    Verdict::TooNoisy => "too noisy to call",
                    Verdict::TooFewRounds => "no claim for want of rounds",
                };
                format!("{verdict} up to load {load} ({:.2})", ratio.median)
            })
            .collect();
        format!("{smart} over {plain}, mix {mix}: {}.", told.join(", "))
    };
    results.mixes().into_iter().map(sentence).collect()
}

/// What becomes of the filter that grows against each rival, at a few sizes of the set.
pub(super) fn of_growth(rows: &[growth::Row]) -> Vec<Finding> {
    let results = growth::Results(rows);
    let Some(first) = rows.first() else {
        return Vec::new();
    };
    let quantities = [
        growth::Quantity::Throughput,
        growth::Quantity::LookupMedian,
        growth::Quantity::LookupP99,
        growth::Quantity::InsertP99,
        growth::Quantity::LongestInsert,
        growth::Quantity::BitsAKey,
        growth::Quantity::Elapsed,
    ];
    let finding = |(quantity, rival): (growth::Quantity, &str)| {
        let sizes = match quantity {
            growth::Quantity::Elapsed => vec![first.all_keys],
            _ => results.sizes(),
        };
        let verdict = |keys| {
            let ratio = results.ratio(keys, (growth::OURS, rival), quantity)?;
            Some((Verdict::of(&ratio), keys as f64, ratio))
        };
        let at: Vec<_> = sizes.into_iter().filter_map(verdict).collect();
        let worse = match quantity.is_good() {
            true => Verdict::Slower,
            false => Verdict::Faster,
        };
        (!at.is_empty()).then(|| Finding {
            case: format!(
                "{} keys, {}",
                grouped(first.all_keys),
                counted(first.threads, "thread")
            ),
            other: rival.to_owned(),
            lost: at.iter().any(|(verdict, ..)| *verdict == worse),
            text: format!(
                "{} against {rival}, {}: {}.",
                growth::OURS,
                quantity.name(),
                clauses(&words(quantity), named_sizes, &at)
            ),
        })
    };
    let rivals = growth::RIVALS.into_iter();
    let all = rivals.flat_map(|rival| quantities.map(|quantity| (quantity, rival)));
    all.filter_map(finding).collect()
}

fn words(quantity: growth::Quantity) -> Words {
    let (above_one, below_one, quantity) = match quantity {
        growth::Quantity::Throughput | growth::Quantity::InsertThroughput => return THROUGHPUT,
        growth::Quantity::BitsAKey => ("larger", "smaller", "the memory"),
        growth::Quantity::Elapsed => ("longer", "shorter", "the time"),
        _ => ("longer", "shorter", "the latency"),
    };
    Words {
        above_one,
        below_one,
        quantity,
    }
}

fn named_sizes(sizes: &[f64]) -> String {
    let sizes: Vec<_> = sizes.iter().map(|&keys| grouped(keys as u64)).collect();
    format!("{} keys", sizes.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::record::{Row, sample};

    fn case(case: &Case) -> String {
        case.workload.clone()
    }

    /// Seven rounds of two subjects at 1 and 4 threads; ratios of the first over the second are given.
    fn rows(ratios: [f64; 2], spread: f64) -> Vec<Row> {
        let mut rows = Vec::new();
        for round in 1..=7 {
            for (threads, ratio) in [1, 4].into_iter().zip(ratios) {
                let noise = 1.0 + spread * (round as f64 - 4.0) / 3.0;
                rows.push(sample("a", "insert", threads, round, 10.0 * ratio * noise));
                rows.push(sample("b", "insert", threads, round, 10.0));
                rows.push(sample(BOUNDS[0], "insert", threads, round, 100.0));
            }
        }
        rows
    }

    #[test]
    fn a_finding_says_where_and_by_how_much() {
        let all = |ratios, spread| of_throughput(&Results::of(&rows(ratios, spread)), case);
        let won = all([2.0, 3.0], 0.01);
        assert_eq!(won.len(), 1, "nothing is said of the bound");
        assert_eq!(
            won[0].text,
            "a against b: faster, 2.00 to 3.00 times the throughput, throughout, at 1, 4 threads."
        );
        assert!(!won[0].lost);
        let mixed = all([0.5, 1.0], 0.01);
        assert_eq!(
            mixed[0].text,
            "a against b: slower, 0.50 times the throughput, at 1 thread; too close to call at 4 threads (1.00 times)."
        );
        assert!(mixed[0].lost);
    }

    #[test]
    fn latencies_are_told_in_their_order() {
        let timed = |subject, threads, p999_ns| Row {
            p999_ns,
            max_ns: p999_ns,
            ..sample(subject, "mix", threads, 1, 1.0)
        };
        let rows = [
            timed("slow", 1, 10),
            timed("slow", 4, 9_000),
            timed("fast", 4, 200),
        ];
        assert_eq!(
            of_latency(&Results::of(&rows), case),
            [
                "mix, at 4 threads: 999 of 1,000 operations end within 200 ns with fast, 9 µs with slow, from too few \
                 rounds for a claim."
            ]
        );
    }

    #[test]
    fn what_frozen_threads_leave_is_told() {
        let with = |subject, frozen, mops| Row {
            frozen,
            ..sample(subject, "mix", 2, 1, mops)
        };
        let rows = [
            with("ours", 0, 10.0),
            with("ours", 8, 9.0),
            with("lock", 0, 5.0),
            with("lock", 8, 0.0),
        ];
        assert_eq!(
            of_frozen(&Results::of(&rows), case),
            [
                "mix, with 8 frozen threads, of the throughput with 0 there is left: ours 90 % [90–90], lock 0 % [0–0], from \
                 too few rounds for a claim."
            ]
        );
    }

    #[test]
    fn a_ratio_whose_interval_includes_one_is_no_claim_about_cuckoo_hashing() {
        let told = |rounds: [[f64; 2]; 5]| {
            let rows = cuckoo_hashing::sample(&rounds);
            of_cuckoo_hashing(&rows).remove(0)
        };
        let few = of_cuckoo_hashing(&cuckoo_hashing::sample(&[[3.0, 1.0]; 4]));
        assert_eq!(
            few,
            [
                "smart-cuckoo over plain-cuckoo, mix 100/0/0: no claim for want of rounds up to load 0.5 (3.00)."
            ]
        );
        let faster = told([[3.0, 1.0]; 5]);
        assert_eq!(
            faster,
            "smart-cuckoo over plain-cuckoo, mix 100/0/0: faster up to load 0.5 (3.00)."
        );
        assert!(told([[1.0, 2.0]; 5]).contains(": slower up to load 0.5 (0.50)"));
        let mixed = [[1.0, 2.0], [1.0, 2.0], [1.0, 1.0], [3.0, 1.0], [3.0, 1.0]];
        assert!(told(mixed).contains(": too noisy to call up to load 0.5 (1.00)"));
    }

    #[test]
    fn losses_of_the_filter_that_grows_are_told_at_their_sizes() {
        let told = |rows: &[growth::Row], start: &str| {
            let findings = of_growth(rows).into_iter();
            let mut told = findings.filter(|finding| finding.text.starts_with(start));
            let finding = told.next().unwrap();
            assert!(told.next().is_none());
            (finding.text, finding.lost)
        };
        let mut rows = growth::sample(&[[2.0, 1.0, 4.0]; 5]);
        for (start, expected, lost) in [
            (
                "growing against lock-free, lookups and inserts: ",
                "faster, 2.00 times the throughput, throughout, at 10, 10,000 keys.",
                false,
            ),
            (
                "growing against scalable-bloom, lookups and inserts: ",
                "slower, 0.50 times the throughput, throughout, at 10, 10,000 keys.",
                true,
            ),
            (
                "growing against scalable-bloom, lookup, median: ",
                "longer, 2.00 times the latency, throughout, at 10, 10,000 keys.",
                true,
            ),
            (
                "growing against lock-free, the whole way: ",
                "shorter, 0.50 times the time, at 10,000 keys.",
                false,
            ),
            (
                "growing against lock-free, memory: ",
                "too close to call throughout, at 10, 10,000 keys (1.00 times).",
                false,
            ),
        ] {
            assert_eq!(told(&rows, start), (format!("{start}{expected}"), lost));
        }
        // One size at which it loses is enough.
        for row in rows
            .iter_mut()
            .filter(|row| row.keys == 10 && row.subject == growth::OURS)
        {
            row.mops = 0.5;
        }
        let (text, lost) = told(&rows, "growing against lock-free, lookups and inserts: ");
        assert!(
            lost && text
                .ends_with("at 10,000 keys; slower, 0.50 times the throughput, at 10 keys."),
            "{text}"
        );
    }
}
