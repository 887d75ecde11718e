//! What the commands do. README.md says how they differ from RedisBloom's.

use std::cell::RefMut;
use std::error::Error;
use std::iter;

use filter::{BuildError, InsertError, LoadError};
use redis_module::key::{RedisKey, RedisKeyWritable};
use redis_module::raw;
use redis_module::{
    Context, ContextFlags, NotifyEvent, RedisError, RedisResult, RedisString, RedisValue,
};

use crate::limit::{self, BESIDES, Excess, UNCHECKED};
use crate::stored::{CHUNK, FILTER_TYPE, Stored, Value, Whole, builder};

const OK: RedisResult = Ok(RedisValue::SimpleStringStatic("OK"));
const NOT_FOUND: RedisError = RedisError::Str("ERR not found");
const NO_EXPANSION: RedisError = RedisError::Str(
    "ERR EXPANSION 0 is not possible: the filter always grows; bound it by max-filter-bytes",
);
const NO_RESERVE_OPTION: RedisError =
    RedisError::Str("ERR unknown option: there are BUCKETSIZE, MAXITERATIONS and EXPANSION");
const NO_INSERT_OPTION: RedisError =
    RedisError::Str("ERR unknown option: there are CAPACITY, NOCREATE and ITEMS");
const NO_CHUNK: RedisError = RedisError::Str(
    "ERR Invalid position: pass what this module's CF.SCANDUMP returned, the iterator and the data (a saved \
     GrowingCuckooFilter of version 3). Chunks of RedisBloom cannot be loaded: add the items to a new filter",
);

/// The least and the greatest capacity, and that of a filter which `CF.ADD` makes.
const MIN_CAPACITY: u64 = 4;
const MAX_CAPACITY: u64 = 1 << 30;
const DEFAULT_CAPACITY: u64 = 1024;

fn error(error: impl Error + 'static) -> RedisError {
    RedisError::String(format!("ERR {}", text_of(&error)))
}

