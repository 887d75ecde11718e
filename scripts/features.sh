#!/usr/bin/env bash
# Checks that the published crates build with every combination of their features. Needs cargo-hack.
#
#   scripts/features.sh        some minutes
set -euo pipefail
cd "$(dirname "$0")/.."

if ! cargo hack --version >/dev/null 2>&1; then
    echo "cargo-hack is missing: cargo install --locked cargo-hack@0.6.46" >&2
    exit 2
fi
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/features" RUSTFLAGS="-D warnings ${RUSTFLAGS:-}"
cargo hack check --locked --feature-powerset -p lfcf-huge-pages -p lfcf-kcas -p lfcf-filter
