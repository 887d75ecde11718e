//! What the commands do. README.md says how they differ from RedisBloom's.

use filter::{Filter, InsertError};
use filter::growing::{GrowingCuckooFilter, TableInfo};
use redis_module::raw;
use redis_module::{Context, ContextFlags, RedisError, RedisResult, RedisValue};

use crate::bulk;
use crate::key::{Args, Key};
use crate::stored::{DEFAULT_CAPACITY, PIECE, Stored};

const OK: RedisResult = Ok(RedisValue::SimpleStringStatic("OK"));

/// The greatest capacity; as in RedisBloom.
const MAX_CAPACITY: usize = 1 << 30;

/// Slots of a bucket in RedisBloom's filters, unless told.
const BUCKET_SIZE: usize = 2;

fn error(error: impl std::error::Error) -> RedisError {
    RedisError::String(format!("ERR {error}"))
}

fn build(capacity: usize) -> Result<Stored, RedisError> {
    let filter = GrowingCuckooFilter::builder().capacity(capacity).build();
    Ok(Stored::new(filter.map_err(error)?))
}

/// Reads a number that must be in a range.
fn within(
    args: Args,
    number: usize,
    name: &str,
    least: usize,
    most: usize,
) -> Result<usize, RedisError> {
    let value = args
        .integer(number)
        .and_then(|value| usize::try_from(value).ok());
    value
        .filter(|value| (least..=most).contains(value))
        .ok_or_else(|| {
            RedisError::String(format!(
                "ERR {name}: a whole number from {least} to {most} is needed"
            ))
        })
}

/// `CF.RESERVE key capacity [BUCKETSIZE n] [MAXITERATIONS n] [EXPANSION n]`
pub(crate) fn reserve(ctx: &Context, args: Args) -> RedisResult {
    if args.len() < 3 || args.len().is_multiple_of(2) {
        return Err(RedisError::WrongArity);
    }
    let mut bucket_size = BUCKET_SIZE;
    for option in (3..args.len()).step_by(2) {
        let value = option + 1;
        if args.is(option, "BUCKETSIZE") {
            bucket_size = within(args, value, "BUCKETSIZE", 1, 255)?;
        } else if args.is(option, "MAXITERATIONS") {
            within(args, value, "MAXITERATIONS", 1, 65_535)?;
        } else if args.is(option, "EXPANSION") {
            if args.integer(value) == Some(0) {
                return Err(RedisError::Str(
                    "ERR EXPANSION 0 is not possible: the filter always grows; bound it by maxmemory",
                ));
            }
            within(args, value, "EXPANSION", 1, 32_768)?;
        } else {
            return Err(RedisError::Str(
                "ERR unknown option: there are BUCKETSIZE, MAXITERATIONS and EXPANSION",
            ));
        }
    }
    let capacity = within(args, 2, "capacity", 2 * bucket_size, MAX_CAPACITY)?;
    let mut key = Key::write(ctx, args)?;
    if key.stored().is_some() {
        return Err(RedisError::Str("ERR item exists"));
    }
    key.set(build(capacity)?)?;
    ctx.replicate_verbatim();
    OK
}

/// How items are added.
#[derive(Clone, Copy)]
struct Insertion {
    /// Only those that are not there.
    new_only: bool,
    /// There may be several items, and the reply is an array.
    several: bool,
    /// Make the filter if there is none.
    create: bool,
    capacity: usize,
    /// The number of the first item's argument.
    items: usize,
}

const ONE: Insertion = Insertion {
    new_only: false,
    several: false,
    create: true,
    capacity: DEFAULT_CAPACITY,
    items: 2,
};

/// `CF.ADD key item`
pub(crate) fn add(ctx: &Context, args: Args) -> RedisResult {
    add_items(ctx, args, ONE)
}

/// `CF.ADDNX key item`
pub(crate) fn add_new(ctx: &Context, args: Args) -> RedisResult {
    add_items(
        ctx,
        args,
        Insertion {
            new_only: true,
            ..ONE
        },
    )
}

/// `CF.INSERT key [CAPACITY n] [NOCREATE] ITEMS item [item ...]`
pub(crate) fn insert(ctx: &Context, args: Args) -> RedisResult {
    add_items(ctx, args, insertion(args, false)?)
}

/// `CF.INSERTNX key [CAPACITY n] [NOCREATE] ITEMS item [item ...]`
pub(crate) fn insert_new(ctx: &Context, args: Args) -> RedisResult {
    add_items(ctx, args, insertion(args, true)?)
}

