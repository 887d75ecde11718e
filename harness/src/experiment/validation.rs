//! Checks every value of an experiment, and what values mean together. Errors name the field, and
//! say what is allowed.

use anyhow::{Context, Result, bail, ensure};

use super::threads::MAX_THREADS;
use super::{Experiment, MAX_ROUNDS, MAX_SECONDS, MIN_KEYS};
use crate::workload::Workload;

impl Experiment {
    /// Fails with the first mistake, in this order.
    pub(super) fn validate(&self) -> Result<()> {
        self.validate_names()?;
        self.validate_subjects()?;
        self.validate_frozen()?;
        self.threads.validate()?;
        self.validate_rounds()?;
        self.validate_seconds_and_keys()?;
        self.validate_workloads()?;
        if let Some(latency) = &self.latency {
            latency.validate()?;
            self.validate_as_timed()?;
        }
        self.validate_targets()
    }

    fn validate_names(&self) -> Result<()> {
        let fits = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        ensure!(
            !self.name.is_empty() && self.name.bytes().all(fits),
            "field `name`: {:?} must be lower-case letters, digits and hyphens, as it names the output files",
            self.name
        );
        ensure!(
            !self.title.trim().is_empty(),
            "field `title`: must not be empty, as it is the figure's title"
        );
        Ok(())
    }

    fn validate_subjects(&self) -> Result<()> {
        ensure!(
            !self.subjects.is_empty(),
            "field `subjects`: name at least one"
        );
        if let Some(twice) = first_repeated(&self.subjects) {
            bail!("field `subjects`: {twice:?} appears twice");
        }
        Ok(())
    }

    fn validate_frozen(&self) -> Result<()> {
        ensure!(
            !self.frozen.is_empty(),
            "field `frozen`: name at least one number; without the field it is [0]"
        );
        if let Some(frozen) = self.frozen.iter().find(|&&frozen| frozen > MAX_THREADS) {
            bail!("field `frozen`: {frozen} is not between 0 and {MAX_THREADS}");
        }
        if let Some(twice) = first_repeated(&self.frozen) {
            bail!("field `frozen`: {twice} appears twice");
        }
        Ok(())
    }

    fn validate_rounds(&self) -> Result<()> {
        ensure!(
            (1..=MAX_ROUNDS).contains(&self.rounds),
            "field `rounds`: {} is not between 1 and {MAX_ROUNDS}",
            self.rounds
        );
        Ok(())
    }

    fn validate_seconds_and_keys(&self) -> Result<()> {
        ensure!(
            self.seconds > 0.0 && self.seconds <= MAX_SECONDS,
            "field `seconds`: {} must be above 0 and at most {MAX_SECONDS}",
            self.seconds
        );
        ensure!(
            !self.keys.is_empty(),
            "field `keys`: give a number, or a list of them"
        );
        if let Some(few) = self.keys.iter().find(|&&keys| keys < MIN_KEYS) {
            bail!("field `keys`: {few} is too few; {MIN_KEYS} or more are needed");
        }
        if let Some(twice) = first_repeated(&self.keys) {
            bail!("field `keys`: {twice} appears twice");
        }
        ensure!(
            self.keys.len() == 1 || self.targets.is_empty(),
            "field `keys`: several sizes have no targets; leave out `target`"
        );
        Ok(())
    }

    fn validate_workloads(&self) -> Result<()> {
        ensure!(
            !self.workloads.is_empty(),
            "field `workload`: add at least one [[workload]] table"
        );
        for (index, workload) in self.workloads.iter().enumerate() {
            if let Err(error) = workload.validate() {
                bail!(
                    "[[workload]] number {}, field `{}`: {}",
                    index + 1,
                    error.field,
                    error.problem
                );
            }
        }
        let endless = |workload: &&Workload| self.freezes() && !workload.is_time_bounded();
        if let Some(workload) = self.workloads.iter().find(endless) {
            bail!(
                "field `frozen`: {} ends when every key is done, and so never if a thread is frozen \
                 with a lock; use a mix or lookups",
                workload.label()
            );
        }
        if let Some(twice) = first_repeated(&self.workloads) {
            bail!(
                "field `workload`: {} at load factor {} appears twice",
                twice.label(),
                twice.load()
            );
        }
        Ok(())
    }

    /// Checks that operations can be timed one by one.
    fn validate_as_timed(&self) -> Result<()> {
        ensure!(
            !self.freezes(),
            "field `latency`: operations that wait for frozen threads never end; leave out `frozen`"
        );
        ensure!(
            self.targets.is_empty(),
            "field `latency`: operations that are timed show no ratios of throughputs; leave out `target`"
        );
        if let Some(workload) = self.workloads.iter().find(|of| !of.is_time_bounded()) {
            bail!(
                "field `latency`: {} ends when every key is done, and is measured as a whole; use lookups, \
                 a mix, ycsb or window",
                workload.label()
            );
        }
        Ok(())
    }

