//! The clock that times single operations, with fences around each reading.
//!
//! A processor executes instructions before earlier ones have ended. Left alone, it would read its
//! time stamp counter while an operation is still under way, and begin an operation before it has
//! read the counter, so that the time of an operation would be partly lost. On x86 a reading is
//! `lfence; rdtsc; lfence`: the first fence waits until all before it has ended, and nothing after
//! the second begins before the counter was read. The price is that operations no longer overlap
//! each other, as they do where nothing is timed, and that each time includes that of a reading:
//! [`Cost`](super::latency::Cost) says how much.
//!
//! On other processors a reading stands between two fences of memory, which order the accesses of the
//! operations, but not the counter itself.

#[cfg(target_arch = "x86_64")]
use x86::fence::lfence as fence;

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn fence() {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

/// A fenced clock.
#[derive(Clone, Debug, Default)]
pub struct Clock(pub(super) quanta::Clock);

impl Clock {
    /// Reads the clock, after all that comes before, and before all that comes after.
    #[inline]
    pub fn read(&self) -> u64 {
        fence();
        let now = self.0.raw();
        fence();
        now
    }

    #[inline]
    pub fn ns_between(&self, before: u64, after: u64) -> u64 {
        self.0.delta_as_nanos(before, after)
    }
}
