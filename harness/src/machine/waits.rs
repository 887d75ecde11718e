//! How long a thread waited for a core that others had.

use std::ffi::c_long;
use std::time::Duration;

/// What Linux has counted for the calling thread. Nothing elsewhere.
#[derive(Default)]
pub(crate) struct Waits {
    /// How often another thread took its core while it ran.
    preempted: c_long,
    /// How long it could have run, but had no core.
    waited: Duration,
}

impl Waits {
    pub(crate) fn now() -> Self {
        counted().unwrap_or_default()
    }

    /// Returns how long the thread has had no core since then, if another one took it. Otherwise nothing: a thread that
    /// sleeps in a lock also waits a little after it is woken, and that is the price of the lock. (It is woken late if others
    /// have its core, and that is not told apart; nor is what a hypervisor takes seen.)
    pub(crate) fn since(&self) -> Duration {
        let now = Self::now();
        if now.preempted > self.preempted {
            now.waited - self.waited
        } else {
            Duration::ZERO
        }
    }
}

#[cfg(target_os = "linux")]
fn counted() -> Option<Waits> {
    use std::fs::File;
    use std::io::{Read, Seek};

    use nix::sys::resource::{UsageWho, getrusage};

    // Opened once, since that takes longer than to read it.
    thread_local! {
        static SCHEDULED: Option<File> = File::open("/proc/thread-self/schedstat").ok();
    }
    let usage = getrusage(UsageWho::RUSAGE_THREAD).ok()?;
    let waited = SCHEDULED.with(|file| {
        let (mut file, mut text) = (file.as_ref()?, [0; 64]);
        file.rewind().ok()?;
        let length = file.read(&mut text).ok()?;
        let mut fields = str::from_utf8(&text[..length]).ok()?.split(' ');
        // (Where nothing is counted, the time in which it ran is 0, too.)
        fields.next().filter(|ran| *ran != "0")?;
        fields.next()?.parse().ok()
    })?;
    Some(Waits {
        preempted: usage.involuntary_context_switches(),
        waited: Duration::from_nanos(waited),
    })
}

#[cfg(not(target_os = "linux"))]
fn counted() -> Option<Waits> {
    None
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Instant;

    use super::*;
    use crate::machine::Cores;

    #[test]
    fn a_thread_that_shares_its_core_waits() {
        let (has_waited, begun) = (AtomicBool::new(false), Instant::now());
        let waits = || {
            Cores::detect().pin(0);
            let waits = Waits::now();
            while begun.elapsed().as_millis() < 50 {}
            // A kernel may not count.
            has_waited.fetch_or(counted().is_none(), Ordering::Relaxed);
            while !has_waited.load(Ordering::Relaxed) && begun.elapsed().as_secs() < 60 {
                let waited = waits.since() > Duration::from_millis(20);
                has_waited.fetch_or(waited, Ordering::Relaxed);
            }
        };
        thread::scope(|scope| {
            scope.spawn(waits);
            scope.spawn(waits);
        });
        assert!(has_waited.into_inner());
    }
}
