//! Tells the code what the compiler has.

fn main() {
    autocfg::rerun_path("build.rs");
    autocfg::emit_possibility("has_select_unpredictable");
    if autocfg::new().probe_path("std::hint::select_unpredictable") {
        autocfg::emit("has_select_unpredictable");
    }
    // As in kcas.
    autocfg::emit_possibility("shared_words");
    let has = |name: &str| std::env::var_os(name).is_some();
    let is_linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    let is_observed = has("CARGO_CFG_KCAS_LOOM") || has("CARGO_FEATURE___STEPS");
    if is_linux && has("CARGO_FEATURE_SHARED") && !is_observed {
        autocfg::emit("shared_words");
    }
}
