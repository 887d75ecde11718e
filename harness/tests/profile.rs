//! Tests of what the sidecars say of the profile that a program was built with.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

#[path = "../build_profile.rs"]
mod build_profile;

use build_profile::{Profile, of};

/// A workspace that has been built.
struct Workspace(TempDir);

impl Workspace {
    fn with(manifest: &str) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.write("Cargo.toml", manifest);
        place.write(
            "Cargo.lock",
            "[[package]]\nname = \"harness\"\nversion = \"0.1.0\"\n",
        );
        place
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn out(&self, profile: &str) -> PathBuf {
        let path = format!("target/{profile}/build/harness-1234/out");
        self.0.path().join(path)
    }

    fn told(&self, profile: &str, opt_level: &str) -> [String; 3] {
        told(&self.out(profile), opt_level, &|_| None)
    }
}

fn told(out: &Path, opt_level: &str, variable: &dyn Fn(&str) -> Option<String>) -> [String; 3] {
    let Profile {
        name,
        lto,
        codegen_units,
        files: _,
    } = of(out, "harness", opt_level, variable);
    [name, lto, codegen_units]
}

const OURS: &str = "[profile.release]\nlto = 'fat'\ncodegen-units = 1\n\
                    [profile.quick]\ninherits = 'release'\nlto = false\n";

#[test]
fn the_profile_is_that_of_the_workspace_that_is_built() {
    let ours = Workspace::with(OURS);
    assert_eq!(ours.told("release", "3"), ["release", "fat", "1"]);
    assert_eq!(
        ours.told("x86_64-unknown-linux-gnu/release", "3"),
        ["release", "fat", "1"]
    );
    assert_eq!(ours.told("quick", "3"), ["quick", "false", "1"]);
    assert_eq!(ours.told("debug", "0"), ["dev", "false", "256"]);
    // Cargo's defaults, where the manifest says nothing.
    let plain = Workspace::with("[package]\nname = 'mine'\n");
    assert_eq!(plain.told("release", "3"), ["release", "false", "16"]);
    let of_harness = "[profile.dev.package.harness]\nopt-level = 2\n";
    assert_eq!(
        Workspace::with(of_harness).told("debug", "2"),
        ["dev", "false", "256"]
    );
}

#[test]
fn the_environment_goes_before_the_manifest() {
    let variable = |name: &str| (name == "CARGO_PROFILE_RELEASE_LTO").then(|| "thin".to_owned());
    let told = told(&Workspace::with(OURS).out("release"), "3", &variable);
    assert_eq!(told, ["release", "thin", "1"]);
}

#[test]
fn what_cannot_be_known_is_said_to_be_unknown() {
    let is_unknown = |[name, lto, units]: [String; 3], expected: &str| {
        assert_eq!(name, expected);
        assert!(
            lto.starts_with("unknown: ") && units.starts_with("unknown: "),
            "{lto}, {units}"
        );
    };
    let configured = Workspace::with(OURS);
    configured.write(".cargo/config.toml", "[profile.release]\nlto = false\n");
    is_unknown(configured.told("release", "3"), "release");
    // As by `--config profile.release.opt-level=2`.
    is_unknown(Workspace::with(OURS).told("release", "2"), "release");
    is_unknown(Workspace::with(OURS).told("elsewhere", "3"), "elsewhere");
    // A target directory that is not inside its own workspace, but inside another.
    let other = Workspace::with(OURS);
    other.write("Cargo.lock", "[[package]]\nname = \"other\"\n");
    is_unknown(other.told("release", "3"), "release");
    let nowhere = told(Path::new("/somewhere/out"), "3", &|_| None);
    is_unknown(nowhere, "unknown");
}
