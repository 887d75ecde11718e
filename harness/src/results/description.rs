//! The CSV rows of `harness describe`: one row for every number.

use profile::Description;
use serde::{Deserialize, Serialize};

use crate::results::rows::columns;

columns! {
    /// A number about a file of keys.
    Row:
    /// What the number is.
    quantity: String,
    /// What it belongs to: a key, with bytes that are not UTF-8 replaced, or the filter that would
    /// hold the keys.
    of: String,
    /// The number.
    value: f64,
    /// The least that the truth is expected to be: a standard error below, or a certain bound.
    least: Option<f64>,
    /// The most that the truth is expected to be: a standard error above, or a certain bound.
    most: Option<f64>,
    /// The true value, if it was counted.
    exact: Option<f64>,
}

impl Row {
    fn new(quantity: &str, value: f64) -> Self {
        Self {
            quantity: quantity.to_owned(),
            of: String::new(),
            value,
            least: None,
            most: None,
            exact: None,
        }
    }

    fn of(quantity: &str, of: impl Into<String>, value: f64) -> Self {
        Self {
            of: of.into(),
            ..Self::new(quantity, value)
        }
    }
}

/// Returns the rows of a description.
pub fn rows(description: &Description) -> Vec<Row> {
    let exact = description.exact.as_ref();
    let deviation = description.distinct * description.standard_error;
    let mut rows = vec![
        Row::new("keys", description.keys as f64),
        Row::new("blank lines", description.blank as f64),
        Row {
            least: Some(description.distinct - deviation),
            most: Some((description.distinct + deviation).min(description.keys as f64)),
            exact: exact.map(|exact| exact.distinct as f64),
            ..Row::new("distinct keys", description.distinct)
        },
    ];
    for (place, heavy) in description.heaviest.iter().enumerate() {
        let count = heavy.count as f64;
        rows.push(Row {
            least: Some((count - description.count_error).max(0.0)),
            most: Some(count),
            exact: exact.map(|exact| exact.counts[place] as f64),
            ..Row::of("count", String::from_utf8_lossy(&heavy.label), count)
        });
    }
    let share = description.share_of_heaviest();
    rows.push(Row::new("share of the heaviest", share));
    if let Some(skew) = &description.skew {
        rows.push(Row::new("zipf exponent", skew.exponent));
        rows.push(Row::new("explained by the law", skew.explained));
        rows.push(Row::new("keys under the law", skew.keys as f64));
    }
    for size in &description.sizes {
        rows.push(Row::of("bytes", size.filter, size.bytes as f64));
        rows.push(Row::of("false positive rate", size.filter, size.rate));
    }
    for bound in exact.iter().flat_map(|exact| &exact.bounds) {
        rows.push(Row {
            least: Some(bound.least),
            most: Some(bound.most),
            ..Row::of("bound", &bound.quantity, bound.measured)
        });
    }
    rows
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use profile::{Settings, describe};

    use super::*;

    #[test]
    fn no_more_keys_are_different_than_there_are() {
        for keys in [10, 100, 300, 1_000, 1_500] {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            (0..keys).for_each(|key| writeln!(file, "{key}").unwrap());
            let settings = Settings {
                top: 20,
                error: 0.000_1,
                precision: 5,
                false_positive_rate: 0.01,
                threads: 1,
                exact: false,
            };
            let description = describe(file.path(), &settings, &|_| ()).unwrap();
            let row = rows(&description).remove(2);
            assert!(row.most.unwrap() <= f64::from(keys), "{row:?}");
        }
    }
}
