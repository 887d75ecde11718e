#!/usr/bin/env bash
# Gives random bytes to all that reads bytes of others, for some time each. Begins with what is in harness/fuzz/corpus and
# with files of this repository. What it finds is in harness/fuzz/artifacts; make a test of it. Needs a nightly compiler,
# cargo-fuzz and a C++ compiler.
#
#   scripts/fuzz.sh [SECONDS [TARGET ...]]    60 seconds for each; builds for some minutes first
#   scripts/fuzz.sh --keep TARGET FOLDER BYTES    makes the corpus of the fewest files of so many bytes that reach what
#                                                 those of FOLDER and of the corpus reach
set -euo pipefail
cd "$(dirname "$0")/.."

if ! cargo fuzz --version >/dev/null 2>&1; then
    echo "cargo-fuzz is missing: cargo install --locked cargo-fuzz@0.13.2" >&2
    exit 2
fi
if ! cargo +nightly --version >/dev/null 2>&1; then
    echo "a nightly compiler is missing: rustup toolchain install nightly --profile minimal" >&2
    exit 2
fi
# Of our code all is safe but huge-pages, which is not in it: so nothing is to be found by AddressSanitizer.
fuzz() { cargo +nightly fuzz "$1" --fuzz-dir harness/fuzz --sanitizer none "${@:2}"; }

if [ "${1:-}" = --keep ]; then
    target=$2 folder=$3 bytes=$4 kept=$(mktemp -d)
    fuzz run "$target" "$kept" "harness/fuzz/corpus/$target" "$folder" -- -set_cover_merge=1 -use_counters=0 -max_len="$bytes"
    rm -rf "harness/fuzz/corpus/$target"
    mv "$kept" "harness/fuzz/corpus/$target"
    exit
fi

seconds=${1:-60}
targets=("${@:2}")
[ ${#targets[@]} -gt 0 ] || targets=(saved keys experiments results)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch"/{saved,keys,experiments,results}
cp filter/tests/golden/* "$scratch/saved"
cp experiments/*.toml "$scratch/experiments"
for results in paper-figures/*.csv; do
    head -n 4 "$results" >"$scratch/results/$(basename "$results")"
done
for target in "${targets[@]}"; do
    printf '\n== %s\n' "$target"
    # What is new goes into the first folder.
    fuzz run "$target" "$scratch/$target" "harness/fuzz/corpus/$target" -- \
        -max_total_time="$seconds" -max_len=6000 -timeout=20 -rss_limit_mb=3000
done
