//! Arrays in files that processes map: which files are opened, and why others are not.
#![cfg(all(target_os = "linux", not(feature = "__steps")))]

use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{env, fs, process};

use kcas::shared::{OpenError, Shared, USER};
use kcas::{Entry, WordArray};

/// A file that is deleted with its lock file.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> File {
        let name = format!("kcas-{}-{name}", process::id());
        let folder = Path::new("/dev/shm").canonicalize();
        let folder = folder.unwrap_or_else(|_| env::temp_dir());
        File(folder.join(name))
    }

    fn lock(&self) -> PathBuf {
        format!("{}.lock", self.0.display()).into()
    }

    fn open(&self) -> WordArray<Shared> {
        WordArray::open(&self.0).unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
        let _ = fs::remove_file(self.lock());
    }
}

/// For tests that start programs, and the one to which this matters: until it runs, a program has the locks that this
/// process was just taking.
fn no_other_starts_program() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

const USERS: [u64; USER] = [1, 2, 3, 4, 5, 6, 7, 8];

fn create(name: &str) -> File {
    let file = File::new(name);
    drop(WordArray::create(&file.0, 100, USERS).unwrap());
    file
}

/// Writes this word of the header.
fn overwrite(file: &File, word: u64, value: u64) {
    let opened = fs::File::options().write(true).open(&file.0).unwrap();
    opened.write_all_at(&value.to_ne_bytes(), 8 * word).unwrap();
}

/// Rewrites a word of the header, and the checksum with it.
fn forge(file: &File, word: u64, value: u64) {
    overwrite(file, word, value);
    let bytes = fs::read(&file.0).unwrap();
    let words = bytes
        .chunks_exact(8)
        .map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let step = |sum: u64, word: u64| (sum ^ word).wrapping_mul(FACTOR).rotate_left(29);
    overwrite(file, 16, words.take(16).fold(1, step));
}

/// Asserts that neither kind of opening accepts the file, and why.
fn assert_refused(path: &Path, expected: &str) {
    for opened in [WordArray::open(path), WordArray::open_to_read(path)] {
        let error = format!("{:?}", opened.unwrap_err());
        assert!(error.starts_with(expected), "{error}, not {expected}");
    }
}

#[test]
fn opened_array_has_what_was_stored() {
    let file = File::new("stored");
    let made = WordArray::create(&file.0, 3, USERS).unwrap();
    let entries = [Entry::new(0, 0, 7), Entry::new(2, 0, 9)];
    made.kcas(&entries).unwrap();
    let (opened, read) = (file.open(), WordArray::open_to_read(&file.0).unwrap());
    for array in [&made, &opened, &read] {
        assert_eq!((array.len(), array.user()), (3, USERS));
        assert_eq!([0, 1, 2].map(|index| array.load(index)), [7, 0, 9]);
    }
    opened.compare_exchange(1, 0, 8).unwrap();
    assert_eq!(read.load(1), 8);
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(file.0.clone()), mode(file.lock())), (0o600, 0o600));
}

#[test]
fn file_without_memory_is_refused_when_made() {
    let file = File::new("large");
    for len in [1 << 46, usize::MAX / 8, usize::MAX] {
        let made = WordArray::create(&file.0, len, USERS);
        assert!(matches!(made, Err(OpenError::Io(_))));
    }
    assert!(!file.0.exists());
}

#[test]
fn files_with_other_header_are_refused() {
    const MAGIC: u64 = 0x4c46_4346_5752_4401;
    // The checksum is left.
    for (word, value, expected) in [
        (0, 1 << 60, "NotShared"),
        (1, 101, "NotShared"),
        (8, 2, "NotShared"),
        (0, MAGIC + 1, "Version { version: 2 }"),
        (0, MAGIC.swap_bytes(), "ByteOrder"),
        (0, (MAGIC + 1).swap_bytes(), "ByteOrder"),
    ] {
        let file = create("header");
        overwrite(&file, word, value);
        assert_refused(&file.0, expected);
    }
    // A copy in another file system, the last one, may have the same inode.
    for (word, value, expected) in [
        (1, 101, "TooShort"),
        (1, 1 << 40, "TooShort"),
        (1, u64::MAX, "TooShort"),
        (3, 12345, "OtherBoot"),
        (5, 12345, "Copy"),
    ] {
        let file = create("forged");
        forge(&file, word, value);
        assert_refused(&file.0, expected);
    }
}

