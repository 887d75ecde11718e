#!/usr/bin/env bash
# Builds kcas and filter, and what they need, with Rust 1.85, the oldest compiler that they promise
# to build with. The compiler is the one that OLDEST_RUSTC names, or a toolchain of rustup, or
# Debian's (package rustc-web); without one, the script says so and fails.
#
#   scripts/oldest.sh              about a minute
#   scripts/oldest.sh --minimal    with the oldest versions of what they depend on, too
set -euo pipefail
cd "$(dirname "$0")/.."
version=1.85

for rustc in "${OLDEST_RUSTC:-}" "$(rustup which rustc --toolchain "$version" 2>/dev/null || true)" /usr/bin/rustc; do
    if [ "$rustc" ] && "$rustc" --version 2>/dev/null | grep -q "^rustc $version\."; then
        export RUSTC=$rustc CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}/oldest"
        if [ "${1:-}" = --minimal ]; then
            # A workspace without the others, which ask for later versions.
            scratch=$(mktemp -d)
            trap 'rm -rf "$scratch"' EXIT
            git ls-files -z Cargo.toml README.md kcas filter | xargs -0 cp --parents --target-directory "$scratch"
            cd "$scratch"
            sed -i '/^members = \[/,/^\]/c members = ["kcas", "kcas/huge-pages", "filter", "filter/histories"]' Cargo.toml
            # Only an unstable cargo chooses these versions.
            RUSTC_BOOTSTRAP=1 cargo update --quiet -Z direct-minimal-versions
        fi
        cargo build --locked -p lfcf-kcas -p lfcf-filter
        cargo build --locked -p lfcf-kcas -p lfcf-filter --features lfcf-kcas/huge-pages,lfcf-filter/huge-pages,lfcf-filter/serde
        exit
    fi
done
echo "Rust $version is not here: install it (rustup toolchain install $version, or Debian's rustc-web) or name it in OLDEST_RUSTC" >&2
exit 2