/// Returns the texts of an error and of its causes.
pub(crate) fn text_of(error: &(dyn Error + 'static)) -> String {
    let errors = iter::successors(Some(error), |&error| error.source());
    let texts: Vec<_> = errors.map(text_of_one).collect();
    texts.join(": ")
}

/// Returns the text of an error: its own, unless that advises what only Rust has.
fn text_of_one(error: &(dyn Error + 'static)) -> String {
    if let Some(InsertError::TooManyCopies { most, .. }) = error.downcast_ref() {
        return format!(
            "there is no room for another copy, since the filter holds {most} of this item, or of items that it cannot \
             tell from it: delete copies"
        );
    }
    if let Some(InsertError::Crowded) = error.downcast_ref() {
        return "there is no room for this item though the table is nearly empty, since many items collide or have three \
                copies: delete copies, and add each item once (CF.ADDNX)"
            .to_owned();
    }
    if let Some(BuildError::OutOfMemory { buckets, .. }) = error.downcast_ref() {
        return format!("no memory for a table of {buckets} buckets, 8 bytes each");
    }
    if let Some(LoadError::Kind { found, .. }) = error.downcast_ref() {
        return format!("this is a saved {found}, and not what CF.SCANDUMP returned");
    }
    if let Some(LoadError::Hasher) = error.downcast_ref() {
        return "the filter was saved with another hasher than that of this module: add the items to a new filter"
            .to_owned();
    }
    error.to_string()
}

fn build(capacity: u64) -> Result<Value, RedisError> {
    /// Slots of a bucket.
    const SLOTS: u64 = 3;
    // (The builder's own least size is for larger sets.)
    let buckets = 1 << (capacity / SLOTS).max(1).ilog2();
    limit::check(0, BESIDES + 8 * buckets).map_err(|excess| {
        let fits = (excess.room.max(UNCHECKED - 1) - BESIDES) / 8;
        let most = ((2 * SLOTS) << fits.ilog2()) - 1;
        let possible = format!("a capacity of at most {most} fits");
        RedisError::String(format!("OOM {}: {possible}", excess.text))
    })?;
    let filter = builder().buckets(buckets);
    Ok(Value::new(Stored::new(filter.build().map_err(error)?, 0)))
}

/// Reads a number that must be in a range.
pub(crate) fn within(
    arg: &RedisString,
    name: &str,
    least: u64,
    most: u64,
) -> Result<u64, RedisError> {
    let value = arg.parse_unsigned_integer().ok();
    let value = value.filter(|value| (least..=most).contains(value));
    let needed = || format!("ERR {name}: a whole number from {least} to {most} is needed");
    value.ok_or_else(|| RedisError::String(needed()))
}

/// True if the argument is this word, in upper or lower case.
pub(crate) fn is(arg: &RedisString, word: &str) -> bool {
    arg.as_slice().eq_ignore_ascii_case(word.as_bytes())
}

/// What is in a key that was opened to read.
fn value(key: &RedisKey) -> Result<Option<&Value>, RedisError> {
    let value = key.get_value(&FILTER_TYPE);
    value.map_err(|_| RedisError::WrongType)
}

/// What is in a key that was opened to write.
fn value_mut(key: &RedisKeyWritable) -> Result<Option<&Value>, RedisError> {
    let value = key.get_value::<Value>(&FILTER_TYPE);
    let value = value.map_err(|_| RedisError::WrongType)?;
    Ok(value.map(|value| &*value))
}

/// The filter in a key, if there is a key, and it is not being loaded.
fn whole(value: Option<&Value>) -> Result<Option<RefMut<'_, Whole>>, RedisError> {
    let Some(value) = value else {
        return Ok(None);
    };
    let whole = RefMut::filter_map(value.borrow_mut(), |stored| match stored {
        Stored::Whole(whole) => Some(whole),
        Stored::Arriving(_) => None,
    });
    let being_loaded = "ERR the filter is being loaded: go on with CF.LOADCHUNK, or delete the key";
    whole.map(Some).map_err(|_| RedisError::Str(being_loaded))
}

/// Propagates a command that has changed a filter, and then reports it: at the event, others may change keys. By then, the
/// key is closed.
fn changed(ctx: &Context, args: &[RedisString]) -> RedisResult {
    ctx.replicate_verbatim();
    report(ctx, &args[0].to_string_lossy(), &args[1]);
    OK
}

/// Reports a command as a keyspace event: `CF.ADD` is `cf.add`.
fn report(ctx: &Context, command: &str, name: &RedisString) {
    ctx.notify_keyspace_event(NotifyEvent::MODULE, &command.to_lowercase(), name);
}

/// `CF.RESERVE key capacity [BUCKETSIZE n] [MAXITERATIONS n] [EXPANSION n]`
pub(crate) fn reserve(ctx: &Context, args: &[RedisString]) -> RedisResult {
    let (options, []) = args[3..].as_chunks() else {
        return Err(RedisError::WrongArity);
    };
    let mut bucket_size = MIN_CAPACITY / 2;
    let known = [
        ("BUCKETSIZE", 255),
        ("MAXITERATIONS", 65_535),
        ("EXPANSION", 32_768),
    ];
    for [option, value] in options {
        let known = known.into_iter().find(|(name, _)| is(option, name));
        let (name, most) = known.ok_or(NO_RESERVE_OPTION)?;
        if name == "EXPANSION" && is(value, "0") {
            return Err(NO_EXPANSION);
        }
        let number = within(value, name, 1, most)?;
        if name == "BUCKETSIZE" {
            bucket_size = number;
        }
    }
    let capacity = within(&args[2], "capacity", 2 * bucket_size, MAX_CAPACITY)?;
    let key = ctx.open_key_writable(&args[1]);
    if value_mut(&key)?.is_some() {
        return Err(RedisError::Str("ERR item exists"));
    }
    key.set_value(&FILTER_TYPE, build(capacity)?)?;
    drop(key);
    changed(ctx, args)
}

/// `CF.ADD key item`, `CF.ADDNX key item`
pub(crate) fn add(ctx: &Context, args: &[RedisString], new_only: bool) -> RedisResult {
    let (results, excess) = add_items(ctx, args, &args[2..], Some(DEFAULT_CAPACITY), new_only)?;
    match (&results[0], excess) {
        (Ok(added), _) => Ok(RedisValue::Bool(*added)),
        (Err(refused), _) if !new_only && is_refusal(refused) => Ok(RedisValue::Bool(false)),
        (Err(InsertError::OutOfMemory { .. }), Some(excess)) => {
            let possible = "delete items or raise the limit";
            Err(RedisError::String(format!(
                "OOM {}: {possible}",
                excess.text
            )))
        }
        (Err(failed), _) => Err(error(failed.clone())),
    }
}

/// `CF.INSERT key [CAPACITY n] [NOCREATE] ITEMS item [item ...]`, and `CF.INSERTNX` likewise
pub(crate) fn insert(ctx: &Context, args: &[RedisString], new_only: bool) -> RedisResult {
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
                return Err(NO_INSERT_OPTION);
            }
            _ => return Err(RedisError::WrongArity),
        };
    };
    let (results, _) = add_items(ctx, args, items, create.then_some(capacity), new_only)?;
    let as_bool = !new_only && ctx.get_flags().contains(ContextFlags::FLAGS_RESP3);
    // 1 if it was added, 0 if it was there (as often as can be), −1 if there was no memory, or no room for a new one.
    let reply = |result| match result {
        result if as_bool => RedisValue::Bool(result == Ok(true)),
        Ok(added) => RedisValue::Integer(added.into()),
        Err(refused) if !new_only && is_refusal(&refused) => RedisValue::Integer(0),
        Err(_) => RedisValue::Integer(-1),
    };
    Ok(RedisValue::Array(results.into_iter().map(reply).collect()))
}

