//! Saved filters: what their bytes are, and what is refused.

#[cfg(unix)]
use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs::{self, FileType},
    os::unix::{fs::symlink, net::UnixListener},
    path::Path,
    process::{Command, Stdio},
};

use std::error::Error;
use std::hash::RandomState;
use std::io::{self, Read};

use filter::{CuckooFilter, ExpiringCuckooFilter, GrowingCuckooFilter, LoadError, SaveError};

use crate::forged::with_right_checksums;

const HEADER: usize = 40;

fn filter_of(keys: u64) -> CuckooFilter {
    let filter = CuckooFilter::with_capacity(keys.max(1) as usize);
    (0..keys).for_each(|key| filter.insert(&key).unwrap());
    filter
}

fn load(bytes: &[u8]) -> Result<CuckooFilter, LoadError> {
    CuckooFilter::from_bytes(bytes)
}

/// Impossible contents with right checksums.
#[test]
fn forged_contents_are_errors() {
    let bytes = filter_of(500).to_bytes().unwrap();
    let forged = |offset: usize, change: fn(u8) -> u8| {
        let mut bytes = bytes.clone();
        bytes[offset] = change(bytes[offset]);
        load(&with_right_checksums(bytes, HEADER - 8)).unwrap_err()
    };
    // Bits 48 to 63 of a word belong to the timestamp or to nobody.
    for bit in 48..64 {
        let mut bytes = bytes.clone();
        bytes[HEADER + 8 * 7 + bit / 8] |= 1 << (bit % 8);
        let error = load(&with_right_checksums(bytes, HEADER - 8)).unwrap_err();
        let is_found = matches!(error, LoadError::Bucket { bucket: 7, .. });
        assert!(is_found, "{error}");
    }
    let says = |error: LoadError, part: &str| assert!(error.to_string().contains(part), "{error}");
    let advice = "load it with CuckooFilter::builder().layout::<3, 12>()";
    says(forged(12, |_slots| 3), advice);
    assert!(matches!(forged(24, |hasher| hasher ^ 1), LoadError::Hasher));
    // Versions that were never released, and a later one.
    for error in [forged(8, |_| 1), forged(8, |_| 2), forged(8, |_| 4)] {
        assert!(matches!(error, LoadError::Version { known: 3, .. }));
        says(error, "with the release that saved it");
    }
}

/// A saved filter is loaded by a builder with the same hasher, given in the same way, and by no
/// other.
#[test]
fn another_hasher_is_an_error() {
    let (seeded, other) = (RandomState::new(), RandomState::new());
    let builder = CuckooFilter::builder().capacity(10);
    let is_hasher = |error: LoadError| assert!(matches!(error, LoadError::Hasher), "{error}");
    let filter = builder.clone().hasher(seeded.clone()).build().unwrap();
    filter.insert("key").unwrap();
    let bytes = filter.to_bytes().unwrap();
    let same = builder.clone().hasher(seeded.clone());
    assert!(same.clone().load_bytes(&bytes).unwrap().contains("key"));
    assert!(same.clone().load_from(&bytes[..]).unwrap().contains("key"));
    is_hasher(
        builder
            .clone()
            .hasher(other)
            .load_bytes(&bytes)
            .unwrap_err(),
    );
    is_hasher(load(&bytes).unwrap_err());
    let unmixed = builder.unmixed_hasher(seeded);
    is_hasher(unmixed.clone().load_bytes(&bytes).unwrap_err());
    let bytes = unmixed.clone().build().unwrap().to_bytes().unwrap();
    assert!(unmixed.load_bytes(&bytes).is_ok());
    is_hasher(same.load_bytes(&bytes).unwrap_err());
}

