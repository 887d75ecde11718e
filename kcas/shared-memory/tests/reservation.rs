//! Reserving memory never changes a file otherwise, and ends.
#![cfg(target_os = "linux")]

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{env, fs, io, thread};

/// Makes a file of this many words.
fn unnamed(words: usize) -> fs::File {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() {
        memory.to_owned()
    } else {
        env::temp_dir()
    };
    shared_memory::create_unnamed(&folder, words, 0, 0o600).unwrap()
}

#[test]
fn cut_file_is_not_enlarged() {
    let file = unnamed(1_000);
    file.set_len(7_999).unwrap();
    let error = shared_memory::reserve(&file, 1_000).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    shared_memory::reserve(&file, 999).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 7_999);
}

#[test]
fn reservation_ends_despite_signals() {
    extern "C" fn ignore(_: libc::c_int) {}
    // SAFETY: the function does nothing, and nothing else in this program uses the signal.
    unsafe { libc::signal(libc::SIGUSR1, ignore as *const () as libc::sighandler_t) };
    let bytes = 48 << 20;
    let file = unnamed(bytes / 8);
    // SAFETY: this asks for a number.
    let reserver = unsafe { libc::pthread_self() };
    let is_over = AtomicBool::new(false);
    thread::scope(|threads| {
        threads.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_micros(500));
                // SAFETY: the thread waits for this one.
                unsafe { libc::pthread_kill(reserver, libc::SIGUSR1) };
            }
        });
        shared_memory::reserve(&file, bytes / 8).unwrap();
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(512 * file.metadata().unwrap().blocks() >= bytes as u64);
}
