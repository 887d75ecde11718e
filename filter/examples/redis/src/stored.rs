//! What a key holds: a filter, or the part of one that has been loaded; and what the server asks of
//! it besides commands. All of that runs in the server's main thread, or in a child that saves; only
//! a value that no key holds any more may be freed by another one.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::io::{self, Cursor, ErrorKind, Read, Seek, SeekFrom};
use std::mem;
use std::ptr;

use filter::LoadError;
use filter::growing::{GrowingBuilder, GrowingCuckooFilter};
use redis_module::native_types::RedisType;
use redis_module::raw::{self, RedisModuleDigest, RedisModuleIO, RedisModuleString};
use redis_module::{RedisBuffer, TYPE_METHOD_VERSION};

use crate::commands::text_of;
use crate::limit::{self, BESIDES};
use crate::{caught, log};

/// The most bytes in a chunk of a dump.
pub(crate) const CHUNK: usize = 4 << 20;

/// The most bytes in a string of an RDB file, and in a command of an AOF.
const PIECE: usize = 1 << 16;

/// What every filter is built or loaded with: no address space in reserve, which would count as used
/// memory.
pub(crate) fn builder() -> GrowingBuilder {
    GrowingCuckooFilter::builder().reserved_bytes(0)
}

/// The value of a key. Nobody keeps a borrow of it when the server is called.
pub(crate) type Value = RefCell<Stored>;

#[expect(clippy::large_enum_variant)] // The smaller one is rare.
pub(crate) enum Stored {
    Whole(Whole),
    /// `CF.LOADCHUNK` has brought the beginning of a filter.
    Arriving(Arriving),
}

pub(crate) struct Whole {
    pub(crate) filter: GrowingCuckooFilter,
    /// Copies removed since the key was created.
    pub(crate) deleted: u64,
    /// The first chunk of a dump has been asked for, and the filter has not changed since. (It does not tell two dumps apart:
    /// the checksum refuses what is put together from both.)
    pub(crate) is_dumped: bool,
}

/// The beginning of a saved filter.
#[derive(Default)]
pub(crate) struct Arriving {
    pub(crate) bytes: Vec<u8>,
    /// The least length of the whole.
    least: u64,
}

impl Stored {
    pub(crate) fn new(filter: GrowingCuckooFilter, deleted: u64) -> Stored {
        Stored::Whole(Whole {
            filter,
            deleted,
            is_dumped: false,
        })
    }

    /// Takes the first bytes of a saved filter, maybe all of them. Bytes that no saved filter begins
    /// with are refused.
    pub(crate) fn begin(data: &[u8]) -> Result<Stored, LoadError> {
        let mut stored = Stored::Arriving(Arriving::default());
        stored.add(data)?;
        Ok(stored)
    }

    /// Adds the bytes that follow to the beginning of a filter, which may be whole then. Bytes that are refused
    /// are not added.
    pub(crate) fn add(&mut self, data: &[u8]) -> Result<(), LoadError> {
        let Stored::Arriving(Arriving { bytes, least }) = self else {
            let excess = data.len();
            return Err(refused(format!("{excess} bytes follow the saved filter")));
        };
        // Without memory, this is an error, and not the server's end.
        let room = bytes.try_reserve(data.len());
        room.map_err(io::Error::from)?;
        bytes.extend_from_slice(data);
        if (bytes.len() as u64) < *least {
            return Ok(());
        }
        let added = match builder().load_bytes(bytes) {
            Ok(filter) => {
                *self = Stored::new(filter, 0);
                return Ok(());
            }
            Err(LoadError::Truncated { bytes: whole, .. }) => {
                check(bytes.len(), whole).map(|()| *least = whole)
            }
            Err(error) => Err(error),
        };
        if added.is_err() {
            bytes.truncate(bytes.len() - data.len());
        }
        added
    }

