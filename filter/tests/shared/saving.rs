//! Copies and saves of a filter in a file, while processes change it and are killed.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{env, io, thread};

use filter::shared::{OpenError, SharedCuckooFilter};
use filter::{CuckooFilter, Filter, SnapshotError};

use crate::file::File;

const BUCKETS: usize = 3_000;
/// Keys that stay.
const STAYING: u64 = 9_000;
/// Keys that others insert and remove, so that chains move those that stay.
const MOVING: u64 = 2_000;

const VARIABLE: &str = "FILTER_SHARED_SAVER";

fn create(file: &File) -> SharedCuckooFilter {
    let builder = CuckooFilter::builder().buckets(BUCKETS);
    let filter = builder.open_or_create_shared(&file.0).unwrap();
    (0..STAYING).for_each(|key| filter.insert(&key).unwrap());
    filter
}

/// Inserts and removes other keys than those that stay, until it is told to end.
fn change(filter: &SharedCuckooFilter, number: u64, ends: impl Fn() -> bool) {
    let first = STAYING + number * MOVING;
    let mut there = vec![false; MOVING as usize / 4];
    while !ends() {
        for (key, is_there) in (first..).zip(&mut there) {
            if *is_there {
                assert_eq!(filter.remove(&key), Ok(true));
            }
            *is_there = !*is_there && filter.insert(&key).is_ok();
        }
    }
}

fn assert_has_all(copy: &impl Filter) {
    let lost = (0..STAYING).filter(|key| !copy.contains(key)).count();
    assert_eq!(lost, 0, "keys are lost");
    assert!(copy.len() <= STAYING as usize + 2 * MOVING as usize);
}

/// One process, this one, copies while two others change the filter, or copy it too, and are killed.
#[test]
fn copy_has_all_keys_while_processes_are_killed() {
    if let Ok(variable) = env::var(VARIABLE) {
        let (number, path) = variable.split_once(' ').unwrap();
        return work(path.as_ref(), number.parse().unwrap());
    }
    let file = File::new("copies");
    let filter = create(&file);
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
    let (mut copies, mut busy) = (0, 0);
    for round in 0..60 {
        match filter.try_clone() {
            Ok(copy) => {
                assert_has_all(&copy);
                copies += 1;
            }
            // The other process does.
            Err(error) => {
                assert_eq!(error, SnapshotError::Busy);
                busy += 1;
            }
        }
        if round % 5 == 4 {
            let number = round / 5 % 2;
            workers[number].kill().unwrap();
            workers[number].wait().unwrap();
            workers[number] = spawn(number);
            thread::sleep(std::time::Duration::from_millis(10));
        }
    }
    for mut worker in workers {
        worker.kill().unwrap();
        worker.wait().unwrap();
    }
    filter.take_over_all().unwrap();
    assert_has_all(&filter.try_clone().unwrap());
    assert!(!filter.is_damaged() && copies > 0);
    println!("{copies} copies, {busy} times another process was copying");
}

/// Changes the filter and copies it, by turns, until the process is killed.
fn work(path: &Path, number: u64) {
    let filter = CuckooFilter::builder().open_shared(path).unwrap();
    // The keys of the worker that was killed are still there.
    let first = STAYING + number * MOVING;
    (first..first + MOVING).for_each(|key| while filter.remove(&key).unwrap() {});
    loop {
        let rounds = AtomicBool::new(false);
        change(&filter, number, || rounds.swap(true, Ordering::Relaxed));
        if number == 1 {
            filter.try_clone().map_or((), |copy| assert_has_all(&copy));
        }
        let first = STAYING + number * MOVING;
        (first..first + MOVING).for_each(|key| while filter.remove(&key).unwrap() {});
    }
}

#[test]
fn saved_filter_is_loaded_into_another_file() {
    let (file, other) = (File::new("saved"), File::new("loaded"));
    let saved = File(file.0.with_extension("bytes"));
    let filter = create(&file);
    let done = AtomicBool::new(false);
    thread::scope(|threads| {
        threads.spawn(|| change(&filter, 0, || done.load(Ordering::Relaxed)));
        filter.save(&saved.0).unwrap();
        done.store(true, Ordering::Relaxed);
    });
    let loaded = CuckooFilter::load(&saved.0).unwrap();
    let len = loaded.len();
    let shared = loaded.into_shared(&other.0).unwrap();
    assert_has_all(&shared);
    assert_eq!([shared.len(), shared.recount()], [len; 2]);
    shared.insert("new").unwrap();
    let opened = CuckooFilter::builder().open_shared(&other.0).unwrap();
    assert!(opened.contains("new") && opened.len() == len + 1);
    match CuckooFilter::with_capacity(100).into_shared(&other.0) {
        Err(OpenError::Io(error)) => assert_eq!(error.kind(), io::ErrorKind::AlreadyExists),
        result => panic!("{result:?}"),
    }
}

/// A writer that saves the same filter again.
struct Again<'a>(&'a SharedCuckooFilter, Option<SnapshotError>);

impl io::Write for Again<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1 = self.0.to_bytes().err();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn second_save_at_the_same_time_is_refused() {
    let file = File::new("busy");
    let filter = create(&file);
    let mut writer = Again(&filter, None);
    filter.write_to(&mut writer).unwrap();
    assert_eq!(writer.1, Some(SnapshotError::Busy));
    assert!(filter.to_bytes().is_ok());
    std::fs::rename(&file.0, file.0.with_extension("renamed")).unwrap();
    let error = filter.to_bytes().unwrap_err();
    std::fs::rename(file.0.with_extension("renamed"), &file.0).unwrap();
    let is_refused = |kind| kind == io::ErrorKind::NotFound;
    assert!(matches!(error, SnapshotError::Refused { kind, .. } if is_refused(kind)));
}

/// The size that the docs say.
#[test]
fn first_save_reserves_memory_once() {
    let file = File::new("size");
    let filter = create(&file);
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
