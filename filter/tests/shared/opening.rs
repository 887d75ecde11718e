//! Several filters in one file, and files that are refused.

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
    second.clear().unwrap();
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
    assert!(matches!(layout, OpenError::OtherParameters), "{layout:?}");
    let hasher = std::hash::BuildHasherDefault::<std::collections::hash_map::DefaultHasher>::new();
    let hasher = builder
        .clone()
        .hasher(hasher)
        .open_shared_to_read(&file.0)
        .unwrap_err();
    assert!(matches!(hasher, OpenError::OtherParameters), "{hasher:?}");
    let missing = builder
        .open_shared(File::new("missing").0.clone())
        .unwrap_err();
    assert!(matches!(missing, OpenError::Io(_)), "{missing:?}");
    let sizeless = CuckooFilter::builder().open_or_create_shared(&File::new("sizeless").0);
    assert!(matches!(sizeless, Err(OpenError::Io(_))));
}
