//! Answers to requests, and errors.

use std::fs;

use programs::testing::complaint;
use tempfile::TempDir;

use crate::{Running, program};

pub(crate) fn metric(metrics: &str, name: &str) -> f64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap().trim().parse().unwrap()
}

#[test]
fn each_request_has_its_answer() {
    let directory = TempDir::new().unwrap();
    let service = Running::start(&directory.path().join("saved"), &[]);
    let client = service.client();
    let metrics = || client.get("/metrics").unwrap().2;
    let saved = metric(&metrics(), "filter_last_save_timestamp_seconds");
    assert_eq!(saved, 0.0);
    for (request, wanted) in [
        ("GET /contains?key=a", "false"),
        ("POST /insert?key=a", "inserted"),
        ("POST /insert?key=a", "inserted"),
        ("GET /contains?key=a", "true"),
        ("GET /count?key=a", "2"),
        ("POST /save", "saved"),
        ("POST /remove?key=a", "true"),
        ("POST /remove?key=a", "true"),
        ("POST /remove?key=a", "false"),
        ("POST /insert_unique?key=a", "true"),
        ("POST /insert_unique?key=a", "false"),
        ("GET /count?key=a", "1"),
        // Any bytes, each in several spellings.
        ("POST /insert?key=a+b%00%ff%26", "inserted"),
        ("GET /contains?key=%61%20b%00%FF%26", "true"),
        ("GET /contains?key=a%2bb%00%ff%26", "false"),
    ] {
        let answer = match request.split_once(' ').unwrap() {
            ("GET", request) => client.get(request),
            (_, request) => client.post(request),
        };
        let (status, _, text) = answer.unwrap();
        assert_eq!((status, &*text), (200, wanted), "{request}");
    }
    let metrics = metrics();
    assert_eq!(metric(&metrics, "filter_keys"), 2.0);
    let load = 2.0 / metric(&metrics, "filter_capacity");
    assert_eq!(metric(&metrics, "filter_load_factor"), load);
    // One in 512 when full, about.
    let rate = metric(&metrics, "filter_false_positive_rate") * 512.0 / load;
    assert!((0.99..1.01).contains(&rate), "{rate}");
    assert!(metric(&metrics, "filter_memory_bytes") > 1e5);
    assert!(metric(&metrics, "filter_last_save_timestamp_seconds") > 1.7e9);
    service.kill();
}

#[test]
fn a_wrong_request_gets_an_error_that_helps() {
    let directory = TempDir::new().unwrap();
    let service = Running::start(&directory.path().join("saved"), &[]);
    let client = service.client();
    for query in ["", "?", "?kay=a", "?key=a&key=b", "?key=a&x=1"] {
        let (status, _, text) = client.post(&format!("/insert{query}")).unwrap();
        assert_eq!(status, 400);
        assert!(text.contains("name one key: ?key=KEY"), "{text}");
    }
    let (status, _, text) = client.get("/").unwrap();
    assert_eq!(status, 404);
    assert!(text.contains("POST /insert?key=KEY"), "{text}");
    for path in ["/insert", "/insert_unique", "/remove", "/save"] {
        let (status, allowed, text) = client.get(path).unwrap();
        assert_eq!((status, &*allowed), (405, "POST"));
        assert!(text.contains(&format!("POST {path}")), "{text}");
    }
    for path in ["/contains", "/count", "/metrics"] {
        let (status, allowed, text) = client.post(path).unwrap();
        assert_eq!((status, &*allowed), (405, "GET,HEAD"));
        assert!(text.contains(&format!("GET  {path}")), "{text}");
    }
    let mut answers = (0..100).map(|_| client.post("/insert?key=a").unwrap());
    let (status, _, text) = answers.find(|answer| answer.0 != 200).unwrap();
    assert_eq!(status, 409);
    assert!(text.contains("remove copies"), "{text}");
    drop(directory);
    let (status, _, text) = client.post("/save").unwrap();
    assert_eq!(status, 500);
    assert!(text.contains("cannot save"), "{text}");
    // That has harmed nothing.
    assert_eq!(client.get("/contains?key=a").unwrap().2, "true");
    service.kill();
}

#[cfg(unix)]
#[test]
fn a_service_that_cannot_start_says_what_to_do() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("saved");
    let missing = directory.path().join("missing").join("saved");
    assert!(complaint(&mut program(&missing)).contains("is its directory there?"));
    let taken = Running::start(&file, &[]);
    assert!(complaint(&mut program(&file)).contains("stop the service that uses it"));
    let address = taken.url.strip_prefix("http://").unwrap();
    let mut other = program(&directory.path().join("other"));
    let message = complaint(other.args(["--address", address]));
    assert!(message.contains("choose another --address"), "{message}");
    taken.stop("INT");
    let mut other = program(&file);
    // At the latest, it ends because of the address.
    let message = complaint(other.args(["--capacity", "200000", "--address", "nowhere"]));
    assert!(message.contains("leave out --capacity"), "{message}");
    fs::write(&file, "no filter").unwrap();
    assert!(complaint(&mut program(&file)).contains("move the file away"));
    // A link that leads nowhere, as to a disk that is not there.
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(&missing, &file).unwrap();
    let mut linked = program(&file);
    // At the latest, it ends because of the address.
    let message = complaint(linked.args(["--address", "nowhere"]));
    assert!(message.contains("cannot be opened"), "{message}");
    let most = usize::MAX.to_string();
    let mut large = program(&directory.path().join("large"));
    assert!(complaint(large.args(["--capacity", &most])).contains("cannot make room"));
}

#[cfg(unix)]
#[test]
fn a_link_stays_and_the_file_that_it_leads_to_is_saved_and_locked() {
    let directory = TempDir::new().unwrap();
    let [file, link] = ["saved", "link"].map(|name| directory.path().join(name));
    Running::start(&file, &[]).stop("TERM");
    std::os::unix::fs::symlink("saved", &link).unwrap();
    let service = Running::start(&link, &[]);
    assert_eq!(service.client().post("/insert?key=a").unwrap().0, 200);
    assert_eq!(service.client().post("/save").unwrap().0, 200);
    assert!(link.is_symlink(), "it was replaced");
    let saved = filter::CuckooFilter::load(&file).unwrap();
    assert!(saved.contains(b"a".as_slice()));
    let mut other = program(&file);
    // At the latest, it ends because of the address.
    let message = complaint(other.args(["--address", "nowhere"]));
    assert!(message.contains("is locked"), "{message}");
    service.kill();
}
