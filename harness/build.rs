//! Build script: passes the compiler's version, its flags and the profile to the program, which
//! records them beside every result.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Processes share filters on 64-bit Linux, unless accesses are observed: as in the build script of kcas.
    println!("cargo::rustc-check-cfg=cfg(processes)");
    let has = |name: &str| env::var_os(name).is_some();
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    if is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_POINTER_WIDTH", "64")
        && !["STEPS", "SIMULATION"]
            .iter()
            .any(|name| has(&format!("CARGO_FEATURE_{name}")))
    {
        println!("cargo::rustc-cfg=processes");
    }
    let of_cargo = |name: &str| env::var(name).expect("cargo sets it");
    let version = Command::new(of_cargo("RUSTC"))
        .arg("--version")
        .output()
        .expect("the compiler runs");
    export("RUSTC", String::from_utf8_lossy(&version.stdout).trim());
    // Cargo separates flags by the unit separator, since a flag may contain spaces.
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    export("RUSTFLAGS", &flags.replace('\x1f', " "));
    export("TARGET", &of_cargo("TARGET"));
    export("PROFILE", profile(Path::new(&of_cargo("OUT_DIR"))));
}

/// Returns the name of the profile. Cargo gives it only as part of the output directory:
/// `target/[TRIPLE/]PROFILE/build/CRATE-HASH/out`.
fn profile(out: &Path) -> &str {
    let build = out.ancestors().find(|place| place.ends_with("build"));
    let place = build.and_then(Path::parent).and_then(Path::file_name);
    match place.and_then(|name| name.to_str()) {
        Some("debug") => "dev",
        Some(name) => name,
        None => "unknown",
    }
}

fn export(name: &str, value: &str) {
    println!("cargo::rustc-env=HARNESS_{name}={value}");
}
