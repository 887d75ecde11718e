#!/usr/bin/env bash
# Explores every model of kcas and filter under loom, and prints for each how much was
# explored.
#
#   scripts/loom.sh [TEST-NAME-FILTER ...]    all models, if none is named
#   scripts/loom.sh --short                   without those of more than 10,000 executions, which scripts/check.sh leaves out
#   scripts/loom.sh --long                    only those: scripts/deep.sh explores what scripts/check.sh --full leaves out
#   scripts/loom.sh --table [NAME ...]        writes what was explored into kcas/testing/models.md, too
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD
. scripts/copy.sh
. scripts/steps.sh
# What is set for another build, or to explore less, would empty the suites or end models early.
unset CARGO_ENCODED_RUSTFLAGS MODELS MODEL_FLOORS LOOM_MAX_DURATION LOOM_MAX_PERMUTATIONS LOOM_CHECKPOINT_FILE
show=cat
case ${1:-} in
    --table) show=table; shift ;;
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
models_page=kcas/testing/models.md
table() {
    local before
    before=$(cat $models_page)
    {
        cat <<'END'
# Models

`scripts/loom.sh --table` writes this page. Loom has explored every execution that it can represent (`kcas/src/sync.rs`) with at
most this many preemptions (forced thread switches); "any" means without a bound. The main thread counts as a thread. If a model is
explored in several forms, the last number is their sum.

| Crate | Model | Forms | Threads | Preemptions | Executions |
|---|---|--:|--:|--:|--:|
END
        # Models that were not explored now keep their rows.
        tee /dev/stderr | awk 'FNR == 1 { file++ }
            file == 1 { names[++count] = $3; crate[$3] = $1; next }
            file == 2 { if (/^\| [a-z-]+ \| `/) { split($0, parts, "`"); row[parts[2]] = $0 } next }
            /^model / { name = $2; sub(/:$/, "", name); forms[name]++; threads[name] = $3
                bound[name] = /at most/ ? $7 : "any"; executions[name] += $(NF - 3) }
            END { for (at = 1; at <= count; at++) { name = names[at]
                if (name in forms) row[name] = "| " crate[name] " | `" name "` | " forms[name] " | " threads[name] " | " \
                    bound[name] " | " executions[name] " |"
                if (name in row) print row[name] } }' <(models) <(echo "$before") -
    } >$models_page
}
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
listed "$@" | tac | xargs -n 3 -P "$(nproc)" sh -c 'cd "$0" && "$1" --exact "$2" --nocapture' | $show
