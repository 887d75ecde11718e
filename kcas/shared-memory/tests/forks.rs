//! Forks while other threads take locks. Its children would inherit descriptors of other tests.
#![cfg(target_os = "linux")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use shared_memory::Locks;

use crate::file::File;

mod file;

/// A child that had one would keep it.
#[test]
fn forked_child_inherits_no_lock() {
    let file = File::new("forks");
    let locks = Locks::open(&file.0, true).unwrap();
    let (ended, taken) = (AtomicBool::new(false), AtomicUsize::new(0));
    let children: Vec<_> = thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                taken.fetch_add(locks.try_lock(7).unwrap().iter().count(), Ordering::Relaxed);
            }
        });
        let fork = |_| {
            thread::sleep(Duration::from_micros(200));
            // SAFETY: the child makes only calls that a child of several threads may make.
            match unsafe { libc::fork() } {
                0 => loop {
                    // SAFETY: it has no conditions.
                    unsafe { libc::pause() };
                },
                child => child,
            }
        };
        let children = (0..200).map(fork).collect();
        ended.store(true, Ordering::Relaxed);
        children
    });
    let is_free = locks.try_lock(7).unwrap().is_some();
    for child in children {
        // SAFETY: it is a child that has not been waited for.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, &mut 0, 0);
        }
    }
    assert!(is_free, "a child has the lock");
    assert!(taken.into_inner() > 0);
}
