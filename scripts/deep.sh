#!/usr/bin/env bash
# Runs the checks that take long: pairs of stopped threads, millions of keys and back, the long models, the proof, and every
# planted bug, which a check must catch. Begin with `cargo test --workspace` and scripts/check.sh --full: it uses what they
# built, and repeats none of their tests.
#
#   scripts/deep.sh             everything, about 20 minutes on two cores
#   scripts/deep.sh STEP ...    some steps of it: tests, models, proof, planted
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/steps.sh

tests() {
    step "the build that cargo test --workspace tests is the published one"
    # Its words are the standard library's atomics, unless a member of the workspace turns on a feature that replaces them.
    some_of_each 1 cargo test --locked --workspace --test alone memory_is_taken_as_words_are_written

    step "pairs of threads, stopped at each of their steps"
    some_of_each 1 cargo test --locked --workspace --all-features --test steps -- --ignored

    step "processes that are killed at random, and at 6 instructions of each call"
    # KILL_PLACES=1000000 for each instruction and pairs with saves, with --release.
    STORM_SECONDS=30 KILL_PLACES=6 some_of_each 1 cargo test --locked -p lfcf-filter --features shared --test shared -- storm:: single:: --nocapture

    step "from 1,280 buckets to millions of keys and back to nothing"
    # KEYS=100000000 for longer: the filter then takes 340 MB.
    some_of_each 1 cargo test --locked --workspace --test alone growing_and_back -- --ignored --nocapture
}

models() {
    step "long models"
    scripts/loom.sh --long
}

proof() {
    step "proof"
    # The only check here that needs more than Rust and git.
    if python3 -c 'import z3' 2>/dev/null || [ "${asked_for_proof:-}" = yes ]; then
        scripts/optional.sh proof
    else
        echo "not proved: z3 is missing (see scripts/optional.sh)"
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
    tests
    beside proof
    models
    await proof
    planted
}

# A proof that was asked for by name, or by asked_for_proof=yes, must not seem to have passed.
[[ " $* " != *" proof "* ]] || asked_for_proof=yes
run_steps "tests models proof planted" "$@"