#[test]
fn a_saved_filter_of_another_type_is_named() {
    let fixed = filter_of(5).to_bytes().unwrap();
    let growing = GrowingCuckooFilter::new().to_bytes().unwrap();
    let expiring = ExpiringCuckooFilter::with_capacity(5).to_bytes().unwrap();
    let fitted = CuckooFilter::builder().false_positive_rate(0.5);
    let is_growing =
        "growing filter: load it as a GrowingCuckooFilter, with GrowingCuckooFilter::builder()";
    let is_fixed = "filter of a fixed size: load it as a CuckooFilter, with CuckooFilter::builder(), or as a \
                    DynCuckooFilter";
    let as_growing = GrowingCuckooFilter::from_bytes(&fixed);
    let forgets = "filter that forgets: load it as a ExpiringCuckooFilter, with ExpiringCuckooFilter::builder()";
    for (error, advice) in [
        (load(&growing).unwrap_err(), is_growing),
        (fitted.clone().load_bytes(&growing).unwrap_err(), is_growing),
        (fitted.load_from(&growing[..]).unwrap_err(), is_growing),
        (load(&expiring).unwrap_err(), forgets),
        (as_growing.unwrap_err(), is_fixed),
    ] {
        assert_eq!(error.to_string(), format!("this is a saved {advice}"));
    }
    let divided = ExpiringCuckooFilter::builder().layout::<4, 11, 3>();
    let error = divided.load_bytes(&expiring).unwrap_err().to_string();
    let advice = "ExpiringCuckooFilter::builder().layout::<4, 12, 2>()";
    assert!(error.contains(advice), "{error}");
}

/// Only the widths of the ages differ.
#[test]
fn ages_of_other_width_are_refused() {
    let wide = ExpiringCuckooFilter::builder().layout::<2, 20, 3>();
    let bytes = wide.buckets(5).build().unwrap().to_bytes().unwrap();
    let narrow = ExpiringCuckooFilter::builder().layout::<2, 20, 2>();
    let error = narrow.load_bytes(&bytes).unwrap_err().to_string();
    assert!(error.contains("layout::<2, 20, 3>()"), "{error}");
}

/// Bytes that are shorter than the first field and begin differently are not a filter that was cut
/// off.
#[test]
fn what_begins_differently_is_not_a_filter() {
    for text in ["h", "hello", "cuckoos", "cuckoof\r", "cuckoo filter"] {
        let error = load(text.as_bytes()).unwrap_err();
        assert!(matches!(error, LoadError::NotAFilter), "{text}: {error}");
    }
}

/// Returns a byte or two at a time, and fails after the last one.
struct Failing<'a>(&'a [u8]);

impl Read for Failing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(2).min(self.0.len());
        if most == 0 {
            return Err(io::Error::other("the cable is unplugged"));
        }
        self.0.read(&mut buffer[..most])
    }
}

#[test]
fn failures_of_readers_and_writers_are_passed_on() {
    let filter = filter_of(5_000);
    let bytes = filter.to_bytes().unwrap();
    for length in [0, 20, HEADER, 5_000, bytes.len() - 1] {
        let error = CuckooFilter::read_from(Failing(&bytes[..length])).unwrap_err();
        let cause = error.source().unwrap().to_string();
        assert!(cause.contains("unplugged") && !error.to_string().contains(&cause));
    }
    let slowly = CuckooFilter::read_from(Failing(&bytes)).unwrap();
    assert_eq!(slowly.len(), 5_000);

    let mut small = [0; 5_000];
    let error = filter.write_to(&mut small[..]).unwrap_err();
    assert!(matches!(error, SaveError::Io { .. }), "{error}");
}

/// A pipe has neither a length nor a position.
#[cfg(unix)]
#[test]
fn a_filter_is_loaded_from_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let bytes = filter_of(500).to_bytes().unwrap();
    let load = |bytes: &[u8]| {
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| fs::write(&pipe, bytes));
            let loaded = CuckooFilter::load(&pipe);
            writer.join().unwrap().unwrap();
            loaded
        })
    };
    assert_eq!(load(&bytes).unwrap().to_bytes().unwrap(), bytes);
    let error = load(&[&bytes[..], &[0]].concat()).unwrap_err();
    let is_right = matches!(error, LoadError::TooLong { excess: 1, .. });
    assert!(is_right, "{error}");
}

/// What a name leads to, the names in its folder, and the text of the error if a filter is saved under that name.
#[cfg(unix)]
fn saved_as(path: &Path) -> (Option<FileType>, BTreeSet<OsString>, Result<(), String>) {
    let saved = CuckooFilter::with_capacity(10).save(path);
    let kind = fs::symlink_metadata(path).map(|data| data.file_type()).ok();
    let names = path.parent().unwrap().read_dir().unwrap();
    let names = names.map(|entry| entry.unwrap().file_name()).collect();
    let text = |error| format!("{:#}", anyhow::Error::from(error));
    (kind, names, saved.map_err(text))
}

