//! Finds everything that is wrong with an experiment: each value, and what values mean together. Each
//! problem names its field, and says what is allowed.

use anyhow::{Result, bail};

use super::threads::{Count, MAX_THREADS, Threads};
use super::{Experiment, MAX_ROUNDS, MAX_SECONDS, MIN_KEYS};
use crate::workload::Workload;

/// What was found.
#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    fn add(&mut self, problem: String) {
        self.0.push(problem);
    }

    fn unless(&mut self, holds: bool, problem: impl FnOnce() -> String) {
        if !holds {
            self.add(problem());
        }
    }

    /// Fails with all of them.
    fn end(self) -> Result<()> {
        if !self.0.is_empty() {
            bail!(self.0.join("\n  "));
        }
        Ok(())
    }
}

impl Experiment {
    /// Fails with all problems.
    pub(crate) fn validate(&self) -> Result<()> {
        let mut problems = Problems::default();
        self.validate_values(&mut problems);
        self.validate_threads(&mut problems);
        self.validate_workloads(&mut problems);
        self.validate_latency(&mut problems);
        self.validate_targets(&mut problems);
        problems.end()
    }

    fn validate_values(&self, problems: &mut Problems) {
        let fits = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        problems.unless(!self.name.is_empty() && self.name.bytes().all(fits), || {
            format!(
                "field `name`: {:?} must be lower-case letters, digits and hyphens, as it names the output files",
                self.name
            )
        });
        problems.unless(!self.title.trim().is_empty(), || {
            "field `title`: must not be empty, as it is the figure's title".into()
        });
        problems.unless((1..=MAX_ROUNDS).contains(&self.rounds), || {
            format!(
                "field `rounds`: {} is not between 1 and {MAX_ROUNDS}",
                self.rounds
            )
        });
        problems.unless(self.seconds > 0.0 && self.seconds <= MAX_SECONDS, || {
            format!(
                "field `seconds`: {} must be above 0 and at most {MAX_SECONDS}",
                self.seconds
            )
        });
        problems.unless(self.keys.len() < 2 || self.targets.is_empty(), || {
            "field `keys`: several sizes have no targets; leave out `target`".into()
        });
        let few = self.keys.iter().find(|&&keys| keys < MIN_KEYS);
        problems.unless(few.is_none(), || {
            format!(
                "field `keys`: {} is too few; {MIN_KEYS} or more are needed",
                few.unwrap_or(&0)
            )
        });
        let many = self.frozen.iter().find(|&&frozen| frozen > MAX_THREADS);
        problems.unless(many.is_none(), || {
            format!(
                "field `frozen`: {} is not between 0 and {MAX_THREADS}",
                many.unwrap_or(&0)
            )
        });
        validate_list(problems, "subjects", &self.subjects);
        validate_list(problems, "frozen", &self.frozen);
        validate_list(problems, "keys", &self.keys);
    }

    fn validate_threads(&self, problems: &mut Problems) {
        let Threads::List(list) = &self.threads else {
            return;
        };
        problems.unless(!list.is_empty(), || {
            "field `threads`: name at least one number, or \"auto\"".into()
        });
        for count in list {
            let (Count::Exactly(threads) | Count::PerCore(threads)) = count;
            problems.unless((1..=MAX_THREADS).contains(threads), || {
                format!("field `threads`: {count} is not between 1 and {MAX_THREADS}")
            });
        }
        if let Some(twice) = first_repeated(list) {
            problems.add(format!("field `threads`: {twice} appears twice"));
        }
    }

    fn validate_workloads(&self, problems: &mut Problems) {
        problems.unless(!self.workloads.is_empty(), || {
            "field `workload`: add at least one [[workload]] table".into()
        });
        for (index, workload) in self.workloads.iter().enumerate() {
            if let Err(error) = workload.validate() {
                let (number, field) = (index + 1, error.field);
                problems.add(format!(
                    "[[workload]] number {number}, field `{field}`: {}",
                    error.problem
                ));
            }
            problems.unless(!self.freezes() || workload.is_time_bounded(), || {
                format!(
                    "field `frozen`: {} ends when every key is done, and so never if a thread is frozen \
                     with a lock; use a mix or lookups",
                    workload.label()
                )
            });
        }
        if let Some(twice) = first_repeated(&self.workloads) {
            let (label, load) = (twice.label(), twice.load());
            problems.add(format!(
                "field `workload`: {label} at load factor {load} appears twice"
            ));
        }
    }

    /// Checks that operations can be timed one by one, if they are to be.
    fn validate_latency(&self, problems: &mut Problems) {
        let Some(latency) = &self.latency else { return };
        if let Err(problem) = latency.validate() {
            problems.add(problem.to_string());
        }
        problems.unless(!self.freezes(), || {
            "field `latency`: operations that wait for frozen threads never end; leave out `frozen`".into()
        });
        problems.unless(self.targets.is_empty(), || {
            "field `latency`: operations that are timed show no ratios of throughputs; leave out `target`".into()
        });
        let whole = self.workloads.iter().find(|of| !of.is_time_bounded());
        problems.unless(whole.is_none(), || {
            format!(
                "field `latency`: {} ends when every key is done, and is measured as a whole; use lookups, \
                 a mix, ycsb or window",
                whole.map(Workload::label).unwrap_or_default()
            )
        });
    }

    fn validate_targets(&self, problems: &mut Problems) {
        problems.unless(self.targets.is_empty() || !self.freezes(), || {
            "field `target`: ratios over subjects that frozen threads may stop are meaningless; leave out `frozen`"
                .into()
        });
        for (index, target) in self.targets.iter().enumerate() {
            if let Err(problem) = target.validate(self) {
                problems.add(format!("[[target]] number {}: {problem}", index + 1));
            }
        }
    }
}

