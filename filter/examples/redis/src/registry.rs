//! Registers the commands with the server. (The macro of the crate `redis-module` needs a function
//! that servers have since 7.2, and lets panics out.)

use std::ffi::{CStr, c_int};
use std::mem;

use redis_module::raw::{
    self, REDISMODULE_CMD_KEY_ACCESS as ACCESS, REDISMODULE_CMD_KEY_DELETE as REMOVE,
    REDISMODULE_CMD_KEY_INSERT as INSERT, REDISMODULE_CMD_KEY_RO as RO,
    REDISMODULE_CMD_KEY_RW as RW, REDISMODULE_CMD_KEY_UPDATE as UPDATE, RedisModuleCtx,
    RedisModuleString,
};
use redis_module::{Context, RedisError, RedisResult, RedisString, Status, decode_args};

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
    ($run:ident) => {{
        unsafe extern "C" fn call(
            ctx: *mut RedisModuleCtx,
            strings: *mut *mut RedisModuleString,
            number: c_int,
        ) -> c_int {
            run(Context::new(ctx), strings, number, commands::$run)
        }
        call
    }};
}

fn run(
    ctx: Context,
    strings: *mut *mut RedisModuleString,
    number: c_int,
    run: fn(&Context, &[RedisString]) -> RedisResult,
) -> c_int {
    let outcome = || {
        let args = decode_args(ctx.get_raw(), strings, number);
        let panicked = RedisError::Str("ERR a bug in the module, which is in the server's log");
        ctx.reply(caught(|| run(&ctx, &args), || Err(panicked))) as c_int
    };
    caught(outcome, || Status::Err as c_int)
}

/// Tells the server of all commands, with the number of arguments, the name included (at least as
/// many, if negative).
pub(crate) fn register(ctx: &Context) -> Status {
    let register = || {
        #[cfg(feature = "panicking")]
        create(ctx, c"CF.PANIC", call!(panic), 2, READ)?;
        create(ctx, c"CF.RESERVE", call!(reserve), -3, ADD)?;
        create(ctx, c"CF.ADD", call!(add), 3, ADD)?;
        create(ctx, c"CF.ADDNX", call!(add_new), 3, ADD)?;
        create(ctx, c"CF.INSERT", call!(insert), -4, ADD_MANY)?;
        create(ctx, c"CF.INSERTNX", call!(insert_new), -4, ADD_MANY)?;
        create(ctx, c"CF.EXISTS", call!(exists), 3, READ)?;
        create(ctx, c"CF.MEXISTS", call!(exist), -3, READ_MANY)?;
        create(ctx, c"CF.DEL", call!(delete), 3, DELETE)?;
        create(ctx, c"CF.COUNT", call!(count), 3, READ)?;
        create(ctx, c"CF.SCANDUMP", call!(dump), 3, READ_MANY)?;
        create(ctx, c"CF.LOADCHUNK", call!(load), 4, ADD_MANY)?;
        create(ctx, c"CF.INFO", call!(info), 2, READ)?;
        create(ctx, c"CF.COMPACT", call!(compact), 2, COMPACT)
    };
    match register() {
        Ok(()) => Status::Ok,
        Err(refused) => {
            log(&format!("{refused} (is there another module with it?)"));
            Status::Err
        }
    }
}

fn create(ctx: &Context, name: &CStr, call: Call, arity: c_int, kind: Kind) -> Result<(), String> {
    let Kind(flags, categories, key_flags) = kind;
    // SAFETY: plain C data, of which the server takes zeros for the end, and for what is not given.
    let (mut keys, mut info): (
        [raw::RedisModuleCommandKeySpec; 2],
        raw::RedisModuleCommandInfo,
    ) = unsafe { mem::zeroed() };
    // The key is the argument after the name.
    keys[0].flags = u64::from(key_flags);
    keys[0].begin_search_type = raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX;
    keys[0].bs.index.pos = 1;
    keys[0].find_keys_type = raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE;
    keys[0].fk.range.keystep = 1;
    let version = raw::RedisModuleCommandInfoVersion {
        version: 1,
        sizeof_historyentry: size_of::<raw::RedisModuleCommandHistoryEntry>(),
        sizeof_keyspec: size_of::<raw::RedisModuleCommandKeySpec>(),
        sizeof_arg: size_of::<raw::RedisModuleCommandArg>(),
    };
    info.version = &version;
    info.arity = arity;
    info.key_specs = keys.as_mut_ptr();
    let done = |what: &str, status: c_int| match Status::from(status) {
        Status::Ok => Ok(()),
        Status::Err => Err(format!("{what} of {name:?} was refused")),
    };
    let (ctx, name) = (ctx.get_raw(), name.as_ptr());
    // SAFETY: the context is that of the module's loading, the strings are constants, and the server
    // copies the description.
    unsafe {
        let create = raw::RedisModule_CreateCommand.unwrap();
        let describe = raw::RedisModule_SetCommandInfo.unwrap();
        done(
            "the name",
            create(ctx, name, Some(call), flags.as_ptr(), 1, 1, 1),
        )?;
        let command = raw::RedisModule_GetCommand.unwrap()(ctx, name);
        done("the description", describe(command, &info))?;
        if let Some(set) = raw::RedisModule_SetCommandACLCategories {
            done("the ACL categories", set(command, categories.as_ptr()))?;
        }
    }
    Ok(())
}
