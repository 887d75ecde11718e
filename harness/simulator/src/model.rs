//! The model of a machine: prices and sizes, from a TOML file.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};
use toml::Value;

/// The files of the machines that come with this crate.
const PRESETS: [&str; 5] = [
    include_str!("../machines/ice-lake-8375c.toml"),
    include_str!("../machines/ice-lake-8375c-2s.toml"),
    include_str!("../machines/milan-7r13.toml"),
    include_str!("../machines/sapphire-rapids.toml"),
    include_str!("../machines/graviton-3.toml"),
];

/// Assumed numbers whose spread is known: the least and the greatest value that probes found in seven runs on an
/// Emerald Rapids and, with earlier probes, for `kept` and `overlap` on a Zen 4. Other machines may be further apart: a
/// Zen 5 had 0.50 and 0.56 for `kept`, 0.97 and 0.99 for `unawaited` and, with near cores, 11.7 for
/// `overlap.exchanges`.
const MEASURED: [(&str, f64, f64); 5] = [
    ("kept", 0.14, 0.333),
    ("unawaited", 1.07, 1.41),
    ("overlap.loads", 3.3, 13.7),
    ("overlap.exchanges", 2.0, 3.4),
    ("overlap.upgrades", 1.7, 10.4),
];

/// Nanoseconds of an operation on one thread with a cached table, by subject and workload.
pub type Alone = BTreeMap<String, BTreeMap<String, f64>>;

/// The field of these times.
const ALONE_FIELD: &str = "alone";

/// Times measured once, for machines whose file has none.
const ALONE: &str = include_str!("../machines/alone.toml");

/// A machine. All prices are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Its name in results: lower-case letters, digits and hyphens.
    pub name: String,
    pub description: String,
    pub sockets: usize,
    /// Cores of a socket; threads of one core are not modelled.
    pub cores_per_socket: usize,
    /// Cores that are nearest to one another, such as a core complex.
    pub cores_per_group: usize,
    /// Whether a last-level cache belongs to a group, not to a socket.
    pub llc_of_group: bool,
    /// Names of the fields without a source: they are assumed.
    pub assumed: Vec<String>,
    /// What it takes until one core has a line that another one has written.
    pub hand_over: HandOver,
    pub l1: Level,
    pub l2: Level,
    pub llc: Level,
    pub memory: f64,
    /// An exchange of a word in the nearest cache.
    pub exchange: f64,
    /// A branch that the core did not foresee, as after an exchange that fails.
    pub mispredicted: f64,
    /// Share of a hand-over for which the last owner can still use the line.
    pub kept: f64,
    /// What it takes to get a line that another core wrote some time ago, as a multiple of a hand-over for
    /// which a core was waiting already.
    pub unawaited: f64,
    /// How many independent accesses of a core are under way at a time, if it computes as much between two of them as
    /// one lookup does in all.
    pub overlap: Overlap,
    pub waiting: Waiting,
    /// Operations on one thread; if the file has none, times measured elsewhere are assumed.
    #[serde(default)]
    pub alone: Alone,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandOver {
    pub group: f64,
    pub socket: f64,
    pub other_socket: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    pub kib: usize,
    pub ways: usize,
    /// Latency of a load that finds its line there.
    pub ns: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overlap {
    pub loads: f64,
    /// Exchanges of words that were not loaded before.
    pub exchanges: f64,
    /// Exchanges of words that were just loaded.
    pub upgrades: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Waiting {
    pub pause: f64,
    /// A yield of the core when no other thread wants it.
    pub give: f64,
    /// A system call that finds nothing to do: it wakes no thread, or has nothing to wait for any more.
    /// Going to sleep costs as much.
    pub call: f64,
    /// Waking a sleeper: what the waker pays.
    pub wake: f64,
    /// From then until the sleeper runs.
    pub awake: f64,
}

impl Model {
    /// Returns one of the machines that come with this crate.
    pub fn named(name: &str) -> Result<Self> {
        let presets = PRESETS.map(Self::parse).into_iter();
        let mut presets: Vec<Self> = presets.collect::<Result<_>>()?;
        let known: Vec<&str> = presets.iter().map(|preset| &*preset.name).collect();
        let place = known.iter().position(|known| *known == name);
        let known = known.join(", ");
        let place = place
            .with_context(|| format!("no machine is called {name:?}; the machines are {known}"))?;
        Ok(presets.swap_remove(place))
    }

    fn parse(text: &str) -> Result<Self> {
        let mut model: Self = toml::from_str(text)?;
        if model.alone.is_empty() {
            model.alone = toml::from_str(ALONE).context("in the times of one thread")?;
            model.assumed.push(ALONE_FIELD.into());
        }
        Ok(model)
    }

    pub fn cores(&self) -> usize {
        self.sockets * self.cores_per_socket
    }

    /// Returns the hand-over latency between two cores.
    pub fn between(&self, one: usize, other: usize) -> f64 {
        if one / self.cores_per_group == other / self.cores_per_group {
            self.hand_over.group
        } else if one / self.cores_per_socket == other / self.cores_per_socket {
            self.hand_over.socket
        } else {
            self.hand_over.other_socket
        }
    }

    /// Returns the number of the last-level cache that a core uses.
    pub fn llc_of(&self, core: usize) -> usize {
        core / if self.llc_of_group {
            self.cores_per_group
        } else {
            self.cores_per_socket
        }
    }

    /// Returns this machine with each assumed number drawn again: from the range in which it was measured
    /// on other machines, or else from half to twice what it is here. Numbers that count things stay, and
    /// the times of one thread count as one number.
    pub fn drawn(&self, seed: u64) -> Result<Self> {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut drawn = |low: f64, high: f64| random.random_range(low.ln()..=high.ln()).exp();
        let mut table = Value::try_from(self)?;
        for field in &self.assumed {
            let measured = MEASURED.into_iter().find(|(name, ..)| field == name);
            let mut draw = |value: &mut Value| match measured {
                Some((_, low, high)) => *value = drawn(low, high).into(),
                None => *value = scaled(value.clone(), drawn(0.5, 2.0)),
            };
            match find(&mut table, field)? {
                Value::Table(group) if field != ALONE_FIELD => {
                    group.iter_mut().for_each(|(_, value)| draw(value));
                }
                value => draw(value),
            }
        }
        Ok(table.try_into()?)
    }
}

/// Returns a field by its name, whose parts are separated by dots.
fn find<'a>(table: &'a mut Value, field: &str) -> Result<&'a mut Value> {
    let mut parts = field.split('.');
    (parts.try_fold(table, |at, key| at.get_mut(key)))
        .with_context(|| format!("field `assumed`: there is no field `{field}`"))
}

