//! Tells the code whether the system can have filters that processes share: 64-bit Linux, as in `filter`.

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(shared_words)");
    let is = |name: &str, value: &str| var(name).is_ok_and(|found| found == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_POINTER_WIDTH", "64") {
        println!("cargo::rustc-cfg=shared_words");
    }
}
