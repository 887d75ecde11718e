//! Several filters in one file, and files that are refused.

use std::os::unix::fs::{FileExt, symlink};
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::Duration;

use filter::shared::OpenError;
use filter::{CuckooFilter, InsertError};

use crate::file::File;

#[test]
fn filters_in_one_file_have_same_keys() {
    let file = File::new("same");
    let builder = CuckooFilter::builder().capacity(1_000);
    let first = builder.clone().open_or_create_shared(&file.0).unwrap();
    let second = builder.open_or_create_shared(&file.0).unwrap();
    let look = CuckooFilter::builder()
        .open_shared_to_read(&file.0)
        .unwrap();
    for key in 0..500 {
        first.insert(&key).unwrap();
        second.insert(&(key + 500)).unwrap();
        assert_eq!(first.insert_if_absent(&(key + 500)), Ok(false));
    }
    let keys: Vec<_> = (0..1_000).collect();
    let mut found = [false; 1_000];
    look.contains_batch(&keys, &mut found);
    assert_eq!(found, [true; 1_000]);
    assert!(
        keys.iter()
            .all(|key| first.contains(key) && second.count(key) >= 1)
    );
    assert_eq!(
        [first.len(), second.len(), look.len(), first.recount()],
        [1_000; 4]
    );
    assert!(keys.iter().all(|key| second.remove(key) == Ok(true)));
    assert!(first.remove(&0) == Ok(false) && first.is_empty());
    assert_eq!(
        [
            first.insert_if_absent("key"),
            second.insert_if_absent("key")
        ],
        [Ok(true), Ok(false)]
    );
    let in_memory = CuckooFilter::with_capacity(1_000);
    assert_eq!(in_memory.insert_all_from(&first), Ok(1));
    assert_eq!(second.insert_all_from(&in_memory), Ok(1));
    assert_eq!(second.insert_all_from(&first), Ok(2));
    assert_eq!(look.count("key"), 4);
    second.remove_all().unwrap();
    assert!(!look.contains("key") && look.is_empty());
}

#[test]
fn full_filter_refuses_keys() {
    let file = File::new("full");
    let filter = CuckooFilter::builder()
        .buckets(4)
        .open_or_create_shared(&file.0)
        .unwrap();
    let results = (0..100).map(|key| filter.insert(&key));
    let refused = results
        .filter(|result| *result == Err(InsertError::Full))
        .count();
    assert_eq!((refused, filter.slots()), (100 - filter.len(), 16));
}

#[test]
fn other_parameters_are_refused() {
    let file = File::new("parameters");
    let builder = CuckooFilter::builder().capacity(100);
    drop(builder.clone().open_or_create_shared(&file.0).unwrap());
    let layout = builder.clone().layout::<3, 16>();
    let layout = layout.open_shared(&file.0).unwrap_err();
    assert!(
        matches!(layout, OpenError::OtherParameters { .. }),
        "{layout:?}"
    );
    let hasher = std::hash::BuildHasherDefault::<std::collections::hash_map::DefaultHasher>::new();
    let hasher = builder
        .clone()
        .hasher(hasher)
        .open_shared_to_read(&file.0)
        .unwrap_err();
    assert!(
        matches!(hasher, OpenError::OtherParameters { .. }),
        "{hasher:?}"
    );
    let missing = builder
        .open_shared(File::new("missing").0.clone())
        .unwrap_err();
    assert!(matches!(missing, OpenError::Io(_)), "{missing:?}");
    let sizeless = CuckooFilter::builder().open_or_create_shared(&File::new("sizeless").0);
    assert!(matches!(sizeless, Err(OpenError::Io(_))));
}

/// Writes the word of the header that corrects the length.
fn set_correction(file: &File, value: u64) {
    let opened = std::fs::File::options().write(true).open(&file.0).unwrap();
    opened.write_all_at(&value.to_ne_bytes(), 8 * 80).unwrap();
}

#[test]
fn recount_corrects_length_below_zero() {
    let file = File::new("below");
    let builder = CuckooFilter::builder().capacity(100);
    let filter = builder.open_or_create_shared(&file.0).unwrap();
    set_correction(&file, u64::MAX);
    assert_eq!((filter.len(), filter.recount()), (0, 0));
    filter.insert("key").unwrap();
    assert_eq!((filter.len(), filter.recount(), filter.len()), (1, 1, 1));
}

#[test]
fn recounts_at_once_correct_length_once() {
    let file = File::new("recounts");
    let builder = CuckooFilter::builder().buckets(1 << 16);
    let filter = builder.open_or_create_shared(&file.0).unwrap();
    (0..100).for_each(|key| filter.insert(&key).unwrap());
    for round in 0..50 {
        set_correction(&file, 1_000 + round);
        let begin = Barrier::new(4);
        thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    begin.wait();
                    assert_eq!(filter.recount(), 100);
                });
            }
        });
        assert_eq!(filter.len(), 100);
    }
}

#[test]
fn link_to_no_file_is_refused() {
    let file = File::new("link");
    symlink("/dev/shm/there/is/none", &file.0).unwrap();
    let (send, receive) = mpsc::channel();
    let path = file.0.clone();
    thread::spawn(move || {
        let builder = CuckooFilter::builder().capacity(100);
        send.send(builder.open_or_create_shared(path).map(drop))
    });
    let result = receive.recv_timeout(Duration::from_secs(20));
    let result = result.expect("it ends");
    assert!(matches!(result, Err(OpenError::Io(_))), "{result:?}");
}

#[test]
fn lookup_in_damaged_file_says_so() {
    let file = File::new("damaged");
    let builder = CuckooFilter::builder().buckets(1);
    drop(builder.open_or_create_shared(&file.0).unwrap());
    let look = CuckooFilter::builder();
    let look = look.open_shared_to_read(&file.0).unwrap();
    assert!(!look.contains("key") && !look.is_damaged());
    // The tag of an operation that no thread has begun, in the table.
    let opened = std::fs::File::options().write(true).open(&file.0).unwrap();
    let tag: u64 = 1 << 63 | 5;
    opened.write_all_at(&tag.to_ne_bytes(), 8 << 18).unwrap();
    assert!(look.contains("key") && look.is_damaged());
}
