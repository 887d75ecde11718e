//! What a key holds: a filter, or the part of one that has been loaded; and what the server asks of
//! it besides commands.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::io::{self, BufWriter, Cursor, Read, Write};
use std::process;
use std::ptr;
use std::sync::Arc;

use filter::growing::{GrowingBuilder, GrowingCuckooFilter};
use filter::save::{LoadError, SaveError};
use redis_module::native_types::RedisType;
use redis_module::raw::{self, RedisModuleDigest, RedisModuleIO, RedisModuleString};
use redis_module::{RedisBuffer, TYPE_METHOD_VERSION};

use crate::{caught, log};

/// The most bytes of a saved filter in one string: of an RDB file, of a chunk, of a command of an
/// AOF.
pub(crate) const PIECE: usize = 4 << 20;

/// What every filter is built or loaded with: no address space in reserve, which would count as used memory.
pub(crate) fn builder() -> GrowingBuilder {
    GrowingCuckooFilter::builder().reserved_bytes(0)
}

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
    pub(crate) deleted: Cell<usize>,
}

/// The beginning of a saved filter.
#[derive(Default)]
pub(crate) struct Arriving {
    pub(crate) bytes: Vec<u8>,
    /// The least length of the whole.
    least: u64,
}

impl Stored {
    pub(crate) fn new(filter: GrowingCuckooFilter) -> Stored {
        Stored::Whole(Whole {
            filter: Arc::new(filter),
            deleted: Cell::new(0),
        })
    }

    /// Takes the first bytes of a saved filter, maybe all of them. Bytes that no saved filter begins
    /// with are refused.
    pub(crate) fn begin(data: &[u8]) -> Result<Stored, LoadError> {
        let mut arriving = Arriving::default();
        let whole = arriving.add(data)?;
        Ok(whole.unwrap_or(Stored::Arriving(arriving)))
    }

    /// Passes on the saved filter, or what there is of it, in pieces.
    fn save(&self, pass_on: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        match self {
            Stored::Whole(whole) => whole.save(pass_on),
            Stored::Arriving(arriving) => Pieces(pass_on).write_all(&arriving.bytes),
        }
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
    fn save(&self, pass_on: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut out = BufWriter::with_capacity(PIECE, Pieces(pass_on));
        self.filter
            .write_to(&mut out)
            .map_err(|error| match error {
                SaveError::Io(error) => error,
                other => io::Error::other(other),
            })?;
        out.flush()
    }

    /// Returns at most a piece of the saved filter, from this byte on; nothing after its end.
    pub(crate) fn piece(&self, from: u64) -> io::Result<Vec<u8>> {
        let (mut skip, mut piece) = (from, Vec::new());
        let saved = self.save(|data| {
            let skipped = skip.min(data.len() as u64);
            skip -= skipped;
            let data = &data[skipped as usize..];
            piece.extend_from_slice(&data[..data.len().min(PIECE - piece.len())]);
            if piece.len() < PIECE {
                return Ok(());
            }
            Err(io::Error::other("the piece is complete"))
        });
        if piece.len() < PIECE {
            saved?;
        }
        Ok(piece)
    }
}

impl Arriving {
    /// Adds the bytes that follow, and returns the filter once it is whole. Bytes that are refused
    /// are not added.
    pub(crate) fn add(&mut self, data: &[u8]) -> Result<Option<Stored>, LoadError> {
        let before = self.bytes.len();
        self.bytes.extend_from_slice(data);
        if (self.bytes.len() as u64) < self.least {
            return Ok(None);
        }
        match builder().from_bytes(&self.bytes) {
            Ok(filter) => Ok(Some(Stored::new(filter))),
            Err(LoadError::Truncated { bytes: least }) => {
                self.least = least;
                Ok(None)
            }
            Err(error) => {
                self.bytes.truncate(before);
                Err(error)
            }
        }
    }
}

/// Passes on what is written in pieces.
struct Pieces<F>(F);

impl<F: FnMut(&[u8]) -> io::Result<()>> Write for Pieces<F> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let piece = &data[..data.len().min(PIECE)];
        (self.0)(piece)?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The strings of a payload, up to an empty one.
struct Strings(*mut RedisModuleIO, Option<Cursor<RedisBuffer>>);

impl Read for Strings {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let Some(string) = &mut self.1 {
            let read = string.read(out)?;
            if read > 0 {
                return Ok(read);
            }
        }
        let next = raw::load_string_buffer(self.0).map_err(io::Error::other)?;
        self.1.insert(Cursor::new(next)).read(out)
    }
}

/// Version of what `rdb_save` writes.
const ENCODING: c_int = 1;

/// What an RDB payload begins with: the value is a whole filter, or the beginning of one.
const WHOLE: u64 = 0;
const ARRIVING: u64 = 1;

/// The type of the keys.
pub(crate) static FILTER_TYPE: RedisType = RedisType::new(
    "cuckoo-cf",
    ENCODING,
    raw::RedisModuleTypeMethods {
        version: TYPE_METHOD_VERSION,
        rdb_load: Some(rdb_load),
        rdb_save: Some(rdb_save),
        aof_rewrite: Some(aof_rewrite),
        mem_usage: Some(mem_usage),
        digest: Some(digest),
        free: Some(free),
        aux_load: None,
        aux_save: None,
        aux_save_triggers: 0,
        free_effort: Some(free_effort),
        unlink: None,
        copy: Some(copy),
        // Lookups in the worker thread may be reading the table: it is not moved.
        defrag: None,
        mem_usage2: None,
        free_effort2: None,
        unlink2: None,
        copy2: None,
        aux_save2: None,
    },
);

