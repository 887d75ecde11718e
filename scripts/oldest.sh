#!/usr/bin/env bash
# Builds kcas and filter, and what they need, with Rust 1.85, the oldest compiler that they promise
# to build with. The compiler is the one that OLDEST_RUSTC names, or a toolchain of rustup, or
# Debian's (package rustc-web); without one, the script says so and fails.
#
#   scripts/oldest.sh        about a minute
set -euo pipefail
cd "$(dirname "$0")/.."
version=1.85

for rustc in "${OLDEST_RUSTC:-}" "$(rustup which rustc --toolchain "$version" 2>/dev/null || true)" /usr/bin/rustc; do
    if [ "$rustc" ] && "$rustc" --version 2>/dev/null | grep -q "^rustc $version\."; then
        export RUSTC=$rustc CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/oldest"
        cargo build --locked -p lfcf-kcas -p lfcf-filter
        exec cargo build --locked -p lfcf-kcas -p lfcf-filter --features lfcf-kcas/huge-pages,lfcf-filter/huge-pages,lfcf-filter/serde
    fi
done
echo "Rust $version is not here: install it (rustup toolchain install $version, or Debian's rustc-web) or name it in OLDEST_RUSTC" >&2
exit 2