/// Multiplies a number, or all numbers of a table.
fn scaled(mut value: Value, factor: f64) -> Value {
    (numbers(&mut value).into_iter()).for_each(|number| *number *= factor);
    value
}

/// Returns a number, or all numbers of a table, except for those that count things.
fn numbers(value: &mut Value) -> Vec<&mut f64> {
    match value {
        Value::Float(number) => vec![number],
        Value::Table(table) => table
            .iter_mut()
            .flat_map(|(_, value)| numbers(value))
            .collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_machine_assumes_only_known_fields() {
        for text in PRESETS {
            let model = Model::parse(text).unwrap();
            assert_eq!(Model::named(&model.name).unwrap(), model);
            model.drawn(1).unwrap();
        }
    }

    #[test]
    fn assumed_numbers_are_drawn_from_their_ranges() {
        let model = Model::named("sapphire-rapids").unwrap();
        let mut table = Value::try_from(&model).unwrap();
        for (name, ..) in MEASURED {
            find(&mut table, name).unwrap();
        }
        let all = [1, 2, 3, 4, 5, 6, 7, 8].map(|seed| model.drawn(seed).unwrap());
        let is_drawn = |number: fn(&Model) -> f64, low: f64, high: f64| {
            for drawn in &all {
                assert!((low..=high).contains(&number(drawn)), "{}", number(drawn));
            }
            all.windows(2).all(|two| number(&two[0]) != number(&two[1]))
        };
        assert!(is_drawn(|model| model.kept, 0.14, 0.333));
        assert!(is_drawn(|model| model.overlap.upgrades, 1.7, 10.4));
        let call = model.waiting.call;
        assert!(is_drawn(|model| model.waiting.call, call / 2.0, call * 2.0));
        for drawn in &all {
            // All times of one thread are drawn together; what is known, and what counts, stays.
            let factor =
                |subject: &str| drawn.alone[subject]["lookup"] / model.alone[subject]["lookup"];
            assert!((factor("lock-free") / factor("word-lock") - 1.0).abs() < 1e-9);
            assert_ne!(factor("lock-free"), 1.0);
            assert_eq!(drawn.hand_over, model.hand_over);
            assert_eq!(drawn.cores(), model.cores());
        }
        assert_eq!(all[0], model.drawn(1).unwrap());
        let assumed = vec!["sokets".into()];
        let wrong = Model { assumed, ..model };
        let error = wrong.drawn(1).unwrap_err().to_string();
        assert!(error.contains("sokets"), "{error}");
    }
}