/// Adds items to a filter, which is made with this capacity if there is none; propagates what that does.
fn add_items(
    ctx: &Context,
    command: &[RedisString],
    items: &[RedisString],
    capacity: Option<u64>,
    new_only: bool,
) -> Result<(Vec<Added>, Option<Excess>), RedisError> {
    let name = &command[1];
    let key = ctx.open_key_writable(name);
    let created = value_mut(&key)?.is_none();
    if created {
        key.set_value(&FILTER_TYPE, build(capacity.ok_or(NOT_FOUND)?)?)?;
    }
    let mut whole = whole(value_mut(&key)?)?.ok_or(NOT_FOUND)?;
    let filter = &whole.filter;
    let add = |item: &RedisString| {
        if new_only {
            filter.insert_if_absent(item.as_slice())
        } else {
            filter.insert(item.as_slice()).map(|()| true)
        }
    };
    let add_all = || items.iter().map(add).collect();
    let (results, excess): (Vec<_>, _) = limit::growing(filter.memory_bytes(), add_all);
    // Refused items too: the filter may have grown for them.
    let may_differ = created || results.iter().any(|result| *result != Ok(false));
    whole.is_dumped &= !may_differ;
    drop(whole);
    drop(key);
    let added = results.contains(&Ok(true));
    let failed = |result: &Added| matches!(result, Err(error) if !is_refusal(error));
    if results
        .iter()
        .any(|result| failed(result) || new_only && result.is_err())
    {
        // Elsewhere there may be memory: what could not be added here is not to be added there. And a replica
        // reports it if it replies an error, as CF.ADDNX would.
        let reserved = capacity.filter(|_| created);
        if let Some(capacity) = reserved {
            let capacity = capacity.to_string();
            ctx.replicate("CF.RESERVE", &[name.as_slice(), capacity.as_bytes()][..]);
        }
        let mut args = vec![name.as_slice(), b"ITEMS"];
        let each = items.iter().zip(&results);
        args.extend(each.filter_map(|(item, result)| (!failed(result)).then_some(item.as_slice())));
        let command = if new_only { "CF.INSERTNX" } else { "CF.INSERT" };
        if args.len() > 2 {
            ctx.replicate(command, &args[..]);
        }
        // Only now: whoever hears of the one may change the key, which must not come between the two.
        if reserved.is_some() {
            report(ctx, "CF.RESERVE", name);
        }
        if added {
            report(ctx, command, name);
        }
    } else if may_differ {
        ctx.replicate_verbatim();
        if created || added {
            report(ctx, &command[0].to_string_lossy(), name);
        }
    }
    Ok((results, excess))
}

type Added = Result<bool, InsertError>;

/// True if the filter has no room for another copy of the item, at any size.
fn is_refusal(error: &InsertError) -> bool {
    use InsertError::{Crowded, TooManyCopies};
    matches!(error, TooManyCopies { .. } | Crowded)
}

/// `CF.EXISTS key item`, `CF.MEXISTS key item [item ...]`
pub(crate) fn exists(ctx: &Context, args: &[RedisString], many: bool) -> RedisResult {
    let key = ctx.open_key(&args[1]);
    let whole = whole(value(&key)?)?;
    let filter = whole.as_ref().map(|whole| &whole.filter);
    let found = |item: &RedisString| filter.is_some_and(|filter| filter.contains(item.as_slice()));
    let mut found: Vec<_> = args[2..].iter().map(found).map(RedisValue::Bool).collect();
    Ok(if many {
        RedisValue::Array(found)
    } else {
        found.remove(0)
    })
}

