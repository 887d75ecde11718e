//! Answers to requests, and errors.

use std::fs;

use programs::testing::complaint;
use tempfile::TempDir;

use crate::{Running, program};

fn metric(metrics: &str, name: &str) -> f64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap().trim().parse().unwrap()
}

#[test]
fn each_request_has_its_answer() {
    let directory = TempDir::new().unwrap();
    let service = Running::start(&directory.path().join("saved"));
    let client = service.client();
    let post = |request: &str| client.post(request).unwrap();
    let get = |request: &str| client.get(request).unwrap();
    let ok = |text: &str| (200, text.to_owned());

    assert_eq!(get("/contains?key=a"), ok("false"));
    assert_eq!(post("/insert?key=a"), ok("inserted"));
    assert_eq!(post("/insert?key=a"), ok("inserted"));
    assert_eq!(get("/contains?key=a"), ok("true"));
    assert_eq!(get("/count?key=a"), ok("2"));
    let metrics = get("/metrics").1;
    assert_eq!(metric(&metrics, "filter_keys"), 2.0);
    let load = 2.0 / metric(&metrics, "filter_capacity");
    assert_eq!(metric(&metrics, "filter_load_factor"), load);
    // One in 512 when full, about.
    let rate = metric(&metrics, "filter_false_positive_rate") * 512.0 / load;
    assert!((0.99..1.01).contains(&rate), "{rate}");
    assert!(metric(&metrics, "filter_memory_bytes") > 1e5);
    assert_eq!(metric(&metrics, "filter_last_save_timestamp_seconds"), 0.0);
    assert_eq!(post("/save"), ok("saved"));
    let metrics = get("/metrics").1;
    assert!(metric(&metrics, "filter_last_save_timestamp_seconds") > 1.7e9);
    assert_eq!(post("/remove?key=a"), ok("true"));
    assert_eq!(post("/remove?key=a"), ok("true"));
    assert_eq!(post("/remove?key=a"), ok("false"));

    assert_eq!(post("/insert_unique?key=a"), ok("true"));
    assert_eq!(post("/insert_unique?key=a"), ok("false"));
    assert_eq!(get("/count?key=a"), ok("1"));
    assert_eq!(post("/remove?key=a"), ok("true"));

    // Any bytes, each in several spellings.
    assert_eq!(post("/insert?key=a+b%00%ff%26"), ok("inserted"));
    assert_eq!(get("/contains?key=%61%20b%00%FF%26"), ok("true"));
    assert_eq!(get("/contains?key=a%2bb%00%ff%26"), ok("false"));
    service.kill();
}

#[test]
fn a_request_that_cannot_be_answered_gets_an_error_that_tells_what_to_do() {
    let directory = TempDir::new().unwrap();
    let service = Running::start(&directory.path().join("saved"));
    let client = service.client();
    let refused = |(status, text): (u16, String), expected: u16, part: &str| {
        assert_eq!(status, expected, "{text}");
        assert!(text.contains(part), "{text}");
    };
    for query in ["", "?", "?kay=a", "?key=a&key=b", "?key=a&x=1"] {
        let answer = client.post(&format!("/insert{query}")).unwrap();
        refused(answer, 400, "name one key: ?key=KEY");
    }
    refused(client.get("/").unwrap(), 404, "POST /insert?key=KEY");
    for path in ["/insert", "/insert_unique", "/remove", "/save"] {
        refused(client.get(path).unwrap(), 405, &format!("send POST {path}"));
        assert_eq!(client.allowed(path), "POST");
    }
    for path in ["/contains", "/count", "/metrics"] {
        refused(client.post(path).unwrap(), 405, &format!("send GET {path}"));
    }
    let most = (0..100)
        .map(|_| client.post("/insert?key=a").unwrap())
        .find(|answer| answer.0 != 200);
    refused(most.unwrap(), 409, "remove copies");
    drop(directory);
    refused(client.post("/save").unwrap(), 500, "cannot save");
    // That has harmed nothing.
    assert_eq!(client.get("/contains?key=a").unwrap().1, "true");
    service.kill();
}

/// A signal saves the filter, and the next start loads it.
#[cfg(unix)]
#[test]
fn what_was_acknowledged_before_a_signal_is_loaded_at_the_next_start() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("saved");
    for (round, signal) in ["TERM", "INT"].into_iter().enumerate() {
        let service = Running::start(&file);
        let client = service.client();
        for key in 0..round {
            assert_eq!(client.get(&format!("/count?key={key}")).unwrap().1, "1");
        }
        client.post(&format!("/insert?key={round}")).unwrap();
        assert!(service.stop(signal).success());
    }
    let service = Running::start(&file);
    let metrics = service.client().get("/metrics").unwrap().1;
    assert_eq!(metric(&metrics, "filter_keys"), 2.0);
    service.kill();
}

#[test]
fn a_service_that_cannot_start_tells_what_to_do() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("saved");
    let missing = directory.path().join("missing").join("saved");
    assert!(complaint(&mut program(&missing)).contains("is its directory there?"));
    let taken = Running::start(&file);
    assert!(complaint(&mut program(&file)).contains("stop the service that uses it"));
    let address = taken.url.strip_prefix("http://").unwrap();
    let mut other = program(&directory.path().join("other"));
    let message = complaint(other.args(["--address", address]));
    assert!(message.contains("choose another --address"), "{message}");
    taken.kill();
    assert!(Running::start(&file).stop("TERM").success());
    let mut other = program(&file);
    // At the latest, it ends because of the address.
    let message = complaint(other.args(["--capacity", "200000", "--address", "nowhere"]));
    assert!(message.contains("leave out --capacity"), "{message}");
    fs::write(&file, "no filter").unwrap();
    assert!(complaint(&mut program(&file)).contains("move it away"));
    let most = usize::MAX.to_string();
    let mut large = program(&directory.path().join("large"));
    assert!(complaint(large.args(["--capacity", &most])).contains("cannot make room"));
}
