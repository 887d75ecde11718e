//! Copies and saves of a filter in a file, while processes change it and are killed.

use std::collections::HashSet;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, io, thread};

use filter::shared::{OpenError, SharedCuckooFilter};
use filter::{CuckooFilter, Filter, SaveError, SnapshotError};

use crate::file::File;
use crate::storm::TABLE;

const BUCKETS: usize = 1_000;
/// Keys that stay.
const STAYING: usize = 2_800;
/// Keys that each of two workers inserts and removes, so that chains move those that stay.
const MOVING: usize = 500;

const VARIABLE: &str = "FILTER_SHARED_SAVER";

/// Returns keys of different classes: those that stay, and those of each worker.
fn keys() -> Vec<u64> {
    let filter = CuckooFilter::builder().buckets(BUCKETS).build().unwrap();
    let mut classes = HashSet::new();
    let is_new = |key: &u64| classes.insert(filter.class(key));
    (0..).filter(is_new).take(STAYING + 2 * MOVING).collect()
}

fn create(file: &File, keys: &[u64]) -> SharedCuckooFilter {
    let builder = CuckooFilter::builder().buckets(BUCKETS);
    let filter = builder.open_or_create_shared(&file.0).unwrap();
    filter.insert_all(&keys[..STAYING]).unwrap();
    filter
}

/// Inserts these keys if there is room, and removes them.
fn change(filter: &SharedCuckooFilter, keys: &[u64]) {
    let inserted = keys.iter().filter(|key| filter.insert(key).is_ok());
    let inserted: Vec<_> = inserted.collect();
    for key in inserted {
        assert_eq!(filter.remove(key), Ok(true));
    }
}

fn assert_right(copy: &impl Filter, keys: &[u64]) {
    let counts: Vec<_> = keys.iter().map(|key| copy.count(key)).collect();
    let (staying, moving) = counts.split_at(STAYING);
    assert!(staying.iter().all(|&count| count == 1));
    assert!(moving.iter().all(|&count| count <= 1));
    assert_eq!(copy.len(), counts.iter().sum());
}

/// One process, this one, copies while two others change the filter, or copy it too, and are killed.
#[test]
fn copy_has_all_keys_while_processes_are_killed() {
    if let Ok(variable) = env::var(VARIABLE) {
        let (number, path) = variable.split_once(' ').unwrap();
        return work(path.as_ref(), number.parse().unwrap());
    }
    let (file, keys) = (File::new("copies"), keys());
    let filter = create(&file, &keys);
    let spawn = |number| -> Child {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args([
            "--exact",
            "saving::copy_has_all_keys_while_processes_are_killed",
        ]);
        command.env(VARIABLE, format!("{number} {}", file.0.display()));
        command.stdout(Stdio::null()).spawn().unwrap()
    };
    let mut workers = [0, 1].map(spawn);
    let mut copies = 0;
    for kill in 0..20 {
        thread::sleep(Duration::from_millis(rand::random_range(5..40)));
        for _ in 0..20 {
            match filter.try_clone() {
                Ok(copy) => {
                    assert_right(&copy, &keys);
                    copies += 1;
                }
                // A worker does.
                Err(error) => assert_eq!(error, SnapshotError::Busy),
            }
        }
        let worker = &mut workers[kill % 2];
        worker.kill().unwrap();
        let status = worker.wait().unwrap();
        assert_eq!(
            status.signal(),
            Some(9),
            "a worker has ended before it was killed"
        );
        *worker = spawn(kill % 2);
    }
    for mut worker in workers {
        worker.kill().unwrap();
        worker.wait().unwrap();
    }
    filter.take_over_all().unwrap();
    assert_right(&filter.try_clone().unwrap(), &keys);
    assert!(!filter.is_damaged() && copies > 0);
    println!("{copies} copies");
}

/// Changes the filter and copies it, by turns, until the process is killed.
fn work(path: &Path, number: usize) {
    let filter = CuckooFilter::builder().open_shared(path).unwrap();
    let keys = keys();
    let first = STAYING + number * MOVING;
    let own = &keys[first..first + MOVING];
    // Some keys of the worker that was killed may still be there.
    own.iter().for_each(|key| _ = filter.remove(key).unwrap());
    // (Should the test fail, it deletes the file.)
    while path.exists() {
        change(&filter, own);
        if let Ok(copy) = filter.try_clone() {
            assert_right(&copy, &keys);
        }
    }
}

