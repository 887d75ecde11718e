//! Workloads: what the threads of a measurement do, as an experiment may ask for it.

pub mod arrivals;
pub mod clock;
pub mod draw;
pub mod keys;
pub mod latency;
pub mod lines;
mod names;
pub mod phase;
mod validation;

use serde::{Deserialize, Serialize};
use subject::Operations;

pub use validation::InvalidWorkload;

/// The highest load factor a workload may state: beyond it, buckets of four slots cannot be filled
/// reliably.
pub const MAX_LOAD: f64 = 0.98;

/// The highest Zipf exponent that a workload may state: beyond it, nearly every choice is the same
/// key.
pub const MAX_SKEW: f64 = 5.0;

/// A workload: a `[[workload]]` table of an experiment, which selects it by `kind`.
///
/// `load` is a load factor: occupied slots over all slots, above 0 and at most [`MAX_LOAD`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Workload {
    /// Looks up keys that are in the filter, all of which must be found.
    LookupHit {
        /// Load factor of the filter that is searched.
        load: f64,
    },
    /// Looks up keys that were never inserted.
    LookupMiss {
        /// Load factor of the filter that is searched.
        load: f64,
    },
    /// Fills an empty filter.
    Insert {
        /// Load factor at which the fill ends.
        load: f64,
    },
    /// Empties a filled filter.
    Remove {
        /// Load factor from which the removal starts.
        load: f64,
    },
    /// Lookups, inserts and removes together. Their percentages sum to 100, and there are as many
    /// inserts as removes, which keeps the load factor constant.
    Mix {
        /// Percentage of operations that are lookups.
        lookup: u8,
        /// Percentage of operations that are inserts.
        insert: u8,
        /// Percentage of operations that are removes; equal to `insert`.
        remove: u8,
        /// Percentage of the lookups that ask for a key that is in the filter.
        #[serde(default = "default_hit")]
        hit: u8,
        /// Load factor, constant throughout.
        load: f64,
    },
    /// Looks up keys, some in the filter and others never inserted, in random order.
    Lookup {
        /// Load factor of the filter that is searched.
        load: f64,
        /// Percentage of the lookups that ask for a key that is in the filter.
        #[serde(default = "default_hit")]
        hit: u8,
        /// Exponent of the Zipf law by which keys are chosen; 0 if all are equally likely.
        #[serde(default)]
        skew: f64,
    },
    /// One of the workloads of the Yahoo! Cloud Serving Benchmark, adapted to a set without values:
    /// see [`Ycsb`].
    Ycsb {
        /// Which of these workloads.
        mix: Ycsb,
        /// Load factor, constant throughout.
        load: f64,
        /// Exponent of the Zipf law by which keys are chosen; 0 if all are equally likely.
        #[serde(default = "default_ycsb_skew")]
        skew: f64,
    },
    /// Slides a window: removes the oldest key and inserts a new one, as one operation, with
    /// lookups of keys in the window in between. Each thread has its own window; all answers are
    /// known and checked.
    Window {
        /// Percentage of operations that are lookups; the others slide the window.
        lookup: u8,
        /// Load factor, constant throughout.
        load: f64,
        /// Exponent of the Zipf law by which newer keys are looked up more often; 0 if all keys in
        /// the window are equally likely.
        #[serde(default)]
        skew: f64,
    },
    /// Fills a filter, with lookups of keys already inserted and of absent keys in between.
    Grow {
        /// Percentage of operations that are inserts.
        insert: u8,
        /// Percentage of operations that are lookups; together with `insert`, 100.
        lookup: u8,
        /// Percentage of the lookups that ask for a key that has been inserted.
        #[serde(default = "default_hit")]
        hit: u8,
        /// Load factor at which it starts.
        #[serde(default)]
        from: f64,
        /// Load factor at which it ends.
        load: f64,
    },
}

/// The workloads of the Yahoo! Cloud Serving Benchmark. E, which scans ranges, has no counterpart.
///
/// An *update* gives a key another value; here it removes the key and inserts it again, as one
/// operation. All threads look up and update the same keys, as often as the law says, so that they
/// meet at the likeliest. During an update the key is absent: meanwhile others may miss it, and
/// their updates find nothing to remove and insert nothing. So a thread checks every answer only if
/// it works alone, and the runner checks that every key is present as often as before when all
/// threads are done. An *insert* (D) must not let the filter grow, so the new key replaces the
/// oldest: a [window](Workload::Window) for each thread, in all of which every thread looks up
/// newer keys more often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ycsb {
    /// Update heavy: half lookups, half updates.
    A,
    /// Read mostly: 95 % lookups, 5 % updates.
    B,
    /// Read only.
    C,
    /// Read latest: 95 % lookups, mostly of new keys, and 5 % inserts.
    D,
    /// Read, modify, write: half lookups, half updates that first look the key up.
    F,
}

