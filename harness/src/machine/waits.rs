//! Measures the time in which a thread has no core because other threads use it.

use std::ffi::c_long;
use std::time::Duration;

/// The counters of Linux for the calling thread; 0 on other systems.
#[derive(Default)]
pub(crate) struct Waits {
    /// How often another thread got its core while it ran.
    preempted: c_long,
    /// How long it was ready to run without a core.
    waited: Duration,
}

impl Waits {
    pub(crate) fn now() -> Self {
        counted().unwrap_or_default()
    }

    /// Returns how long the thread has had no core since then, if another thread got it. Otherwise 0: a thread that
    /// sleeps in a lock also waits a little after it is woken, which is the price of the lock. The time in which a
    /// hypervisor runs others is not seen.
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

    // Opened once, since opening takes longer than reading.
    thread_local! {
        static SCHEDULED: Option<File> = File::open("/proc/thread-self/schedstat").ok();
    }
    let usage = getrusage(UsageWho::RUSAGE_THREAD).ok()?;
    let waited = SCHEDULED.with(|file| {
        let (mut file, mut text) = (file.as_ref()?, [0; 64]);
        file.rewind().ok()?;
        let length = file.read(&mut text).ok()?;
        let mut fields = str::from_utf8(&text[..length]).ok()?.split(' ');
        // If nothing is counted, the running time is 0, too.
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
    fn thread_on_shared_core_waits() {
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
