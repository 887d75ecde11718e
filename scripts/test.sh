#!/usr/bin/env bash
# Runs every check that does not take long: format, lints, rules of the house, docs, tests, and the
# model checker. scripts/deep.sh runs the others. Needs Rust (with rustfmt and clippy) and git, nothing
# else.
#
#   scripts/test.sh             everything, 10 to 13 minutes on two cores from a fresh clone
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
    EXAMPLE_FLAGS="--workspace --all-features" cargo test --locked --workspace --all-features
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