/// Devices are nodes in a folder of the test, for which it must be run by root.
#[cfg(unix)]
#[test]
fn save_over_device_pipe_or_socket_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let run = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        let made = command.current_dir(&folder).args(arguments);
        made.stderr(Stdio::null()).status().unwrap().success()
    };
    assert!(run("mkfifo", &["pipe"]));
    let _socket = UnixListener::bind(at("socket")).unwrap();
    fs::create_dir(at("folder")).unwrap();
    let mut names = vec!["pipe", "socket", "folder"];
    // The numbers of /dev/null and of the first loop device.
    let devices = [("character", ["c", "1", "3"]), ("block", ["b", "7", "0"])];
    for (name, [kind, major, minor]) in devices {
        if run("mknod", &[name, kind, major, minor]) {
            names.push(name);
        }
    }
    for name in names {
        let link = format!("link to {name}");
        symlink(at(name), at(&link)).unwrap();
        for name in [name, &link] {
            let before = fs::symlink_metadata(at(name)).unwrap().file_type();
            let (after, names, saved) = saved_as(&at(name));
            let error = saved.expect_err(name);
            assert_eq!(after, Some(before), "{name}");
            let is_partial = |name: &OsString| name.to_string_lossy().contains("partial");
            assert!(!names.iter().any(is_partial), "{names:?}");
            let whats = ["a device, a pipe or a socket", "directory"];
            let what = whats[usize::from(name.ends_with("folder"))];
            let is_named = error.contains(what) && error.contains("(save it under another name): ");
            assert!(is_named, "{name}: {error}");
        }
    }
}

/// What a link leads to stays as it is.
#[cfg(unix)]
#[test]
fn save_over_file_or_link_replaces_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("other"), "other").unwrap();
    fs::write(at("file"), "old").unwrap();
    symlink(at("other"), at("link")).unwrap();
    symlink(at("nowhere"), at("dangling")).unwrap();
    symlink(at("loop"), at("loop")).unwrap();
    for name in ["file", "link", "dangling", "loop", "new"] {
        let (kind, _, saved) = saved_as(&at(name));
        assert_eq!(saved, Ok(()), "{name}");
        assert!(kind.unwrap().is_file(), "{name}");
        assert!(CuckooFilter::load(at(name)).unwrap().is_empty());
    }
    assert_eq!(fs::read(at("other")).unwrap(), b"other");
    assert_eq!(folder.path().read_dir().unwrap().count(), 6);
}

/// 255 bytes are the longest name of most file systems.
#[cfg(unix)]
#[test]
fn save_under_longest_names_succeeds() {
    for length in [1, 240, 246, 247, 250, 254, 255, 256] {
        let folder = tempfile::tempdir().unwrap();
        let name = OsString::from("x".repeat(length));
        let (_, names, saved) = saved_as(&folder.path().join(&name));
        if length == 256 {
            let error = saved.unwrap_err();
            let is_right = error.contains("name too long") && !error.contains("folder");
            assert!(is_right && names.is_empty(), "{error}");
        } else {
            assert_eq!(saved, Ok(()), "{length} bytes");
            assert_eq!(names, BTreeSet::from([name]));
        }
    }
}

/// Each error says what helps: another name does not help against a folder that is missing, nor the other way round.
#[cfg(unix)]
#[test]
fn errors_of_save_give_fitting_advice() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "a file").unwrap();
    let another_folder = "(save it in a folder that exists and may be read and written to)";
    let another_name = "(save it under another name)";
    for (name, advice) in [
        ("missing/seen", another_folder),
        ("file/seen", another_folder),
        ("new/", another_folder),
        ("/proc/self/seen", another_folder),
        ("/proc/self/comm", another_folder),
        ("a\0b", another_name),
        ("a\0b/seen", another_name),
        ("..", another_name),
        ("/", another_name),
    ] {
        // An absolute name replaces the folder.
        let saved = CuckooFilter::with_capacity(10).save(folder.path().join(name));
        let error = saved.expect_err(name).to_string();
        assert!(error.ends_with(advice), "{error}");
    }
    let error = CuckooFilter::with_capacity(10).save("").unwrap_err();
    assert!(error.to_string().ends_with(another_name), "{error}");
    assert_eq!(folder.path().read_dir().unwrap().count(), 1);
}