#[test]
fn saved_filter_is_loaded_into_another_file() {
    let (file, other) = (File::new("saved"), File::new("loaded"));
    let (saved, keys) = (File(file.0.with_extension("bytes")), keys());
    let filter = create(&file, &keys);
    thread::scope(|threads| {
        let changes = threads.spawn(|| (0..5).for_each(|_| change(&filter, &keys[STAYING..])));
        loop {
            filter.save(&saved.0).unwrap();
            if changes.is_finished() {
                break;
            }
        }
    });
    let loaded = CuckooFilter::load(&saved.0).unwrap();
    let len = loaded.len();
    let shared = loaded.into_shared(&other.0).unwrap();
    assert_right(&shared, &keys);
    assert_eq!([shared.len(), shared.recount()], [len; 2]);
    shared.insert("new").unwrap();
    let opened = CuckooFilter::builder().open_shared(&other.0).unwrap();
    assert!(opened.contains("new") && opened.len() == len + 1);
    match CuckooFilter::with_capacity(100).into_shared(&other.0) {
        Err(OpenError::Io(error)) => assert_eq!(error.kind(), io::ErrorKind::AlreadyExists),
        result => panic!("{result:?}"),
    }
}

/// A writer that first does something else.
struct After<F>(Option<F>);

impl<F: FnOnce()> io::Write for After<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(first) = self.0.take() {
            first();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn simultaneous_second_save_is_refused() {
    let file = File::new("busy");
    let filter = create(&file, &keys());
    let mut second = None;
    let save_again = || second = filter.to_bytes().err();
    filter.write_to(After(Some(save_again))).unwrap();
    assert_eq!(second, Some(SnapshotError::Busy));
    assert!(filter.to_bytes().is_ok());
    std::fs::rename(&file.0, file.0.with_extension("renamed")).unwrap();
    let error = filter.to_bytes().unwrap_err();
    std::fs::rename(file.0.with_extension("renamed"), &file.0).unwrap();
    let is_refused = |kind| kind == io::ErrorKind::NotFound;
    assert!(matches!(error, SnapshotError::Refused { kind, .. } if is_refused(kind)));
}

/// Saves a filter while another process writes these words, the first of which announces the save.
fn save_over(name: &str, words: &[u64]) -> Result<(), SaveError> {
    let file = File::new(name);
    let filter = create(&file, &keys());
    let opened = std::fs::File::options().write(true).open(&file.0).unwrap();
    let write = || {
        let bytes: Vec<_> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let announcement = TABLE + 8 * BUCKETS.next_multiple_of(8) as u64;
        opened.write_all_at(&bytes, announcement).unwrap();
    };
    filter.write_to(After(Some(write)))
}

/// A word that announces the first save.
const FIRST: u64 = 1 << 33;

/// Were it not, others might have kept a bucket for the other save instead, or not at all.
#[test]
fn save_that_another_ended_is_damaged() {
    assert!(save_over("own", &[FIRST]).is_ok());
    for announcement in [0, 2 * FIRST, 3 * FIRST] {
        let saved = save_over("ended", &[announcement]);
        let is_damaged = matches!(saved, Err(SaveError::Snapshot(SnapshotError::Damaged)));
        assert!(is_damaged, "{announcement:#x}: {saved:?}");
    }
}

/// No filter could load what is saved.
#[test]
fn save_of_impossible_bucket_is_damaged() {
    let mut words = [u64::MAX >> 1; BUCKETS + 1];
    words[0] = FIRST;
    let saved = save_over("impossible", &words);
    let is_damaged = matches!(saved, Err(SaveError::Snapshot(SnapshotError::Damaged)));
    assert!(is_damaged, "{saved:?}");
}

/// The size that the docs say.
#[test]
fn first_save_reserves_memory_once() {
    let file = File::new("size");
    let filter = create(&file, &keys());
    let kibibytes = || std::fs::metadata(&file.0).unwrap().blocks() / 2;
    let expected =
        |per_bucket: u64| 2_048 + (per_bucket * BUCKETS as u64 / 1_024).next_multiple_of(4);
    let within_page = |expected| expected..=expected + 4;
    assert!(
        within_page(expected(8)).contains(&kibibytes()),
        "{}",
        kibibytes()
    );
    for _ in 0..2 {
        filter.to_bytes().unwrap();
        assert!(
            within_page(expected(16)).contains(&kibibytes()),
            "{}",
            kibibytes()
        );
    }
}
