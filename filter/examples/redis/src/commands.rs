//! What the commands do. README.md says how they differ from RedisBloom's.

use std::sync::Arc;

use filter::{Filter, InsertError};
use redis_module::key::{RedisKey, RedisKeyWritable};
use redis_module::raw;
use redis_module::{Context, ContextFlags, RedisError, RedisResult, RedisString, RedisValue};

use crate::bulk;
use crate::stored::{Arriving, FILTER_TYPE, PIECE, Stored, Whole, builder};

const OK: RedisResult = Ok(RedisValue::SimpleStringStatic("OK"));
const NOT_FOUND: RedisError = RedisError::Str("ERR not found");

/// The least and the greatest capacity, as in RedisBloom, and that of a filter which `CF.ADD` makes.
const MIN_CAPACITY: u64 = 4;
const MAX_CAPACITY: u64 = 1 << 30;
const DEFAULT_CAPACITY: u64 = 1024;

fn error(error: impl std::error::Error) -> RedisError {
    RedisError::String(format!("ERR {error}"))
}

fn build(capacity: u64) -> Result<Stored, RedisError> {
    let filter = builder().capacity(capacity as usize);
    Ok(Stored::new(filter.build().map_err(error)?))
}

/// Reads a number that must be in a range.
fn within(arg: &RedisString, name: &str, least: u64, most: u64) -> Result<u64, RedisError> {
    let value = arg.parse_unsigned_integer().ok();
    let value = value.filter(|value| (least..=most).contains(value));
    let needed = || format!("ERR {name}: a whole number from {least} to {most} is needed");
    value.ok_or_else(|| RedisError::String(needed()))
}

/// True if the argument is this word, in upper or lower case.
fn is(arg: &RedisString, word: &str) -> bool {
    arg.as_slice().eq_ignore_ascii_case(word.as_bytes())
}

/// What is in a key that was opened to read.
fn stored(key: &RedisKey) -> Result<Option<&Stored>, RedisError> {
    let value = key.get_value(&FILTER_TYPE);
    value.map_err(|_| RedisError::WrongType)
}

/// What is in a key that was opened to write.
fn stored_mut(key: &RedisKeyWritable) -> Result<Option<&mut Stored>, RedisError> {
    let value = key.get_value(&FILTER_TYPE);
    value.map_err(|_| RedisError::WrongType)
}

/// The filter in a key, if it is not being loaded.
fn whole(stored: Option<&Stored>) -> Result<Option<&Whole>, RedisError> {
    match stored {
        None => Ok(None),
        Some(Stored::Whole(whole)) => Ok(Some(whole)),
        Some(Stored::Arriving(arriving)) => Err(being_loaded(arriving)),
    }
}

/// The filter in a key that was opened to write.
fn whole_mut(key: &RedisKeyWritable) -> Result<Option<&mut Whole>, RedisError> {
    match stored_mut(key)? {
        None => Ok(None),
        Some(Stored::Whole(whole)) => Ok(Some(whole)),
        Some(Stored::Arriving(arriving)) => Err(being_loaded(arriving)),
    }
}

fn being_loaded(arriving: &Arriving) -> RedisError {
    RedisError::String(format!(
        "ERR the filter is being loaded: its first {} bytes are here; go on with CF.LOADCHUNK, or delete the key",
        arriving.bytes.len()
    ))
}