#[test]
fn files_of_other_kind_or_length_are_refused() {
    let cut = create("cut");
    let whole = fs::metadata(&cut.0).unwrap().len();
    assert_eq!(whole, 8 * ((1 << 18) + 100));
    let opened = fs::File::options().write(true).open(&cut.0).unwrap();
    opened.set_len(whole - 1).unwrap();
    assert_refused(&cut.0, &format!("TooShort {{ bytes: {whole} }}"));
    opened.set_len(0).unwrap();
    assert_refused(&cut.0, "NotShared");
    let pipe = File::new("pipe");
    let turn = no_other_starts_program();
    let made = Command::new("mkfifo").arg(&pipe.0).status().unwrap();
    drop(turn);
    assert!(made.success());
    assert_refused(&pipe.0, "Io");
    assert_refused(&env::temp_dir(), "Io");
}

/// Its inode may be the same.
#[test]
fn lock_file_of_another_device_is_refused() {
    let file = create("elsewhere");
    let other = env::temp_dir().join(format!("kcas-{}-elsewhere.lock", process::id()));
    fs::write(&other, "").unwrap();
    fs::remove_file(file.lock()).unwrap();
    symlink(&other, file.lock()).unwrap();
    let [there, here] = [&other, &file.0].map(|path| fs::metadata(path).unwrap());
    forge(&file, 7, there.ino());
    let opened = WordArray::open(&file.0);
    fs::remove_file(&other).unwrap();
    assert!(opened.is_err() || there.dev() == here.dev());
}

#[test]
fn copy_is_refused() {
    let (file, copy) = (create("original"), File::new("copy"));
    fs::copy(&file.0, &copy.0).unwrap();
    fs::copy(file.lock(), copy.lock()).unwrap();
    assert_refused(&copy.0, "Copy");
    fs::remove_file(file.lock()).unwrap();
    assert!(matches!(WordArray::open(&file.0), Err(OpenError::Copy)));
    fs::write(file.lock(), "").unwrap();
    assert!(matches!(WordArray::open(&file.0), Err(OpenError::Copy)));
    assert!(WordArray::open_to_read(&file.0).is_ok());
}

#[test]
fn renamed_file_is_opened() {
    let (file, renamed) = (create("before"), File::new("after"));
    fs::rename(&file.0, &renamed.0).unwrap();
    fs::rename(file.lock(), renamed.lock()).unwrap();
    renamed.open();
}

/// Each open array has ids of its own, and gives them back when it is dropped.
#[test]
fn ids_are_given_back() {
    let _no_program = no_other_starts_program();
    let file = create("ids");
    for _ in 0..100 {
        let (first, second) = (file.open(), file.open());
        assert_eq!(second.ids_used(), 8);
        drop((first, second));
    }
    assert_eq!(file.open().ids_used(), 8);
}

/// Runs in a process that may have few descriptors.
fn take_over_without_descriptors() {
    let file = create("descriptors");
    let (first, second) = (file.open(), file.open());
    let open = |_| fs::File::open(&file.0).ok();
    let opened: Vec<_> = (0..100).map_while(open).collect();
    let results = [first.take_over_all(), second.take_over_all()];
    drop(opened);
    for result in results {
        assert!(matches!(result, Err(OpenError::Io(_))), "{result:?}");
    }
    first.take_over_all().unwrap();
}

#[test]
fn take_over_without_descriptors_is_error() {
    const VARIABLE: &str = "KCAS_FEW_DESCRIPTORS";
    if env::var(VARIABLE).is_ok() {
        return take_over_without_descriptors();
    }
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 64; exec \"$0\" --exact \"$1\""]);
    limited.arg(env::current_exe().unwrap());
    limited.arg("take_over_without_descriptors_is_error");
    let _turn = no_other_starts_program();
    let output = limited.env(VARIABLE, "").output().unwrap();
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{report}");
    assert!(report.contains("1 passed"), "{report}");
}
