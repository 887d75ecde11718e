#!/usr/bin/env bash
# Runs the stress tests of kcas and filter under ThreadSanitizer, which watches real threads for
# unsynchronised memory accesses. Since kcas and filter are safe Rust and share nothing but atomics,
# it also watches what they are built on (once_cell, arc-swap, the standard library's threads).
#
# It needs a compiler that has the sanitizer's runtime and allows -Z options: a nightly one, or a
# stable one with RUSTC_BOOTSTRAP set. The standard library is not instrumented, so a report that
# names only it would need a second look; there is none today.
#
#   scripts/tsan.sh            1 to 2 minutes on two cores
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/steps.sh

host=$(rustc -vV | sed -n 's/^host: //p')
runtime=$(rustc --print sysroot)/lib/rustlib/$host/lib
if ! ls "$runtime"/*rt*tsan* >/dev/null 2>&1; then
    echo "ThreadSanitizer is not part of the toolchain for $host (there is no *tsan* in" >&2
    echo "the toolchain's lib/rustlib/$host/lib). It comes with x86_64 and aarch64 Linux and macOS:" >&2
    echo "run this there, or with another toolchain: RUSTUP_TOOLCHAIN=nightly scripts/tsan.sh" >&2
    exit 2
fi

export RUSTC_BOOTSTRAP=1
# Mixing in the uninstrumented standard library is allowed for this sanitizer.
unset CARGO_ENCODED_RUSTFLAGS
export RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer ${RUSTFLAGS:-}"
# With an explicit target, build scripts and macros are not instrumented.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/tsan"
# The first report ends the run with an error.
export TSAN_OPTIONS="halt_on_error=1 suppressions=$PWD/scripts/tsan-suppressions.txt ${TSAN_OPTIONS:-}"
some_of_each 4 cargo test --locked --release --target "$host" -p lfcf-kcas -p lfcf-filter --test ordinary --test alone "$@" -- \
    stress:: threads::
echo "ThreadSanitizer has nothing to report."