/// `CF.RESERVE key capacity [BUCKETSIZE n] [MAXITERATIONS n] [EXPANSION n]`
pub(crate) fn reserve(ctx: &Context, args: &[RedisString]) -> RedisResult {
    let (options, []) = args[3..].as_chunks() else {
        return Err(RedisError::WrongArity);
    };
    let mut bucket_size = MIN_CAPACITY / 2;
    for [option, value] in options {
        if is(option, "BUCKETSIZE") {
            bucket_size = within(value, "BUCKETSIZE", 1, 255)?;
        } else if is(option, "MAXITERATIONS") {
            within(value, "MAXITERATIONS", 1, 65_535)?;
        } else if is(option, "EXPANSION") && is(value, "0") {
            return Err(RedisError::Str(
                "ERR EXPANSION 0 is not possible: the filter always grows; bound it by maxmemory",
            ));
        } else if is(option, "EXPANSION") {
            within(value, "EXPANSION", 1, 32_768)?;
        } else {
            return Err(RedisError::Str(
                "ERR unknown option: there are BUCKETSIZE, MAXITERATIONS and EXPANSION",
            ));
        }
    }
    let capacity = within(&args[2], "capacity", 2 * bucket_size, MAX_CAPACITY)?;
    let key = ctx.open_key_writable(&args[1]);
    if stored_mut(&key)?.is_some() {
        return Err(RedisError::Str("ERR item exists"));
    }
    key.set_value(&FILTER_TYPE, build(capacity)?)?;
    ctx.replicate_verbatim();
    OK
}

/// `CF.ADD key item`
pub(crate) fn add(ctx: &Context, args: &[RedisString]) -> RedisResult {
    add_one(ctx, args, false)
}

/// `CF.ADDNX key item`
pub(crate) fn add_new(ctx: &Context, args: &[RedisString]) -> RedisResult {
    add_one(ctx, args, true)
}

fn add_one(ctx: &Context, args: &[RedisString], new_only: bool) -> RedisResult {
    let results = add_items(ctx, &args[1], &args[2..], Some(DEFAULT_CAPACITY), new_only)?;
    match results[0] {
        Ok(added) => Ok(RedisValue::Bool(added)),
        Err(InsertError::TooManyCopies { .. }) => Ok(RedisValue::Bool(false)),
        Err(failed) => Err(error(failed)),
    }
}

/// `CF.INSERT key [CAPACITY n] [NOCREATE] ITEMS item [item ...]`
pub(crate) fn insert(ctx: &Context, args: &[RedisString]) -> RedisResult {
    add_several(ctx, args, false)
}

/// `CF.INSERTNX key [CAPACITY n] [NOCREATE] ITEMS item [item ...]`
pub(crate) fn insert_new(ctx: &Context, args: &[RedisString]) -> RedisResult {
    add_several(ctx, args, true)
}

fn add_several(ctx: &Context, args: &[RedisString], new_only: bool) -> RedisResult {
    let (mut capacity, mut create) = (DEFAULT_CAPACITY, true);
    let mut rest = &args[2..];
    let items = loop {
        rest = match rest {
            [word, items @ ..] if is(word, "ITEMS") && !items.is_empty() => break items,
            [word, rest @ ..] if is(word, "NOCREATE") => {
                create = false;
                rest
            }
            [word, number, rest @ ..] if is(word, "CAPACITY") => {
                capacity = within(number, "CAPACITY", MIN_CAPACITY, MAX_CAPACITY)?;
                rest
            }
            [word, ..] if !is(word, "ITEMS") && !is(word, "CAPACITY") => {
                return Err(RedisError::Str(
                    "ERR unknown option: there are CAPACITY, NOCREATE and ITEMS",
                ));
            }
            _ => return Err(RedisError::WrongArity),
        };
    };
    let results = add_items(ctx, &args[1], items, create.then_some(capacity), new_only)?;
    let as_bool = !new_only && ctx.get_flags().contains(ContextFlags::FLAGS_RESP3);
    // 1 if it was added, 0 if it was there (as often as can be), −1 if there was no memory.
    let reply = |result| match result {
        result if as_bool => RedisValue::Bool(result == Ok(true)),
        Ok(added) => RedisValue::Integer(added.into()),
        Err(InsertError::TooManyCopies { .. }) => RedisValue::Integer(0),
        Err(_) => RedisValue::Integer(-1),
    };
    Ok(RedisValue::Array(results.into_iter().map(reply).collect()))
}

