//! Registers the commands with the server.

use std::ffi::{CStr, c_int};
use std::mem;
use std::ptr;
use std::slice;

use redis_module::raw::{
    self, REDISMODULE_CMD_ARG_MULTIPLE as MULTIPLE, REDISMODULE_CMD_ARG_OPTIONAL as OPTIONAL,
    REDISMODULE_CMD_KEY_ACCESS as ACCESS, REDISMODULE_CMD_KEY_DELETE as REMOVE,
    REDISMODULE_CMD_KEY_INSERT as INSERT, REDISMODULE_CMD_KEY_RO as RO,
    REDISMODULE_CMD_KEY_RW as RW, REDISMODULE_CMD_KEY_UPDATE as UPDATE,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER as INTEGER,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN as TOKEN,
    RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING as STRING, RedisModuleCtx,
    RedisModuleString,
};
use redis_module::{Context, RedisError, RedisResult, Status};

use crate::caught;
use crate::commands;
use crate::key::Args;

type Call = unsafe extern "C" fn(*mut RedisModuleCtx, *mut *mut RedisModuleString, c_int) -> c_int;

/// A command.
struct Command {
    name: &'static CStr,
    call: Call,
    summary: &'static CStr,
    complexity: &'static CStr,
    /// The number of arguments, the name included; at least as many, if negative.
    arity: c_int,
    kind: &'static Kind,
    /// The arguments after the key.
    arguments: &'static [Argument],
}

/// What the server calls a command, its ACL categories (which servers can be told from 7.2 on), and
/// what it does with the key.
struct Kind(&'static CStr, &'static CStr, u32);

static READ: Kind = Kind(c"readonly fast", c"read fast", RO | ACCESS);
static READ_MANY: Kind = Kind(c"readonly", c"read slow", RO | ACCESS);
static ADD: Kind = Kind(c"write deny-oom fast", c"write fast", RW | ACCESS | INSERT);
static ADD_MANY: Kind = Kind(c"write deny-oom", c"write slow", RW | ACCESS | INSERT);
// What frees memory is allowed when there is none.
static DELETE: Kind = Kind(c"write fast", c"write fast", RW | ACCESS | REMOVE);
static COMPACT: Kind = Kind(c"write", c"write slow", RW | UPDATE);

/// An argument: its name, the word before it, its type, and flags.
type Argument = (&'static CStr, Option<&'static CStr>, u32, u32);

const CAPACITY: Argument = (c"capacity", None, INTEGER, 0);
const ITEM: Argument = (c"item", None, STRING, 0);
const ITEMS: Argument = (c"item", None, STRING, MULTIPLE);
const ITERATOR: Argument = (c"iterator", None, INTEGER, 0);
const DATA: Argument = (c"data", None, STRING, 0);
const RESERVATION: &[Argument] = &[
    CAPACITY,
    (c"bucketsize", Some(c"BUCKETSIZE"), INTEGER, OPTIONAL),
    (c"maxiterations", Some(c"MAXITERATIONS"), INTEGER, OPTIONAL),
    (c"expansion", Some(c"EXPANSION"), INTEGER, OPTIONAL),
];
const INSERTION: &[Argument] = &[
    (c"capacity", Some(c"CAPACITY"), INTEGER, OPTIONAL),
    (c"nocreate", Some(c"NOCREATE"), TOKEN, OPTIONAL),
    (c"items", Some(c"ITEMS"), TOKEN, 0),
    ITEMS,
];

/// The function that the server calls for a command: it calls `$run`, and lets no panic out.
macro_rules! call {
    ($run:expr) => {{
        unsafe extern "C" fn call(
            ctx: *mut RedisModuleCtx,
            strings: *mut *mut RedisModuleString,
            number: c_int,
        ) -> c_int {
            let ctx = Context::new(ctx);
            // SAFETY: the server gives this many strings, which live during the call.
            let args = unsafe { Args::new(slice::from_raw_parts(strings, number as usize)) };
            run(&ctx, args, $run)
        }
        call
    }};
}

fn run(ctx: &Context, args: Args, run: fn(&Context, Args) -> RedisResult) -> c_int {
    let outcome = || {
        let panicked = RedisError::Str("ERR a bug in the module, which is in the server's log");
        ctx.reply(caught(|| run(ctx, args), || Err(panicked))) as c_int
    };
    caught(outcome, || Status::Err as c_int)
}

/// Makes the commands; their table reads like the manual.
macro_rules! commands {
    ($($name:literal $run:path, $arity:literal, $kind:ident, $arguments:expr, $complexity:literal, $summary:literal;)+) => {
        &[$(Command {
            name: $name,
            call: call!($run),
            summary: $summary,
            complexity: $complexity,
            arity: $arity,
            kind: &$kind,
            arguments: $arguments,
        }),+]
    };
}

