//! Workloads: the operations of a measurement's threads, as an experiment names them.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};
use subject::Operations;

/// Beyond this load factor, buckets of four slots cannot be filled reliably.
pub const MAX_LOAD: f64 = 0.98;

/// Below this load factor, a table is nearly all empty.
pub const MIN_LOAD: f64 = 1e-6;

/// Beyond this Zipf exponent, nearly every choice is the same key.
pub const MAX_SKEW: f64 = 5.0;

/// A workload: a `[[workload]]` table of an experiment, which selects it by `kind`.
///
/// `load` is a load factor, occupied slots over all slots, from [`MIN_LOAD`] to [`MAX_LOAD`]: the one that
/// the filter has throughout, or that a fill ends at and a removal starts from. `hit` is the percentage
/// of lookups for present keys, and `skew` the exponent of the Zipf law by which
/// keys are chosen; 0 if all are equally likely. The other numbers are percentages of operations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Workload {
    /// Looks up present keys, all of which must be found.
    LookupHit { load: f64 },
    /// Looks up keys that were never inserted.
    LookupMiss { load: f64 },
    /// Fills an empty filter.
    Insert { load: f64 },
    /// Empties a filled filter.
    Remove { load: f64 },
    /// Lookups, inserts and removes together, which sum to 100. There are as many inserts as removes,
    /// which keeps the load factor constant.
    Mix {
        lookup: u8,
        insert: u8,
        remove: u8,
        #[serde(default = "default_hit")]
        hit: u8,
        load: f64,
    },
    /// Looks up keys, some in the filter and others never inserted, in random order.
    Lookup {
        load: f64,
        #[serde(default = "default_hit")]
        hit: u8,
        #[serde(default)]
        skew: f64,
    },
    /// A workload of the Yahoo! Cloud Serving Benchmark, adapted to a set: see [`Ycsb`].
    Ycsb {
        mix: Ycsb,
        load: f64,
        #[serde(default = "default_ycsb_skew")]
        skew: f64,
    },
    /// Slides a window: removes the oldest key and inserts a new one, as one operation, with
    /// lookups of keys in the window in between, of newer ones more often if there is a skew. Each
    /// thread has its own window; all answers are known and checked.
    Window {
        lookup: u8,
        load: f64,
        #[serde(default)]
        skew: f64,
    },
}

/// The workloads of the Yahoo! Cloud Serving Benchmark that update keys: all except C, which is a
/// [lookup](Workload::Lookup), D, which a [window](Workload::Window) resembles, and E, which scans ranges.
///
/// An *update* gives a key another value; here it removes the key and inserts it again, as one
/// operation. All threads look up and update the same keys, as often as the law says, so that they
/// meet at the likeliest. During an update the key is absent: others may miss it then, and
/// their updates find nothing to remove and insert nothing. A thread therefore checks every answer only if
/// it works alone, and the engine checks that every key is present as often as before when all
/// threads are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ycsb {
    /// Update heavy: half lookups, half updates.
    A,
    /// Read mostly: 95 % lookups, 5 % updates.
    B,
    /// Read, modify, write: half lookups, half updates that first look the key up.
    F,
}

impl Ycsb {
    /// Returns the percentage of operations that are lookups and nothing else.
    pub fn lookup(self) -> u8 {
        match self {
            Self::A | Self::F => 50,
            Self::B => 95,
        }
    }
}

/// The columns of a row that describe a workload, and its title.
struct Facts {
    load: f64,
    hit: Option<u8>,
    skew: f64,
    label: String,
    title: String,
}

fn default_hit() -> u8 {
    50
}

fn default_ycsb_skew() -> f64 {
    0.99
}

impl Workload {
    /// Returns the load factor that the workload holds, starts from or reaches.
    pub fn load(&self) -> f64 {
        self.facts().load
    }

    /// Returns the percentage of lookups that ask for a present key, if there are lookups.
    pub fn hit(&self) -> Option<u8> {
        self.facts().hit
    }

    /// Returns the exponent of the Zipf law by which keys are chosen; 0 if all are equally likely.
    pub fn skew(&self) -> f64 {
        self.facts().skew
    }

    /// Returns a short name for CSV and figure, such as `lookup-hit` or `mix-90-5-5`. It omits load
    /// factor, hit percentage and skew, which have their own columns; but the name of a mix
    /// includes its hit percentage unless it is the usual 50 %.
    pub fn label(&self) -> String {
        self.facts().label
    }

    /// Describes the operations, for figures that show load factor, hits and skew otherwise.
    pub fn title(&self) -> String {
        self.facts().title
    }

