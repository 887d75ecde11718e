//! What all kinds of filters have in common.

use std::fmt::Debug;
use std::hash::{BuildHasher, DefaultHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::{fs, io, thread};

use filter::{
    CuckooFilter, DynCuckooFilter, ExpiringCuckooFilter, Filter, FixedState, GrowingCuckooFilter,
    InsertError, LoadError, load_any,
};

fn filters(keys: usize) -> [(&'static str, Box<dyn Filter>); 4] {
    let expiring = ExpiringCuckooFilter::with_capacity(keys);
    let chosen = CuckooFilter::builder().capacity(keys);
    let chosen = chosen.false_positive_rate(0.001).build().unwrap();
    [
        ("fixed", Box::new(CuckooFilter::with_capacity(keys))),
        ("dyn", Box::new(chosen)),
        ("expiring", Box::new(expiring)),
        ("growing", Box::new(GrowingCuckooFilter::new())),
    ]
}

/// A key has the same hash whichever way it is passed, and to all filters that hash alike.
#[test]
fn filters_that_hash_alike_say_so() {
    let seeded = CuckooFilter::with_capacity_and_hasher(10, RandomState::new());
    for (name, filter) in filters(10) {
        assert_eq!(filter.hash_one("key"), FixedState.hash_one("key"), "{name}");
        assert_eq!(
            filter.hash_one(&7_u32),
            FixedState.hash_one(7_u32),
            "{name}"
        );
        // Sized and unsized keys hash alike.
        assert_eq!(
            filter.hash_one(&String::from("key")),
            filter.hash_one("key")
        );
        assert_eq!(
            filter.hash_one(&vec![1_u8, 2]),
            filter.hash_one(&[1_u8, 2][..])
        );
        let like = CuckooFilter::with_capacity(1);
        assert!(filter.hashes_like(&like), "{name}");
        assert!(!filter.hashes_like(&seeded), "{name}");
    }
    let growing = GrowingCuckooFilter::with_capacity_and_hasher(10, RandomState::new());
    growing.insert("key").unwrap();
    assert!(growing.contains("key") && !growing.hashes_like(&seeded));
    assert!(!growing.contains(b"key"), "the docs: another type");
}

#[test]
fn results_of_another_length_change_nothing() {
    for (name, filter) in filters(100) {
        let calls: [&dyn Fn(); 8] = [
            &|| filter.insert_batch(&[1, 2], &mut [Ok(())]),
            &|| filter.insert_if_absent_batch(&[1, 2], &mut [Ok(true)]),
            &|| filter.remove_batch(&[1, 2], &mut [Ok(true)]),
            &|| filter.contains_batch(&[1, 2], &mut [true]),
            &|| filter.insert_hash_batch(&[1, 2], &mut [Ok(())]),
            &|| filter.insert_if_absent_hash_batch(&[1, 2], &mut [Ok(true)]),
            &|| filter.remove_hash_batch(&[1, 2], &mut [Ok(true)]),
            &|| filter.contains_hash_batch(&[1, 2], &mut [true]),
        ];
        let refused = |call: &&dyn Fn()| catch_unwind(AssertUnwindSafe(call)).is_err();
        assert!(calls.iter().all(refused) && filter.is_empty(), "{name}");
    }
}

/// Whatever holds a filter: the calls are written alike, and save under a name of any type.
#[test]
fn every_filter_holder_has_same_calls() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seen.filter");
    fn takes_calls<F: Filter>(filter: F, path: &Path) {
        filter.insert("key").unwrap();
        assert_eq!(filter.insert_if_absent("key"), Ok(false));
        assert!(filter.contains(&String::from("key")));
        assert!(filter.contains_hash(filter.hash_one("key")));
        filter.insert_batch(&[1, 2], &mut [Ok(()), Ok(())]);
        filter.save(path.to_str().unwrap()).unwrap();
        let bytes = fs::read(path).unwrap();
        filter.save_dyn(path).unwrap();
        filter.write_to(io::sink()).unwrap();
        filter.write_dyn(&mut io::sink()).unwrap();
        assert!(filter.to_bytes().unwrap() == bytes && fs::read(path).unwrap() == bytes);
        assert_eq!(filter.remove("key"), Ok(true));
    }
    for (_, filter) in filters(100) {
        takes_calls(&filter, &path);
        filter.save(path.to_str().unwrap()).unwrap();
        let shared: Arc<dyn Filter> = filter.into();
        takes_calls(&*shared, &path);
        thread::scope(|scope| _ = scope.spawn(|| takes_calls(Arc::clone(&shared), &path)));
    }
    takes_calls(Arc::new(GrowingCuckooFilter::new()), &path);
}

/// Seeds are secret, and nobody wants a million words in a log.
#[test]
fn debug_is_one_short_line_without_hasher() {
    #[derive(Clone, Debug, Default)]
    struct Secret(RandomState);
    impl BuildHasher for Secret {
        type Hasher = DefaultHasher;

        fn build_hasher(&self) -> DefaultHasher {
            self.0.build_hasher()
        }
    }
    let builder = CuckooFilter::builder().capacity(100_000);
    let builder = builder.hasher(Secret::default());
    let expiring = ExpiringCuckooFilter::with_capacity_and_hasher(10, Secret::default());
    let growing = GrowingCuckooFilter::with_capacity_and_hasher(10, Secret::default());
    let fitted = builder.clone().false_positive_rate(0.01).build().unwrap();
    let fixed = builder.clone().build().unwrap();
    fixed.insert("key").unwrap();
    let shown: [(&dyn Debug, &str); 5] = [
        (&builder, ""),
        (&expiring, ""),
        (&growing, ""),
        (&fitted, "slots: 5, bits: 10"),
        (&fixed, "len: 1,"),
    ];
    for (shown, part) in shown {
        let text = format!("{shown:?}");
        let is_right = text.contains(part) && text.len() < 400 && !text.contains("Secret");
        assert!(is_right && !text.contains('\n'), "{text}");
    }
}

/// The numbers in the docs of `insert_if_absent`.
#[test]
fn removing_key_can_lose_one_of_class() {
    let missing = |insert: fn(&CuckooFilter, &u64) -> bool| {
        let filter = CuckooFilter::with_capacity(100_000);
        let inserted: Vec<u64> = (0..100_000).filter(|key| insert(&filter, key)).collect();
        let removed = inserted.iter().filter(|key| **key < 50_000);
        removed.for_each(|key| assert!(filter.remove(key).unwrap()));
        let others = 50_000..100_000;
        others.filter(|key| !filter.contains(key)).count()
    };
    let if_absent = missing(|filter, key| filter.insert_if_absent(key).unwrap());
    let each = missing(|filter, key| filter.insert(key).is_ok());
    assert_eq!((if_absent, each), (42, 0));
}

/// Loads a filter of this kind, and looks a key up.
fn has_it(kind: &str, path: &Path, key: usize) -> Result<bool, LoadError> {
    Ok(match kind {
        "fixed" => CuckooFilter::load(path)?.contains(&key),
        "dyn" => DynCuckooFilter::load(path)?.contains(&key),
        "expiring" => ExpiringCuckooFilter::load(path)?.contains(&key),
        _ => GrowingCuckooFilter::load(path)?.contains(&key),
    })
}

/// `load` and `load_any` find the keys of a filter in place of another one, and refuse a file with more behind the
/// filter.
#[test]
fn file_of_each_kind_is_loaded_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seen.filter");
    for (key, (name, filter)) in filters(100).into_iter().enumerate() {
        filter.insert(&key).unwrap();
        filter.save(&path).unwrap();
        assert!(has_it(name, &path, key).unwrap(), "{name}");
        assert_eq!(load_any(&path).unwrap().to_bytes(), filter.to_bytes());
        let longer = [filter.to_bytes().unwrap(), vec![0; 3]].concat();
        fs::write(&path, longer).unwrap();
        let error = has_it(name, &path, 0).unwrap_err();
        let is_right = matches!(error, LoadError::TooLong { excess: 3, .. });
        assert!(is_right, "{name}: {error}");
    }
    assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    let other_layout = CuckooFilter::builder().layout::<4, 8>().buckets(1);
    let hasher = RandomState::new();
    let other_hasher = GrowingCuckooFilter::with_capacity_and_hasher(10, hasher);
    for (bytes, says) in [
        (
            other_layout.build().unwrap().to_bytes().unwrap(),
            "layout::<4, 8>()",
        ),
        (
            other_hasher.to_bytes().unwrap(),
            "a hasher that gives other hashes",
        ),
        (b"key".to_vec(), "not a saved filter"),
    ] {
        fs::write(&path, bytes).unwrap();
        let error = load_any(&path).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    let text = CuckooFilter::load(folder.path().join("no/seen.filter"));
    let text = text.unwrap_err().to_string();
    assert!(text.ends_with("no/seen.filter cannot be opened"), "{text}");
}

#[test]
fn insert_all_stops_at_refused_key() {
    for (name, filter) in filters(100) {
        assert_eq!(filter.insert_all(0..100), Ok(100), "{name}");
        assert!((0..100).all(|key| filter.contains(&key)), "{name}");
    }
    let filter = CuckooFilter::with_capacity(100);
    let mut keys = ["a", "a", "a", "a", "a", "a", "a", "a", "a", "b"].iter();
    let error = filter.insert_all(&mut keys).unwrap_err();
    assert!(
        matches!(error, InsertError::TooManyCopies { .. }),
        "{error}"
    );
    assert_eq!((filter.count("a"), keys.next()), (8, Some(&"b")));
}
