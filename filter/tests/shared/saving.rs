//! Saves of a filter in a file, and what ends them.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use filter::shared::{OpenError, SharedCuckooFilter};
use filter::{CuckooFilter, ExpiringCuckooFilter, SaveError, SnapshotError};

use crate::any::patiently;
use crate::file::{CLOCK, File};
use crate::storm::TABLE;

const BUCKETS: usize = 1_000;
const KEYS: usize = 2_800;

fn create(file: &File) -> SharedCuckooFilter {
    let builder = CuckooFilter::builder().buckets(BUCKETS);
    let filter = builder.open_or_create_shared(&file.0).unwrap();
    filter.insert_all(0..KEYS).unwrap();
    filter
}

#[test]
fn saved_filter_is_loaded_into_another_file() {
    let (file, other) = (File::new("saved"), File::new("loaded"));
    let saved = File(file.0.with_extension("bytes"));
    create(&file).save(&saved.0).unwrap();
    let loaded = CuckooFilter::load(&saved.0).unwrap();
    let shared = loaded.into_shared(&other.0).unwrap();
    assert!((0..KEYS).all(|key| shared.contains(&key)));
    assert_eq!([shared.len(), shared.recount()], [KEYS; 2]);
    shared.insert("new").unwrap();
    let opened = CuckooFilter::builder().open_shared(&other.0).unwrap();
    assert!(opened.contains("new") && opened.len() == KEYS + 1);
    match CuckooFilter::with_capacity(100).into_shared(&other.0) {
        Err(OpenError::Io(error)) => assert_eq!(error.kind(), io::ErrorKind::AlreadyExists),
        result => panic!("{result:?}"),
    }
}

/// A writer that calls this each time, with the number of bytes.
struct Calling<F>(F);

impl<F: FnMut(usize)> io::Write for Calling<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns a writer that first does something else.
fn after(first: impl FnOnce()) -> Calling<impl FnMut(usize)> {
    let mut first = Some(first);
    Calling(move |_| {
        if let Some(first) = first.take() {
            first();
        }
    })
}

#[test]
fn simultaneous_second_save_is_refused() {
    let file = File::new("busy");
    let filter = create(&file);
    let mut second = None;
    let save_again = || second = filter.to_bytes().err();
    filter.write_to(after(save_again)).unwrap();
    assert_eq!(second, Some(SnapshotError::Busy));
    assert!(patiently(|| filter.to_bytes()).is_ok());
    std::fs::rename(&file.0, file.0.with_extension("renamed")).unwrap();
    let error = filter.to_bytes().unwrap_err();
    std::fs::rename(file.0.with_extension("renamed"), &file.0).unwrap();
    let is_refused = |kind| kind == io::ErrorKind::NotFound;
    assert!(matches!(error, SnapshotError::Refused { kind, .. } if is_refused(kind)));
}

/// Saves a filter while another process writes these words, the first of which announces the save. True if it finds
/// damage.
fn finds_damage(words: &[u64]) -> bool {
    let file = File::new(&format!("{:x}-{}", words[0], words.len()));
    let filter = create(&file);
    let announcement = TABLE / 8 + BUCKETS.next_multiple_of(8) as u64;
    let write = || file.write(announcement, words);
    match filter.write_to(after(write)) {
        Ok(()) => false,
        Err(SaveError::Snapshot(SnapshotError::Damaged)) => true,
        Err(error) => panic!("{error}"),
    }
}

/// A word that announces the first save.
const FIRST: u64 = 1 << 33;

/// Were it not, others might have kept a bucket for the other save instead, or not at all.
#[test]
fn save_that_another_ended_is_damaged() {
    assert!(!finds_damage(&[FIRST]));
    for announcement in [0, 2 * FIRST, 3 * FIRST] {
        assert!(finds_damage(&[announcement]), "{announcement:#x}");
    }
}

/// No filter could load what is saved.
#[test]
fn save_of_impossible_bucket_is_damaged() {
    let mut words = [u64::MAX >> 1; BUCKETS + 1];
    words[0] = FIRST;
    assert!(finds_damage(&words));
}

/// No filter could load what is saved, though at the end the file is right again.
#[test]
fn save_of_impossible_period_is_damaged() {
    let file = File::new("period");
    // Several buffers.
    let builder = ExpiringCuckooFilter::builder().buckets(1 << 13);
    let filter = builder.open_or_create_shared(&file.0, Duration::from_secs(60));
    let filter = filter.unwrap();
    let len = filter.to_bytes().unwrap().len();
    let error = patiently(|| {
        let mut left = len;
        let overwrite = |bytes| {
            left -= bytes;
            let clock = if left == 0 { 0 } else { u64::MAX };
            file.write(CLOCK, &[clock]);
        };
        match filter.write_to(Calling(overwrite)) {
            Err(SaveError::Snapshot(error)) => Err(error),
            Err(error) => panic!("{error}"),
            Ok(()) => Ok(()),
        }
    });
    assert_eq!(error, Err(SnapshotError::Damaged));
}

/// The size that the docs say.
#[test]
fn first_save_reserves_memory_once() {
    let file = File::new("size");
    let filter = create(&file);
    for per_bucket in [8, 16, 16] {
        let expected = 2_048 + (per_bucket * BUCKETS as u64 / 1_024).next_multiple_of(4);
        let kibibytes = std::fs::metadata(&file.0).unwrap().blocks() / 2;
        let is_right = (expected..=expected + 4).contains(&kibibytes);
        assert!(is_right, "{kibibytes} KiB instead of {expected}");
        patiently(|| filter.to_bytes()).unwrap();
    }
}