impl Ycsb {
    /// Returns the percentage of operations that are lookups and nothing else.
    pub fn lookup(self) -> u8 {
        match self {
            Self::A | Self::F => 50,
            Self::B | Self::D => 95,
            Self::C => 100,
        }
    }

    /// Returns whether keys are updated, by all threads.
    pub fn updates(self) -> bool {
        matches!(self, Self::A | Self::B | Self::F)
    }
}

fn default_hit() -> u8 {
    50
}

/// Returns the skew of the benchmark.
fn default_ycsb_skew() -> f64 {
    0.99
}

impl Workload {
    /// Returns the load factor that the workload states, whether it holds it, starts from it or
    /// reaches it.
    pub fn load(&self) -> f64 {
        match *self {
            Self::LookupHit { load }
            | Self::LookupMiss { load }
            | Self::Insert { load }
            | Self::Remove { load }
            | Self::Mix { load, .. }
            | Self::Lookup { load, .. }
            | Self::Ycsb { load, .. }
            | Self::Window { load, .. }
            | Self::Grow { load, .. } => load,
        }
    }

    /// Returns the percentage of lookups that ask for a present key; 0 without lookups.
    pub fn hit(&self) -> u8 {
        match *self {
            Self::LookupMiss { .. } | Self::Insert { .. } | Self::Remove { .. } => 0,
            Self::LookupHit { .. } | Self::Ycsb { .. } | Self::Window { .. } => 100,
            Self::Mix { hit, .. } | Self::Lookup { hit, .. } | Self::Grow { hit, .. } => hit,
        }
    }

    /// Returns the exponent of the Zipf law by which keys are chosen; 0 if all are equally likely.
    pub fn skew(&self) -> f64 {
        match *self {
            Self::Lookup { skew, .. } | Self::Ycsb { skew, .. } | Self::Window { skew, .. } => skew,
            _ => 0.0,
        }
    }

    /// Returns whether the measurement lasts for the experiment's `seconds`, rather than until
    /// every key is done.
    pub fn is_time_bounded(&self) -> bool {
        !matches!(
            self,
            Self::Insert { .. } | Self::Remove { .. } | Self::Grow { .. }
        )
    }

    /// Returns whether keys are inserted or removed, so that every measurement needs its own table.
    pub fn changes_the_table(&self) -> bool {
        !self.only_looks_up()
    }

    /// Returns whether threads do nothing but look keys up.
    pub fn only_looks_up(&self) -> bool {
        matches!(
            self,
            Self::LookupHit { .. }
                | Self::LookupMiss { .. }
                | Self::Lookup { .. }
                | Self::Ycsb { mix: Ycsb::C, .. }
        )
    }