    fn facts(&self) -> Facts {
        let facts = |load, hit, skew, label: &str, title: &str| Facts {
            load,
            hit,
            skew,
            label: label.into(),
            title: title.into(),
        };
        match *self {
            Self::LookupHit { load } => {
                facts(load, Some(100), 0.0, "lookup-hit", "Lookup, key present")
            }
            Self::LookupMiss { load } => {
                facts(load, Some(0), 0.0, "lookup-miss", "Lookup, key absent")
            }
            Self::Insert { load } => facts(load, None, 0.0, "insert", "Insert, from empty"),
            Self::Remove { load } => facts(load, None, 0.0, "remove", "Remove, to empty"),
            Self::Lookup { load, hit, skew } => facts(load, Some(hit), skew, "lookup", "Lookup"),
            Self::Mix {
                lookup,
                insert,
                remove,
                hit,
                load,
            } => {
                let (mut label, mut hits) =
                    (format!("mix-{lookup}-{insert}-{remove}"), String::new());
                if hit != default_hit() {
                    label += &format!("-hit-{hit}");
                    hits = format!(", {hit} % hits");
                }
                let title =
                    format!("{lookup} % lookup{hits}, {insert} % insert, {remove} % remove");
                facts(load, (lookup > 0).then_some(hit), 0.0, &label, &title)
            }
            Self::Ycsb { mix, load, skew } => {
                let (label, title) = match mix {
                    Ycsb::A => ("ycsb-a", "YCSB A: 50 % lookup, 50 % update"),
                    Ycsb::B => ("ycsb-b", "YCSB B: 95 % lookup, 5 % update"),
                    Ycsb::F => ("ycsb-f", "YCSB F: 50 % lookup, 50 % lookup and update"),
                };
                facts(load, Some(100), skew, label, title)
            }
            Self::Window { lookup, load, skew } => {
                let slide = 100 - lookup.min(100);
                let label = format!("window-{lookup}-{slide}");
                let title =
                    format!("Sliding window: {lookup} % lookup, {slide} % insert for the oldest");
                facts(load, (lookup > 0).then_some(100), skew, &label, &title)
            }
        }
    }

    /// Returns whether it lasts for the experiment's `seconds`, or until every key is done.
    pub fn is_time_bounded(&self) -> bool {
        !matches!(self, Self::Insert { .. } | Self::Remove { .. })
    }

    /// Returns whether threads do nothing but look keys up, so that measurements can share a table.
    pub fn only_looks_up(&self) -> bool {
        self.needs() == Operations::LOOKUP
    }

    /// Returns what a subject must support to run this workload. A subject that cannot insert can
    /// still be searched: lookups are measured over whatever its table holds.
    pub fn needs(&self) -> Operations {
        match self {
            Self::LookupHit { .. } | Self::LookupMiss { .. } | Self::Lookup { .. } => {
                Operations::LOOKUP
            }
            Self::Insert { .. } => Operations::INSERT_ONLY,
            Self::Remove { .. } | Self::Mix { lookup: 0, .. } => Operations::UPDATES,
            Self::Mix { .. } | Self::Ycsb { .. } | Self::Window { .. } => Operations::ALL,
        }
    }

    /// Returns how many lookups, inserts and removes an operation makes, on average.
    #[cfg(feature = "simulation")]
    pub fn shares(&self) -> [f64; 3] {
        let percent = |lookups: u8, updates: u8| [lookups, updates, updates].map(f64::from);
        let shares = match *self {
            Self::LookupHit { .. } | Self::LookupMiss { .. } | Self::Lookup { .. } => {
                [100.0, 0.0, 0.0]
            }
            Self::Insert { .. } => [0.0, 100.0, 0.0],
            Self::Remove { .. } => [0.0, 0.0, 100.0],
            Self::Mix { lookup, insert, .. } => percent(lookup, insert),
            Self::Ycsb { mix: Ycsb::F, .. } => percent(100, 50),
            Self::Ycsb { mix, .. } => percent(mix.lookup(), 100 - mix.lookup()),
            Self::Window { lookup, .. } => percent(lookup, 100 - lookup),
        };
        shares.map(|share: f64| share / 100.0)
    }
}

