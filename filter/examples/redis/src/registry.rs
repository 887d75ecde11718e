//! Registers the commands with the server. (The macro of the crate `redis-module` needs a function
//! that servers have since 7.2, and lets panics out.)

use std::ffi::{CStr, c_int};
use std::mem;

use redis_module::commands::{BeginSearch, FindKeys, KeySpec, KeySpecFlags, get_redis_key_spec};
use redis_module::raw::{
    self, REDISMODULE_CMD_KEY_ACCESS as ACCESS, REDISMODULE_CMD_KEY_DELETE as REMOVE,
    REDISMODULE_CMD_KEY_INSERT as INSERT, REDISMODULE_CMD_KEY_RO as RO,
    REDISMODULE_CMD_KEY_RW as RW, REDISMODULE_CMD_KEY_UPDATE as UPDATE, RedisModuleCtx,
    RedisModuleString,
};
use redis_module::{Context, RedisError, Status, decode_args};

use crate::{caught, commands, log};

type Call = unsafe extern "C" fn(*mut RedisModuleCtx, *mut *mut RedisModuleString, c_int) -> c_int;

/// What the server calls a command, its ACL categories (which servers can be told from 7.2 on), and
/// what it does with the key.
struct Kind(&'static CStr, &'static CStr, u32);

const READ: Kind = Kind(c"readonly fast", c"read fast", RO | ACCESS);
const READ_MANY: Kind = Kind(c"readonly", c"read slow", RO | ACCESS);
const ADD: Kind = Kind(c"write deny-oom fast", c"write fast", RW | ACCESS | INSERT);
const ADD_MANY: Kind = Kind(c"write deny-oom", c"write slow", RW | ACCESS | INSERT);
// What frees memory is allowed when there is none.
const DELETE: Kind = Kind(c"write fast", c"write fast", RW | ACCESS | REMOVE);
const COMPACT: Kind = Kind(c"write", c"write slow", RW | UPDATE);

/// The function that the server calls for a command: it calls `$run`, and lets no panic out.
macro_rules! call {
    ($run:ident $(, $variant:literal)?) => {{
        unsafe extern "C" fn call(
            ctx: *mut RedisModuleCtx,
            strings: *mut *mut RedisModuleString,
            number: c_int,
        ) -> c_int {
            let run = || {
                let (ctx, args) = (Context::new(ctx), decode_args(ctx, strings, number));
                let panicked =
                    RedisError::Str("ERR a bug in the module, which is in the server's log");
                ctx.reply(caught(|| commands::$run(&ctx, &args $(, $variant)?), || Err(panicked))) as c_int
            };
            caught(run, || Status::Err as c_int)
        }
        call
    }};
}

/// Tells the server of all commands, with the number of arguments, the name included (at least as
/// many, if negative).
pub(crate) fn register(ctx: &Context) -> Status {
    let commands: [(&CStr, Call, c_int, Kind); _] = [
        (c"CF.RESERVE", call!(reserve), -3, ADD_MANY),
        (c"CF.ADD", call!(add, false), 3, ADD),
        (c"CF.ADDNX", call!(add, true), 3, ADD),
        (c"CF.INSERT", call!(insert, false), -4, ADD_MANY),
        (c"CF.INSERTNX", call!(insert, true), -4, ADD_MANY),
        (c"CF.EXISTS", call!(exists, false), 3, READ),
        (c"CF.MEXISTS", call!(exists, true), -3, READ_MANY),
        (c"CF.DEL", call!(delete), 3, DELETE),
        (c"CF.COUNT", call!(count), 3, READ),
        (c"CF.SCANDUMP", call!(dump), 3, READ_MANY),
        (c"CF.LOADCHUNK", call!(load), 4, ADD_MANY),
        (c"CF.INFO", call!(info), 2, READ),
        (c"CF.COMPACT", call!(compact), 2, COMPACT),
    ];
    for (name, call, arity, kind) in commands {
        if !create(ctx.get_raw(), name, call, arity, kind) {
            let why = "was refused (is there another module with it?)";
            log(&format!("{name:?} {why}"));
            return Status::Err;
        }
    }
    Status::Ok
}

fn create(ctx: *mut RedisModuleCtx, name: &CStr, call: Call, arity: c_int, kind: Kind) -> bool {
    let Kind(flags, categories, key_flags) = kind;
    // The key is the argument after the name.
    let (first, only) = (BeginSearch::new_index(1), FindKeys::new_range(0, 1, 0));
    let key_flags = KeySpecFlags::from_bits_truncate(key_flags);
    let keys = get_redis_key_spec(vec![KeySpec::new(None, key_flags, first, only)]);
    let version = raw::RedisModuleCommandInfoVersion {
        version: 1,
        sizeof_historyentry: size_of::<raw::RedisModuleCommandHistoryEntry>(),
        sizeof_keyspec: size_of::<raw::RedisModuleCommandKeySpec>(),
        sizeof_arg: size_of::<raw::RedisModuleCommandArg>(),
    };
    let info = raw::RedisModuleCommandInfo {
        version: &version,
        arity,
        key_specs: keys.as_ptr().cast_mut(),
        // SAFETY: plain C data, of which the server takes zeros for what is not given.
        ..unsafe { mem::zeroed() }
    };
    let (name, flags) = (name.as_ptr(), flags.as_ptr());
    let is_ok = |status| status == Status::Ok as c_int;
    // SAFETY: the context is that of the module's loading, the strings are constants, and the server
    // copies the description.
    unsafe {
        let made = raw::RedisModule_CreateCommand.unwrap()(ctx, name, Some(call), flags, 1, 1, 1);
        if !is_ok(made) {
            return false;
        }
        let command = raw::RedisModule_GetCommand.unwrap()(ctx, name);
        is_ok(raw::RedisModule_SetCommandInfo.unwrap()(command, &info))
            && raw::RedisModule_SetCommandACLCategories
                .is_none_or(|set| is_ok(set(command, categories.as_ptr())))
    }
}
