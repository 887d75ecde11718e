//! Whatever another process writes into the file of a filter, each call ends with an answer or an error.

#![no_main]

use libfuzzer_sys::fuzz_target;

// Tests use the rest.
#[allow(dead_code)]
#[path = "../../tests/shared/any.rs"]
mod any;
#[path = "../../tests/shared/file.rs"]
mod file;
#[path = "../../tests/shared/region.rs"]
mod region;

fuzz_target!(|bytes: &[u8]| {
    region::calls_on_damaged_file(bytes);
});
