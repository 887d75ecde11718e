//! Saved filters: what their bytes are, and what is refused.

#[cfg(unix)]
use std::{
    fs,
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
    let forged = |offset: usize, flipped: u8| {
        let mut bytes = bytes.clone();
        bytes[offset] ^= flipped;
        load(&with_right_checksums(bytes, HEADER - 8)).unwrap_err()
    };
    // Bits 48 to 63 of a word belong to the timestamp or to nobody.
    for bit in 48..64 {
        let error = forged(HEADER + 8 * 7 + bit / 8, 1 << (bit % 8));
        let is_found = matches!(error, LoadError::Bucket { bucket: 7, .. });
        assert!(is_found, "{error}");
    }
}

/// A saved filter is loaded by a builder with the same hasher, given in the same way, and by no
/// other.
#[test]
fn other_hasher_is_error() {
    let (seeded, other) = (RandomState::new(), RandomState::new());
    let builder = CuckooFilter::builder().capacity(10);
    let mixed = builder.clone().hasher(seeded.clone());
    let other = builder.clone().hasher(other);
    let unmixed = builder.unmixed_hasher(seeded);
    let filter = mixed.clone().build().unwrap();
    filter.insert("key").unwrap();
    let bytes = filter.to_bytes().unwrap();
    let of_unmixed = unmixed.clone().build().unwrap().to_bytes().unwrap();
    assert!(mixed.clone().load_bytes(&bytes).unwrap().contains("key"));
    assert!(unmixed.clone().load_bytes(&of_unmixed).is_ok());
    for refused in [
        other.load_bytes(&bytes).err(),
        load(&bytes).err(),
        unmixed.load_bytes(&bytes).err(),
        mixed.load_bytes(&of_unmixed).err(),
    ] {
        assert!(matches!(refused, Some(LoadError::Hasher)), "{refused:?}");
    }
}

#[test]
fn filter_of_other_type_or_layout_is_named() {
    let fixed = filter_of(5).to_bytes().unwrap();
    let growing = GrowingCuckooFilter::new().to_bytes().unwrap();
    let expiring = ExpiringCuckooFilter::with_capacity(5).to_bytes().unwrap();
    let wide = ExpiringCuckooFilter::builder().layout::<2, 20, 3>();
    let wide = wide.buckets(5).build().unwrap().to_bytes().unwrap();
    let fitted = CuckooFilter::builder().false_positive_rate(0.5);
    let divided = ExpiringCuckooFilter::builder().layout::<4, 11, 3>();
    // Only the widths of the ages differ.
    let narrow = ExpiringCuckooFilter::builder().layout::<2, 20, 2>();
    let is_growing = "this is a saved growing filter: load it as a GrowingCuckooFilter, with \
                      GrowingCuckooFilter::builder()";
    for (error, advice) in [
        (load(&growing).err(), is_growing),
        (fitted.clone().load_bytes(&growing).err(), is_growing),
        (fitted.load_from(&growing[..]).err(), is_growing),
        (
            load(&expiring).err(),
            "filter that forgets: load it as a ExpiringCuckooFilter, with ExpiringCuckooFilter::builder()",
        ),
        (
            GrowingCuckooFilter::from_bytes(&fixed).err(),
            "filter of a fixed size: load it as a CuckooFilter, with CuckooFilter::builder(), or as a DynCuckooFilter",
        ),
        (
            divided.load_bytes(&expiring).err(),
            "ExpiringCuckooFilter::builder().layout::<4, 12, 2>()",
        ),
        (narrow.load_bytes(&wide).err(), "layout::<2, 20, 3>()"),
    ] {
        let error = error.expect(advice).to_string();
        assert!(error.ends_with(advice), "{error}");
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
fn filter_is_loaded_from_pipe() {
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

/// Saves a filter under this name; returns the text of an error.
#[cfg(unix)]
fn saved_as(path: &Path) -> Result<(), String> {
    let saved = CuckooFilter::with_capacity(10).save(path);
    saved.map_err(|error| format!("{:#}", anyhow::Error::from(error)))
}

/// What a link leads to stays as it is. Devices are nodes in a folder of the test, for which it must be run by root.
#[cfg(unix)]
#[test]
fn save_replaces_only_files_and_links() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let names = || folder.path().read_dir().unwrap().count();
    let kind = |name: &str| fs::symlink_metadata(at(name)).unwrap().file_type();
    let run = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        let made = command.current_dir(&folder).args(arguments);
        made.stderr(Stdio::null()).status().unwrap().success()
    };
    assert!(run("mkfifo", &["pipe"]));
    let _socket = UnixListener::bind(at("socket")).unwrap();
    fs::create_dir(at("folder")).unwrap();
    let mut refused = vec!["pipe", "socket", "folder"];
    // The numbers of /dev/null and of the first loop device.
    let devices = [("character", ["c", "1", "3"]), ("block", ["b", "7", "0"])];
    for (name, [kind, major, minor]) in devices {
        if run("mknod", &[name, kind, major, minor]) {
            refused.push(name);
        }
    }
    for name in refused {
        let link = format!("link to {name}");
        symlink(at(name), at(&link)).unwrap();
        for name in [name, &link] {
            let before = (kind(name), names());
            let error = saved_as(&at(name)).expect_err(name);
            assert_eq!((kind(name), names()), before, "{name}");
            let whats = ["a device, a pipe or a socket", "directory"];
            let case = whats[usize::from(name.ends_with("folder"))];
            let is_named = error.contains(case) && error.contains("(save it under another name): ");
            assert!(is_named, "{name}: {error}");
        }
    }

    fs::write(at("other"), "other").unwrap();
    fs::write(at("file"), "old").unwrap();
    for (link, to) in [("link", "other"), ("dangling", "nowhere"), ("loop", "loop")] {
        symlink(at(to), at(link)).unwrap();
    }
    let before = names();
    for name in ["file", "link", "dangling", "loop", "new"] {
        assert_eq!(saved_as(&at(name)), Ok(()), "{name}");
        assert!(kind(name).is_file(), "{name}");
        assert!(CuckooFilter::load(at(name)).unwrap().is_empty());
    }
    assert_eq!(fs::read(at("other")).unwrap(), b"other");
    assert_eq!(names(), before + 1);

    // 255 bytes are the longest name of most file systems.
    for length in [1, 240, 246, 247, 250, 254, 255, 256] {
        let (name, before) = ("x".repeat(length), names());
        let saved = saved_as(&at(&name));
        if let Err(error) = &saved {
            let is_right = error.contains("name too long") && !error.contains("folder");
            assert!(is_right, "{error}");
        }
        let is_saved = length < 256;
        let left = (saved.is_ok(), at(&name).is_file(), names() - before);
        assert_eq!(
            left,
            (is_saved, is_saved, usize::from(is_saved)),
            "{length}"
        );
    }
}

/// Each error says what helps, and its cause once: another name does not help against a folder that is missing, nor the
/// other way round.
#[cfg(unix)]
#[test]
fn errors_of_save_give_fitting_advice() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "a file").unwrap();
    let another_folder = "(save it in a folder that exists and may be read and written to): ";
    let another_name = "(save it under another name): ";
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
        let error = saved_as(&folder.path().join(name)).expect_err(name);
        let (_, cause) = error.split_once(advice).expect(&error);
        assert_eq!(error.matches(cause).count(), 1, "{error}");
    }
    let error = CuckooFilter::with_capacity(10).save("").unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with(another_name.trim_end_matches(": "))
    );
    assert_eq!(folder.path().read_dir().unwrap().count(), 1);
}
