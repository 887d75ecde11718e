//! An open key, and the arguments of a command.

use std::marker::PhantomData;

use redis_module::raw::{self, KeyMode, RedisModuleKey, RedisModuleString};
use redis_module::{Context, RedisError, RedisString};

use crate::native_type::FILTER_TYPE;
use crate::stored::{Stored, Whole};

/// The arguments of a command. The first is its name, the second the key.
#[derive(Clone, Copy)]
pub(crate) struct Args<'a>(&'a [*mut RedisModuleString]);

impl<'a> Args<'a> {
    /// # Safety
    /// The strings live as long as this.
    pub(crate) unsafe fn new(strings: &'a [*mut RedisModuleString]) -> Self {
        Args(strings)
    }

    pub(crate) fn len(self) -> usize {
        self.0.len()
    }

    /// The argument with this number, which must be less than their number.
    pub(crate) fn bytes(self, number: usize) -> &'a [u8] {
        RedisString::string_as_slice(self.0[number])
    }

    /// The arguments from this one on.
    pub(crate) fn from(self, number: usize) -> impl ExactSizeIterator<Item = &'a [u8]> {
        self.0[number..]
            .iter()
            .map(|&string| RedisString::string_as_slice(string))
    }

    /// True if the argument is this word, in upper or lower case.
    pub(crate) fn is(self, number: usize, word: &str) -> bool {
        self.bytes(number).eq_ignore_ascii_case(word.as_bytes())
    }

    /// An argument that is a whole number.
    pub(crate) fn integer(self, number: usize) -> Option<i64> {
        let mut value = 0;
        let status = raw::string_to_longlong(self.0[number], &mut value);
        (status == raw::Status::Ok).then_some(value)
    }
}

/// A key that a command has opened: of our type, or with nothing in it.
pub(crate) struct Key<'a> {
    key: *mut RedisModuleKey,
    open: PhantomData<&'a Context>,
}

impl<'a> Key<'a> {
    /// Opens the command's key to read.
    pub(crate) fn read(ctx: &'a Context, args: Args) -> Result<Self, RedisError> {
        Key::open(ctx, args, KeyMode::READ)
    }

    /// Opens the command's key to write.
    pub(crate) fn write(ctx: &'a Context, args: Args) -> Result<Self, RedisError> {
        Key::open(ctx, args, KeyMode::READ | KeyMode::WRITE)
    }

    fn open(ctx: &'a Context, args: Args, mode: KeyMode) -> Result<Self, RedisError> {
        let key = Key {
            key: raw::open_key(ctx.get_raw(), args.0[1], mode),
            open: PhantomData,
        };
        redis_module::key::verify_type(key.key, &FILTER_TYPE).map_err(|_| RedisError::WrongType)?;
        Ok(key)
    }

    /// What is in it.
    pub(crate) fn stored(&mut self) -> Option<&mut Stored> {
        // SAFETY: a key may be null, which has no value.
        let value = unsafe { raw::RedisModule_ModuleTypeGetValue.unwrap()(self.key) };
        // SAFETY: the type was verified, and values of our type are boxed `Stored`. Commands run in
        // the main thread, one key of theirs is open, and it is borrowed.
        unsafe { value.cast::<Stored>().as_mut() }
    }

    /// The filter in it, if there is one.
    pub(crate) fn filter(&mut self) -> Result<Option<&mut Whole>, RedisError> {
        match self.stored() {
            None => Ok(None),
            Some(Stored::Whole(whole)) => Ok(Some(whole)),
            Some(Stored::Arriving(arriving)) => Err(RedisError::String(format!(
                "ERR the filter is being loaded: its first {} bytes are here; go on with CF.LOADCHUNK, or delete the key",
                arriving.len()
            ))),
        }
    }

    /// The filter in it.
    pub(crate) fn existing(&mut self) -> Result<&mut Whole, RedisError> {
        self.filter()?.ok_or(RedisError::Str("ERR not found"))
    }

    /// Puts a value into the key, in place of what is there.
    pub(crate) fn set(&mut self, value: Stored) -> Result<(), RedisError> {
        let value = Box::into_raw(Box::new(value));
        // SAFETY: the key is open to write, and the value is one of our type.
        let status = unsafe {
            raw::RedisModule_ModuleTypeSetValue.unwrap()(
                self.key,
                *FILTER_TYPE.raw_type.borrow(),
                value.cast(),
            )
        };
        if raw::Status::from(status) == raw::Status::Ok {
            return Ok(());
        }
        // SAFETY: it was boxed above, and refused.
        drop(unsafe { Box::from_raw(value) });
        Err(RedisError::Str("ERR the key cannot be written"))
    }
}

impl Drop for Key<'_> {
    fn drop(&mut self) {
        raw::close_key(self.key);
    }
}