/// `CF.DEL key item`
pub(crate) fn delete(ctx: &Context, args: &[RedisString]) -> RedisResult {
    let key = ctx.open_key_writable(&args[1]);
    let mut whole = whole(value_mut(&key)?)?.ok_or(NOT_FOUND)?;
    let removed = whole.filter.remove(args[2].as_slice()).map_err(error)?;
    whole.deleted += u64::from(removed);
    whole.is_dumped &= !removed;
    drop(whole);
    drop(key);
    if removed {
        changed(ctx, args)?;
    }
    Ok(RedisValue::Bool(removed))
}

/// `CF.COUNT key item`
pub(crate) fn count(ctx: &Context, args: &[RedisString]) -> RedisResult {
    let key = ctx.open_key(&args[1]);
    let whole = whole(value(&key)?)?;
    let count = whole.map_or(0, |whole| whole.filter.count(args[2].as_slice()));
    Ok(count.into())
}

/// `CF.SCANDUMP key iterator`: the iterator is the number of bytes that came before.
pub(crate) fn dump(ctx: &Context, args: &[RedisString]) -> RedisResult {
    let key = ctx.open_key(&args[1]);
    let mut whole = whole(value(&key)?)?.ok_or(NOT_FOUND)?;
    let from = args[2].parse_unsigned_integer();
    let from = from.map_err(|_| RedisError::Str("ERR Invalid position"))?;
    let no_dump = RedisError::Str(
        "ERR the filter has changed, or no dump is under way: begin with iterator 0, or dump a COPY of the key",
    );
    let chunk = whole.chunk(from).ok_or(no_dump)?;
    Ok(RedisValue::Array(if chunk.is_empty() {
        vec![RedisValue::Integer(0), RedisValue::Null]
    } else {
        let next = from + chunk.len() as u64;
        vec![(next as i64).into(), RedisValue::StringBuffer(chunk)]
    }))
}

/// `CF.LOADCHUNK key iterator data`
pub(crate) fn load(ctx: &Context, args: &[RedisString]) -> RedisResult {
    let data = args[3].as_slice();
    let from = args[2].parse_unsigned_integer().ok();
    let from = from.and_then(|end| end.checked_sub(data.len() as u64));
    let from = from.filter(|_| (1..=CHUNK).contains(&data.len()));
    let from = from.ok_or(NO_CHUNK)?;
    let refused = |refused| match refused {
        LoadError::NotAFilter => NO_CHUNK,
        other => error(other),
    };
    let key = ctx.open_key_writable(&args[1]);
    match value_mut(&key)? {
        None if from == 0 => {
            let begun = Stored::begin(data).map_err(refused)?;
            key.set_value(&FILTER_TYPE, Value::new(begun))?;
        }
        None => return Err(RedisError::Str("ERR not found: begin with the first chunk")),
        // The key stays, and with it the time that it has to live.
        Some(value) => match &mut *value.borrow_mut() {
            Stored::Whole(_) => return Err(RedisError::Str("ERR item exists")),
            Stored::Arriving(arriving) if arriving.bytes.len() as u64 != from => {
                let received = arriving.bytes.len();
                return Err(RedisError::String(format!(
                    "ERR this chunk begins at {from}, but the first {received} bytes are here: go on with the chunk of CF.SCANDUMP {received}, or delete the key and begin again"
                )));
            }
            stored @ Stored::Arriving(_) => stored.add(data).map_err(refused)?,
        },
    }
    drop(key);
    changed(ctx, args)
}

/// `CF.INFO key`
pub(crate) fn info(ctx: &Context, args: &[RedisString]) -> RedisResult {
    let key = ctx.open_key(&args[1]);
    let value = value(&key)?.ok_or(NOT_FOUND)?;
    let size = value.borrow().memory_bytes();
    let whole = whole(Some(value))?.ok_or(NOT_FOUND)?;
    // Clients ask for all of RedisBloom's fields. The filter has no such settings, and its buckets are
    // its own matter: each slot counts as one.
    let fields = [
        ("Size", size),
        ("Number of buckets", whole.filter.slots()),
        ("Number of filters", 1),
        ("Number of items inserted", whole.filter.len()),
        ("Number of items deleted", whole.deleted as usize),
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
    let mut whole = whole(value_mut(&key)?)?.ok_or(NOT_FOUND)?;
    whole.filter.shrink_to_fit();
    whole.is_dumped = false;
    drop(whole);
    drop(key);
    changed(ctx, args)
}
