#!/usr/bin/env bash
# Builds the module and runs all its tests, each with servers of its own on free ports. Some minutes,
# once the dependencies are built.
#
#   ./test.sh             everything
#   ./test.sh TEST ...    the tests whose names contain one of these
set -euo pipefail
cd "$(dirname "$0")"

missing=()
command -v redis-server >/dev/null || missing+=(redis-server)
command -v redis-cli >/dev/null || missing+=(redis-tools)
if [ -z "${LIBCLANG_PATH:-}" ] && ! compgen -G '/usr/lib/llvm-*/lib/libclang*.so*' >/dev/null; then
    missing+=(libclang-14-dev)
fi
if [ ${#missing[@]} -gt 0 ]; then
    echo "on Debian, first: apt-get install ${missing[*]}" >&2
    exit 1
fi

step() { printf '\n== %s (at %d s)\n' "$1" $SECONDS; }

step "format and lints"
cargo fmt --check
cargo clippy --locked --release --all-targets -- -D warnings

step "build"
cargo build --locked --release

step "tests"
cargo test --locked --release -- --nocapture --test-threads=2 "$@"

step "done"
