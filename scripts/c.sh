#!/usr/bin/env bash
# Builds the C interface of filter, and tests it from a program in C, which reads the saved filters of the tests
# and shares files with Rust. Needs a C compiler (CC, or cc); cbindgen too, to compare the header with the code.
#
#   scripts/c.sh             about a minute
#   scripts/c.sh --header    writes the header anew
set -euo pipefail
cd "$(dirname "$0")/.."

crate=filter/c
header() { cbindgen --quiet --config $crate/cbindgen.toml $crate; }
if cbindgen --version >/dev/null 2>&1; then
    if [ "${1:-}" = --header ]; then
        header >$crate/include/cuckoo.h
    fi
    diff $crate/include/cuckoo.h <(header) ||
        { echo "$crate/include/cuckoo.h (<) is not what the code says (>): scripts/c.sh --header" >&2; exit 1; }
else
    echo "the header is not compared with the code: cbindgen is missing (cargo install --locked cbindgen@0.29.4)" >&2
    [ "${1:-}" != --header ] || exit 2
fi
if ! "${CC:=cc}" --version >/dev/null 2>&1; then
    echo "a C compiler is missing: name it in CC, or install one (on Debian, gcc)" >&2
    exit 2
fi

cargo fmt --manifest-path $crate/Cargo.toml --check
cargo clippy --locked --manifest-path $crate/Cargo.toml --all-targets -- -D warnings
cargo build --locked --release --manifest-path $crate/Cargo.toml --lib --example share
built=$(realpath "${CARGO_TARGET_DIR:-$crate/target}/release")
shared=$(mktemp -d)
trap 'rm -rf "$shared"' EXIT
"$built/examples/share" write "$shared"
awk '/^```c$/ { code = 1; next } /^```$/ { code = 0 } code' $crate/README.md >"$shared/readme.c"
for library in libcuckoo.a libcuckoo.so; do
    compiled() { # SOURCE
        # shellcheck disable=SC2086 # Flags that are to be split.
        "$CC" -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Werror -pedantic ${CFLAGS:-} -I $crate/include \
            "$1" -o "$shared/program" "$built/$library" -lpthread -ldl -lm
    }
    compiled "$shared/readme.c"
    (cd "$shared" && ./program)
    compiled $crate/tests/test.c
    "$shared/program" filter/tests/golden "$shared"
    "$built/examples/share" read "$shared" c
done
