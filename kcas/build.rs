//! Sets `shared_words` where arrays can be in shared memory: their words are the standard library's atomics there.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(shared_words)");
    println!("cargo::rerun-if-changed=build.rs");
    let has = |name: &str| std::env::var_os(name).is_some();
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    let is_possible =
        is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_POINTER_WIDTH", "64");
    let is_observed = has("CARGO_CFG_KCAS_LOOM") || has("CARGO_FEATURE___STEPS");
    if is_possible && has("CARGO_FEATURE_SHARED") && !is_observed {
        println!("cargo::rustc-cfg=shared_words");
    }
}
