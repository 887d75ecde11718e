#!/usr/bin/env bash
# Checks quickly whether a change is sound: format, lints, house rules, tables and patches against
# the code, and the unit tests of the crates that changed. scripts/test.sh checks more, and scripts/deep.sh
# the rest.
#
#   scripts/check.sh [COMMIT]   what changed since COMMIT; by default since the last commit, or, when nothing is
#                               uncommitted, by the last commit. About a minute, once built.
set -euo pipefail
cd "$(dirname "$0")/.."

step() { printf '\n== %s (at %d s)\n' "$1" $SECONDS; }

if [ $# -gt 0 ]; then
    base=$1
elif [ -n "$(git status --porcelain)" ]; then
    base=HEAD
else
    base=HEAD~1
fi
git rev-parse --quiet --verify "$base^{commit}" >/dev/null || { echo "there is no commit $base: name another" >&2; exit 2; }
changed=$(git diff --name-only "$base"; git ls-files --others --exclude-standard)
touches() { grep -qE "^($1)" <<<"$changed"; }

step "format"
cargo fmt --all --check

step "rules of the house"
scripts/rules.sh

step "lints"
cargo clippy --locked --workspace --all-targets --all-features -- -D warnings

step "tests of what changed since $(git rev-parse --short "$base")"
# If kcas changed, the tests of filter and kcas-epoch are run, too; those of the harness are left to test.sh.
crates=()
touches 'kcas/|Cargo' && crates+=(lfcf-huge-pages lfcf-kcas)
touches 'kcas/|filter/|Cargo' && crates+=(lfcf-filter histories store)
touches 'kcas/|harness/kcas-epoch/|Cargo' && crates+=(kcas-epoch)
touches 'harness/simulator/|Cargo' && crates+=(simulator)
touches 'harness/figures/|Cargo' && crates+=(figures)
for crate in ${crates[@]+"${crates[@]}"}; do
    EXAMPLE_FLAGS=--all-features cargo test --locked -p "$crate" --all-features
done
if touches 'harness/|experiments/|Cargo'; then
    cargo test --locked -p subject -p relatives -p check -p harness --all-features --lib
fi
if [ ${#crates[@]} -eq 0 ] && ! touches 'harness/|experiments/|Cargo'; then echo "none"; fi

step "checked; scripts/test.sh checks more"
