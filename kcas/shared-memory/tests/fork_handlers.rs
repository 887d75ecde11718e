//! A program's own fork handlers may open files and take locks. It would register them for other tests, too.
#![cfg(target_os = "linux")]

use std::path::PathBuf;
use std::sync::OnceLock;

use shared_memory::Locks;

use crate::file::File;

mod file;

static PATH: OnceLock<PathBuf> = OnceLock::new();

/// Takes ten locks.
extern "C" fn take() {
    let locks = Locks::open(PATH.get().unwrap(), true).unwrap();
    let taken: Vec<_> = (0..10).map(|byte| locks.try_lock(byte).unwrap()).collect();
    drop(taken);
}

/// Ends the process, unless it is through in five seconds.
extern "C" fn take_in_child() {
    // SAFETY: it has no conditions.
    unsafe { libc::alarm(5) };
    take();
}

/// Its own fork would otherwise hold back each lock for a second.
#[test]
fn handlers_of_fork_take_locks() {
    let file = File::new("handlers");
    PATH.set(file.0.clone()).unwrap();
    // SAFETY: the functions live as long as the program.
    unsafe { libc::pthread_atfork(Some(take), Some(take), Some(take_in_child)) };
    take();
    // SAFETY: the child makes only calls that a child of several threads may make, apart from its handler, which
    // allocates: glibc permits that after a fork.
    match unsafe { libc::fork() } {
        // SAFETY: it has no conditions.
        0 => unsafe { libc::_exit(0) },
        child => {
            let mut status = 1;
            // SAFETY: it is a child that has not been waited for.
            unsafe { libc::waitpid(child, &mut status, 0) };
            assert_eq!(status, 0, "the child did not end by itself");
        }
    }
}
