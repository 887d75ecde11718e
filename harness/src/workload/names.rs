//! What workloads are called: in a CSV file, in a figure, and in full.

use super::{Workload, Ycsb, default_hit};

impl Ycsb {
    fn letter(self) -> char {
        match self {
            Self::A => 'a',
            Self::B => 'b',
            Self::C => 'c',
            Self::D => 'd',
            Self::F => 'f',
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Self::A => "50 % lookup, 50 % update",
            Self::B => "95 % lookup, 5 % update",
            Self::C => "lookup only",
            Self::D => "95 % lookup of new keys, 5 % insert for the oldest",
            Self::F => "50 % lookup, 50 % lookup and update",
        }
    }
}

impl Workload {
    /// Returns a short name for CSV and figure, such as `lookup-hit` or `mix-90-5-5`. It omits load
    /// factor, hit percentage and skew, which have their own columns; but the name of a mix
    /// includes its hit percentage unless it is the usual 50 %.
    pub fn label(&self) -> String {
        match *self {
            Self::LookupHit { .. } => "lookup-hit".into(),
            Self::LookupMiss { .. } => "lookup-miss".into(),
            Self::Insert { .. } => "insert".into(),
            Self::Remove { .. } => "remove".into(),
            Self::Mix {
                lookup,
                insert,
                remove,
                hit,
                ..
            } => {
                let hits = unusual(hit, |hit| format!("-hit-{hit}"));
                format!("mix-{lookup}-{insert}-{remove}{hits}")
            }
            Self::Lookup { .. } => "lookup".into(),
            Self::Ycsb { mix, .. } => format!("ycsb-{}", mix.letter()),
            Self::Window { lookup, .. } => format!("window-{lookup}-{}", 100 - lookup.min(100)),
            Self::Grow {
                insert,
                lookup,
                from,
                ..
            } => {
                let from = match from {
                    0.0 => String::new(),
                    from => format!("-from-{from}"),
                };
                format!("grow-{insert}-{lookup}{from}")
            }
        }
    }

    /// Returns a full description, such as `Lookup, key present (load factor 0.92)`.
    pub fn describe(&self) -> String {
        let hits = match *self {
            Self::Lookup { hit, .. } => format!(", {hit} % hits"),
            _ => String::new(),
        };
        let (title, skew, load) = (self.title(), zipf(self.skew()), self.load());
        match self {
            Self::Insert { .. } | Self::Grow { .. } => format!("{title} to load factor {load}"),
            _ => format!("{title}{hits}{skew} (load factor {load})"),
        }
    }

    /// Describes the operations without load factor, hit percentage and skew, for figures that show
    /// those in another way.
    pub fn title(&self) -> String {
        match *self {
            Self::LookupHit { .. } => "Lookup, key present".into(),
            Self::LookupMiss { .. } => "Lookup, key absent".into(),
            Self::Insert { .. } => "Insert, from empty".into(),
            Self::Remove { .. } => "Remove, to empty".into(),
            Self::Mix {
                lookup,
                insert,
                remove,
                hit,
                ..
            } => {
                let hits = unusual(hit, |hit| format!(", {hit} % hits"));
                format!("{lookup} % lookup{hits}, {insert} % insert, {remove} % remove")
            }
            Self::Lookup { .. } => "Lookup".into(),
            Self::Ycsb { mix, .. } => {
                let letter = mix.letter().to_ascii_uppercase();
                format!("YCSB {letter}: {}", mix.describe())
            }
            Self::Window { lookup, .. } => {
                let slide = 100 - lookup.min(100);
                format!("Sliding window: {lookup} % lookup, {slide} % insert for the oldest")
            }
            Self::Grow {
                insert,
                lookup,
                hit,
                from,
                ..
            } => {
                let from = match from {
                    0.0 => "empty".into(),
                    from => format!("load factor {from}"),
                };
                let hits = unusual(hit, |hit| format!(", {hit} % hits"));
                format!("{insert} % insert, {lookup} % lookup{hits}, from {from}")
            }
        }
    }
}

/// Returns a hit percentage in words, or nothing if it is the usual one.
fn unusual(hit: u8, words: impl Fn(u8) -> String) -> String {
    let hit = Some(hit).filter(|&hit| hit != default_hit());
    hit.map_or_else(String::new, words)
}

/// Returns a Zipf law in words for a title, or nothing if there is none.
fn zipf(skew: f64) -> String {
    match skew {
        0.0 => String::new(),
        skew => format!(", Zipf {skew}"),
    }
}
