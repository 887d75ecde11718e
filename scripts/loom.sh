#!/usr/bin/env bash
# Explores every model of kcas and filter under loom, and prints for each how much was
# explored.
#
#   scripts/loom.sh [TEST-NAME-FILTER ...]    all models, if none is named
#   scripts/loom.sh --short                   without those of more than 10,000 executions, which scripts/check.sh leaves out
#   scripts/loom.sh --long                    only those: scripts/deep.sh explores what scripts/check.sh --full leaves out
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD
. scripts/copy.sh
. scripts/steps.sh
# What is set for another build, or to explore less, would empty the suites or end models early.
unset CARGO_ENCODED_RUSTFLAGS MODELS MODEL_FLOORS LOOM_MAX_DURATION LOOM_MAX_PERMUTATIONS LOOM_CHECKPOINT_FILE
case ${1:-} in
    --short | --long) export MODELS=${1#--}; shift ;;
esac
for name; do
    # (Not `grep -q`, which ends at the first line, so that `models` may fail to write the others.)
    if ! models | awk '{ print $3 }' | grep -F -- "$name" >/dev/null; then
        echo "no model has \"$name\" in its name" >&2
        exit 2
    fi
done

export RUSTFLAGS="--cfg kcas_loom ${RUSTFLAGS:-}"
# A separate target directory: the flag would otherwise rebuild everything each time it changes.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/loom"

# Separate for each crate, as whoever tests one of them builds it.
programs=$(for crate in kcas-testing lfcf-filter; do
    test_programs --locked --profile loom --features loom -p $crate --test loom
done)
listed() { # [NAME-FILTER ...]: "DIRECTORY" "PROGRAM" NAME
    local directory program
    while IFS='"' read -r _ directory _ program _; do
        "$program" --list "$@" | sed -n "s|^\(.*\): test$|\"$directory\" \"$program\" \1|p"
    done <<<"$programs"
}
missing=$(comm -23 <(models | awk '{ print $3 }' | sort) <(listed | sed 's/.*[: ]//' | sort))
[ -z "$missing" ] || { printf 'These models are in no test program:\n%s\n' "$missing" >&2; exit 1; }
# A process for each: loom maps and unmaps memory all the time, and threads of one process would wait for each other there.
# In reverse, since long ones are at the end.
listed "$@" | tac | xargs -n 3 -P "$(nproc)" sh -c 'cd "$0" && "$1" --exact "$2" --nocapture'
