//! The growing cuckoo filter as a Redis module: the `CF.*` commands.
//!
//! README.md says what they do and how they differ from RedisBloom's.

mod commands;
mod limit;
mod memory;
mod registry;
mod stored;

use std::panic::{self, AssertUnwindSafe};
use std::ptr;

use redis_module::{Context, RedisString, Status, raw};

/// Prepares what the macro below does not.
fn init(ctx: &Context, args: &[RedisString]) -> Status {
    // A damaged payload is an error of the command that brought it, and not the server's end.
    ctx.set_module_options(raw::ModuleOptions::HANDLE_IO_ERRORS);
    // The standard error of a server is often nowhere.
    panic::set_hook(Box::new(|panic| log(&panic.to_string().replace('\0', ""))));
    if let Err(error) = limit::configure(args) {
        log(&format!("the arguments of the module: {error}"));
        return Status::Err;
    }
    registry::register(ctx)
}

fn log(message: &str) {
    raw::redis_log(ptr::null_mut(), message);
}

/// Calls `body`, and if that panics, `otherwise`: a panic must not reach the server.
fn caught<T>(body: impl FnOnce() -> T, otherwise: impl FnOnce() -> T) -> T {
    panic::catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| otherwise())
}

/// What the server looks for in a module.
mod entry {
    redis_module::redis_module! {
        name: "cuckoo",
        version: 1,
        allocator: (crate::memory::ServerMemory, crate::memory::ServerMemory),
        data_types: [FILTER_TYPE],
        init: init,
    }
    use crate::{init, stored::FILTER_TYPE};
}
