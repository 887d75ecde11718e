#!/usr/bin/env bash
# Runs the tests of what has `unsafe` under Miri, which notices memory used after it is freed: kcas-epoch and
# the vector quotient filter. Miri knows neither assembly nor advice to the system: of the vector quotient
# filter it runs the form for any processor, and huge-pages not at all.
#
#   scripts/miri.sh            some minutes
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/steps.sh

toolchain="${MIRI_TOOLCHAIN:-nightly}"
if ! cargo "+$toolchain" miri --version >/dev/null 2>&1; then
    echo "Miri is missing: rustup toolchain install $toolchain --profile minimal --component miri,rust-src" >&2
    exit 2
fi
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/miri"
# For the sake of crossbeam-epoch: it leaves garbage when the process ends, makes pointers of numbers, and
# breaks the stricter of Miri's two models of borrows. And it relies on C11's release sequences (unpin with
# Release, pin again with Relaxed), which Miri does not know: so it does not look for races.
export MIRIFLAGS="-Zmiri-ignore-leaks -Zmiri-permissive-provenance -Zmiri-tree-borrows \
    -Zmiri-disable-data-race-detector -Zmiri-disable-isolation ${MIRIFLAGS:-}"
export PROPTEST_CASES=2
# (No allocation is refused under Miri, however large; and a thousand random calls take too long.)
some_of_each 1 cargo "+$toolchain" miri test --locked -p kcas-epoch --test same -- --skip sizes_from_nothing_to_absurd --skip agrees_with_a_plain_array
some_of_each 1 cargo "+$toolchain" miri test --locked -p relatives --lib vector_quotient
echo "Miri has nothing to report."
