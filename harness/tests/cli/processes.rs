//! Tests of the `processes` command: it kills and stops processes that share a filter.

use crate::place::{Ended, Place};

/// Runs the study, and checks the rows of these subjects. Each works in some languages.
fn lose_no_key(options: &str, subjects: &[(&str, usize)]) {
    let place = Place::new();
    let small = "processes --processes 3 --buckets 4096 --seconds 0.1 --rounds 1";
    place
        .run(&format!("{small}{options}"))
        .prints(&["robust mutexes", "processes.csv"]);
    let mut reader = csv::Reader::from_path(place.path("results/processes.csv")).unwrap();
    let records: Vec<_> = reader.records().map(Result::unwrap).collect();
    for &(subject, languages) in subjects {
        let values = |quantity: &str| -> Vec<f64> {
            let all = records.iter();
            let own = all.filter(|record| [&record[1], &record[5]] == [subject, quantity]);
            own.map(|record| record[6].parse().unwrap()).collect()
        };
        let throughput = values("throughput, million/s");
        assert_eq!(throughput.len(), languages, "{subject}");
        assert!(throughput.iter().all(|rate| *rate > 0.0), "{subject}");
        // Several processes of this rival may lose a key.
        let is_safe = subject != "pybloomfiltermmap3";
        let lost = values("keys lost");
        assert_eq!(lost.len(), 2 * languages, "{subject}");
        assert!(!is_safe || lost == vec![0.0; lost.len()], "{subject}");
        let ended = values("processes killed or stopped");
        let has_ended = ended.iter().all(|count| *count >= 1.0);
        assert!(has_ended, "{subject}: {ended:?}");
    }
    assert!(place.files("results").contains(&"processes.svg".into()));
}

#[test]
fn killed_and_stopped_processes_lose_no_key() {
    let each = ["shared lock-free", "shared lock-free#2", "robust mutexes"];
    lose_no_key("", &each.map(|subject| (subject, 1)));
}

#[test]
#[ignore = "needs Redis, its module, and modules for Python"]
fn killed_clients_of_rivals_lose_no_key() {
    let each = [
        ("shared lock-free", 2),
        ("shared lock-free#2", 2),
        ("robust mutexes", 1),
        ("Redis", 1),
        ("Redis, pipelined", 1),
        ("pybloomfiltermmap3", 1),
    ];
    lose_no_key(" --with redis,pybloomfiltermmap3", &each);
}

#[test]
fn missing_rivals_explain_their_installation() {
    for (rival, advice) in [
        ("redis", "apt-get install redis-server"),
        ("pybloomfiltermmap3", "pip install pybloomfiltermmap3"),
    ] {
        let place = Place::new();
        let mut command = place.command(&format!("processes --with {rival}"));
        let ended = Ended::run(command.env("PATH", "").env("PYTHON", "nowhere"));
        assert_eq!(ended.code, Some(1), "{ended:?}");
        ended.notes(&[advice]);
        assert!(place.files(".").is_empty());
    }
}