static COMMANDS: &[Command] = commands! {
    c"CF.RESERVE" commands::reserve, -3, ADD, RESERVATION,
        c"O(n), where n is the capacity", c"Makes an empty cuckoo filter with room for some items";
    c"CF.ADD" commands::add, 3, ADD, &[ITEM],
        c"O(1), amortized", c"Adds a copy of an item to a cuckoo filter";
    c"CF.ADDNX" commands::add_new, 3, ADD, &[ITEM],
        c"O(1), amortized", c"Adds an item to a cuckoo filter if it is not there";
    c"CF.INSERT" commands::insert, -4, ADD_MANY, INSERTION,
        c"O(n), where n is the number of items", c"Adds a copy of each item to a cuckoo filter";
    c"CF.INSERTNX" commands::insert_new, -4, ADD_MANY, INSERTION,
        c"O(n), where n is the number of items", c"Adds the items to a cuckoo filter that are not there";
    c"CF.EXISTS" commands::exists, 3, READ, &[ITEM],
        c"O(1)", c"Tells whether an item is in a cuckoo filter";
    c"CF.MEXISTS" commands::exist, -3, READ_MANY, &[ITEMS],
        c"O(n), where n is the number of items", c"Tells which items are in a cuckoo filter";
    c"CF.DEL" commands::delete, 3, DELETE, &[ITEM],
        c"O(1)", c"Removes a copy of an item from a cuckoo filter";
    c"CF.COUNT" commands::count, 3, READ, &[ITEM],
        c"O(1)", c"Returns the number of copies of an item in a cuckoo filter";
    c"CF.SCANDUMP" commands::dump, 3, READ_MANY, &[ITERATOR],
        c"O(n), where n is the size of the filter", c"Returns a piece of a saved cuckoo filter";
    c"CF.LOADCHUNK" commands::load, 4, ADD_MANY, &[ITERATOR, DATA],
        c"O(n), where n is the size of the filter for its last piece, and otherwise of the piece",
        c"Adds a piece to a cuckoo filter that is being loaded";
    c"CF.INFO" commands::info, 2, READ, &[],
        c"O(1)", c"Returns information about a cuckoo filter";
    c"CF.COMPACT" commands::compact, 2, COMPACT, &[],
        c"O(n), where n is the size of the filter", c"Frees memory of a cuckoo filter";
};

/// Tells the server of all commands.
pub(crate) fn register(ctx: &Context) -> Status {
    match COMMANDS.iter().try_for_each(|command| create(ctx, command)) {
        Ok(()) => Status::Ok,
        Err(message) => {
            ctx.log_warning(&message);
            Status::Err
        }
    }
}

fn create(ctx: &Context, command: &Command) -> Result<(), String> {
    let done = |what: &str, status: c_int| match Status::from(status) {
        Status::Ok => Ok(()),
        Status::Err => Err(format!(
            "{:?}: {what} was refused (is there another module with it?)",
            command.name
        )),
    };
    // SAFETY: the context is that of the module's loading, and the strings are constants.
    done("the command", unsafe {
        raw::RedisModule_CreateCommand.unwrap()(
            ctx.get_raw(),
            command.name.as_ptr(),
            Some(command.call),
            command.kind.0.as_ptr(),
            1,
            1,
            1,
        )
    })?;
    // SAFETY: as above.
    let handle =
        unsafe { raw::RedisModule_GetCommand.unwrap()(ctx.get_raw(), command.name.as_ptr()) };
    let arguments = command.raw_arguments();
    let keys = command.raw_keys();
    let version = raw::RedisModuleCommandInfoVersion {
        version: 1,
        sizeof_historyentry: size_of::<raw::RedisModuleCommandHistoryEntry>(),
        sizeof_keyspec: size_of::<raw::RedisModuleCommandKeySpec>(),
        sizeof_arg: size_of::<raw::RedisModuleCommandArg>(),
    };
    let info = raw::RedisModuleCommandInfo {
        version: &version,
        summary: command.summary.as_ptr(),
        complexity: command.complexity.as_ptr(),
        since: c"1.0.0".as_ptr(),
        history: ptr::null_mut(),
        tips: ptr::null_mut(),
        arity: command.arity,
        key_specs: keys.as_ptr().cast_mut(),
        args: arguments.as_ptr().cast_mut(),
    };
    // SAFETY: the server copies all of it.
    done("its description", unsafe {
        raw::RedisModule_SetCommandInfo.unwrap()(handle, &info)
    })?;
    // SAFETY: set while the module was initialised.
    if let Some(set) = unsafe { raw::RedisModule_SetCommandACLCategories } {
        // SAFETY: as above.
        done("its ACL categories", unsafe {
            set(handle, command.kind.1.as_ptr())
        })?;
    }
    Ok(())
}

impl Command {
    /// The key is the argument after the name.
    fn raw_keys(&self) -> [raw::RedisModuleCommandKeySpec; 2] {
        // SAFETY: plain C data, of which the server takes zeros for the end.
        let mut keys: [raw::RedisModuleCommandKeySpec; 2] = unsafe { mem::zeroed() };
        keys[0].flags = u64::from(self.kind.2);
        keys[0].begin_search_type =
            raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX;
        keys[0].bs.index.pos = 1;
        keys[0].find_keys_type = raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE;
        keys[0].fk.range.keystep = 1;
        keys
    }

    fn raw_arguments(&self) -> Vec<raw::RedisModuleCommandArg> {
        // SAFETY: as above.
        let none: raw::RedisModuleCommandArg = unsafe { mem::zeroed() };
        let key = raw::RedisModuleCommandArg {
            name: c"key".as_ptr(),
            type_: raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY,
            ..none
        };
        let others = self.arguments.iter();
        let others = others.map(|&(name, token, kind, flags)| raw::RedisModuleCommandArg {
            name: name.as_ptr(),
            type_: kind,
            key_spec_index: -1,
            token: token.map_or(ptr::null(), CStr::as_ptr),
            flags: flags as c_int,
            ..none
        });
        // The server takes one with no name for the end.
        [key].into_iter().chain(others).chain([none]).collect()
    }
}
