//! The disk that a log is written to: a file, or in tests a disk that fails as real ones do.

use std::io;

/// Bytes that persist. Until it is synced, what was written may be lost, as a whole or in part and
/// in any order.
pub trait Disk {
    /// Returns the number of bytes.
    fn len(&self) -> io::Result<u64>;

    /// Fills `bytes` with those at `offset`.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;

    /// Writes `bytes` at `offset`, which is at most the length.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Drops everything after `length`.
    fn truncate(&mut self, length: u64) -> io::Result<()>;

    /// Returns once everything that was written is sure to stay.
    fn sync(&mut self) -> io::Result<()>;
}