/// Adds items to a filter, which is made with this capacity if there is none; propagates what was
/// added.
fn add_items(
    ctx: &Context,
    name: &RedisString,
    items: &[RedisString],
    capacity: Option<u64>,
    new_only: bool,
) -> Result<Vec<Result<bool, InsertError>>, RedisError> {
    let key = ctx.open_key_writable(name);
    let created = whole_mut(&key)?.is_none();
    if created {
        let capacity = capacity.ok_or(NOT_FOUND)?;
        key.set_value(&FILTER_TYPE, build(capacity)?)?;
    }
    let filter = &whole_mut(&key)?.ok_or(NOT_FOUND)?.filter;
    let add = |item: &RedisString| {
        if new_only {
            filter.insert_unique(item.as_slice())
        } else {
            filter.insert(item.as_slice()).map(|()| true)
        }
    };
    let results: Vec<_> = items.iter().map(add).collect();
    if results.iter().all(|result| *result == Ok(true)) {
        ctx.replicate_verbatim();
        return Ok(results);
    }
    // What was not added here, for whatever reason, is not added elsewhere.
    if let Some(capacity) = capacity.filter(|_| created) {
        let capacity = capacity.to_string();
        ctx.replicate("CF.RESERVE", &[name.as_slice(), capacity.as_bytes()][..]);
    }
    let mut command = vec![name.as_slice(), b"ITEMS"];
    let added = items.iter().zip(&results);
    let added = added.filter(|(_, result)| **result == Ok(true));
    command.extend(added.map(|(item, _)| item.as_slice()));
    if command.len() > 2 {
        ctx.replicate("CF.INSERT", &command[..]);
    }
    Ok(results)
}

/// `CF.EXISTS key item`
pub(crate) fn exists(ctx: &Context, args: &[RedisString]) -> RedisResult {
    let key = ctx.open_key(&args[1]);
    let whole = whole(stored(&key)?)?;
    let found = whole.is_some_and(|whole| whole.filter.contains(args[2].as_slice()));
    Ok(RedisValue::Bool(found))
}

/// `CF.MEXISTS key item [item ...]`
pub(crate) fn exist(ctx: &Context, args: &[RedisString]) -> RedisResult {
    let key = ctx.open_key(&args[1]);
    let items = args[2..].iter();
    let Some(whole) = whole(stored(&key)?)? else {
        let absent = items.map(|_| RedisValue::Bool(false));
        return Ok(RedisValue::Array(absent.collect()));
    };
    let hashes = items.map(|item| whole.filter.hash(item.as_slice()));
    bulk::exist(ctx, &whole.filter, hashes.collect())
}

/// `CF.DEL key item`
pub(crate) fn delete(ctx: &Context, args: &[RedisString]) -> RedisResult {
    let key = ctx.open_key_writable(&args[1]);
    let whole = whole_mut(&key)?.ok_or(NOT_FOUND)?;
    let removed = whole.filter.remove(args[2].as_slice());
    if removed {
        whole.deleted.update(|deleted| deleted + 1);
        ctx.replicate_verbatim();
    }
    Ok(RedisValue::Bool(removed))
}

/// `CF.COUNT key item`
pub(crate) fn count(ctx: &Context, args: &[RedisString]) -> RedisResult {
    let key = ctx.open_key(&args[1]);
    let whole = whole(stored(&key)?)?;
    let count = whole.map_or(0, |whole| whole.filter.count(args[2].as_slice()));
    Ok(count.into())
}

/// `CF.SCANDUMP key iterator`: the iterator is the number of bytes that came before.
pub(crate) fn dump(ctx: &Context, args: &[RedisString]) -> RedisResult {
    let key = ctx.open_key(&args[1]);
    let whole = whole(stored(&key)?)?.ok_or(NOT_FOUND)?;
    let from = args[2].parse_unsigned_integer();
    let from = from.map_err(|_| RedisError::Str("ERR Invalid position"))?;
    let piece = whole.piece(from).map_err(error)?;
    Ok(RedisValue::Array(if piece.is_empty() {
        vec![RedisValue::Integer(0), RedisValue::Null]
    } else {
        let next = from + piece.len() as u64;
        vec![(next as i64).into(), RedisValue::StringBuffer(piece)]
    }))
}

