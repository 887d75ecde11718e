#!/usr/bin/env bash
# Runs every check: format, lints, rules of the house, tests, docs, the model checker, and the planted
# bugs that it must catch. Needs Rust (with rustfmt and clippy) and git, nothing else.
#
#   scripts/test.sh            everything, about 20 minutes on two cores
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s (at %d s)\n' "$1" $SECONDS; }

# What the compiler does not check: kcas and filter hold no lock, and get every atomic from one module.
check_house_rules() {
    local broken=0
    # Comments may name what the code must not use.
    code() { grep -rnE "$1" kcas/src filter/src --include='*.rs' | grep -vE '^[^:]*:[0-9]+: *//'; }
    if code 'unsafe' | grep -v '#!\[forbid(unsafe_code)\]'; then
        echo "kcas and filter must not contain unsafe code" >&2
        broken=1
    fi
    for crate in kcas filter; do
        if ! grep -q '^#!\[forbid(unsafe_code)\]' "$crate/src/lib.rs"; then
            echo "$crate/src/lib.rs must forbid unsafe code" >&2
            broken=1
        fi
    done
    if code '(std|core|loom)::sync::atomic' | grep -vE '^kcas/src/(sync|model)\.rs:'; then
        echo "atomics must come from kcas::sync, or the model checker does not see them" >&2
        broken=1
    fi
    if code '\b(Mutex|RwLock|Condvar|Once|OnceLock|LazyLock|Barrier|park|spin_loop|yield_now|sleep)\b'; then
        echo "kcas and filter must not block" >&2
        broken=1
    fi
    # Told here and not only after all the tests, when they are planted.
    for patch in {kcas,filter}/tests/planted/*.patch; do
        if ! git apply --check "$patch"; then
            echo "$patch does not fit the code any more: mend the patch" >&2
            broken=1
        fi
    done
    return $broken
}

step "format"
cargo fmt --all --check

step "rules of the house"
check_house_rules

step "lints"
cargo clippy --locked --workspace --all-targets -- -D warnings
cargo clippy --locked --workspace --all-targets --all-features -- -D warnings
RUSTFLAGS="--cfg kcas_loom" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/loom" \
    cargo clippy --locked --profile loom -p kcas -p filter --lib --test loom --test loom_growing -- -D warnings

step "tests"
cargo test --locked --workspace
cargo test --locked -p filter --features serde --test serialized

step "tests that stop threads at every step"
cargo test --locked -p kcas -p filter --features steps --lib \
    --test stalls --test copy_at_steps --test timestamp_wrap --test bounded_memory
cargo test --locked -p filter --features steps --test growing_stalls --test growing_out_of_memory
cargo test --locked -p kcas --features steps --test helping_readers
cargo test --locked -p kcas-epoch --features steps --lib --test stalls
cargo test --locked -p harness --features steps --test counterexample --test livelock --test stalls
cargo test --locked -p harness --features steps --lib -- exchanges between_steps

step "docs"
RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps

step "models"
scripts/loom.sh

step "planted bugs"
scripts/planted.sh

step "all passed"