impl Workload {
    /// Checks every value. An error begins with the field at fault.
    pub fn validate(&self) -> Result<()> {
        let (load, skew) = (self.load(), self.skew());
        ensure!(
            (MIN_LOAD..=MAX_LOAD).contains(&load),
            "field `load`: {load:?} is not a usable load factor: it must be from {MIN_LOAD:?} to {MAX_LOAD}"
        );
        ensure!(
            (0.0..=MAX_SKEW).contains(&skew),
            "field `skew`: {skew} is not a usable Zipf exponent: it must be from 0, for no skew, to {MAX_SKEW}"
        );
        match *self {
            Self::Mix {
                lookup,
                insert,
                remove,
                hit,
                ..
            } => {
                percentages(&[("lookup", lookup), ("insert", insert), ("hit", hit)])?;
                ensure!(
                    insert == remove,
                    "field `insert`: {insert} must equal remove ({remove}), so that the load factor holds"
                );
                let sum = u16::from(lookup) + u16::from(insert) + u16::from(remove);
                ensure!(
                    sum == 100,
                    "field `lookup`: lookup, insert and remove are percentages and must sum to 100, not {sum}"
                );
                Ok(())
            }
            Self::Lookup { hit, .. } => percentages(&[("hit", hit)]),
            Self::Window { lookup, .. } => percentages(&[("lookup", lookup)]),
            _ => Ok(()),
        }
    }

    /// Checks that each thread has a key of its own, where threads insert and remove keys. A thread without
    /// one would do nothing, yet count as a thread, and a simulation would never end.
    pub fn check_keys(&self, keys: usize, threads: usize) -> Result<()> {
        // Half of the keys of a mix stay in the table.
        let each = match self {
            Self::Mix { insert: 1.., .. } => 2,
            Self::Window { .. } => 1,
            _ => return Ok(()),
        };
        let (enough, most, label) = (threads * each, keys / each, self.label());
        ensure!(
            keys >= enough,
            "field `keys`: {keys} are too few for {threads} threads, each of which inserts and removes keys of its \
             own under {label}: use {enough} keys or more, or at most {most} threads"
        );
        Ok(())
    }
}

fn percentages(fields: &[(&str, u8)]) -> Result<()> {
    for (field, percent) in fields {
        ensure!(
            *percent <= 100,
            "field `{field}`: {percent} is not a percentage: it must be from 0 to 100"
        );
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Parses a kind with its fields; the load factor is 0.9 unless they state it.
    pub(crate) fn parse(text: &str) -> std::result::Result<Workload, toml::de::Error> {
        let (kind, fields) = text.split_once(' ').unwrap_or((text, ""));
        let has_load = text.contains("load");
        let load = if has_load { "" } else { "load=0.9" };
        let fields = fields.replace(' ', "\n");
        toml::from_str(&format!("kind='{kind}'\n{load}\n{fields}"))
    }

    #[test]
    fn kinds_have_labels_hits_and_skews() {
        for line in [
            "mix lookup=90 insert=5 remove=5 | mix-90-5-5 Some(50) 0",
            "mix lookup=90 insert=5 remove=5 hit=99 | mix-90-5-5-hit-99 Some(99) 0",
            "lookup | lookup Some(50) 0",
            "insert | insert None 0",
            "lookup hit=25 skew=1.2 | lookup Some(25) 1.2",
            "ycsb mix='a' | ycsb-a Some(100) 0.99",
            "window lookup=75 | window-75-25 Some(100) 0",
            "lookup-hit | lookup-hit Some(100) 0",
        ] {
            let (text, expected) = line.split_once(" | ").unwrap();
            let workload = parse(text).unwrap();
            workload.validate().unwrap();
            let (label, hit, skew) = (workload.label(), workload.hit(), workload.skew());
            assert_eq!(format!("{label} {hit:?} {skew}"), expected, "{text}");
            let written = toml::to_string(&workload).unwrap();
            assert_eq!(toml::from_str(&written), Ok(workload), "{written}");
        }
    }

    #[test]
    fn impossible_values_name_their_field() {
        for (text, field) in [
            ("insert load=0.99", "load"),
            ("insert load=nan", "load"),
            ("insert load=1e-300", "load"),
            ("mix lookup=90 insert=6 remove=4", "insert"),
            ("mix lookup=90 insert=6 remove=6", "lookup"),
            ("mix lookup=101 insert=0 remove=0", "lookup"),
            ("lookup hit=101", "hit"),
            ("lookup skew=6", "skew"),
            ("ycsb mix='a' skew=-1", "skew"),
            ("window lookup=101", "lookup"),
        ] {
            let error = parse(text).unwrap().validate().unwrap_err().to_string();
            assert!(error.starts_with(&format!("field `{field}`")), "{error}");
        }
    }
}
