//! What somebody who knows `HashSet` writes in the first ten minutes: it compiles and does what it looks like, or it is
//! an error of the compiler that says what to write instead (`refused.rs`, `own_module.rs`).
#![cfg(not(any(kcas_loom, miri)))]

use std::collections::{BTreeSet, HashMap};
use std::env;
use std::error::Error;
use std::fs;
use std::future::Future;
use std::hash::RandomState;
use std::io;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, OnceLock};
use std::thread;

use filter::{
    AdvanceError, CuckooFilter, ExpiringCuckooFilter, Filter, GrowingCuckooFilter, InsertError,
    Mixed,
};

type Outcome = Result<(), Box<dyn Error>>;

#[test]
fn growing_filter_needs_no_capacity() -> Outcome {
    let seen = GrowingCuckooFilter::new();
    seen.insert("a")?;
    assert!(seen.contains("a") && !seen.contains("b"));
    Ok(())
}

#[test]
fn insert_all_collects_keys() -> Outcome {
    let seen = GrowingCuckooFilter::new();
    let keys = vec!["a".to_owned(), "b".to_owned()];
    assert_eq!(seen.insert_all(&keys)?, 2);
    assert_eq!(seen.insert_all(["c", "d"])?, 2);
    assert!(keys.iter().all(|key| seen.contains(key)));
    assert!(seen.contains("c") && seen.contains("d") && !seen.contains("e"));
    Ok(())
}

#[test]
fn owned_key_is_found_by_its_borrowed_form() -> Outcome {
    let seen = GrowingCuckooFilter::new();
    seen.insert(&String::from("a"))?;
    assert!(seen.contains("a"));
    seen.insert(&vec![1_u8])?;
    assert!(seen.contains(&[1_u8][..]) && seen.contains(b"\x01"));
    Ok(())
}

/// A trap that docs state ("Types of keys").
#[test]
fn text_and_its_bytes_are_different_keys() -> Outcome {
    let seen = GrowingCuckooFilter::new();
    seen.insert("abc")?;
    assert!(!seen.contains(b"abc"));
    Ok(())
}

/// Another one: the default hasher takes numbers of all types for the same key, and others do not.
#[test]
fn number_types_are_one_key_by_default_only() -> Outcome {
    let seen = GrowingCuckooFilter::new();
    seen.insert(&1_u32)?;
    assert!(seen.contains(&1_u64));
    let seeded = (0..50).filter(|_| {
        let seen = CuckooFilter::with_capacity_and_hasher(10, RandomState::new());
        seen.insert(&1_u32).unwrap();
        seen.contains(&1_u64)
    });
    assert!(seeded.count() < 5);
    Ok(())
}

#[test]
fn insert_if_absent_acts_like_set_insert() -> Outcome {
    let seen = CuckooFilter::with_capacity(10);
    assert!(seen.insert_if_absent("a")?);
    if seen.insert_if_absent("a")? {
        return Err("it is there".into());
    }
    Ok(())
}

#[test]
fn refused_copy_error_names_insert_if_absent() {
    let seen = CuckooFilter::with_capacity(100);
    let mut inserts = (0..10).map(|_| seen.insert("a"));
    let error = inserts.find_map(Result::err).expect("the ninth is refused");
    assert!(error.to_string().contains("insert_if_absent"), "{error}");
}

#[test]
fn hot_set_is_refused_with_advice() {
    let seen = CuckooFilter::with_capacity(100_000);
    let mut inserts = (0..100_000).map(|number| seen.insert(&(number % 1_000)));
    let error = inserts.find_map(Result::err).expect("an early error");
    assert!(error.to_string().contains("insert_if_absent"), "{error}");
}

#[test]
fn filter_is_shared_between_threads() {
    let seen = Arc::new(CuckooFilter::with_capacity(1_000));
    let other = Arc::clone(&seen);
    let inserted = thread::spawn(move || other.insert("a")).join().unwrap();
    assert_eq!(inserted, Ok(()));
    thread::scope(|scope| {
        let found = scope.spawn(|| seen.contains("a"));
        assert!(found.join().unwrap());
    });
}

struct Crawler {
    seen: CuckooFilter,
}

/// A hasher of std is mixed.
struct Seeded {
    seen: CuckooFilter<Mixed<RandomState>>,
}

#[test]
fn filter_can_be_field() -> Outcome {
    let crawler = Crawler {
        seen: CuckooFilter::with_capacity(10),
    };
    crawler.seen.insert("a")?;
    let seeded = Seeded {
        seen: CuckooFilter::with_capacity_and_hasher(10, RandomState::new()),
    };
    seeded.seen.insert("a")?;
    Ok(())
}