    /// Passes on the saved filter, or what there is of it, in pieces.
    fn save(&mut self, mut pass_on: impl FnMut(&[u8])) {
        match self {
            Stored::Whole(whole) => {
                let (mut saved, mut piece) = (whole.filter.saved_bytes(), [0; PIECE]);
                while let Ok(read @ 1..) = saved.read(&mut piece) {
                    pass_on(&piece[..read]);
                }
            }
            Stored::Arriving(arriving) => arriving.bytes.chunks(PIECE).for_each(pass_on),
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let within = match self {
            Stored::Whole(Whole { filter, .. }) => filter.memory_bytes() - size_of_val(filter),
            Stored::Arriving(arriving) => arriving.bytes.capacity(),
        };
        within + size_of::<Value>()
    }
}

/// Checks that there may be a filter that takes `whole` bytes when it is saved, of which `held` have been taken.
fn check(held: usize, whole: u64) -> Result<(), LoadError> {
    let more = (whole as usize).saturating_sub(held);
    let checked = limit::check(held, more.saturating_add(BESIDES));
    Ok(checked.map_err(|excess| io::Error::new(ErrorKind::OutOfMemory, excess.text))?)
}

fn refused(why: String) -> LoadError {
    io::Error::other(why).into()
}

impl Whole {
    /// Returns a chunk of the saved filter, from this byte on; an empty one after its end; `None` if no dump
    /// is under way.
    pub(crate) fn chunk(&mut self, from: u64) -> Option<Vec<u8>> {
        self.is_dumped |= from == 0;
        let mut saved = self.is_dumped.then(|| self.filter.saved_bytes())?;
        let mut chunk = Vec::new();
        let sought = saved.seek(SeekFrom::Start(from));
        let read = sought.and_then(|_| saved.take(CHUNK as u64).read_to_end(&mut chunk));
        read.expect("memory can be read");
        self.is_dumped = !chunk.is_empty();
        Some(chunk)
    }
}

/// The strings of a payload, up to an empty one.
struct Strings(*mut RedisModuleIO, Option<Cursor<RedisBuffer>>);

impl Read for Strings {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let Some(string) = &mut self.1 {
            let read = string.read(out)?;
            if read > 0 || string.get_ref().as_ref().is_empty() {
                return Ok(read);
            }
        }
        let next = raw::load_string_buffer(self.0).map_err(io::Error::other)?;
        self.1.insert(Cursor::new(next)).read(out)
    }
}

/// Version of what `rdb_save` writes.
const ENCODING: c_int = 2;

/// What an RDB payload begins with: the value is a whole filter, or the beginning of one.
const WHOLE: u64 = 0;
const ARRIVING: u64 = 1;

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
        free_effort: Some(free_effort),
        copy: Some(copy),
        // SAFETY: plain C data, of which zeros say that there is no such function. (There is none to move
        // memory, since the words of a table are never moved.)
        ..unsafe { mem::zeroed() }
    },
);

/// # Safety
/// It is a value of our type.
unsafe fn value<'a>(value: *const c_void) -> &'a Value {
    // SAFETY: values are boxed by `boxed` and by `RedisKeyWritable::set_value`, and the server does not free one
    // while it passes it to a function of the type.
    unsafe { &*value.cast() }
}

/// What a value holds, to save it. A borrow would write its flag, and a child that saves then has a page of its own.
///
/// # Safety
/// It is a value of our type.
unsafe fn to_save<'a>(saved: *const c_void) -> &'a mut Stored {
    // SAFETY: as above; and nobody keeps a borrow when the server is called.
    unsafe { &mut *value(saved).as_ptr() }
}

fn boxed(load: impl FnOnce() -> Result<Stored, LoadError>) -> *mut c_void {
    let load = || match load() {
        Ok(stored) => Box::into_raw(Box::new(Value::new(stored))).cast(),
        Err(error) => {
            log(&format!("a filter was not loaded: {}", text_of(&error)));
            ptr::null_mut()
        }
    };
    caught(load, ptr::null_mut)
}

