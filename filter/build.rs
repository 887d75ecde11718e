//! Tells the code what the compiler has.

fn main() {
    autocfg::rerun_path("build.rs");
    autocfg::emit_possibility("has_select_unpredictable");
    if autocfg::new().probe_path("std::hint::select_unpredictable") {
        autocfg::emit("has_select_unpredictable");
    }
    // As in kcas. (Another crate must not turn `kcas/__steps` on without `__steps` here, which this script would not
    // see.)
    autocfg::emit_possibility("shared_words");
    let has = |name: &str| std::env::var_os(name).is_some();
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    let is_possible =
        is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_POINTER_WIDTH", "64");
    let is_observed = has("CARGO_CFG_KCAS_LOOM") || has("CARGO_FEATURE___STEPS");
    if is_possible && has("CARGO_FEATURE_SHARED") && !is_observed {
        autocfg::emit("shared_words");
    }
}
