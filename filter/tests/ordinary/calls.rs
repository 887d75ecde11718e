//! What every kind of filter does alike, and what a key's copies are.

use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use filter::{
    CuckooFilter, DynCuckooFilter, Filter, FixedState, GrowingCuckooFilter, InsertError, LoadError,
    SaveError,
};

fn filters(keys: usize) -> [(&'static str, Box<dyn Filter + Send + Sync>); 3] {
    let chosen = CuckooFilter::builder().capacity(keys);
    [
        ("fixed", Box::new(CuckooFilter::with_capacity(keys))),
        (
            "dyn",
            Box::new(chosen.false_positive_rate(0.001).build().unwrap()),
        ),
        ("growing", Box::new(GrowingCuckooFilter::new())),
    ]
}

/// A key has the same hash whichever way it is passed, and to all filters that hash alike.
#[test]
fn filters_that_hash_alike_say_so() {
    let seeded = CuckooFilter::with_capacity_and_hasher(10, RandomState::new());
    for (name, filter) in filters(10) {
        assert_eq!(filter.hash("key"), FixedState.hash_one("key"), "{name}");
        assert_eq!(filter.hash(&7_u32), FixedState.hash_one(7_u32), "{name}");
        assert!(
            filter.hashes_like(&CuckooFilter::with_capacity(1)),
            "{name}"
        );
        assert!(!filter.hashes_like(&seeded), "{name}");
    }
    let boxed: Box<dyn Filter> = Box::new(seeded);
    boxed.insert("key").unwrap();
    assert!(boxed.contains("key") && boxed.contains_hash(boxed.hash("key")));
    let growing = GrowingCuckooFilter::with_capacity_and_hasher(10, RandomState::new());
    growing.insert("key").unwrap();
    assert!(growing.contains("key") && !growing.hashes_like(&boxed));
}

#[test]
fn results_of_another_length_change_nothing() {
    for (name, filter) in filters(100) {
        let refused = |call: &dyn Fn()| catch_unwind(AssertUnwindSafe(call)).is_err();
        assert!(refused(&|| filter.insert_batch(&[1, 2], &mut [Ok(())])));
        assert!(refused(
            &|| filter.insert_unique_batch(&[1, 2], &mut [Ok(true)])
        ));
        assert!(refused(&|| filter.remove_batch(&[1, 2], &mut [true])));
        assert!(refused(&|| filter.contains_batch(&[1, 2], &mut [true])));
        assert!(refused(&|| filter.insert_hash_batch(&[1, 2], &mut [Ok(())])));
        assert!(refused(
            &|| filter.insert_unique_hash_batch(&[1, 2], &mut [Ok(true)])
        ));
        assert!(refused(&|| filter.remove_hash_batch(&[1, 2], &mut [true])));
        assert!(refused(&|| filter.contains_hash_batch(&[1, 2], &mut [true])));
        assert!(filter.is_empty(), "{name}");
    }
}

/// A file is replaced by a whole one, or stays as it was; and errors say which file, and what to do.
#[test]
fn a_file_is_replaced_at_one_moment() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seen.filter");
    for (key, (name, filter)) in filters(100).into_iter().enumerate() {
        filter.insert(&key).unwrap();
        filter.save(&path).unwrap();
        let has_it = match name {
            "fixed" => CuckooFilter::load(&path).unwrap().contains(&key),
            "dyn" => DynCuckooFilter::load(&path).unwrap().contains(&key),
            _ => GrowingCuckooFilter::load(&path).unwrap().contains(&key),
        };
        assert!(has_it, "{name}");
    }
    assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    let other = CuckooFilter::load(&path).unwrap_err();
    assert!(matches!(other, LoadError::OtherType { .. }), "{other}");

    let nowhere = folder.path().join("no/seen.filter");
    let filter = CuckooFilter::with_capacity(10);
    let error = filter.save(&nowhere).unwrap_err();
    assert!(matches!(error, SaveError::File { .. }));
    let text = error.to_string();
    assert!(
        text.contains("no/seen.filter: ") && text.contains("folder that exists"),
        "{text}"
    );
    let text = CuckooFilter::load(&nowhere).unwrap_err().to_string();
    assert!(text.contains("no/seen.filter cannot be opened: "), "{text}");
    // A folder cannot be replaced by a file, and what was begun is gone.
    assert!(filter.save(folder.path()).is_err());
    let mut beside = folder.path().as_os_str().to_owned();
    beside.push(".partial0");
    assert!(!Path::new(&beside).exists());
}

#[test]
fn a_full_filter_refuses_some_and_goes_on_with_the_others() {
    let builder = CuckooFilter::builder().layout::<2, 12>().buckets(70);
    let filter = builder.build().unwrap();
    let mut results = vec![Ok(()); 300];
    filter.insert_batch(&Vec::from_iter(0..300_u16), &mut results);
    let inserted = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!(inserted, filter.len());
    assert!(inserted > 120 && inserted <= filter.capacity());
    let first_refused = results.iter().position(Result::is_err).unwrap();
    assert!(results[first_refused..].iter().any(Result::is_ok));
}

/// For a key whose two buckets are the same one, half as many; and a filter that is full of other
/// keys says so.
#[test]
fn full_and_too_many_copies_are_different_errors() {
    let filter = CuckooFilter::builder().buckets(1).build().unwrap();
    assert!((0..4).all(|_| filter.insert("key").is_ok()));
    let refused = filter.insert("key");
    assert_eq!(refused, Err(InsertError::TooManyCopies { most: 4 }));
    assert_eq!(filter.insert("other"), Err(InsertError::Full));
    assert_eq!(filter.insert_unique("key"), Ok(false));
    assert_eq!(filter.insert_unique("other"), Err(InsertError::Full));
    assert!(filter.remove("key"));
    assert_eq!(filter.insert("other"), Ok(()));
    assert_eq!(filter.insert("key"), Err(InsertError::Full));
}

#[test]
fn unsized_and_sized_keys_hash_alike() {
    let filter = CuckooFilter::with_capacity(10);
    filter.insert(&String::from("key")).unwrap();
    assert!(filter.contains("key"));
    filter.insert(&[1u8, 2][..]).unwrap();
    assert!(filter.contains(&vec![1u8, 2]));
}

/// Why no filter is filled by `Extend`: whoever does not know which keys were taken for others would
/// remove those others.
#[test]
fn a_key_that_was_not_new_must_not_be_removed() {
    let builder = CuckooFilter::builder().buckets(500);
    let filter: CuckooFilter<8, 7> = builder.layout().build().unwrap();
    let collected: Vec<u32> = (0..3_000).collect();
    let (new, taken): (Vec<u32>, Vec<u32>) =
        (collected.into_iter()).partition(|key| filter.insert_unique(key).unwrap());
    assert!(!taken.is_empty());
    assert!(new.iter().all(|key| filter.contains(key)));
    assert!(filter.remove(&taken[0]));
    assert!(new.iter().any(|key| !filter.contains(key)));
}
