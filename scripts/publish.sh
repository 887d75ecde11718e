#!/usr/bin/env bash
# Measures and publishes what the README shows: `scripts/publish.sh`, in some 20 minutes, the builds
# included. Or what another command of the harness measures: `scripts/publish.sh sweep
# experiments/load-factor.toml`.
#
# Measures the last commit, which must be on main, in a clone: changes that are not committed are not in it.
# Puts rows, figure and description into paper-figures, and renews all that is made of them: the page, the
# numbers of Markdown pages, their commits, and measured.hash. Look at the figures, then commit.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- pair

commit=$(git rev-parse HEAD)
git merge-base --is-ancestor "$commit" main || {
    echo "main does not have ${commit:0:10}: merge it first" >&2
    exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone -q . "$work"
harness=$PWD/target/publish/figures/harness
features=()
[ "$1" != simulate ] || features=(--features simulation)
(
    cd "$work"
    export CARGO_TARGET_DIR=${harness%/figures/*}
    cargo build --locked --profile figures -p harness "${features[@]}"
    if [ "$1" = pair ]; then
        # What is said of pairs must not depend on where the code lies.
        scripts/placements.sh 3
        ln -s "$CARGO_TARGET_DIR/placements" placements
        set -- "$@" --builds placements/1,placements/2,placements/3
    fi
    "$harness" "$@" --out results
)

for sidecar in "$work"/results/*.machine.toml; do
    name=$(basename "$sidecar" .machine.toml)
    cp "${sidecar%.machine.toml}".* paper-figures/
    sed -i -E "s/^(\| \[$name\]\(.*\| )\`[0-9a-f]*\` \|$/\1\`${commit:0:10}\` |/" paper-figures/README.md
done
"$harness" report paper-figures
git grep -lz '^<!-- numbers: ' -- '*.md' | xargs -0 "$harness" numbers
git hash-object paper-figures/*.csv paper-figures/*.machine.toml | git hash-object --stdin >paper-figures/measured.hash
scripts/rules.sh