/// # Safety
/// It is a value of our type.
unsafe fn stored<'a>(value: *const c_void) -> &'a Stored {
    // SAFETY: values are boxed by `boxed` and by `RedisKeyWritable::set_value`, and nobody changes
    // one while the server passes it to a function of the type.
    unsafe { &*value.cast() }
}

fn boxed(load: impl FnOnce() -> Result<Stored, LoadError>) -> *mut c_void {
    let load = || match load() {
        Ok(stored) => Box::into_raw(Box::new(stored)).cast(),
        Err(error) => {
            log(&format!("a filter was not loaded: {error}"));
            ptr::null_mut()
        }
    };
    caught(load, ptr::null_mut)
}

/// Passes on a value in pieces. A save that fails would leave half a filter, which cannot be loaded.
/// The server has no way to hear of it, so the process ends, as it does when the server itself has
/// no memory: the child that saves in the background, or the server.
fn save(stored: &Stored, mut pass_on: impl FnMut(&[u8])) {
    let save = || {
        stored.save(|piece| {
            pass_on(piece);
            Ok(())
        })
    };
    if let Err(error) = caught(save, || Err(io::Error::other("a panic"))) {
        log(&format!("a filter cannot be saved: {error}"));
        process::abort();
    }
}

unsafe extern "C" fn rdb_load(io: *mut RedisModuleIO, encoding: c_int) -> *mut c_void {
    boxed(|| {
        if encoding != ENCODING {
            let (found, known) = (encoding as u32, ENCODING as u32);
            return Err(LoadError::Version { found, known });
        }
        let kind =
            raw::load_unsigned(io).map_err(|error| LoadError::Io(io::Error::other(error)))?;
        let mut strings = Strings(io, None);
        if kind == WHOLE {
            let filter = builder().read_from(&mut strings)?;
            return match strings.read(&mut [0]).map_err(LoadError::Io)? {
                0 => Ok(Stored::new(filter)),
                excess => Err(LoadError::TooLong {
                    excess: excess as u64,
                }),
            };
        }
        if kind != ARRIVING {
            return Err(LoadError::NotAFilter);
        }
        let mut bytes = Vec::new();
        strings.read_to_end(&mut bytes).map_err(LoadError::Io)?;
        Stored::begin(&bytes)
    })
}

unsafe extern "C" fn rdb_save(io: *mut RedisModuleIO, value: *mut c_void) {
    // SAFETY: the server passes a value of our type.
    let stored = unsafe { stored(value) };
    let is_whole = matches!(stored, Stored::Whole(_));
    raw::save_unsigned(io, if is_whole { WHOLE } else { ARRIVING });
    save(stored, |piece| raw::save_slice(io, piece));
    raw::save_slice(io, &[]);
}

unsafe extern "C" fn aof_rewrite(
    aof: *mut RedisModuleIO,
    key: *mut RedisModuleString,
    value: *mut c_void,
) {
    let (command, format) = (c"CF.LOADCHUNK".as_ptr(), c"slb".as_ptr());
    let mut written = 0;
    // SAFETY: the server passes a value of our type.
    save(unsafe { stored(value) }, |piece| {
        let (bytes, length) = (piece.as_ptr(), piece.len());
        written += length as i64;
        // SAFETY: the format says: a string of the server's, a number, bytes and their number.
        unsafe {
            raw::RedisModule_EmitAOF.unwrap()(aof, command, format, key, written, bytes, length);
        };
    });
}

unsafe extern "C" fn digest(digest: *mut RedisModuleDigest, value: *mut c_void) {
    // SAFETY: the server passes a value of our type.
    save(unsafe { stored(value) }, |piece| {
        let (bytes, length) = (piece.as_ptr().cast(), piece.len());
        // SAFETY: these are the bytes of the piece.
        unsafe { raw::RedisModule_DigestAddStringBuffer.unwrap()(digest, bytes, length) };
    });
    // SAFETY: it ends what was added.
    unsafe { raw::RedisModule_DigestEndSequence.unwrap()(digest) };
}

unsafe extern "C" fn mem_usage(value: *const c_void) -> usize {
    // SAFETY: the server passes a value of our type.
    caught(|| unsafe { stored(value) }.memory_bytes(), || 0)
}

unsafe extern "C" fn free_effort(_: *mut RedisModuleString, value: *const c_void) -> usize {
    /// Bytes that are freed with the effort of one: a page. From 64 on, the server frees a key in
    /// another thread, if it may.
    const PAGE: usize = 4096;
    // SAFETY: the server passes a value of our type.
    unsafe { mem_usage(value) / PAGE }
}

unsafe extern "C" fn free(value: *mut c_void) {
    // SAFETY: the server gives up a value of our type.
    caught(
        || drop(unsafe { Box::from_raw(value.cast::<Stored>()) }),
        || (),
    );
}

unsafe extern "C" fn copy(
    _: *mut RedisModuleString,
    _: *mut RedisModuleString,
    value: *const c_void,
) -> *mut c_void {
    boxed(|| {
        let mut bytes = Vec::new();
        // SAFETY: the server passes a value of our type.
        let saved = unsafe { stored(value) }.save(|piece| bytes.write_all(piece));
        saved.map_err(LoadError::Io)?;
        Stored::begin(&bytes)
    })
}