/// Checks that there is something in a list, and nothing twice.
fn validate_list<T: PartialEq + std::fmt::Debug>(problems: &mut Problems, field: &str, list: &[T]) {
    problems.unless(!list.is_empty(), || {
        format!("field `{field}`: name at least one")
    });
    if let Some(twice) = first_repeated(list) {
        problems.add(format!("field `{field}`: {twice:?} appears twice"));
    }
}

/// Returns the first value that appears a second time.
pub(super) fn first_repeated<T: PartialEq>(list: &[T]) -> Option<&T> {
    let repeats = |(index, value): &(usize, &T)| list[..*index].contains(value);
    let mut numbered = list.iter().enumerate();
    numbered.find(repeats).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use crate::experiment::Experiment;
    use crate::experiment::testing::{GOOD, TARGET, complaint};

    #[test]
    fn impossible_values_name_their_field_and_what_is_allowed() {
        let insert = "[[workload]]\nkind = 'insert'\nload = 0.9";
        let twice = "[[workload]]\nkind = 'lookup-hit'\nload = 0.92";
        let frozen_insert = format!("frozen = [2]\n{insert}");
        let timed_insert = format!("latency = {{}}\n{insert}");
        let timed_target = format!("latency = {{}}\n{TARGET}");
        let frozen_target = format!("frozen = [0, 2]\n{TARGET}");
        for (from, to, expected) in [
            ("\"tiny\"", "\"../tiny\"", "`name`"),
            ("\"A tiny sweep\"", "\" \"", "`title`"),
            ("[\"lock-free\", \"roofline\"]", "[]", "`subjects`"),
            (
                "\"roofline\"",
                "\"lock-free\"",
                "`subjects`: \"lock-free\" appears twice",
            ),
            ("[2, 1]", "[0, 1]", "`threads`: 0 is not between 1 and 1024"),
            ("[2, 1]", "[1, 1]", "`threads`: 1 appears twice"),
            ("[2, 1]", "[]", "`threads`"),
            ("[2, 1]", "[1025]", "`threads`"),
            ("[2, 1]", "\"all\"", "`threads`"),
            ("[2, 1]", "[\"2y\"]", "`threads`"),
            ("[2, 1]", "[\"0x\"]", "`threads`"),
            ("[2, 1]", "[-1]", "`threads`"),
            ("seed     = 7", "frozen = []", "`frozen`"),
            (
                "seed     = 7",
                "frozen = [1, 1]",
                "`frozen`: 1 appears twice",
            ),
            ("seed     = 7", "frozen = [1025]", "`frozen`: 1025"),
            ("seed     = 7", "frozen = [-1]", "frozen"),
            (
                "seed     = 7",
                &frozen_insert,
                "`frozen`: insert ends when every key is done",
            ),
            ("seed     = 7", &frozen_target, "`target`: ratios over"),
            (
                "seed     = 7",
                "pinning = \"spread\"",
                "`pinning`: \"spread\" is none of \"cores\", \"compact\"",
            ),
            ("seed     = 7", &timed_insert, "`latency`: insert ends when"),
            ("seed     = 7", &timed_target, "leave out `target`"),
            (
                "seed     = 7",
                "latency = {}\nfrozen = [1]",
                "leave out `frozen`",
            ),
            (
                "seed     = 7",
                "latency = { offered = [-1] }",
                "`latency.offered`: -1",
            ),
            ("seed     = 7", "speed = 7", "unknown field `speed`"),
            (
                "rounds   = 2",
                "rounds = 0",
                "`rounds`: 0 is not between 1 and 1000",
            ),
            ("0.01", "0.0", "`seconds`"),
            ("0.01", "nan", "`seconds`"),
            ("0.01", "-1.0", "`seconds`"),
            ("1000", "0", "`keys`: 0 is too few; 1000 or more"),
            ("1000", "-5", "keys"),
            ("1000", "1e3.5", "line 8"),
            ("1000", "1000.5", "`keys`: 1000.5 is not a whole number"),
            ("1000", "[]", "`keys`"),
            ("1000", "[1000, 999]", "`keys`: 999"),
            ("1000", "[1000, 1000]", "`keys`: 1000 appears twice"),
            ("load = 0.92", "load = 1.5", "`load`"),
            ("load = 0.92", "load = 0.99", "number 1, field `load`"),
            ("load = 0.92", "load = 0.92\nlod = 1", "unknown field `lod`"),
            ("lookup = 90", "lookup = 91", "sum to 100"),
            ("insert = 5", "insert = 4", "equal"),
            ("\"mix\"", "\"upsert\"", "`upsert`"),
            (
                "seed     = 7",
                twice,
                "`workload`: lookup-hit at load factor 0.92 appears twice",
            ),
        ] {
            let error = complaint(from, to);
            assert!(error.contains(expected), "{to}: {error}");
        }
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let text = "name = 'tiny'\nrounds = 0\nseconds = 0\nthreads = [0]\nkeys = 1";
        let error = Experiment::parse(text).unwrap_err().to_string();
        for field in [
            "rounds", "seconds", "threads", "keys", "subjects", "workload",
        ] {
            assert!(
                error.contains(&format!("field `{field}`: ")),
                "{field}: {error}"
            );
        }
        assert!(
            !error.contains("`seed`") && !error.contains("`title`"),
            "{error}"
        );
    }

    #[test]
    fn a_latency_is_of_the_closed_loop_and_of_other_rates() {
        let timed = GOOD.replace("seed ", "latency = { offered = [0.5] }\nseed ");
        let offered = |text: &str| {
            Experiment::parse(text)
                .unwrap()
                .offered()
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (offered(&timed), offered(GOOD)),
            (vec![0.0, 0.5], vec![0.0])
        );
    }
}
