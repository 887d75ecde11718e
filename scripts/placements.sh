#!/usr/bin/env bash
# Builds the harness with its functions in other orders, so that what pairs and sweeps measure does not depend on
# where the linker happened to put the code:
#
#   scripts/placements.sh 9
#   target/placements/1 pair --builds "$(seq -f target/placements/%g -s , 9)"
#
# Compiles once, in three minutes or so, and links once for each order. Needs a linker that can shuffle sections,
# as LLVM's can, which Rust uses by default on x86-64 Linux.
set -euo pipefail
cd "$(dirname "$0")/.."
[[ ${1:-} =~ ^[1-9][0-9]?$ ]] || {
    echo "how many? scripts/placements.sh 9" >&2
    exit 2
}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
rm -rf "$target/placements"
mkdir -p "$target/placements"

# A linker that makes the others on the way: what it links is gone when the compiler ends.
linker=$(mktemp -d)
trap 'rm -rf "$linker"' EXIT
cat >"$linker/cc" <<END
#!/usr/bin/env bash
set -euo pipefail
for seed in \$(seq "$1"); do
    cc "\$@" "-Wl,--shuffle-sections=.text*=\$seed"
    for ((at = 1; at < \$#; at++)); do
        [ "\${!at}" != -o ] || out=\$((at + 1))
    done
    cp "\${!out}" "$target/placements/\$seed"
done
END
chmod +x "$linker/cc"
# (Another linker than the last time: so it is always built.)
CARGO_TARGET_DIR=$target cargo rustc --locked --profile figures -p harness --bin harness -- \
    -C linker="$linker/cc"
for seed in $(seq "$1"); do
    # By this list the program knows whether its sources are as committed.
    cp "$target/figures/harness.d" "$target/placements/$seed.d"
done