/// Reads the options of an insertion of several items.
fn insertion(args: Args, new_only: bool) -> Result<Insertion, RedisError> {
    let mut insertion = Insertion {
        new_only,
        several: true,
        ..ONE
    };
    let mut next = 2;
    while next < args.len() && !args.is(next, "ITEMS") {
        if args.is(next, "NOCREATE") {
            insertion.create = false;
            next += 1;
        } else if args.is(next, "CAPACITY") && next + 1 < args.len() {
            insertion.capacity = within(args, next + 1, "CAPACITY", 2 * BUCKET_SIZE, MAX_CAPACITY)?;
            next += 2;
        } else if args.is(next, "CAPACITY") {
            return Err(RedisError::WrongArity);
        } else {
            return Err(RedisError::Str(
                "ERR unknown option: there are CAPACITY, NOCREATE and ITEMS",
            ));
        }
    }
    insertion.items = next + 1;
    if insertion.items < args.len() {
        Ok(insertion)
    } else {
        Err(RedisError::WrongArity)
    }
}

fn add_items(ctx: &Context, args: Args, insertion: Insertion) -> RedisResult {
    let mut key = Key::write(ctx, args)?;
    let created = key.filter()?.is_none();
    if created && !insertion.create {
        return Err(RedisError::Str("ERR not found"));
    }
    if created {
        key.set(build(insertion.capacity)?)?;
    }
    let filter = &key.existing()?.filter;
    let add = |item: &[u8]| {
        if insertion.new_only {
            filter.insert_unique(item)
        } else {
            filter.insert(item).map(|()| true)
        }
    };
    let results: Vec<_> = args.from(insertion.items).map(add).collect();
    let added = results.iter().filter(|&result| *result == Ok(true)).count();
    if added == results.len() {
        ctx.replicate_verbatim();
    } else {
        // What was not added here, for whatever reason, is not added elsewhere.
        let name = args.bytes(1);
        if created {
            let capacity = insertion.capacity.to_string();
            ctx.replicate("CF.RESERVE", &[name, capacity.as_bytes()][..]);
        }
        if added > 0 {
            let items = args.from(insertion.items).zip(&results);
            let items = items.filter(|(_, result)| **result == Ok(true));
            let mut command = vec![name, b"ITEMS"];
            command.extend(items.map(|(item, _)| item));
            ctx.replicate("CF.INSERT", &command[..]);
        }
    }
    if insertion.several {
        let resp3 = ctx.get_flags().contains(ContextFlags::FLAGS_RESP3);
        let reply = |result| one_of_several(result, resp3 && !insertion.new_only);
        return Ok(RedisValue::Array(results.into_iter().map(reply).collect()));
    }
    match results[0] {
        Ok(added) => Ok(RedisValue::Bool(added)),
        Err(InsertError::TooManyCopies { .. }) => Ok(RedisValue::Bool(false)),
        Err(failed) => Err(error(failed)),
    }
}

/// The reply about one of several items: 1 if it was added, 0 if it was there (as often as can be),
/// −1 if there was no memory.
fn one_of_several(result: Result<bool, InsertError>, as_bool: bool) -> RedisValue {
    match result {
        Ok(true) if as_bool => RedisValue::Bool(true),
        _ if as_bool => RedisValue::Bool(false),
        Ok(added) => RedisValue::Integer(added.into()),
        Err(InsertError::TooManyCopies { .. }) => RedisValue::Integer(0),
        Err(_) => RedisValue::Integer(-1),
    }
}

/// `CF.EXISTS key item`
pub(crate) fn exists(ctx: &Context, args: Args) -> RedisResult {
    let mut key = Key::read(ctx, args)?;
    let whole = key.filter()?;
    Ok(RedisValue::Bool(
        whole.is_some_and(|whole| whole.filter.contains(args.bytes(2))),
    ))
}

/// `CF.MEXISTS key item [item ...]`
pub(crate) fn exist(ctx: &Context, args: Args) -> RedisResult {
    let mut key = Key::read(ctx, args)?;
    match key.filter()? {
        None => Ok(RedisValue::Array(vec![
            RedisValue::Bool(false);
            args.len() - 2
        ])),
        Some(whole) => {
            let hashes = args.from(2).map(|item| whole.filter.hash(item)).collect();
            bulk::exist(ctx, &whole.filter, hashes)
        }
    }
}

