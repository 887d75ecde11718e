//! Build script: passes the compiler's version, its flags and the profile to the program, which
//! records them beside every result.

use std::env;
use std::path::Path;
use std::process::Command;

#[path = "build_profile.rs"]
mod build_profile;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build_profile.rs");
    let rustc = env::var("RUSTC").expect("cargo sets RUSTC");
    let version = Command::new(rustc)
        .arg("--version")
        .output()
        .expect("the compiler runs");
    export("RUSTC", String::from_utf8_lossy(&version.stdout).trim());
    // Cargo separates flags by the unit separator, since a flag may contain spaces.
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    export("RUSTFLAGS", &flags.replace('\x1f', " "));
    export("TARGET", &env::var("TARGET").expect("cargo sets TARGET"));
    let opt_level = env::var("OPT_LEVEL").expect("cargo sets OPT_LEVEL");
    export("OPT_LEVEL", &opt_level);

    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    let variable = |name: &str| env::var(name).ok();
    let profile = build_profile::of(
        Path::new(&out),
        env!("CARGO_PKG_NAME"),
        &opt_level,
        &variable,
    );
    for key in ["opt-level", "lto", "codegen-units"] {
        let name = build_profile::variable_name(&profile.name, key);
        println!("cargo::rerun-if-env-changed={name}");
    }
    for file in &profile.files {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    export("PROFILE", &profile.name);
    export("LTO", &profile.lto);
    export("CODEGEN_UNITS", &profile.codegen_units);
}

fn export(name: &str, value: &str) {
    println!("cargo::rustc-env=HARNESS_{name}={value}");
}
