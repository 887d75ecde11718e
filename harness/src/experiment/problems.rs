//! Finds everything that is wrong with an experiment: values that are impossible by themselves or
//! together. Each problem names its field, and says what is allowed.

use std::fmt::{Debug, Display};

use anyhow::{Result, ensure};

use super::threads::{Count, MAX_THREADS, Threads};
use super::{Experiment, MAX_ROUNDS, MAX_SECONDS, MIN_KEYS};

#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    fn add(&mut self, field: &str, problem: impl Display) {
        self.0.push(format!("field `{field}`: {problem}"));
    }

    fn unless(&mut self, holds: bool, field: &str, problem: impl Display) {
        if !holds {
            self.add(field, problem);
        }
    }

    /// Checks that a list is not empty, repeats nothing, and has only values that fit.
    fn list<T: PartialEq + Debug>(
        &mut self,
        field: &str,
        list: &[T],
        range: &str,
        fits: impl Fn(&T) -> bool,
    ) {
        self.unless(!list.is_empty(), field, "name at least one");
        for wrong in list.iter().filter(|value| !fits(value)) {
            self.add(field, format!("{wrong:?} is {range}"));
        }
        if let Some(twice) = first_repeated(list) {
            self.add(field, format!("{twice:?} appears twice"));
        }
    }
}

impl Experiment {
    pub(crate) fn validate(&self) -> Result<()> {
        let mut problems = Problems::default();
        self.validate_values(&mut problems);
        self.validate_workloads(&mut problems);
        self.validate_latency(&mut problems);
        ensure!(problems.0.is_empty(), problems.0.join("\n  "));
        Ok(())
    }

    fn validate_values(&self, problems: &mut Problems) {
        let (name, rounds, seconds) = (&self.name, self.rounds, self.seconds);
        if let Some(problem) = name_problem(name) {
            problems.add("name", problem);
        }
        let title = "must not be empty, as it is the figure's title";
        problems.unless(!self.title.trim().is_empty(), "title", title);
        let between = format!("{rounds} is not between 1 and {MAX_ROUNDS}");
        problems.unless((1..=MAX_ROUNDS).contains(&rounds), "rounds", between);
        let above = format!("{seconds} must be above 0 and at most {MAX_SECONDS}");
        problems.unless(seconds > 0.0 && seconds <= MAX_SECONDS, "seconds", above);
        problems.list("subjects", &self.subjects, "", |_| true);
        if let Some(twice) = self.against.iter().find(|of| self.subjects.contains(of)) {
            problems.add("against", format!("{twice:?} is one of `subjects`"));
        } else if let Some(twice) = first_repeated(&self.against) {
            problems.add("against", format!("{twice:?} appears twice"));
        }
        let few = format!("too few; {MIN_KEYS} or more are needed");
        problems.list("keys", &self.keys, &few, |&keys| {
            let residents = |of| self.residents(of, keys);
            self.workloads.iter().map(residents).fold(keys, usize::min) >= MIN_KEYS
        });
        let between = format!("not between 0 and {MAX_THREADS}");
        problems.list("frozen", &self.frozen, &between, |&frozen| {
            frozen <= MAX_THREADS
        });
        if let Threads::List(list) = &self.threads {
            let between = format!("not between 1 and {MAX_THREADS}");
            problems.list("threads", list, &between, |count| {
                let (Count::Exactly(threads) | Count::PerCore(threads)) = count;
                (1..=MAX_THREADS).contains(threads)
            });
        }
    }

    fn validate_workloads(&self, problems: &mut Problems) {
        let one = "add at least one [[workload]] table";
        problems.unless(!self.workloads.is_empty(), "workload", one);
        for (index, workload) in self.workloads.iter().enumerate() {
            if let Err(error) = workload.validate() {
                let problem = format!("[[workload]] number {}, {error}", index + 1);
                problems.0.push(problem);
            }
            if self.freezes() && !workload.is_time_bounded() {
                let label = workload.label();
                let why = "ends when every key is done, so it may never end if a frozen thread holds a lock; use a mix or lookups";
                problems.add("frozen", format!("{label} {why}"));
            }
        }
        if let Some(twice) = first_repeated(&self.workloads) {
            let twice = format!("{} at load factor {}", twice.label(), twice.load());
            problems.add("workload", format!("{twice} appears twice"));
        }
    }

    /// Checks that operations can be timed one by one, if they are to be.
    fn validate_latency(&self, problems: &mut Problems) {
        let Some(latency) = &self.latency else { return };
        if !latency.offered.is_empty() {
            let shares = "not from 0.001 to 10: it is a share of the closed loop's throughput, which is always measured";
            problems.list("latency.offered", &latency.offered, shares, |share| {
                (0.001..=10.0).contains(share)
            });
        }
        let frozen = "operations that wait for frozen threads never end; leave out `frozen`";
        problems.unless(!self.freezes(), "latency", frozen);
        if let Some(whole) = self.workloads.iter().find(|of| !of.is_time_bounded()) {
            let label = whole.label();
            let why = "ends when every key is done, and is measured as a whole; use lookups, a mix, ycsb or window";
            problems.add("latency", format!("{label} {why}"));
        }
    }
}

