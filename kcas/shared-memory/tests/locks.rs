//! Locks live as long as the address space that took them; files are reserved as they are.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{env, fs, process, thread};

use shared_memory::Locks;

use crate::file::File;

mod file;

/// For tests that start programs, and the one to which this matters: until it runs, a program has the locks that this
/// process was just taking.
fn no_other_starts_program() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn lock_excludes_others_until_dropped() {
    let _no_program = no_other_starts_program();
    let file = File::new("dropped");
    let [first, second] = [true, false].map(|make| Locks::open(&file.0, make).unwrap());
    let lock = first.try_lock(3).unwrap();
    assert!(lock.is_some() && first.are_mine());
    assert!(second.try_lock(3).unwrap().is_none() && first.try_lock(3).unwrap().is_none());
    assert!(second.try_lock(4).unwrap().is_some());
    // The lock depends on no descriptor.
    drop(first);
    assert!(second.try_lock(3).unwrap().is_none());
    drop(lock);
    assert!(second.try_lock(3).unwrap().is_some());
}

/// Returns the number of the descriptor that this process has of a file.
fn descriptor_of(path: &Path) -> i32 {
    let found = fs::read_dir("/proc/self/fd").unwrap().find_map(|entry| {
        let entry = entry.unwrap();
        let is_right = fs::read_link(entry.path()).is_ok_and(|target| target == path);
        is_right.then(|| entry.file_name().into_string().unwrap().parse().unwrap())
    });
    found.expect("the file is open")
}

#[test]
fn lock_follows_file_after_descriptor_reuse() {
    let (file, other) = (File::new("reused"), File::new("other"));
    let locks = Locks::open(&file.0, true).unwrap();
    let identity = locks.identity();
    let opened = fs::File::create(&other.0).unwrap();
    // SAFETY: nothing else in this process uses the number.
    unsafe { libc::dup2(opened.as_raw_fd(), descriptor_of(&file.0)) };
    let second = Locks::open(&file.0, false).unwrap();
    let held = locks.try_lock(3).unwrap();
    assert!(held.is_some() && second.try_lock(3).unwrap().is_none());
    let identities = [locks.identity(), locks.for_child().unwrap().identity()];
    assert_eq!(identities, [identity; 2]);
    drop(held);
    fs::remove_file(&file.0).unwrap();
    fs::write(&file.0, "").unwrap();
    assert!(locks.try_lock(3).is_err(), "another file has the name");
}

#[test]
fn file_that_is_not_regular_is_refused() {
    let pipe = File::new("pipe");
    let turn = no_other_starts_program();
    let made = Command::new("mkfifo").arg(&pipe.0).status().unwrap();
    drop(turn);
    assert!(made.success());
    assert!(Locks::open(&pipe.0, false).is_err());
    assert!(shared_memory::open(&pipe.0, false).is_err());
    assert!(shared_memory::open(&pipe.0, true).is_err());
}

