#!/usr/bin/env bash
# Packs the crates that others depend on, unpacks them elsewhere, and builds and tests there what was
# packed. Unpacked, each finds the others by an overlay, since none is published. Builds the docs as docs.rs does,
# too, where a nightly compiler is.
#
#   scripts/package.sh          some minutes on two cores
#   scripts/package.sh --list   only says what would be packed
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(lfcf-huge-pages lfcf-kcas lfcf-filter)
selected=()
for package in "${packages[@]}"; do selected+=(-p "$package"); done
if [ "${1:-}" = --list ]; then exec cargo package --locked --list --allow-dirty "${selected[@]}"; fi

target=$(cargo metadata --locked --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
# Not verified here: what follows builds the same, and tests it.
cargo package --locked --no-verify --allow-dirty "${selected[@]}"

unpacked="$target/unpacked"
rm -rf "$unpacked"
mkdir -p "$unpacked"
members="" overlay=""
for package in "${packages[@]}"; do
    archive=$(ls -t "$target/package/$package"-[0-9]*.crate | head -n 1)
    # Touched, or what was built from an earlier package would be taken for up to date.
    tar --extract --gzip --touch --file="$archive" --directory="$unpacked"
    folder=$(basename "$archive" .crate)
    members+="\"$folder\", "
    overlay+="$package = { path = \"$folder\" }"$'\n'
    # What a registry or a user looks for first.
    for file in LICENSE-MIT LICENSE-APACHE; do
        [ -s "$unpacked/$folder/$file" ] || { echo "$folder has no $file" >&2; exit 1; }
    done
    printf '%s: %d files, %d KiB packed\n' "$folder" \
        "$(tar --list --file="$archive" | wc -l)" $(($(wc -c <"$archive") / 1024))
done
# The versions of dependencies that the workspace is tested with, and its profile for tests.
cp Cargo.lock "$unpacked"
cat >"$unpacked/Cargo.toml" <<END
[workspace]
members = [$members]
resolver = "3"

[patch.crates-io]
$overlay
[profile.dev]
opt-level = 1
debug = "line-tables-only"
END

cd "$unpacked"
export CARGO_TARGET_DIR="$target/unpacked-target"
# As most users build it, and as all tests need it.
cargo build --workspace
cargo test --workspace --all-features
if cargo +nightly --version >/dev/null 2>&1; then
    # With the features that the manifests ask docs.rs for.
    RUSTDOCFLAGS="--cfg docsrs -D warnings" cargo +nightly doc --workspace --no-deps \
        --features lfcf-kcas/steps,lfcf-filter/serde
else
    echo "The docs are not built as docs.rs does: a nightly compiler is missing."
fi
echo "All that is packed builds and passes its tests."
