#!/usr/bin/env bash
# Gives random bytes to the code that loads filters, and random keys to filters, for some time each. Begins with the files of
# filter/fuzz/saved.tar.gz and of filter/tests/golden. What it finds is in filter/fuzz/artifacts; make a test of it. Needs a
# nightly compiler, cargo-fuzz and a C++ compiler.
#
#   scripts/fuzz.sh [SECONDS [TARGET ...]]    60 seconds for each; builds for some minutes first
#   scripts/fuzz.sh --keep FOLDER BYTES       packs the fewest files of at most BYTES that reach what those of FOLDER and of
#                                             saved.tar.gz reach
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
fuzz() { cargo +nightly fuzz "$1" --fuzz-dir filter/fuzz --sanitizer none "${@:2}"; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch"/{keys,kept}
tar -xzf filter/fuzz/saved.tar.gz -C "$scratch"
if [ "${1:-}" = --keep ]; then
    fuzz run saved "$scratch/kept" "$scratch/saved" "$2" -- -set_cover_merge=1 -use_counters=0 -max_len="$3"
    tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 --transform='s/^kept/saved/' -C "$scratch" -cf - kept |
        gzip -9n >filter/fuzz/saved.tar.gz
    exit
fi

seconds=${1:-60}
targets=("${@:2}")
[ ${#targets[@]} -gt 0 ] || targets=(saved keys)
cp filter/tests/golden/* "$scratch/saved"
for target in "${targets[@]}"; do
    printf '\n== %s\n' "$target"
    fuzz run "$target" "$scratch/$target" -- -max_total_time="$seconds" -max_len=6000 -timeout=20 -rss_limit_mb=3000
done
