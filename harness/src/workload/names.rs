//! What workloads are called: in a CSV file, in a figure, and in full.

use super::{Workload, Ycsb, default_hit};

impl Workload {
    /// Returns a short name for CSV and figure, such as `lookup-hit` or `mix-90-5-5`. It omits load
    /// factor, hit percentage and skew, which have their own columns; but the name of a mix
    /// includes its hit percentage unless it is the usual 50 %.
    pub fn label(&self) -> String {
        self.names().0
    }

    /// Describes the operations, for figures that show load factor, hits and skew otherwise.
    pub fn title(&self) -> String {
        self.names().1
    }

    /// Returns a full description, such as `Lookup, key present (load factor 0.92)`.
    pub fn describe(&self) -> String {
        let (title, load) = (self.title(), self.load());
        let hits = match *self {
            Self::Lookup { hit, .. } => format!(", {hit} % hits"),
            _ => String::new(),
        };
        let skew = match self.skew() {
            0.0 => String::new(),
            skew => format!(", Zipf {skew}"),
        };
        match self {
            Self::Insert { .. } | Self::Grow { .. } => format!("{title} to load factor {load}"),
            _ => format!("{title}{hits}{skew} (load factor {load})"),
        }
    }

    fn names(&self) -> (String, String) {
        let simple = |label: &str, title: &str| (label.into(), title.into());
        match *self {
            Self::LookupHit { .. } => simple("lookup-hit", "Lookup, key present"),
            Self::LookupMiss { .. } => simple("lookup-miss", "Lookup, key absent"),
            Self::Insert { .. } => simple("insert", "Insert, from empty"),
            Self::Remove { .. } => simple("remove", "Remove, to empty"),
            Self::Lookup { .. } => simple("lookup", "Lookup"),
            Self::Mix {
                lookup,
                insert,
                remove,
                hit,
                ..
            } => {
                let (short, long) = unusual(hit);
                let label = format!("mix-{lookup}-{insert}-{remove}{short}");
                let updates = format!("{insert} % insert, {remove} % remove");
                (label, format!("{lookup} % lookup{long}, {updates}"))
            }
            Self::Ycsb { mix, .. } => {
                let (letter, what) = match mix {
                    Ycsb::A => ('a', "50 % lookup, 50 % update"),
                    Ycsb::B => ('b', "95 % lookup, 5 % update"),
                    Ycsb::C => ('c', "lookup only"),
                    Ycsb::D => ('d', "95 % lookup of new keys, 5 % insert for the oldest"),
                    Ycsb::F => ('f', "50 % lookup, 50 % lookup and update"),
                };
                let upper = letter.to_ascii_uppercase();
                (format!("ycsb-{letter}"), format!("YCSB {upper}: {what}"))
            }
            Self::Window { lookup, .. } => {
                let slide = 100 - lookup.min(100);
                let title =
                    format!("Sliding window: {lookup} % lookup, {slide} % insert for the oldest");
                (format!("window-{lookup}-{slide}"), title)
            }
            Self::Grow {
                insert,
                lookup,
                hit,
                from,
                ..
            } => {
                let (suffix, start) = match from {
                    0.0 => (String::new(), "empty".into()),
                    from => (format!("-from-{from}"), format!("load factor {from}")),
                };
                let (_, hits) = unusual(hit);
                let title = format!("{insert} % insert, {lookup} % lookup{hits}, from {start}");
                (format!("grow-{insert}-{lookup}{suffix}"), title)
            }
        }
    }
}

/// Returns a hit percentage for a label and for a title, or nothing if it is the usual one.
fn unusual(hit: u8) -> (String, String) {
    if hit == default_hit() {
        return Default::default();
    }
    (format!("-hit-{hit}"), format!(", {hit} % hits"))
}
