//! Tells the code what the compiler has.

fn main() {
    autocfg::rerun_path("build.rs");
    autocfg::emit_possibility("has_select_unpredictable");
    if autocfg::new().probe_path("std::hint::select_unpredictable") {
        autocfg::emit("has_select_unpredictable");
    }
}