static ONCE: OnceLock<CuckooFilter> = OnceLock::new();
static LAZY: LazyLock<GrowingCuckooFilter> = LazyLock::new(GrowingCuckooFilter::new);

#[test]
fn filter_can_be_static() -> Outcome {
    ONCE.get_or_init(|| CuckooFilter::with_capacity(10))
        .insert("a")?;
    LAZY.insert("a")?;
    assert!(ONCE.get().unwrap().contains("a") && LAZY.contains("a"));
    Ok(())
}

async fn handle(seen: Arc<GrowingCuckooFilter>, key: String) -> bool {
    let is_new = seen.insert_if_absent(&key).is_ok_and(|is_new| is_new);
    tokio::task::yield_now().await;
    is_new && seen.contains(&key)
}

#[test]
fn filter_lives_across_await() {
    fn sent<F: Future + Send>(future: F) -> F {
        future
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    let seen = Arc::new(GrowingCuckooFilter::new());
    let handled = runtime.spawn(sent(handle(Arc::clone(&seen), "a".to_owned())));
    assert!(runtime.block_on(handled).unwrap());
}

/// Bounds like those of rayon's `try_for_each`.
fn in_parallel<T: Sync, E: Send>(
    keys: &[T],
    call: impl Fn(&T) -> Result<(), E> + Sync + Send,
) -> Result<(), E> {
    keys.iter().try_for_each(call)
}

#[test]
fn filter_is_used_by_closures_of_iterators() -> Outcome {
    let seen = GrowingCuckooFilter::new();
    let keys = ["a", "b", "c"];
    in_parallel(&keys[..2], |key| seen.insert(key))?;
    let found: Vec<_> = keys.iter().filter(|key| seen.contains(**key)).collect();
    assert_eq!(found, [&"a", &"b"]);
    Ok(())
}

#[test]
fn errors_of_filters_become_those_of_anyhow() -> anyhow::Result<()> {
    let seen = CuckooFilter::builder().capacity(10).build()?;
    seen.insert("a")?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("seen.filter");
    seen.save(&path)?;
    assert!(CuckooFilter::load(&path)?.contains("a"));
    assert!(seen.try_clone()?.contains("a"));
    assert!(seen.remove("a")?);
    // Each cause is named once.
    let error = anyhow::Error::from(seen.save(folder.path().join("no/seen.filter")).unwrap_err());
    let text = format!("{error:#}");
    assert_eq!(
        text.matches("No such file").count(),
        usize::from(cfg!(unix)),
        "{text}"
    );
    Ok(())
}

#[cfg(feature = "serde")]
#[test]
fn filter_can_be_serialized_field() -> Outcome {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct State {
        seen: GrowingCuckooFilter,
    }
    let seen = GrowingCuckooFilter::new();
    seen.insert("a")?;
    let text = serde_json::to_string(&State { seen })?;
    assert!(serde_json::from_str::<State>(&text)?.seen.contains("a"));
    Ok(())
}

#[test]
fn growing_filter_has_default() -> Outcome {
    #[derive(Default)]
    struct State {
        seen: GrowingCuckooFilter,
        by_name: HashMap<String, GrowingCuckooFilter>,
    }
    let mut state = State::default();
    state.seen.insert("a")?;
    state
        .by_name
        .entry("b".to_owned())
        .or_default()
        .insert("a")?;
    assert!(state.by_name["b"].contains("a"));
    Ok(())
}

fn fill<F: Filter>(filter: F) -> Result<(), InsertError> {
    filter.insert("a")
}

/// One call compiles on each of them.
#[test]
fn call_compiles_on_type_reference_arc_and_box() -> Outcome {
    let seen = CuckooFilter::with_capacity(100);
    fill(&seen)?;
    let shared = Arc::new(seen);
    fill(&shared)?;
    fill(Arc::clone(&shared))?;
    let chosen: Box<dyn Filter> = Box::new(GrowingCuckooFilter::new());
    chosen.insert("a")?;
    fill(&chosen)?;
    let reference: &dyn Filter = &*chosen;
    (&reference).insert("a")?;
    let dynamic: Arc<dyn Filter> = shared;
    dynamic.insert("b")?;
    assert_eq!((dynamic.count("a"), chosen.count("a")), (3, 3));
    let count = thread::spawn(move || chosen.count("a")).join().unwrap();
    assert_eq!(count, 3);
    Ok(())
}

#[test]
fn generic_filter_is_saved_by_name() -> Outcome {
    fn saved<F: Filter>(filter: &F, folder: &Path) -> Outcome {
        filter.save(folder.join("a.filter"))?;
        filter.save(folder.join("b.filter").to_str().unwrap())?;
        filter.write_to(io::sink())?;
        Ok(())
    }
    let folder = tempfile::tempdir()?;
    saved(&CuckooFilter::with_capacity(10), folder.path())?;
    let shared: Arc<dyn Filter> = Arc::new(GrowingCuckooFilter::new());
    saved(&shared, folder.path())?;
    shared.save(folder.path().join("c.filter"))?;
    assert_eq!(folder.path().read_dir()?.count(), 3);
    Ok(())
}

#[test]
fn batch_answers_in_slice() {
    let keys = ["a", "b"];
    let mut found = vec![true; keys.len()];
    CuckooFilter::with_capacity(10).contains_batch(&keys, &mut found);
    assert_eq!(found, [false, false]);
}

#[test]
fn filter_is_used_where_panics_are_caught() {
    let seen = GrowingCuckooFilter::new();
    assert!(!catch_unwind(|| seen.contains("a")).unwrap());
}

#[test]
fn period_of_nanoseconds_is_error() {
    let seen = ExpiringCuckooFilter::with_capacity(10);
    let error = seen.advance_to(1_795_932_135_862_260_970).unwrap_err();
    let is_right = matches!(error, AdvanceError::NoSuchPeriod { .. });
    assert!(
        is_right && error.to_string().contains("longer units"),
        "{error}"
    );
}

/// Returns the library that this test was linked with: of several builds, the last one.
fn library(folder: &Path) -> PathBuf {
    let files = folder
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with("libfilter-") && name.ends_with(".rlib")
    };
    let modified = |path: &PathBuf| path.metadata().unwrap().modified().unwrap();
    let found = files.filter(is_ours).max_by_key(modified);
    found.expect("cargo built the library beside this test")
}