/// Says why results cannot be called so; `None` if they can.
pub(crate) fn name_problem(name: &str) -> Option<String> {
    let fits = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    let what = "must be lower-case letters, digits and hyphens, as it names the output files";
    let is_name = !name.is_empty() && name.bytes().all(fits);
    (!is_name).then(|| format!("{name:?} {what}"))
}

pub(crate) fn first_repeated<T: PartialEq>(list: &[T]) -> Option<&T> {
    let repeats = |(index, value): &(usize, &T)| list[..*index].contains(value);
    let mut numbered = list.iter().enumerate();
    numbered.find(repeats).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use crate::experiment::testing::complaint;

    #[test]
    fn impossible_values_name_their_field_and_what_is_allowed() {
        let finds = |to: &str, expected: &str| {
            let error = complaint("seed     = 7", to);
            assert!(error.contains(expected), "{to}: {error}");
        };
        let insert = "[[workload]]\nkind = 'insert'\nload = 0.9";
        let ends = "`frozen`: insert ends when every key is done";
        finds(&format!("frozen = [2]\n{insert}"), ends);
        let latency = |with: &str, expected| finds(&format!("latency = {{}}\n{with}"), expected);
        latency(insert, "`latency`: insert ends when");
        latency("frozen = [1]", "leave out `frozen`");
        finds(&format!("{insert}\nlod = 1"), "unknown field `lod`");
        let twice = "`workload`: lookup-hit at load factor 0.92 appears twice";
        finds("[[workload]]\nkind = 'lookup-hit'\nload = 0.92", twice);
        // What is replaced, by what, and what the error has.
        for line in "
            \"tiny\" | \"../tiny\" | `name`
            \"A tiny sweep\" | \" \" | `title`
            [\"lock-free\", \"roofline\"] | [] | `subjects`
            \"roofline\" | \"lock-free\" | `subjects`: \"lock-free\" appears twice
            seed     = 7 | against = [\"roofline\"] | `against`: \"roofline\" is one of
            seed     = 7 | against = [\"a\", \"a\"] | `against`: \"a\" appears twice
            [2, 1] | [0, 1] | `threads`: 0 is not between 1 and 1024
            [2, 1] | [1, 1] | `threads`: 1 appears twice
            [2, 1] | [] | `threads`
            [2, 1] | [1025] | `threads`
            [2, 1] | \"all\" | `threads`
            [2, 1] | [\"2y\"] | `threads`
            [2, 1] | [\"0x\"] | `threads`
            [2, 1] | [-1] | `threads`
            seed     = 7 | frozen = [] | `frozen`
            seed     = 7 | frozen = [1, 1] | `frozen`: 1 appears twice
            seed     = 7 | frozen = [1025] | `frozen`: 1025
            seed     = 7 | frozen = [-1] | frozen
            seed     = 7 | pinning = \"spread\" | unknown variant `spread`, expected one of `cores`, `compact`
            seed     = 7 | latency = { offered = [-1] } | `latency.offered`: -1.0 is not from
            seed     = 7 | latency = { offered = [nan] } | `latency.offered`: NaN
            seed     = 7 | latency = { offered = [0] } | `latency.offered`: 0.0
            seed     = 7 | latency = { offered = [30] } | `latency.offered`: 30.0
            seed     = 7 | latency = { offered = [1, 1.0] } | `latency.offered`: 1.0 appears twice
            seed     = 7 | latency = { offered_mops = [2] } | unknown field `offered_mops`
            seed     = 7 | speed = 7 | unknown field `speed`
            rounds   = 2 | rounds = 0 | `rounds`: 0 is not between 1 and 1000
            0.01 | 0.0 | `seconds`
            0.01 | nan | `seconds`
            0.01 | -1.0 | `seconds`
            1000 | 0 | `keys`: 0 is too few; 1000 or more
            1000 | -5 | keys
            1000 | 1e3.5 | line 8
            1000 | 1000.5 | `keys`: 1000.5 is not a whole number
            1000 | [] | `keys`
            1000 | [1000, 999] | `keys`: 999
            1000 | [1000, 1000] | `keys`: 1000 appears twice
            load = 0.92 | load = 1.5 | `load`
            load = 0.92 | load = 0.99 | number 1, field `load`
            lookup = 90 | lookup = 91 | sum to 100
            insert = 5 | insert = 4 | equal
            \"mix\" | \"upsert\" | `upsert`"
            .lines()
            .skip(1)
        {
            let parts: Vec<_> = line.trim().split(" | ").collect();
            let error = complaint(parts[0], parts[1]);
            assert!(error.contains(parts[2]), "{line}: {error}");
        }
    }
}
