//! A program's own fork handlers may open files and take locks. It would register them for other tests, too.
#![cfg(target_os = "linux")]

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use shared_memory::Locks;

use crate::file::File;

mod file;

static PATH: OnceLock<PathBuf> = OnceLock::new();

extern "C" fn take() {
    let locks = Locks::open(PATH.get().unwrap(), true).unwrap();
    drop(locks.try_lock(0).unwrap());
}

/// A thread that forks waits for no fork, or each of these would take a second or two.
#[test]
fn handlers_of_fork_take_locks() {
    let file = File::new("handlers");
    PATH.set(file.0.clone()).unwrap();
    // SAFETY: the functions live as long as the program.
    unsafe { libc::pthread_atfork(Some(take), Some(take), Some(take)) };
    take();
    let begin = Instant::now();
    for _ in 0..20 {
        // SAFETY: the child makes only calls that a child of several threads may make, apart from its handler, which
        // allocates: glibc permits that after a fork.
        match unsafe { libc::fork() } {
            // SAFETY: it has no conditions.
            0 => unsafe { libc::_exit(0) },
            child => {
                let mut status = 1;
                // SAFETY: it is a child that has not been waited for.
                unsafe { libc::waitpid(child, &mut status, 0) };
                assert_eq!(status, 0);
            }
        }
    }
    assert!(begin.elapsed() < Duration::from_secs(15));
}
