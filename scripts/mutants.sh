#!/usr/bin/env bash
# Changes the code of kcas and filter in small ways, one at a time in a copy, and fails if the tests
# still pass. What is left out, and why, is in .cargo/mutants.toml. (Memory orderings are covered by
# scripts/orderings.sh.)
#
#   scripts/mutants.sh [OPTION ...]       hours on two cores (--in-diff FILE: of a change only); options go to `cargo mutants`
set -euo pipefail
cd "$(dirname "$0")/.."

if ! cargo mutants --version >/dev/null 2>&1; then
    echo "cargo-mutants is missing: cargo install --locked cargo-mutants@27.1.0" >&2
    exit 1
fi

output="${CARGO_TARGET_DIR:-target}"
mkdir -p "$output"
# Each build has its own target directory, next to its copy of the code.
unset CARGO_TARGET_DIR
status=0
RUST_BACKTRACE=0 CARGO_MUTANTS_JOBS="${CARGO_MUTANTS_JOBS:-2}" cargo mutants --output "$output" "$@" || status=$?
# Mutants that loop for ever end by a timeout; that is cargo-mutants' status 3, and they count as
# caught.
[ "$status" -eq 0 ] || [ "$status" -eq 3 ]
