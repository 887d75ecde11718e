//! What a log is written to: a file, or in tests something that fails as a disk does.

use std::io;

/// Bytes that stay. What is written may be lost, as a whole or in part and in any order, until it was synced.
pub(crate) trait Disk {
    /// How many bytes there are.
    fn len(&self) -> io::Result<u64>;

    /// Fills `bytes` with those at `offset`.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;

    /// Writes `bytes` at `offset`, which is at most the length.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Drops what is after `length`.
    fn truncate(&mut self, length: u64) -> io::Result<()>;

    /// Returns when all that was written will stay.
    fn sync(&mut self) -> io::Result<()>;
}
