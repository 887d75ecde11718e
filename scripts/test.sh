#!/usr/bin/env bash
# Runs every check: format, lints, house rules, tests, docs, the model checker, and the planted bugs
# that it must catch. Needs only Rust (with rustfmt and clippy) and git.
#
#   scripts/test.sh            everything, up to half an hour on two cores
#
# Two builds are run: one with all features, and one for the model checker.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s (at %d s)\n' "$1" $SECONDS; }

step "format"
cargo fmt --all --check

step "rules of the house"
scripts/rules.sh

step "lints"
# Also without features: that is what users build, and what figures are measured with.
cargo clippy --locked --workspace --all-targets -- -D warnings
cargo clippy --locked --workspace --all-targets --all-features -- -D warnings
RUSTFLAGS="--cfg kcas_loom" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/loom" \
    cargo clippy --locked --profile loom -p kcas -p epoch-cell -p filter --lib --test loom --test loom_growing -- -D warnings

step "docs"
RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps

step "tests"
EXAMPLE_FLAGS="--workspace --all-features" cargo test --locked --workspace --all-features
# Only in the build whose words are the standard library's atomics.
cargo test --locked -p kcas --test lazy_memory

step "models"
scripts/loom.sh

step "planted bugs"
scripts/planted.sh

step "all passed"
