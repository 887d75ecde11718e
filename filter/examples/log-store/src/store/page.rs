//! A page: 4 KiB with a checksum that shows whether they are as written.
//!
//! All numbers are little-endian:
//!
//! | Offset | Bytes | What |
//! |---:|---:|---|
//! | 0 | 8 | checksum (CRC-64/XZ) of all bytes after it |
//! | 8 | 8 | sequence number: the number of pages before this one |
//! | 16 | 2 | length of the contents |
//! | 18 | 2 | 1 if the page is the last one of its batch, otherwise 0 |
//! | 20 | length | contents |
//! | then | | zeros |

use crc::{CRC_64_XZ, Crc, Table};

/// Length of a page.
pub const SIZE: usize = 4096;

/// Where the contents begin.
pub const HEADER: usize = 20;

/// Maximum length of a page's contents.
pub const ROOM: usize = SIZE - HEADER;

static CRC: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_XZ);

/// An intact page.
pub struct Page {
    bytes: Vec<u8>,
    length: usize,
}

impl Page {
    /// Returns the bytes of the page with this number and these contents, of at most [`ROOM`]
    /// bytes.
    pub fn seal(number: u64, contents: &[u8], ends_batch: bool) -> Vec<u8> {
        assert!(contents.len() <= ROOM, "a page has room for {ROOM} bytes");
        let mut bytes = vec![0; 8];
        bytes.extend(number.to_le_bytes());
        bytes.extend((contents.len() as u16).to_le_bytes());
        bytes.extend(u16::from(ends_batch).to_le_bytes());
        bytes.extend(contents);
        bytes.resize(SIZE, 0);
        let checksum = CRC.checksum(&bytes[8..]);
        bytes[..8].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Returns the page that these bytes are, if they are intact and have this number.
    pub fn open(number: u64, bytes: Vec<u8>) -> Option<Page> {
        let length = usize::from(u16::from_le_bytes(field(&bytes, 16)));
        let whole = bytes.len() == SIZE
            && length <= ROOM
            && u64::from_le_bytes(field(&bytes, 8)) == number
            && u64::from_le_bytes(field(&bytes, 0)) == CRC.checksum(&bytes[8..]);
        whole.then_some(Page { bytes, length })
    }

    /// Returns what was written into it.
    pub fn contents(&self) -> &[u8] {
        &self.bytes[HEADER..][..self.length]
    }

    /// True if it is the last page of its batch.
    pub fn ends_batch(&self) -> bool {
        u16::from_le_bytes(field(&self.bytes, 18)) == 1
    }
}

/// Returns the bytes of a header field.
fn field<const LENGTH: usize>(bytes: &[u8], offset: usize) -> [u8; LENGTH] {
    bytes[offset..][..LENGTH]
        .try_into()
        .expect("a page is longer than its header")
}
