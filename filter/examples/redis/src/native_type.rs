//! The type of the keys: what the server asks of it besides commands.

use std::ffi::{c_int, c_void};
use std::io::{self, Read};
use std::process;
use std::ptr;

use filter::save::LoadError;
use redis_module::native_types::RedisType;
use redis_module::raw::{self, RedisModuleDigest, RedisModuleIO, RedisModuleString};
use redis_module::{RedisBuffer, TYPE_METHOD_VERSION};

use crate::caught;
use crate::stored::{Pieces, Stored};

/// Version of what `rdb_save` writes.
const ENCODING: c_int = 1;

/// What an RDB payload begins with: the value is a whole filter, or the beginning of one.
const WHOLE: u64 = 0;
const ARRIVING: u64 = 1;

/// The type.
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
        // A table is one piece of 10 KiB and more, and lookups in the worker thread may be reading
        // it: it is not moved.
        defrag: None,
        mem_usage2: None,
        free_effort2: None,
        unlink2: None,
        copy2: None,
        aux_save2: None,
    },
);

/// # Safety
/// It is a value of our type that nobody else has.
unsafe fn stored<'a>(value: *mut c_void) -> &'a mut Stored {
    // SAFETY: values are made by `Key::set`, `rdb_load` and `copy`, from a box.
    unsafe { &mut *value.cast::<Stored>() }
}

fn boxed(loaded: Result<Stored, LoadError>) -> *mut c_void {
    match loaded {
        Ok(stored) => Box::into_raw(Box::new(stored)).cast(),
        Err(error) => {
            raw::redis_log(
                ptr::null_mut(),
                &format!("a filter was not loaded: {error}"),
            );
            ptr::null_mut()
        }
    }
}

/// A save that fails would leave half a filter, which cannot be loaded. The server has no way to
/// hear of it, so the process ends, as it does when the server itself has no memory: the child that
/// saves in the background, or the server.
fn saved(outcome: io::Result<()>) {
    if let Err(error) = outcome {
        raw::redis_log(
            ptr::null_mut(),
            &format!("a filter cannot be saved: {error}"),
        );
        process::abort();
    }
}

/// The strings of a payload, up to an empty one.
struct Strings {
    io: *mut RedisModuleIO,
    piece: Option<RedisBuffer>,
    read: usize,
}

impl Read for Strings {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self
            .piece
            .as_ref()
            .is_none_or(|piece| self.read == piece.as_ref().len())
        {
            let piece = raw::load_string_buffer(self.io).map_err(io::Error::other)?;
            self.piece = Some(piece);
            self.read = 0;
        }
        let rest = self
            .piece
            .as_ref()
            .map_or(&[][..], |piece| &piece.as_ref()[self.read..]);
        let taken = rest.len().min(out.len());
        out[..taken].copy_from_slice(&rest[..taken]);
        self.read += taken;
        Ok(taken)
    }
}

fn load(io: *mut RedisModuleIO) -> Result<Stored, LoadError> {
    let kind = raw::load_unsigned(io).map_err(|error| LoadError::Io(io::Error::other(error)))?;
    let mut strings = Strings {
        io,
        piece: None,
        read: 0,
    };
    match kind {
        WHOLE => Stored::load(strings),
        ARRIVING => {
            let mut bytes = Vec::new();
            strings.read_to_end(&mut bytes).map_err(LoadError::Io)?;
            Stored::begin(&bytes)
        }
        _ => Err(LoadError::NotAFilter),
    }
}

unsafe extern "C" fn rdb_load(io: *mut RedisModuleIO, encoding: c_int) -> *mut c_void {
    if encoding != ENCODING {
        return boxed(Err(LoadError::Version {
            found: encoding as u32,
            known: ENCODING as u32,
        }));
    }
    caught(|| boxed(load(io)), ptr::null_mut)
}

unsafe extern "C" fn rdb_save(io: *mut RedisModuleIO, value: *mut c_void) {
    let save = || {
        // SAFETY: the server gives it to nobody else meanwhile.
        let stored = unsafe { stored(value) };
        let kind = match stored {
            Stored::Whole(_) => WHOLE,
            Stored::Arriving(_) => ARRIVING,
        };
        raw::save_unsigned(io, kind);
        let mut pieces = Pieces::new(|piece: &[u8]| raw::save_slice(io, piece));
        saved(stored.save(&mut pieces));
        pieces.finish();
        raw::save_slice(io, &[]);
    };
    caught(save, || process::abort());
}

unsafe extern "C" fn aof_rewrite(
    aof: *mut RedisModuleIO,
    key: *mut RedisModuleString,
    value: *mut c_void,
) {
    let rewrite = || {
        // SAFETY: as in `rdb_save`.
        let stored = unsafe { stored(value) };
        let mut written = 0;
        let mut pieces = Pieces::new(|piece: &[u8]| {
            written += piece.len() as i64;
            // SAFETY: the format says: a string of the server's, a number, bytes and their number.
            unsafe {
                raw::RedisModule_EmitAOF.unwrap()(
                    aof,
                    c"CF.LOADCHUNK".as_ptr(),
                    c"slb".as_ptr(),
                    key,
                    written,
                    piece.as_ptr(),
                    piece.len(),
                );
            }
        });
        saved(stored.save(&mut pieces));
        pieces.finish();
    };
    caught(rewrite, || process::abort());
}

unsafe extern "C" fn digest(digest: *mut RedisModuleDigest, value: *mut c_void) {
    let digest_it = || {
        let mut pieces = Pieces::new(|piece: &[u8]| {
            // SAFETY: the bytes are those of the piece.
            unsafe {
                raw::RedisModule_DigestAddStringBuffer.unwrap()(
                    digest,
                    piece.as_ptr().cast(),
                    piece.len(),
                );
            }
        });
        // SAFETY: as in `rdb_save`.
        saved(unsafe { stored(value) }.save(&mut pieces));
        pieces.finish();
        // SAFETY: it ends what was added.
        unsafe { raw::RedisModule_DigestEndSequence.unwrap()(digest) };
    };
    caught(digest_it, || process::abort());
}

unsafe extern "C" fn mem_usage(value: *const c_void) -> usize {
    // SAFETY: as in `rdb_save`.
    caught(|| unsafe { stored(value.cast_mut()) }.memory_bytes(), || 0)
}

unsafe extern "C" fn free_effort(_: *mut RedisModuleString, value: *const c_void) -> usize {
    /// Bytes that are freed with the effort of one: a page. From 64 on, the server frees a key in
    /// another thread, if it may.
    const PAGE: usize = 4096;
    // SAFETY: as in `rdb_save`.
    caught(
        || unsafe { stored(value.cast_mut()) }.memory_bytes() / PAGE,
        || 1,
    )
}

unsafe extern "C" fn free(value: *mut c_void) {
    // SAFETY: the server gives it up.
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
    // SAFETY: as in `rdb_save`.
    caught(
        || boxed(unsafe { stored(value.cast_mut()) }.copy()),
        ptr::null_mut,
    )
}
