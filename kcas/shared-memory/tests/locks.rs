//! Locks live as long as the address space that took them.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, fs, process};

use shared_memory::Locks;

struct File(PathBuf);

impl File {
    fn new(name: &str) -> File {
        File(env::temp_dir().join(format!("locks-{}-{name}", process::id())))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn lock_excludes_others_until_dropped() {
    let file = File::new("dropped");
    let (first, second) = (
        Locks::open(&file.0, true).unwrap(),
        Locks::open(&file.0, false).unwrap(),
    );
    let lock = first.try_lock(3).unwrap();
    assert!(lock.is_some() && first.are_mine());
    assert!(second.try_lock(3).unwrap().is_none() && first.try_lock(3).unwrap().is_none());
    assert!(second.try_lock(4).unwrap().is_some());
    drop(first);
    assert!(
        second.try_lock(3).unwrap().is_none(),
        "the lock depends on no descriptor"
    );
    drop(lock);
    assert!(second.try_lock(3).unwrap().is_some());
}

/// Takes a lock, closes all descriptors, and forks a child that never ends. Prints the number of the child.
fn hold(path: &str) -> ! {
    let locks = Locks::open(path.as_ref(), false).unwrap();
    let _lock = locks.try_lock(7).unwrap().expect("it is free");
    // SAFETY: nothing in this process uses a descriptor above 2.
    unsafe { libc::close_range(3, u32::MAX, 0) };
    // SAFETY: the child does nothing but compare, end and wait.
    let child = unsafe { libc::fork() };
    if child == 0 {
        if locks.are_mine() {
            process::abort();
        }
        loop {
            // SAFETY: this waits for a signal.
            unsafe { libc::pause() };
        }
    }
    println!("child {child}");
    loop {
        std::thread::park();
    }
}

#[test]
fn lock_of_killed_process_is_free_although_its_child_lives() {
    if let Ok(path) = env::var("HOLD_LOCK") {
        hold(&path);
    }
    let file = File::new("killed");
    let locks = Locks::open(&file.0, true).unwrap();
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([
        "--exact",
        "lock_of_killed_process_is_free_although_its_child_lives",
        "--nocapture",
    ]);
    let mut holder = command
        .env("HOLD_LOCK", &file.0)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    let child = lines
        .map(Result::unwrap)
        .find_map(|line| line.split_once("child ")?.1.parse().ok());
    let child: i32 = child.unwrap();
    assert!(locks.try_lock(7).unwrap().is_none());
    holder.kill().unwrap();
    holder.wait().unwrap();
    // SAFETY: the signal 0 only asks whether the process is there.
    assert_eq!(unsafe { libc::kill(child, 0) }, 0);
    let lock = locks.try_lock(7).unwrap();
    // SAFETY: it is the child of the process that this test has started.
    unsafe { libc::kill(child, libc::SIGKILL) };
    assert!(lock.is_some());
}
