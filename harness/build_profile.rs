//! Determines the profile that the program is built with, for `build.rs`, as far as it can be
//! known.
//!
//! Cargo passes a build script the optimisation level, but neither link-time optimisation nor
//! codegen units. Those are read where Cargo reads them: in the manifest of the workspace being
//! built, or in the environment. Cargo's configuration files and `--config` on its command line
//! override the manifest; where they may do so, or where there is no such manifest, the settings
//! are reported as unknown.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

/// What is recorded about a profile.
#[derive(Debug, PartialEq)]
pub(crate) struct Profile {
    /// Name of the profile.
    pub(crate) name: String,
    /// Link-time optimisation, or why it is unknown.
    pub(crate) lto: String,
    /// Codegen units per crate, or why they are unknown.
    pub(crate) codegen_units: String,
    /// Files that the settings depend on.
    pub(crate) files: Vec<PathBuf>,
}

/// Returns the profile that a crate is built with. `out` is the directory its build script writes
/// to, `WORKSPACE/target/[TRIPLE/]PROFILE/build/CRATE-HASH/out`; `variable` looks up an environment
/// variable.
pub(crate) fn of(
    out: &Path,
    krate: &str,
    opt_level: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Profile {
    let unknown = |name: &str, reason: &str| Profile {
        name: name.to_owned(),
        lto: format!("unknown: {reason}"),
        codegen_units: format!("unknown: {reason}"),
        files: Vec::new(),
    };
    let build = out.ancestors().find(|place| place.ends_with("build"));
    let Some(place) = build.and_then(Path::parent) else {
        return unknown("unknown", "Cargo's directories are not laid out as usual");
    };
    let name = match place.file_name().and_then(|name| name.to_str()) {
        Some("debug") => "dev",
        Some(name) => name,
        None => "unknown",
    };
    let Some((root, manifest)) = workspace(place, krate) else {
        return unknown(name, "the target directory is not inside the workspace");
    };
    let home = variable("CARGO_HOME").or_else(|| Some(variable("HOME")? + "/.cargo"));
    let of_home = home.map(PathBuf::from).into_iter();
    let directories = root
        .ancestors()
        .map(|place| place.join(".cargo"))
        .chain(of_home);
    let configurations: Vec<_> = directories
        .flat_map(|place| ["config.toml", "config"].map(|file| place.join(file)))
        .filter(|file| file.is_file())
        .collect();
    let sets_profiles =
        |file: &PathBuf| read(file).is_none_or(|table| table.contains_key("profile"));
    if configurations.iter().any(sets_profiles) {
        return unknown(name, "a configuration file of Cargo sets profiles");
    }
    let told = |key: &str| setting(&manifest, name, key, variable);
    // If the level differs from these settings, it comes from elsewhere, and so may the rest.
    let expected = match of_package(&manifest, name, krate, "opt-level") {
        Some(level) => Some(level),
        None => told("opt-level"),
    };
    if expected.as_deref() != Some(opt_level) {
        return unknown(name, "the optimisation level is not that of the manifest");
    }
    let or_unknown = |value: Option<String>| {
        value.unwrap_or_else(|| "unknown: the manifest does not have the profile".into())
    };
    Profile {
        name: name.to_owned(),
        lto: or_unknown(told("lto")),
        codegen_units: or_unknown(told("codegen-units")),
        files: [vec![root.join("Cargo.toml")], configurations].concat(),
    }
}

/// Returns the workspace whose target directory holds this place, if its lock file names the crate.
fn workspace(place: &Path, krate: &str) -> Option<(PathBuf, Table)> {
    // One directory further up if a target triple was named.
    let roots = place.ancestors().skip(2).take(2);
    let mut found = roots.filter_map(|root| {
        let lock = std::fs::read_to_string(root.join("Cargo.lock")).ok()?;
        let named = lock
            .lines()
            .any(|line| line == format!("name = \"{krate}\""));
        Some((
            root.to_owned(),
            read(&root.join("Cargo.toml")).filter(|_| named)?,
        ))
    });
    found.next()
}

fn read(file: &Path) -> Option<Table> {
    std::fs::read_to_string(file).ok()?.parse().ok()
}

/// Returns a setting of a profile: from the environment, the manifest, the profile it inherits
/// from, or Cargo's defaults.
fn setting(
    manifest: &Table,
    profile: &str,
    key: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Option<String> {
    let of_profile = manifest
        .get("profile")
        .and_then(|profiles| profiles.get(profile));
    if let Some(value) = variable(&variable_name(profile, key)) {
        return Some(value);
    }
    if let Some(value) = of_profile.and_then(|of_profile| of_profile.get(key)) {
        return Some(shown(value));
    }
    let inherits = match (profile, key) {
        ("dev", "opt-level") => return Some("0".into()),
        ("dev", "codegen-units") => return Some("256".into()),
        ("release", "opt-level") => return Some("3".into()),
        ("release", "codegen-units") => return Some("16".into()),
        ("dev" | "release", "lto") => return Some("false".into()),
        _ => of_profile?.get("inherits")?.as_str()?,
    };
    // A profile that inherits from itself would recurse for ever.
    (inherits != profile).then(|| setting(manifest, inherits, key, variable))?
}

/// Returns the name of the environment variable that overrides a setting.
pub(crate) fn variable_name(profile: &str, key: &str) -> String {
    format!("CARGO_PROFILE_{profile}_{key}")
        .to_uppercase()
        .replace('-', "_")
}

/// Returns what a profile sets for one package.
fn of_package(manifest: &Table, profile: &str, krate: &str, key: &str) -> Option<String> {
    let profile = manifest.get("profile")?.get(profile)?;
    profile.get("package")?.get(krate)?.get(key).map(shown)
}

fn shown(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
