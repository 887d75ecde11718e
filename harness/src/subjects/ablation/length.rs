//! Whether it is known how many keys there are.

use filter::length::Length;
use kcas::thread_id;

/// A way to keep the number of keys.
pub trait Count: Send + Sync + 'static {
    /// Of no keys.
    fn new() -> Self;

    /// Does `action`, which adds `change` to the number (wrapping) if it says that it succeeded.
    fn counting(&self, change: u64, action: impl FnOnce() -> bool) -> bool;

    /// Memory that it takes, in bytes.
    fn memory_bytes(&self) -> usize;
}

/// Ours: each thread counts what it does.
#[derive(Debug)]
pub struct ByThread(Length);

impl Count for ByThread {
    fn new() -> Self {
        Self(Length::starting_at(0))
    }

    #[inline]
    fn counting(&self, change: u64, action: impl FnOnce() -> bool) -> bool {
        let counted = thread_id::with(|id| {
            let done = action();
            if done {
                self.0.add(id, change);
            }
            done
        });
        match counted {
            Ok(done) => done,
            Err(error) => panic!("{error}"),
        }
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}

/// Nobody counts.
#[derive(Debug)]
pub struct Uncounted;

impl Count for Uncounted {
    fn new() -> Self {
        Self
    }

    #[inline]
    fn counting(&self, _: u64, action: impl FnOnce() -> bool) -> bool {
        action()
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_succeeds_is_counted() {
        let length = ByThread::new();
        for (change, done) in [
            (1, true),
            (1, true),
            (1, false),
            (1_u64.wrapping_neg(), true),
        ] {
            assert_eq!(length.counting(change, || done), done);
        }
        assert_eq!(length.0.sum(), 1);
    }
}
