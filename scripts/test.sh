#!/usr/bin/env bash
# Runs every check that does not take long: format, lints, rules of the house, docs, tests, and the
# model checker. scripts/deep.sh runs the others. Needs Rust (with rustfmt and clippy), git, and bash 4.2 or
# later with GNU's tools, as Linux has them; nothing else.
#
#   scripts/test.sh             everything, about 10 minutes on two cores from a fresh clone
#   scripts/test.sh STEP ...    some steps of it: lints, docs, tests, models
#
# There are two builds to run: one with all features, and one for the model checker.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/steps.sh

lints() {
    step "format"
    cargo fmt --all --check

    step "rules of the house"
    scripts/rules.sh

    step "lints"
    cargo clippy --locked --workspace --all-targets --all-features -- -D warnings
}

docs() {
    step "docs"
    RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps --all-features
}

tests() {
    step "tests"
    local all=(--locked --workspace --all-features)
    export EXAMPLE_FLAGS="--workspace --all-features"
    # Two programs at once, since many tests keep only one core busy. Each runs in the directory of its crate, as with
    # cargo, and its output is shown when it ends.
    local programs
    programs=$(test_programs "${all[@]}")
    if [ "$(wc -l <<<"$programs")" -lt 20 ]; then
        echo "cargo names fewer than 20 test programs" >&2
        return 1
    fi
    xargs -n 2 -P 2 sh -c 'cd "$0" && output=$("$1" 2>&1); status=$?; printf "\n%s\n%s\n" "$1" "$output"; exit $status' <<<"$programs"
    cargo test "${all[@]}" --doc
}

models() {
    step "models"
    scripts/loom.sh --short
}

everything() {
    lints
    beside models
    docs
    tests
    await models
}

run_steps "lints docs tests models" "$@"