    fn validate_targets(&self) -> Result<()> {
        ensure!(
            self.targets.is_empty() || !self.freezes(),
            "field `target`: ratios over subjects that frozen threads may stop are meaningless; leave out `frozen`"
        );
        for (index, target) in self.targets.iter().enumerate() {
            let number = index + 1;
            let named = || format!("[[target]] number {number}");
            (target.validate(&self.subjects, &self.threads, &self.workloads))
                .with_context(named)?;
        }
        Ok(())
    }
}

/// Returns the first value that appears a second time.
pub(super) fn first_repeated<T: PartialEq>(list: &[T]) -> Option<&T> {
    let repeats = |(index, value): &(usize, &T)| list[..*index].contains(value);
    list.iter()
        .enumerate()
        .find(repeats)
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::testing::{GOOD, complaint};

    #[test]
    fn impossible_values_name_their_field() {
        for (from, to, field) in [
            ("\"tiny\"", "\"../tiny\"", "`name`"),
            ("\"A tiny sweep\"", "\" \"", "`title`"),
            ("[\"lock-free\", \"roofline\"]", "[]", "`subjects`"),
            ("\"roofline\"", "\"lock-free\"", "`subjects`"),
            ("[2, 1]", "[0, 1]", "`threads`"),
            ("[2, 1]", "[1, 1]", "`threads`"),
            ("[2, 1]", "[]", "`threads`"),
            ("[2, 1]", "[1025]", "`threads`"),
            ("[2, 1]", "\"all\"", "`threads`"),
            ("[2, 1]", "[\"2y\"]", "`threads`"),
            ("[2, 1]", "[\"0x\"]", "`threads`"),
            ("[2, 1]", "[-1]", "`threads`"),
            ("seed ", "frozen = []\nseed ", "`frozen`"),
            (
                "seed ",
                "frozen = [1, 1]\nseed ",
                "`frozen`: 1 appears twice",
            ),
            ("seed ", "frozen = [1025]\nseed ", "`frozen`: 1025"),
            ("seed ", "frozen = [-1]\nseed ", "frozen"),
            (
                "seed     = 7",
                "seed = 7\nfrozen = [2]\n[[workload]]\nkind = 'insert'\nload = 0.9",
                "`frozen`: insert ends when",
            ),
            ("rounds   = 2", "rounds = 0", "`rounds`"),
            (
                "seed ",
                "pinning = \"spread\"\nseed ",
                "`pinning`: \"spread\" is none of \"cores\", \"compact\"",
            ),
            ("0.01", "0.0", "`seconds`"),
            ("0.01", "nan", "`seconds`"),
            ("0.01", "-1.0", "`seconds`"),
            ("1000", "0", "`keys`"),
            ("1000", "-5", "keys"),
            ("1000", "[]", "`keys`: give a number"),
            ("1000", "[1000, 999]", "`keys`: 999"),
            ("1000", "[1000, 1000]", "`keys`: 1000 appears twice"),
            ("load = 0.92", "load = 1.5", "`load`"),
            ("load = 0.92", "load = 0.0", "`load`"),
            ("lookup = 90", "lookup = 91", "100"),
            (
                "kind = \"lookup-hit\"",
                "kind = \"insert\"\nload = 0.92\n[[workload]]\nkind = \"insert\"",
                "`workload`: insert at load factor 0.92 appears twice",
            ),
        ] {
            let error = complaint(from, to);
            assert!(error.contains(field), "{to}: {error}");
        }
    }

    #[test]
    fn targets_and_frozen_threads_do_not_go_together() {
        let target = "[[target]]\nworkloads = ['lookup-hit']\nthreads = [1]\nsubject = 'lock-free'\n\
                      over = 'roofline'\nat_least = 0.5\naim = 0.5\n";
        let text = GOOD.to_owned() + "\n" + target;
        assert_eq!(Experiment::parse(&text).unwrap().targets.len(), 1);
        let text = text.replace("seed ", "frozen = [0, 2]\nseed ");
        let error = Experiment::parse(&text).unwrap_err().to_string();
        assert!(error.contains("`target`"), "{error}");
    }

    #[test]
    fn latencies_are_of_operations_that_end_and_do_not_end_the_measurement() {
        let timed = GOOD.replace("seed ", "latency = { offered = [0.5] }\nseed ");
        let experiment = Experiment::parse(&timed).unwrap();
        assert!(experiment.offered().eq([0.0, 0.5]));
        assert!(Experiment::parse(GOOD).unwrap().offered().eq([0.0]));
        let insert = "\n[[workload]]\nkind = 'insert'\nload = 0.9";
        let target = "\n[[target]]\nworkloads = ['lookup-hit']\nthreads = [1]\nsubject = 'lock-free'\n\
                      over = 'roofline'\nat_least = 0.5\naim = 0.5\n";
        for (text, expected) in [
            (timed.clone() + insert, "`latency`: insert ends when"),
            (timed.clone() + target, "leave out `target`"),
            (
                timed.replace("seed ", "frozen = [1]\nseed "),
                "leave out `frozen`",
            ),
            (timed.replace("[0.5]", "[-1]"), "`latency.offered`: -1"),
        ] {
            let error = Experiment::parse(&text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