/// `CF.LOADCHUNK key iterator data`
pub(crate) fn load(ctx: &Context, args: &[RedisString]) -> RedisResult {
    let data = args[3].as_slice();
    let from = args[2].parse_unsigned_integer().ok();
    let from = from.and_then(|end| end.checked_sub(data.len() as u64));
    let from = from.filter(|_| (1..=PIECE).contains(&data.len()));
    let from = from.ok_or(RedisError::Str(
        "ERR Invalid position: pass what CF.SCANDUMP returned, the iterator and the data",
    ))?;
    let key = ctx.open_key_writable(&args[1]);
    let loaded = match stored_mut(&key)? {
        None if from == 0 => Some(Stored::begin(data).map_err(error)?),
        None => return Err(RedisError::Str("ERR not found: begin with the first chunk")),
        Some(Stored::Whole(_)) => return Err(RedisError::Str("ERR item exists")),
        Some(Stored::Arriving(arriving)) if arriving.bytes.len() as u64 == from => {
            arriving.add(data).map_err(error)?
        }
        Some(Stored::Arriving(arriving)) => {
            let here = arriving.bytes.len();
            return Err(RedisError::String(format!(
                "ERR this chunk begins at {from}, but the first {here} bytes are here: go on with the chunk of CF.SCANDUMP {here}, or delete the key and begin again"
            )));
        }
    };
    if let Some(loaded) = loaded {
        key.set_value(&FILTER_TYPE, loaded)?;
    }
    ctx.replicate_verbatim();
    OK
}

/// `CF.INFO key`
pub(crate) fn info(ctx: &Context, args: &[RedisString]) -> RedisResult {
    let key = ctx.open_key(&args[1]);
    let stored = stored(&key)?.ok_or(NOT_FOUND)?;
    let whole = whole(Some(stored))?.ok_or(NOT_FOUND)?;
    // Clients ask for all of RedisBloom's fields. The filter has no such settings, and its buckets are
    // its own matter: each slot counts as one.
    let fields = [
        ("Size", stored.memory_bytes()),
        ("Number of buckets", whole.filter.capacity()),
        ("Number of filters", 1),
        ("Number of items inserted", whole.filter.len()),
        ("Number of items deleted", whole.deleted.get()),
        ("Bucket size", 1),
        ("Expansion rate", 1),
        ("Max iterations", 1),
    ];
    raw::reply_with_map(ctx.get_raw(), fields.len() as _);
    for (name, value) in fields {
        ctx.reply_simple_string(name);
        ctx.reply(Ok(value.into()));
    }
    Ok(RedisValue::NoReply)
}

/// `CF.COMPACT key`: frees what is not needed.
pub(crate) fn compact(ctx: &Context, args: &[RedisString]) -> RedisResult {
    let key = ctx.open_key_writable(&args[1]);
    let filter = &mut whole_mut(&key)?.ok_or(NOT_FOUND)?.filter;
    if Arc::get_mut(filter).is_none() {
        // The worker thread looks up in it, and goes on with what there was. (An error would leave
        // a replica with another filter than its master.)
        *filter = Arc::new(filter.try_clone().map_err(error)?);
    }
    let own = Arc::get_mut(filter).expect("nobody else has it");
    own.shrink_to_fit();
    ctx.replicate_verbatim();
    OK
}

/// `CF.PANIC key`
#[cfg(feature = "panicking")]
pub(crate) fn panic(_: &Context, _: &[RedisString]) -> RedisResult {
    panic!("on purpose")
}
