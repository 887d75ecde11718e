#!/usr/bin/env bash
# Runs every check: format, lints, rules of the house, docs, tests, the model checker, and the planted
# bugs that it must catch. Needs Rust (with rustfmt and clippy) and git, nothing else.
#
#   scripts/test.sh             everything, up to 25 minutes on two cores
#   scripts/test.sh STEP ...    some steps of it: lints, docs, tests, models, planted
#
# There are two builds to run: one with all features, and one for the model checker.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s (at %d s)\n' "$1" $SECONDS; }

lints() {
    step "format"
    cargo fmt --all --check

    step "rules of the house"
    scripts/rules.sh

    step "lints"
    # Without features as well: that is what users build, and what figures are measured with.
    cargo clippy --locked --workspace --all-targets -- -D warnings
    cargo clippy --locked --workspace --all-targets --all-features -- -D warnings
    RUSTFLAGS="--cfg kcas_loom" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/loom" \
        cargo clippy --locked --profile loom -p lfcf-kcas -p lfcf-epoch-cell -p lfcf-filter --lib --test loom -- -D warnings
}

docs() {
    step "docs"
    RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps
}

# What `tests` runs.
build_tests() {
    step "build of the tests"
    cargo test --locked --workspace --all-features --no-run
}

tests() {
    step "tests"
    EXAMPLE_FLAGS="--workspace --all-features" cargo test --locked --workspace --all-features
    # Only where the words are the standard library's atomics.
    cargo test --locked -p lfcf-kcas --test alone lazy_memory
}

models() {
    step "models"
    scripts/loom.sh
}

planted() {
    step "planted bugs"
    scripts/planted.sh
}

# Runs a step in the background, since many steps keep only one core busy: beside STEP. Its output is
# shown when it is awaited.
beside() {
    step "$1: beside what follows, output in target/$1.log"
    mkdir -p target
    "$1" >"target/$1.log" 2>&1 &
    background=$!
}

await() { # STEP
    local failed=""
    wait "$background" || failed=yes
    background=""
    cat "target/$1.log"
    if [ "$failed" ]; then
        echo "$1 failed" >&2
        return 1
    fi
}

everything() {
    # Each background job is a process group of its own, which is stopped if anything fails before.
    set -m
    background=""
    trap '[ -z "$background" ] || kill -- "-$background" 2>/dev/null || true' EXIT
    lints
    beside models
    docs
    build_tests
    await models
    # They borrow what was built for the tests.
    beside planted
    tests
    await planted
}

all=(lints docs tests models planted)
if [ $# -eq 0 ]; then
    everything
    step "passed: ${all[*]}"
    exit
fi
for name; do
    if ! printf '%s\n' "${all[@]}" | grep -qxF -- "$name"; then
        echo "\"$name\" is no step; there are: ${all[*]}" >&2
        exit 2
    fi
done
for name; do "$name"; done

step "passed: $*"