    /// Returns what a subject must support to run this workload. A subject that cannot insert can
    /// still be searched: lookups are measured over whatever its table holds.
    pub fn needs(&self) -> Operations {
        match self {
            Self::LookupHit { .. } | Self::LookupMiss { .. } | Self::Lookup { .. } => {
                Operations::LOOKUP
            }
            Self::Insert { .. } => Operations::INSERT_ONLY,
            Self::Grow { .. } | Self::Ycsb { mix: Ycsb::C, .. } => Operations::INSERT,
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
            Self::Grow { insert, lookup, .. } => [lookup.into(), insert.into(), 0.0],
        };
        shares.map(|share: f64| share / 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Workload, toml::de::Error> {
        toml::from_str(text)
    }

    fn field_at_fault(workload: &Workload) -> Option<&'static str> {
        workload.validate().err().map(|error| error.field)
    }

    #[test]
    fn an_unknown_field_or_kind_is_refused_by_name() {
        for (text, named) in [
            ("kind = 'insert'\nload = 0.9\nspeed = 3", "speed"),
            ("kind = 'scan'\nload = 0.9", "lookup-hit"),
            ("kind = 'insert'", "load"),
            ("kind = 'ycsb'\nmix = 'e'\nload = 0.9", "`e`"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn only_workable_load_factors_are_valid() {
        for load in [0.0, -0.5, 0.99, 1.0, f64::NAN, f64::INFINITY] {
            let field = field_at_fault(&Workload::Insert { load });
            assert_eq!(field, Some("load"), "{load}");
        }
        for load in [0.01, 0.5, MAX_LOAD] {
            assert_eq!(field_at_fault(&Workload::Insert { load }), None, "{load}");
        }
    }

    #[test]
    fn a_mix_sums_to_a_hundred_and_holds_its_load() {
        let mix = |lookup, insert, remove| Workload::Mix {
            lookup,
            insert,
            remove,
            hit: 50,
            load: 0.9,
        };
        assert_eq!(field_at_fault(&mix(100, 0, 0)), None);
        assert_eq!(field_at_fault(&mix(90, 6, 4)), Some("insert"));
        assert_eq!(field_at_fault(&mix(90, 6, 6)), Some("lookup"));
        assert_eq!(field_at_fault(&mix(101, 0, 0)), Some("lookup"));
    }

    const KINDS: [(&str, &str, u8, f64); 10] = [
        (
            "kind = 'mix'\nlookup = 90\ninsert = 5\nremove = 5\nload = 0.9",
            "mix-90-5-5",
            50,
            0.0,
        ),
        (
            "kind = 'mix'\nlookup = 90\ninsert = 5\nremove = 5\nhit = 99\nload = 0.9",
            "mix-90-5-5-hit-99",
            99,
            0.0,
        ),
        ("kind = 'lookup'\nload = 0.9", "lookup", 50, 0.0),
        (
            "kind = 'lookup'\nload = 0.9\nhit = 25\nskew = 1.2",
            "lookup",
            25,
            1.2,
        ),
        ("kind = 'ycsb'\nmix = 'a'\nload = 0.9", "ycsb-a", 100, 0.99),
        (
            "kind = 'ycsb'\nmix = 'd'\nload = 0.9\nskew = 0",
            "ycsb-d",
            100,
            0.0,
        ),
        (
            "kind = 'window'\nlookup = 75\nload = 0.9",
            "window-75-25",
            100,
            0.0,
        ),
        (
            "kind = 'grow'\ninsert = 25\nlookup = 75\nload = 0.9",
            "grow-25-75",
            50,
            0.0,
        ),
        (
            "kind = 'grow'\ninsert = 25\nlookup = 75\nhit = 10\nfrom = 0.5\nload = 0.9",
            "grow-25-75-from-0.5",
            10,
            0.0,
        ),
        ("kind = 'lookup-hit'\nload = 0.9", "lookup-hit", 100, 0.0),
    ];

    #[test]
    fn each_kind_has_its_label_hits_and_skew() {
        for (text, label, hit, skew) in KINDS {
            let workload = parse(text).unwrap();
            workload.validate().unwrap();
            let found = (workload.label(), workload.hit(), workload.skew());
            assert_eq!(found, (label.into(), hit, skew), "{text}");
            let written = toml::to_string(&workload).unwrap();
            assert_eq!(parse(&written).unwrap(), workload, "{written}");
        }
    }

    #[test]
    fn impossible_values_of_each_kind_name_their_field() {
        for (text, field) in [
            ("kind = 'lookup'\nload = 0.9\nhit = 101", "hit"),
            ("kind = 'lookup'\nload = 0.9\nskew = -0.5", "skew"),
            ("kind = 'lookup'\nload = 0.9\nskew = 6", "skew"),
            ("kind = 'lookup'\nload = 0.9\nskew = nan", "skew"),
            ("kind = 'ycsb'\nmix = 'a'\nload = 0.9\nskew = -1", "skew"),
            ("kind = 'window'\nlookup = 101\nload = 0.9", "lookup"),
            (
                "kind = 'grow'\ninsert = 0\nlookup = 100\nload = 0.9",
                "insert",
            ),
            (
                "kind = 'grow'\ninsert = 50\nlookup = 49\nload = 0.9",
                "lookup",
            ),
            (
                "kind = 'grow'\ninsert = 50\nlookup = 50\nfrom = 0.9\nload = 0.9",
                "from",
            ),
            (
                "kind = 'grow'\ninsert = 50\nlookup = 50\nfrom = -0.1\nload = 0.9",
                "from",
            ),
            (
                "kind = 'grow'\ninsert = 50\nlookup = 50\nhit = 200\nload = 0.9",
                "hit",
            ),
        ] {
            assert_eq!(field_at_fault(&parse(text).unwrap()), Some(field), "{text}");
        }
    }
}
