#!/usr/bin/env bash
# Compares the public interfaces of kcas and filter with those of an earlier commit: what was added,
# changed or removed, and whether users' code could break. Fails if it could, or if a tool is missing.
#
#   scripts/interface.sh [COMMIT]    by default the commit before this one; some minutes
set -euo pipefail
cd "$(dirname "$0")/.."

base=$(git rev-parse --verify --quiet "${1:-HEAD~1}^{commit}") || {
    echo "there is no commit \"${1:-HEAD~1}\"" >&2
    exit 2
}
status=0
# is_there TOOL VERSION
is_there() {
    cargo "$1" --version >/dev/null 2>&1 && return
    echo "cargo-$1 is missing: cargo install --locked cargo-$1@$2" >&2
    status=2
    return 1
}

export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}/interface"
earlier="$CARGO_TARGET_DIR/earlier"
rm -rf "$earlier"
mkdir -p "$earlier"
git archive "$base" -- . ':!paper-figures' | tar --extract --directory "$earlier"

features() { if [ "$1" = filter ]; then echo serde; else echo steps; fi; }

# What the crate in this folder offers, one item a line. (From the docs as JSON, which only nightly
# compilers write.)
list() { # FOLDER
    cargo public-api -sss --color never --manifest-path "$1/Cargo.toml" --features "$(features "$(basename "$1")")"
}

if is_there public-api 0.52.0; then
    if ! rustc +nightly --version >/dev/null 2>&1; then
        echo "cargo-public-api needs a nightly compiler: rustup toolchain install --profile minimal nightly" >&2
        status=2
    else
        for folder in kcas filter; do
            list "$earlier/$folder" >"$CARGO_TARGET_DIR/$folder.earlier"
            list "$PWD/$folder" >"$CARGO_TARGET_DIR/$folder.now"
            printf '\n== %s: %d items now, since %s\n' "$folder" "$(wc -l <"$CARGO_TARGET_DIR/$folder.now")" "${base:0:10}"
            # It has a status of its own for "different".
            { diff --unified=0 "$CARGO_TARGET_DIR/$folder."{earlier,now} || true; } | sed -n '/^[-+][a-z]/p'
        done
    fi
fi

if is_there semver-checks 0.51.0; then
    for folder in kcas filter; do
        printf '\n== %s: what could break\n' "$folder"
        cargo semver-checks --manifest-path "$folder/Cargo.toml" --baseline-root "$earlier" \
            --only-explicit-features --features "$(features "$folder")" || [ $status -ne 0 ] || status=1
    done
fi
exit $status
