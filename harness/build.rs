//! Hands the compiler's version and flags to the program, which records them beside every result.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = env::var("RUSTC").expect("cargo sets RUSTC");
    let version = Command::new(rustc)
        .arg("--version")
        .output()
        .expect("the compiler runs");
    export("RUSTC", String::from_utf8_lossy(&version.stdout).trim());
    // Cargo separates flags by the unit separator, since a flag may hold spaces.
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    export("RUSTFLAGS", &flags.replace('\x1f', " "));
    export("TARGET", &env::var("TARGET").expect("cargo sets TARGET"));
    export(
        "OPT_LEVEL",
        &env::var("OPT_LEVEL").expect("cargo sets OPT_LEVEL"),
    );
}

fn export(name: &str, value: &str) {
    println!("cargo::rustc-env=HARNESS_{name}={value}");
}
