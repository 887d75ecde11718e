#!/usr/bin/env bash
# Checks what all packages here depend on, against .cargo/deny.toml: licences, sources, and known vulnerabilities, of which
# it fetches the list. Needs cargo-deny.
#
#   scripts/dependencies.sh [CHECK ...]    some seconds; CHECKs: advisories, bans, licenses, sources
set -euo pipefail
cd "$(dirname "$0")/.."

if ! cargo deny --version >/dev/null 2>&1; then
    echo "cargo-deny is missing: cargo install --locked cargo-deny@0.20.2" >&2
    exit 2
fi
for workspace in . filter/c filter/python filter/examples/redis filter/fuzz; do
    printf '\n== %s\n' "$workspace"
    cargo deny --locked --manifest-path "$workspace/Cargo.toml" --config "$PWD/.cargo/deny.toml" check "$@"
done
