//! Saved filters that are changed so that it does not show.

use crc::{CRC_64_XZ, Crc};

/// Makes both checksums right again, as somebody who forges a filter would; the header's is at `header`.
pub(crate) fn with_right_checksums(mut bytes: Vec<u8>, header: usize) -> Vec<u8> {
    let crc = Crc::<u64>::new(&CRC_64_XZ);
    let mut digest = crc.digest();
    digest.update(&bytes[..header]);
    bytes[header..header + 8].copy_from_slice(&digest.clone().finalize().to_le_bytes());
    let end = bytes.len() - 8;
    digest.update(&bytes[header + 8..end]);
    bytes[end..].copy_from_slice(&digest.finalize().to_le_bytes());
    bytes
}