/// `CF.DEL key item`
pub(crate) fn delete(ctx: &Context, args: Args) -> RedisResult {
    let mut key = Key::write(ctx, args)?;
    let whole = key.existing()?;
    let removed = whole.filter.remove(args.bytes(2));
    if removed {
        whole.deleted += 1;
        ctx.replicate_verbatim();
    }
    Ok(RedisValue::Bool(removed))
}

/// `CF.COUNT key item`
pub(crate) fn count(ctx: &Context, args: Args) -> RedisResult {
    let mut key = Key::read(ctx, args)?;
    let whole = key.filter()?;
    Ok(whole
        .map_or(0, |whole| whole.filter.count(args.bytes(2)))
        .into())
}

/// Reads the iterator of a dump: the number of bytes that came before.
fn iterator(args: Args) -> Result<u64, RedisError> {
    args.integer(2)
        .and_then(|iterator| u64::try_from(iterator).ok())
        .ok_or(RedisError::Str("ERR Invalid position"))
}

/// `CF.SCANDUMP key iterator`
pub(crate) fn dump(ctx: &Context, args: Args) -> RedisResult {
    let from = iterator(args)?;
    let mut key = Key::read(ctx, args)?;
    let piece = key.existing()?.piece(from).map_err(error)?;
    Ok(RedisValue::Array(if piece.is_empty() {
        vec![RedisValue::Integer(0), RedisValue::Null]
    } else {
        let next = from + piece.len() as u64;
        vec![
            RedisValue::Integer(next as i64),
            RedisValue::StringBuffer(piece),
        ]
    }))
}

/// `CF.LOADCHUNK key iterator data`
pub(crate) fn load(ctx: &Context, args: Args) -> RedisResult {
    let data = args.bytes(3);
    let from = iterator(args)?.checked_sub(data.len() as u64);
    let from = from.filter(|_| (1..=PIECE).contains(&data.len()));
    let from = from.ok_or(RedisError::Str(
        "ERR Invalid position: pass what CF.SCANDUMP returned, the iterator and the data",
    ))?;
    let mut key = Key::write(ctx, args)?;
    let loaded = match key.stored() {
        None if from == 0 => Some(Stored::begin(data).map_err(error)?),
        None => return Err(RedisError::Str("ERR not found: begin with the first chunk")),
        Some(Stored::Whole(_)) => return Err(RedisError::Str("ERR item exists")),
        Some(Stored::Arriving(arriving)) if arriving.len() == from => {
            arriving.add(data).map_err(error)?
        }
        Some(Stored::Arriving(arriving)) => {
            let here = arriving.len();
            return Err(RedisError::String(format!(
                "ERR this chunk begins at {from}, but the first {here} bytes are here: go on with the chunk of CF.SCANDUMP {here}, or delete the key and begin again"
            )));
        }
    };
    if let Some(loaded) = loaded {
        key.set(loaded)?;
    }
    ctx.replicate_verbatim();
    OK
}

/// `CF.INFO key`
pub(crate) fn info(ctx: &Context, args: Args) -> RedisResult {
    let mut key = Key::read(ctx, args)?;
    let size = key.stored().map_or(0, |stored| stored.memory_bytes());
    let whole = key.existing()?;
    let tables = whole.filter.tables();
    let sum = |of: fn(&TableInfo) -> usize| tables.iter().map(of).sum::<usize>();
    let fields = [
        ("Size", size),
        ("Number of buckets", sum(|table| table.buckets)),
        ("Number of filters", tables.len()),
        ("Number of items inserted", sum(|table| table.len)),
        ("Number of items deleted", whole.deleted as usize),
        (
            "Bucket size",
            tables.first().map_or(0, |newest| newest.slots),
        ),
        ("Expansion rate", <GrowingCuckooFilter>::GROWTH),
        (
            "Max iterations",
            <GrowingCuckooFilter>::MAX_SEARCHED_BUCKETS,
        ),
    ];
    raw::reply_with_map(ctx.get_raw(), fields.len() as _);
    for (name, value) in fields {
        ctx.reply_simple_string(name);
        ctx.reply(Ok(value.into()));
    }
    Ok(RedisValue::NoReply)
}

/// `CF.COMPACT key`
pub(crate) fn compact(ctx: &Context, args: Args) -> RedisResult {
    let mut key = Key::write(ctx, args)?;
    key.existing()?.compact().map_err(error)?;
    ctx.replicate_verbatim();
    OK
}