/// Compiles a file, whose comments `//~ CODE: TEXT` name the errors that the compiler must report in their lines. The
/// text is part of the message, or of the advice in it.
fn check_refused(source: &str) {
    let test = env::current_exe().unwrap();
    let folder = test.parent().unwrap();
    let built = tempfile::tempdir().unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/first_ten_minutes")
        .join(source);
    let mut compiler = Command::new(env::var_os("RUSTC").unwrap_or("rustc".into()));
    compiler.args([
        "--edition=2024",
        "--crate-type=lib",
        "--emit=metadata",
        "--error-format=json",
    ]);
    compiler
        .arg("--extern")
        .arg(format!("filter={}", library(folder).display()));
    compiler
        .arg("-L")
        .arg(folder)
        .arg("--out-dir")
        .arg(built.path());
    let output = compiler.arg(&path).output().unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();

    let text = fs::read_to_string(&path).unwrap();
    let expected = text.lines().zip(1..).filter_map(|(line, number)| {
        let (code, advice) = line.split_once("//~ ")?.1.split_once(": ")?;
        Some((number, code.to_owned(), advice.to_owned()))
    });
    let expected: Vec<(u64, String, String)> = expected.collect();
    assert!(!expected.is_empty());
    let found: Vec<(u64, String, String)> = messages.lines().filter_map(error_in).collect();
    let names = |(line, code, _): &(u64, String, String)| (*line, code.clone());
    let places = |errors: &[_]| errors.iter().map(names).collect::<BTreeSet<_>>();
    assert_eq!(places(&found), places(&expected), "{found:#?}");
    for (line, code, advice) in &expected {
        let is_it = |error: &&(u64, String, String)| error.0 == *line && error.1 == *code;
        let mut same = found.iter().filter(is_it);
        let helps = same.any(|error| error.2.contains(advice));
        assert!(helps, "{source}:{line} lacks {advice:?}: {found:#?}");
    }
}

/// The line, the code and the whole text of an error that the compiler reports, without our comments in it.
fn error_in(message: &str) -> Option<(u64, String, String)> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    if message["level"] != "error" {
        return None;
    }
    let spans = message["spans"].as_array()?;
    let line = spans.iter().find(|span| span["is_primary"] == true)?["line_start"].as_u64()?;
    let code = message["code"]["code"]
        .as_str()
        .unwrap_or("none")
        .to_owned();
    let text = message["rendered"].as_str()?.lines();
    let text: Vec<_> = text.map(|line| line.split("//~").next().unwrap()).collect();
    Some((line, code, text.join("\n")))
}

#[test]
fn calls_that_filters_lack_are_errors_that_help() {
    check_refused("refused.rs");
}

#[test]
fn own_module_named_filter_is_error() {
    check_refused("own_module.rs");
}