unsafe extern "C" fn rdb_load(io: *mut RedisModuleIO, encoding: c_int) -> *mut c_void {
    let number = || raw::load_unsigned(io).map_err(io::Error::other);
    boxed(|| {
        if encoding != ENCODING {
            let why = format!("it has version {encoding}, and only version {ENCODING} is known");
            return Err(refused(why));
        }
        let deleted = match number()? {
            WHOLE => Some(number()?),
            ARRIVING => None,
            _ => return Err(LoadError::NotAFilter),
        };
        let mut strings = Strings(io, None);
        let mut first = Vec::new();
        let read = strings.by_ref().take(PIECE as u64).read_to_end(&mut first);
        read?;
        if let Err(LoadError::Truncated { bytes, .. }) = builder().load_bytes(&first) {
            check(0, bytes)?;
        }
        let Some(deleted) = deleted else {
            strings.read_to_end(&mut first)?;
            return Stored::begin(&first);
        };
        let filter = builder().load_from(first.chain(&mut strings))?;
        match strings.read(&mut [0])? {
            0 => Ok(Stored::new(filter, deleted)),
            _ => Err(refused("bytes follow the saved filter".to_owned())),
        }
    })
}

// A panic in one of the functions that save ends the process: half a filter could not be loaded.

unsafe extern "C" fn rdb_save(io: *mut RedisModuleIO, saved: *mut c_void) {
    // SAFETY: the server passes a value of our type.
    let stored = unsafe { to_save(saved) };
    if let Stored::Whole(whole) = stored {
        raw::save_unsigned(io, WHOLE);
        raw::save_unsigned(io, whole.deleted);
    } else {
        raw::save_unsigned(io, ARRIVING);
    }
    stored.save(|piece| raw::save_slice(io, piece));
    raw::save_slice(io, &[]);
}

unsafe extern "C" fn aof_rewrite(
    aof: *mut RedisModuleIO,
    key: *mut RedisModuleString,
    saved: *mut c_void,
) {
    let (command, format) = (c"CF.LOADCHUNK".as_ptr(), c"slb".as_ptr());
    let mut written = 0;
    // SAFETY: the server passes a value of our type.
    unsafe { to_save(saved) }.save(|piece| {
        let (bytes, length) = (piece.as_ptr(), piece.len());
        written += length as i64;
        // SAFETY: the format says: a string of the server's, a number, bytes and their number.
        unsafe {
            raw::RedisModule_EmitAOF.unwrap()(aof, command, format, key, written, bytes, length);
        };
    });
}

unsafe extern "C" fn digest(digest: *mut RedisModuleDigest, of: *mut c_void) {
    // SAFETY: the server passes a value of our type.
    unsafe { to_save(of) }.save(|piece| {
        let (bytes, length) = (piece.as_ptr().cast(), piece.len());
        // SAFETY: these are the bytes of the piece.
        unsafe { raw::RedisModule_DigestAddStringBuffer.unwrap()(digest, bytes, length) };
    });
    // SAFETY: it ends what was added.
    unsafe { raw::RedisModule_DigestEndSequence.unwrap()(digest) };
}

unsafe extern "C" fn mem_usage(of: *const c_void) -> usize {
    // SAFETY: the server passes a value of our type.
    caught(|| unsafe { value(of) }.borrow().memory_bytes(), || 0)
}

unsafe extern "C" fn free_effort(_: *mut RedisModuleString, of: *const c_void) -> usize {
    /// Bytes that are freed with the effort of one: a page. Above 64, and at 0, the server frees a key in another
    /// thread, if it may.
    const PAGE: usize = 4096;
    // SAFETY: the server passes a value of our type.
    unsafe { mem_usage(of) / PAGE }.max(1)
}

unsafe extern "C" fn free(freed: *mut c_void) {
    // SAFETY: the server gives up a value of our type.
    let free = || drop(unsafe { Box::from_raw(freed.cast::<Value>()) });
    caught(free, || ());
}

unsafe extern "C" fn copy(
    _: *mut RedisModuleString,
    _: *mut RedisModuleString,
    of: *const c_void,
) -> *mut c_void {
    // SAFETY: the server passes a value of our type.
    boxed(|| match &mut *unsafe { value(of) }.borrow_mut() {
        Stored::Whole(whole) => {
            check(0, whole.filter.saved_bytes().len())?;
            let filter = builder().load_from(whole.filter.saved_bytes())?;
            Ok(Stored::new(filter, whole.deleted))
        }
        Stored::Arriving(arriving) => {
            check(0, arriving.least)?;
            Stored::begin(&arriving.bytes)
        }
    })
}
