#!/usr/bin/env bash
# Runs the checks that take long, after scripts/test.sh: lints of the other builds, tests of the build
# that is published and of the harness as it measures, pairs of stopped threads, millions of keys and back,
# the long models, the proof, and every planted bug, which a check must catch.
#
#   scripts/deep.sh             everything, about 25 minutes on two cores
#   scripts/deep.sh STEP ...    some steps of it: builds, models, proof, planted
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/steps.sh

builds() {
    step "lints of what users build, and of what the model checker explores"
    cargo clippy --locked --workspace --all-targets -- -D warnings
    RUSTFLAGS="--cfg kcas_loom" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/loom" \
        cargo clippy --locked --profile loom --features loom -p lfcf-kcas -p lfcf-filter --lib --test loom -- -D warnings

    step "tests of the build that is published"
    # Its words are the standard library's atomics: they take memory as it is used, and runs are longer.
    cargo test --locked -p lfcf-kcas -p lfcf-filter --lib --test ordinary --test alone
    some_of_each 1 cargo test --locked -p lfcf-kcas --test alone memory_is_taken_as_words_are_written

    step "tests of the harness as it measures: what its features change"
    cargo test --locked -p subject -p relatives -p kcas-epoch -p check
    cargo test --locked -p harness --test check
    some_of_each 1 cargo test --locked -p harness --test cli refused::

    step "pairs of threads, stopped at each of their steps"
    some_of_each 1 cargo test --locked --workspace --all-features --test steps -- --ignored

    step "from 1,280 buckets to millions of keys and back to nothing"
    # KEYS=100000000 for longer: the filter then takes 340 MB.
    some_of_each 1 cargo test --locked -p lfcf-filter --test alone growing_and_back -- --ignored --nocapture
}

models() {
    step "long models"
    scripts/loom.sh --long
}

proof() {
    step "proof"
    # The only check that needs more than Rust and git.
    if python3 -c 'import z3' 2>/dev/null; then
        scripts/proof.sh
    else
        echo "not proved: z3 is missing (scripts/proof.sh says how to get it)"
        # What was asked for by name, or by asked_for_proof=yes, must not seem to have passed.
        [ "${asked_for_proof:-}" != yes ]
    fi
}

by_steps() {
    step "planted bugs, by random steps against the proof"
    scripts/planted.sh --steps
}

planted() {
    beside by_steps
    step "planted bugs"
    scripts/planted.sh
    await by_steps
}

everything() {
    builds
    beside proof
    models
    await proof
    planted
}

[[ " $* " != *" proof "* ]] || asked_for_proof=yes
run_steps "builds models proof planted" "$@"
