#!/usr/bin/env bash
# Explores every model of kcas and filter under loom, and prints for each how much was
# explored.
#
#   scripts/loom.sh [TEST-NAME-FILTER ...]    all models, if none is named
#   scripts/loom.sh --short                   without those of more than 10,000 executions, which scripts/test.sh leaves out
#   scripts/loom.sh --long                    only those: scripts/deep.sh explores what scripts/test.sh leaves out
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD
. scripts/copy.sh
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

run() { # CRATE SUITE ...
    cargo test --locked --profile loom -p "$1" --lib "${@:2}"
}
built=$(run lfcf-kcas --test loom -- --list && run lfcf-filter --test loom -- --list)
missing=$(comm -23 <(models | awk '{ print $3 }' | sort) <(awk -F:: 'sub(/: test$/, "") { print $NF }' <<<"$built" | sort))
[ -z "$missing" ] || { printf 'These models are in no test program:\n%s\n' "$missing" >&2; exit 1; }
# Side by side, since a long model keeps only one core busy.
run lfcf-kcas --test loom -- --nocapture "$@" &
run lfcf-filter --test loom -- --nocapture "$@" || failed=yes
wait $! || failed=yes
[ -z "${failed:-}" ]
