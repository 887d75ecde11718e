//! How far cores were apart while rows were measured. Where a hypervisor moves cores, rows of several
//! threads differ because of it.

use crate::machine::are_alike;
use crate::results::distinct;
use crate::wording::counted;

/// Groups rows by distance, the nearest first: a row is in the group of the row before it if their distances
/// are alike. Rows of unknown distance, 0, are left out. Returns the nearest and the farthest distance of each
/// group, and its rows.
pub fn by_distance<'a, R>(
    rows: impl Iterator<Item = &'a R>,
    ns: impl Fn(&R) -> f64,
) -> Vec<(String, Vec<&'a R>)> {
    let mut known: Vec<_> = rows.filter(|row| ns(row) > 0.0).collect();
    known.sort_by(|a, b| ns(a).total_cmp(&ns(b)));
    let groups = known.chunk_by(|a, b| are_alike(ns(a), ns(b)));
    let stratum = |group: &[&'a R]| {
        let ends = [group[0], group[group.len() - 1]].map(|row| format!("{:.0}", ns(row)));
        let named = distinct(ends.into_iter()).join(" to ") + " ns";
        (named, group.to_vec())
    };
    groups.map(stratum).collect()
}

/// Says how far cores were apart in these rows; `None` if no distance is known.
pub fn distances<'a, R: 'a>(
    rows: impl Iterator<Item = &'a R>,
    ns: impl Fn(&R) -> f64,
) -> Option<String> {
    let strata = by_distance(rows, ns).into_iter();
    let said = strata.map(|(at, of)| format!("{at} in {}", counted(of.len(), "measurement")));
    let said = said.collect::<Vec<_>>().join(", and ");
    (!said.is_empty()).then(|| format!("From core to core, a cache line took {said}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_grouped_by_how_far_cores_are_apart() {
        let rows = [100.0, 26.0, 31.0, 0.0];
        let groups = by_distance(rows.iter(), |&ns| ns).into_iter();
        let groups: Vec<_> = groups.map(|(named, of)| (named, of.len())).collect();
        assert_eq!(groups, [("26 to 31 ns".into(), 2), ("100 ns".into(), 1)]);
        assert_eq!(
            distances(rows.iter(), |&ns| ns).unwrap(),
            "From core to core, a cache line took 26 to 31 ns in 2 measurements, and 100 ns in 1 measurement."
        );
        assert_eq!(distances([0.0].iter(), |&ns| ns), None);
    }
}
