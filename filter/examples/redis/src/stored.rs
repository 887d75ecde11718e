//! What a key holds: a filter, or the part of one that has been loaded.

use std::io::{self, Read, Write};
use std::sync::Arc;

use filter::growing::GrowingCuckooFilter;
use filter::save::{LoadError, SaveError};

/// The most bytes of a saved filter in one string: of an RDB file, of a chunk, of a command of an
/// AOF.
pub(crate) const PIECE: usize = 4 << 20;

/// Room for this many keys, unless a command says otherwise.
pub(crate) const DEFAULT_CAPACITY: usize = 1024;

/// The value of a key.
pub(crate) enum Stored {
    Whole(Whole),
    /// `CF.LOADCHUNK` has brought the beginning of a filter.
    Arriving(Arriving),
}

/// A filter, shared with lookups in the worker thread: the key may be deleted before they end.
pub(crate) struct Whole {
    pub(crate) filter: Arc<GrowingCuckooFilter>,
    /// Copies removed since the key was created or loaded.
    pub(crate) deleted: u64,
}

/// The beginning of a saved filter.
pub(crate) struct Arriving {
    bytes: Vec<u8>,
    /// The least length of the whole.
    least: u64,
}

impl Stored {
    pub(crate) fn new(filter: GrowingCuckooFilter) -> Stored {
        Stored::Whole(Whole {
            filter: Arc::new(filter),
            deleted: 0,
        })
    }

    /// Takes the first bytes of a saved filter, maybe all of them. Bytes that no saved filter begins
    /// with are refused.
    pub(crate) fn begin(data: &[u8]) -> Result<Stored, LoadError> {
        Ok(match parsed(data)? {
            Ok(filter) => Stored::new(filter),
            Err(least) => Stored::Arriving(Arriving {
                bytes: data.to_vec(),
                least,
            }),
        })
    }

    /// Reads a filter to its end.
    pub(crate) fn load(mut reader: impl Read) -> Result<Stored, LoadError> {
        let filter = GrowingCuckooFilter::builder().read_from(&mut reader)?;
        match reader.read(&mut [0]).map_err(LoadError::Io)? {
            0 => Ok(Stored::new(filter)),
            excess => Err(LoadError::TooLong {
                excess: excess as u64,
            }),
        }
    }

    /// Writes the saved filter, or what there is of it.
    pub(crate) fn save(&self, mut out: impl Write) -> io::Result<()> {
        match self {
            Stored::Whole(whole) => whole.save(out),
            Stored::Arriving(arriving) => out.write_all(&arriving.bytes),
        }
    }

    /// Returns another value with the same content.
    pub(crate) fn copy(&self) -> Result<Stored, LoadError> {
        let mut bytes = Vec::new();
        self.save(&mut bytes).map_err(LoadError::Io)?;
        Stored::begin(&bytes)
    }

    /// Memory taken, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let within = match self {
            Stored::Whole(whole) => whole.filter.memory_bytes(),
            Stored::Arriving(arriving) => arriving.bytes.capacity(),
        };
        within + size_of::<Stored>()
    }
}

impl Whole {
    /// Saves the filter.
    pub(crate) fn save(&self, out: impl Write) -> io::Result<()> {
        self.filter.write_to(out).map_err(|error| match error {
            SaveError::Io(error) => error,
            other => io::Error::other(other),
        })
    }

    /// Returns at most a piece of the saved filter, from this byte on; nothing after its end.
    pub(crate) fn piece(&self, from: u64) -> io::Result<Vec<u8>> {
        let mut window = Window {
            skip: from,
            bytes: Vec::new(),
        };
        match self.save(&mut window) {
            Err(_) if window.bytes.len() == PIECE => Ok(window.bytes),
            saved => saved.map(|()| window.bytes),
        }
    }

    /// Frees what is not needed.
    pub(crate) fn compact(&self) -> Result<(), filter::InsertError> {
        self.filter.shrink();
        // Only this thread inserts.
        if self.filter.is_empty() {
            self.filter.remove_all()?;
        }
        Ok(())
    }
}

impl Arriving {
    /// Adds the bytes that follow, and returns the filter once it is whole. Bytes that are refused
    /// are not added.
    pub(crate) fn add(&mut self, data: &[u8]) -> Result<Option<Stored>, LoadError> {
        let before = self.bytes.len();
        self.bytes.extend_from_slice(data);
        if self.len() < self.least {
            return Ok(None);
        }
        match parsed(&self.bytes) {
            Ok(Ok(filter)) => Ok(Some(Stored::new(filter))),
            Ok(Err(least)) => {
                self.least = least;
                Ok(None)
            }
            Err(error) => {
                self.bytes.truncate(before);
                Err(error)
            }
        }
    }

    /// How many bytes have arrived.
    pub(crate) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
}

/// Loads a filter from these bytes. If they are only its beginning, returns its least length.
fn parsed(mut bytes: &[u8]) -> Result<Result<GrowingCuckooFilter, u64>, LoadError> {
    match GrowingCuckooFilter::builder().read_from(&mut bytes) {
        Ok(filter) if bytes.is_empty() => Ok(Ok(filter)),
        Ok(_) => Err(LoadError::TooLong {
            excess: bytes.len() as u64,
        }),
        Err(LoadError::Truncated { bytes: least }) => Ok(Err(least)),
        Err(error) => Err(error),
    }
}

/// Keeps a piece of what is written.
struct Window {
    skip: u64,
    bytes: Vec<u8>,
}

impl Write for Window {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if self.bytes.len() == PIECE {
            return Err(io::Error::other("the piece is complete"));
        }
        let skipped = self.skip.min(data.len() as u64);
        self.skip -= skipped;
        let data_here = &data[skipped as usize..];
        let taken = data_here.len().min(PIECE - self.bytes.len());
        self.bytes.extend_from_slice(&data_here[..taken]);
        Ok(skipped as usize + taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Passes on what is written in pieces of one size, apart from the last.
pub(crate) struct Pieces<F: FnMut(&[u8])> {
    bytes: Vec<u8>,
    pass_on: F,
}

impl<F: FnMut(&[u8])> Pieces<F> {
    pub(crate) fn new(pass_on: F) -> Self {
        Pieces {
            bytes: Vec::new(),
            pass_on,
        }
    }

    /// Passes on the last piece.
    pub(crate) fn finish(mut self) {
        if !self.bytes.is_empty() {
            (self.pass_on)(&self.bytes);
        }
    }
}

impl<F: FnMut(&[u8])> Write for Pieces<F> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let taken = data.len().min(PIECE - self.bytes.len());
        self.bytes.extend_from_slice(&data[..taken]);
        if self.bytes.len() == PIECE {
            (self.pass_on)(&self.bytes);
            self.bytes.clear();
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