#[test]
fn file_locked_by_another_is_refused() {
    let file = File::new("locked");
    let opened = fs::File::create(&file.0).unwrap();
    // SAFETY: all zeros are a valid `flock`.
    let mut whole: libc::flock = unsafe { std::mem::zeroed() };
    whole.l_type = libc::F_WRLCK as _;
    // SAFETY: the descriptor is open, and the pointer is to a `flock`, as this command needs.
    let locked = unsafe { libc::fcntl(opened.as_raw_fd(), libc::F_OFD_SETLK, &whole) };
    assert_eq!(locked, 0);
    let error = Locks::open(&file.0, false).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn cut_file_is_not_enlarged() {
    let file = File::new("cut");
    let opened = fs::File::create(&file.0).unwrap();
    opened.set_len(7_999).unwrap();
    let metadata = opened.metadata().unwrap();
    let error = shared_memory::reserve(&opened, &metadata, 1_000).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
    shared_memory::reserve(&opened, &metadata, 999).unwrap();
    assert_eq!(opened.metadata().unwrap().len(), 7_999);
}

/// Lets the system answer this thread as if a signal had come when it reserves more than this many bytes at once.
fn interrupt_reservations_above(bytes: u32) {
    let answer = libc::SECCOMP_RET_ERRNO | libc::EINTR as u32;
    let program = [
        (0x20, 0, 0, 0), // Load the number of the call.
        (0x15, 0, 3, libc::SYS_fallocate as u32),
        (0x20, 0, 0, 16 + 3 * 8), // Load the lower half of its fourth argument.
        (0x25, 0, 1, bytes),
        (0x06, 0, 0, answer),
        (0x06, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let mut filter = program.map(|(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k });
    let (len, filter) = (filter.len() as u16, filter.as_mut_ptr());
    let program = libc::sock_fprog { len, filter };
    // SAFETY: the first call has no pointer; that of the second is to a program, which the system copies.
    let set = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            | libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program)
    };
    assert_eq!(set, 0);
}

/// On older kernels, a signal makes tmpfs give back what it has just reserved.
#[test]
fn reservation_ends_despite_signals() {
    let reserve = || {
        interrupt_reservations_above(1 << 20);
        let name = File::new("signals");
        let folder = name.0.parent().unwrap();
        let file = shared_memory::create_unnamed(folder, 1 << 20, 1 << 20, 0o600).unwrap();
        assert!(file.metadata().unwrap().blocks() >= 1 << 14);
    };
    thread::spawn(reserve).join().unwrap();
}

/// Runs a test again, with the name of a file system that is mounted for this program alone, where users may do that.
fn run_mounted(test: &str, mount: &str) {
    let folder = File::new(test);
    fs::create_dir(&folder.0).unwrap();
    let script = format!("cd \"$1\" && {mount} || exit 77; exec \"$0\" --exact \"$2\"");
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", &script]);
    command.arg(env::current_exe().unwrap());
    command.args([folder.0.as_os_str(), test.as_ref()]);
    let turn = no_other_starts_program();
    let output = command.env("MOUNTED", folder.0.join("merged")).output();
    drop(turn);
    let _ = fs::remove_dir_all(&folder.0);
    match output {
        Ok(output) if output.status.success() => {
            let report = String::from_utf8_lossy(&output.stdout);
            assert!(report.contains("1 passed"), "{report}");
        }
        Ok(output) if output.status.code() == Some(101) => {
            panic!("{}", String::from_utf8_lossy(&output.stdout));
        }
        other => println!("it cannot be mounted here: {other:?}"),
    }
}

#[test]
fn file_system_that_drops_locks_is_refused() {
    const MOUNT: &str = "mkdir lower upper work merged && mount -t overlay overlay \
        -o userxattr,lowerdir=lower,upperdir=upper,workdir=work merged";
    let Ok(folder) = env::var("MOUNTED") else {
        return run_mounted("file_system_that_drops_locks_is_refused", MOUNT);
    };
    let error = Locks::open(&Path::new(&folder).join("file"), true).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::Unsupported);
}

/// Instead of reserving memory, the C library would write into live words.
#[test]
fn file_system_that_reserves_nothing_is_refused() {
    const MOUNT: &str = "mkdir merged && mount -t ramfs ramfs merged";
    let Ok(folder) = env::var("MOUNTED") else {
        return run_mounted("file_system_that_reserves_nothing_is_refused", MOUNT);
    };
    let made = shared_memory::create_unnamed(folder.as_ref(), 1_000, 1, 0o600);
    assert_eq!(made.unwrap_err().kind(), std::io::ErrorKind::Unsupported);
}

/// Takes a lock, closes all descriptors, and forks a child that never ends. Prints the number of the child.
fn hold(path: &str) -> ! {
    let locks = Locks::open(path.as_ref(), false).unwrap();
    let lock = locks.try_lock(7).unwrap().expect("it is free");
    assert!(lock.is_mine());
    // SAFETY: nothing in this process uses a descriptor above 2.
    unsafe { libc::close_range(3, u32::MAX, 0) };
    // SAFETY: the child does nothing but compare, end and wait.
    let child = unsafe { libc::fork() };
    if child == 0 {
        if locks.are_mine() || lock.is_mine() {
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
fn killed_process_releases_lock_despite_child() {
    if let Ok(path) = env::var("HOLD_LOCK") {
        hold(&path);
    }
    let file = File::new("killed");
    let locks = Locks::open(&file.0, true).unwrap();
    let mut command = Command::new(env::current_exe().unwrap());
    let test = "killed_process_releases_lock_despite_child";
    command.args(["--exact", "--nocapture", test]);
    let holder = command.env("HOLD_LOCK", &file.0).stdout(Stdio::piped());
    let turn = no_other_starts_program();
    let mut holder = holder.spawn().unwrap();
    drop(turn);
    let lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    let number = |line: String| line.split_once("child ")?.1.parse().ok();
    let child: i32 = lines.map(Result::unwrap).find_map(number).unwrap();
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
