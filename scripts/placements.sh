#!/usr/bin/env bash
# Builds the harness with its functions in other orders, so that what pairs measure does not depend on
# where the linker happened to put the code:
#
#   scripts/placements.sh 3
#   target/placements/1 pair --builds target/placements/1,target/placements/2,target/placements/3
#
# Only the last step of the build is made anew for each, some two minutes. Needs a linker that can shuffle
# sections, as LLVM's can, which Rust uses by default on x86-64 Linux.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ ${1:-} =~ ^[1-9][0-9]?$ ]] || {
    echo "how many? scripts/placements.sh 3" >&2
    exit 2
}
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target/placements"
for seed in $(seq "$1"); do
    cargo rustc --locked --profile figures -p harness --bin harness -- \
        -C link-arg="-Wl,--shuffle-sections=.text*=$seed"
    cp "$target/figures/harness" "$target/placements/$seed"
    # By this list the program knows whether its sources are as committed.
    cp "$target/figures/harness.d" "$target/placements/$seed.d"
done
