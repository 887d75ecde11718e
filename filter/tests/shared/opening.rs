//! Several filters in one file, and files that are refused.

use std::os::unix::fs::symlink;
use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use filter::CuckooFilter;
use filter::shared::OpenError;

use crate::file::{CORRECTION, File};
use crate::storm::TABLE;

#[test]
fn filters_in_one_file_have_same_keys() {
    let file = File::new("same");
    let builder = CuckooFilter::builder().capacity(1_000);
    let [first, second] = [(); 2].map(|()| builder.clone().open_or_create_shared(&file.0).unwrap());
    let look = builder.open_shared_to_read(&file.0).unwrap();
    first.insert_all(0..500).unwrap();
    second.insert_all(500..1_000).unwrap();
    let keys: Vec<_> = (0..1_000).collect();
    assert!(
        keys.iter()
            .all(|key| first.insert_if_absent(key) == Ok(false))
    );
    let mut found = [false; 1_000];
    look.contains_batch(&keys, &mut found);
    assert_eq!(found, [true; 1_000]);
    let lengths = [first.len(), second.len(), look.len(), first.recount()];
    assert_eq!(lengths, [1_000; 4]);
    assert!(keys.iter().all(|key| second.remove(key) == Ok(true)));
    assert!(first.remove(&0) == Ok(false) && first.is_empty());
    let results = [&first, &second].map(|filter| filter.insert_if_absent("key"));
    assert_eq!(results, [Ok(true), Ok(false)]);
    let in_memory = CuckooFilter::with_capacity(1_000);
    assert_eq!(in_memory.insert_all_from(&first), Ok(1));
    assert_eq!(second.insert_all_from(&in_memory), Ok(1));
    assert_eq!(second.insert_all_from(&first), Ok(2));
    assert_eq!(look.count("key"), 4);
    second.remove_all().unwrap();
    assert!(!look.contains("key") && look.is_empty());
}

/// A recount can meet an insert that is not counted yet, and keys that it moves.
#[test]
fn recount_beside_inserts_changes_length_little() {
    let file = File::new("recounted");
    let filter = CuckooFilter::builder().capacity(50_000);
    let filter = filter.open_or_create_shared(&file.0).unwrap();
    thread::scope(|scope| {
        let insert = scope.spawn(|| filter.insert_all(0..40_000).unwrap());
        while !insert.is_finished() {
            filter.recount();
        }
    });
    let len = filter.len();
    assert!(len.abs_diff(40_000) < 10, "{len}");
    assert_eq!([filter.recount(), filter.len()], [40_000; 2]);
}

/// Opens claim ids, under which nothing is counted.
#[test]
fn recount_beside_opens_corrects_length() {
    let file = File::new("opens");
    let builder = CuckooFilter::builder().buckets(1 << 18);
    let filter = builder.clone().open_or_create_shared(&file.0).unwrap();
    filter.insert("key").unwrap();
    let mut opened = Vec::new();
    for round in 1..20 {
        file.write(CORRECTION, &[round]);
        let begin = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                begin.wait();
                for _ in 0..10 {
                    let other = builder.clone().open_shared(&file.0).unwrap();
                    assert_eq!(other.remove("none"), Ok(false));
                    opened.push(other);
                }
            });
            begin.wait();
            filter.recount();
        });
        assert_eq!(filter.len(), 1, "round {round}");
    }
}

/// The first of two recounts misses a copy that comes, uncounted, while it counts: of a call of a killed thread. The
/// second finds it, and corrects the length though the first may do so meanwhile.
#[test]
fn later_recount_corrects_length() {
    let file = File::new("later");
    let builder = CuckooFilter::builder().buckets(1 << 18);
    let filter = builder.open_or_create_shared(&file.0).unwrap();
    let begin = Instant::now();
    assert_eq!(filter.recount(), 0);
    let scan = begin.elapsed();
    for nth in 0..20 {
        file.write(CORRECTION, &[10]);
        thread::scope(|scope| {
            scope.spawn(|| filter.recount());
            thread::sleep(scan * nth / 20);
            // In the first slot of the first bucket.
            file.write(TABLE / 8, &[1]);
            assert_eq!((filter.recount(), filter.len()), (1, 1), "{nth}");
        });
        file.write(TABLE / 8, &[0]);
    }
}

#[test]
fn recount_corrects_length_below_zero() {
    let file = File::new("below");
    let builder = CuckooFilter::builder().capacity(100);
    let filter = builder.open_or_create_shared(&file.0).unwrap();
    file.write(CORRECTION, &[u64::MAX]);
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
        file.write(CORRECTION, &[1_000 + round]);
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
    drop(builder.clone().open_or_create_shared(&file.0).unwrap());
    let look = builder.open_shared_to_read(&file.0).unwrap();
    assert!(!look.contains("key") && !look.is_damaged());
    // The tag of an operation that no thread has begun, in the table.
    file.write(1 << 18, &[1 << 63 | 5]);
    assert!(look.contains("key") && look.is_damaged());
}
