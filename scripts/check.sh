#!/usr/bin/env bash
# Checks a change quickly, or with --full more thoroughly. Needs only Rust (with rustfmt and clippy), git, and bash 4.2
# or later with GNU's tools, as Linux has them.
#
#   scripts/check.sh [COMMIT]            format, lints, house rules, and the unit tests of the crates that changed since
#                                        COMMIT. Default: HEAD if there are uncommitted changes, otherwise HEAD~1.
#                                        About a minute, once built.
#   scripts/check.sh --full [STEP ...]   what `cargo test --workspace` leaves out, except what takes long: lints of every
#                                        build, docs, the tests with all features, and the short models. About 10 minutes.
#                                        STEPs: lints, docs, tests, models. scripts/deep.sh checks the rest.
#
# There are three builds to run: as published, which `cargo test --workspace` tests; with all features; and for the model
# checker.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/steps.sh

all_features=(--locked --workspace --all-features)

lints_of_changes() {
    step "format"
    cargo fmt --all --check

    step "rules of the house"
    scripts/rules.sh

    step "lints"
    cargo clippy "${all_features[@]}" --all-targets -- -D warnings
}

lints() {
    lints_of_changes

    step "lints of what users build, and of what the model checker explores"
    cargo clippy --locked --workspace --all-targets -- -D warnings
    # With all features, hooks leave out filters in files.
    cargo clippy --locked -p lfcf-shared-memory -p lfcf-kcas -p lfcf-filter --features shared --all-targets -- -D warnings
    RUSTFLAGS="--cfg kcas_loom" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/loom" \
        cargo clippy --locked --profile loom --features loom -p kcas-testing -p lfcf-filter --lib --test loom -- -D warnings
}

docs() {
    step "docs"
    RUSTDOCFLAGS="-D warnings" cargo doc "${all_features[@]}" --no-deps
    # With hooks before each access, the page on shared filters is left out.
    RUSTDOCFLAGS="-D warnings" cargo doc --locked -p lfcf-filter --features serde,shared --no-deps

    step "public interfaces"
    scripts/interface.sh
}

tests() {
    step "tests with all features"
    # Two programs at once, since many tests keep only one core busy. Each runs in the directory of its crate, as with
    # cargo, and its output is shown when it ends.
    local programs
    programs=$(test_programs "${all_features[@]}")
    if [ "$(wc -l <<<"$programs")" -lt 20 ]; then
        echo "cargo names fewer than 20 test programs" >&2
        return 1
    fi
    # shellcheck disable=SC2016 # Expanded by the other shell.
    xargs -n 2 -P 2 sh -c 'cd "$0" && output=$("$1" 2>&1); status=$?; printf "\n%s\n%s\n" "$1" "$output"; exit $status' <<<"$programs"
    cargo test "${all_features[@]}" --doc
    # With hooks before each access, no words are in files.
    cargo test --locked -p lfcf-kcas -p lfcf-filter --features shared --test shared
    cargo test --locked -p lfcf-filter --features shared --doc shared
}

models() {
    step "models"
    scripts/loom.sh --short
}

everything() {
    lints
    beside models
    docs
    tests
    await models
}

quick() { # [COMMIT]
    local base changed crate crates=()
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

    lints_of_changes

    step "tests of what changed since $(git rev-parse --short "$base")"
    # If kcas changed, the tests of filter and kcas-epoch are run, too; those of the harness are left to
    # `cargo test --workspace`.
    touches 'kcas/|Cargo' && crates+=(lfcf-huge-pages lfcf-kcas kcas-testing)
    touches 'kcas/|filter/|Cargo' && crates+=(lfcf-filter histories store)
    touches 'kcas/|harness/kcas-epoch/|Cargo' && crates+=(kcas-epoch)
    touches 'harness/simulator/|Cargo' && crates+=(simulator)
    touches 'harness/figures/|Cargo' && crates+=(figures)
    for crate in ${crates[@]+"${crates[@]}"}; do
        cargo test --locked -p "$crate" --all-features
    done
    if touches 'harness/|experiments/|Cargo'; then
        cargo test --locked -p subject -p relatives -p check -p harness --all-features --lib
    elif [ ${#crates[@]} -eq 0 ]; then
        echo "none"
    fi
    step "passed; cargo test --workspace checks more"
}

if [ "${1:-}" = --full ]; then
    run_steps "lints docs tests models" "${@:2}"
else
    quick "$@"
fi
