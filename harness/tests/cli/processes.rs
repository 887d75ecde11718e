//! Test of the `processes` command: it kills and stops processes that share a filter.

use crate::place::Place;

#[test]
fn killed_and_stopped_processes_lose_no_key() {
    let place = Place::new();
    let command = "processes --processes 3 --buckets 4096 --seconds 0.1 --rounds 1";
    place
        .run(command)
        .prints(&["robust mutexes", "processes.csv"]);
    let mut reader = csv::Reader::from_path(place.path("results/processes.csv")).unwrap();
    let records: Vec<_> = reader.records().map(Result::unwrap).collect();
    for subject in ["shared lock-free", "shared lock-free#2", "robust mutexes"] {
        let values = |quantity: &str| {
            let own = records
                .iter()
                .filter(|record| &record[1] == subject && &record[5] == quantity);
            own.map(|record| record[6].parse::<f64>().unwrap())
                .collect::<Vec<_>>()
        };
        assert!(values("throughput, million/s")[0] > 0.0, "{subject}");
        assert_eq!(values("keys lost"), [0.0; 2], "{subject}");
        let ended = values("processes killed or stopped");
        assert!(
            ended.iter().all(|count| *count >= 1.0),
            "{subject}: {ended:?}"
        );
    }
    assert!(place.files("results").contains(&"processes.svg".into()));
}
