#!/usr/bin/env bash
# Weakens every memory ordering of kcas and filter, one at a time, in a copy of the
# code, and shows which model notices: an ordering that nothing would miss is a guess. For each
# ordering, scripts/orderings.txt names the model that must notice, or the reason why none can; and for each of kcas that is
# weaker than SeqCst, why the proof, which takes all for SeqCst, holds nevertheless.
#
#   scripts/orderings.sh [PATTERN]        about 10 minutes on two cores
#   scripts/orderings.sh --compare        only compares this table, and that of actions, with the code: under a second
#
# PATTERN (for grep -E) selects lines of the table. A line that ends in "?" is checked against all
# models.
#
#   scripts/orderings.sh --actions [MODEL ...]
#
# counts instead how often each model, and a run of random steps, takes each action of the proof (kcas/proof/kcas.py), and
# writes kcas/proof/actions.csv. About 10 minutes for all models and CONFORMANCE_STEPS random steps, by default ten
# million. For the models whose names have MODEL in them, only their rows are renewed.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
table=scripts/orderings.txt
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/orderings

. scripts/copy.sh

# Prints FILE FUNCTION NTH ACCESS ORDERING WEAKER for every ordering that can be weakened, and of kcas for all others.
orderings() {
    local file
    find kcas/src filter/src -name '*.rs' | grep -vE '/(sync|steps|[a-z_]+_models)\.rs$' | LC_ALL=C sort |
        while read -r file; do awk -v all="$(sed -n 's/^kcas.*/yes/p' <<<"$file")" -f scripts/orderings.awk "$file" | sed "s|^|$file |"; done
}

# The table fits the code as it is: the same orderings in the same order, models that exist, reasons
# that it explains.
compare() {
    local row verdict known unproven
    if ! diff <(grep -v '^#' $table | awk 'NF { print $1, $2, $3, $4, $5, $6 }') <(orderings) >&2; then
        echo "$table lists other orderings (<) than the code has (>): update it, with ? for an unknown model" >&2
        return 1
    fi
    known=$(models | awk '{ print $3 }'; sed -n 's/^# \(([A-Z])\).*/\1/p' $table; printf '%s\n' '?' -)
    while read -r verdict; do
        if ! grep -qxF -- "$verdict" <<<"$known"; then
            echo "$table names $verdict, which is neither a model nor one of its reasons" >&2
            return 1
        fi
    done < <(grep -v '^#' $table | awk 'NF { print $7 }' | sort -u)
    known=$(sed -n 's/^# \(([a-z])\).*/\1/p' $table | tr '\n' ' ')
    unproven=$(grep -v '^#' $table | awk -v known="$known" 'NF && (/^kcas/ && $5 != "SeqCst" ? $8 == "" || !index(known, $8) : NF > 7)')
    if [ "$unproven" ]; then
        printf '%s must say why the proof holds for these, or not say it:\n%s\n' $table "$unproven" >&2
        return 1
    fi
}

counted=kcas/proof/actions.csv
random_steps="random steps of four threads"

# Prints the actions of the proof.
actions() {
    awk '/^ +action\($/ { getline; while (match($0, /"[^"]*"/)) { print substr($0, RSTART + 1, RLENGTH - 2); $0 = substr($0, RSTART + RLENGTH) } }' \
        kcas/proof/kcas.py
}

# The table of actions has each model and each action, and something takes each action.
compare_actions() {
    diff <(head -1 $counted | sed 's/^model,//; s/\("[^"]*"\|[^,]*\),\{0,1\}/\1\n/g' | tr -d '"' | grep .) <(actions) >&2 ||
        { echo "$counted has other actions (<) than the proof (>): scripts/orderings.sh --actions" >&2; return 1; }
    diff <(sed '1d; s/,.*//' $counted | LC_ALL=C sort) <({ models | awk '{ print $3 }'; echo "$random_steps"; } | LC_ALL=C sort) >&2 ||
        { echo "$counted has other rows (<) than there are models (>): scripts/orderings.sh --actions MODEL" >&2; return 1; }
    awk -F, 'NR > 1 { for (at = 2; at <= NF; at++) sum[at] += $at }
        END { for (at in sum) if (!sum[at]) { print FILENAME ": nothing takes action " at - 1 > "/dev/stderr"; exit 1 } }' $counted
}

count_actions() { # [MODEL ...]
    ACTIONS=$(mktemp) kept=$(mktemp)
    export ACTIONS
    trap 'rm -f "$ACTIONS" "$kept"' EXIT
    scripts/loom.sh "$@"
    if [ $# -eq 0 ]; then
        CONFORMANCE_STEPS=${CONFORMANCE_STEPS:-10000000} cargo test --locked -p kcas-testing --features steps --test conformance each_write
    else
        # The rows of other models, if these are still there.
        awk -F, 'NR == FNR { new[$1]; next } FNR > 1 && !($1 in new)' "$ACTIONS" $counted |
            awk -F, 'NR == FNR { there[$0]; next } $1 in there' <(models | awk '{ print $3 }'; echo "$random_steps") - >"$kept"
    fi
    {
        actions | awk 'BEGIN { printf "model" } { printf /,/ ? ",\"%s\"" : ",%s", $0 } END { print "" }'
        # Some models are explored in several forms.
        awk -F, '{ for (at = 2; at <= NF; at++) sum[$1, at] += $at; rows[$1] } END { for (row in rows) {
            printf "%s", row; for (at = 2; at <= NF; at++) printf ",%d", sum[row, at]; print "" } }' "$ACTIONS" | cat - "$kept" | LC_ALL=C sort
    } >$counted
}

case ${1:-} in
    --actions)
        count_actions "${@:2}"
        compare_actions
        exit
        ;;
    --compare)
        status=0
        compare || status=1
        compare_actions || status=1
        exit $status
        ;;
esac
compare
if ! grep -v '^#' $table | grep -qE "${1:-.}"; then
    echo "no line of $table matches \"$1\"" >&2
    exit 2
fi

export RUSTFLAGS="--cfg kcas_loom ${RUSTFLAGS:-}"
export RUST_BACKTRACE=0
# A model that only explores less than it claims has found nothing.
export MODEL_FLOORS=off
# A weaker ordering allows more executions, sometimes a great many more. A model that has found
# nothing after this many seconds is abandoned.
export LOOM_MAX_DURATION="${LOOM_MAX_DURATION:-120}"
export LOOM_CHECKPOINT_INTERVAL=500

# Runs cargo test for one suite in the copy. CRATE SUITE [ARGUMENT ...]
run() {
    local crate=$1 suite=$2
    shift 2
    cargo test --locked --profile loom --features loom -p "$crate" "$suite" "$@"
}

# True if the model finds a bug.
finds() { # CRATE SUITE MODEL
    if ! run "$1" "$2" --no-run >"$log" 2>&1; then
        cat "$log" >&2
        echo "the copy does not compile" >&2
        exit 1
    fi
    start=$SECONDS
    if run "$1" "$2" -- "$3" >"$log" 2>&1; then
        return 1
    elif ! grep -q "panicked at" "$log"; then
        cat "$log" >&2
        exit 1
    fi
}

# Weakens the orderings of every LANES-th row, and restores each.
weaken() { # LANE LANES PATTERN
    local row=0 file function nth access ordering weaker verdict why title by crate suite model start
    export CARGO_TARGET_DIR="$target/$1"
    log="$target/$1/log"
    copy_to "$target/$1/copy"
    borrow_build "$target/../loom/loom" "$CARGO_TARGET_DIR/loom"
    cd "$target/$1/copy"
    while read -r file function nth access ordering weaker verdict why; do
        [ "$weaker" != - ] || continue
        row=$((row + 1))
        [ $((row % $2)) -eq "$1" ] || continue
        title=$(printf '%-22s %-18s %-9s %-7s → %-7s' "$file" "$function $nth" "$access" "$ordering" "$weaker")
        if [[ "$verdict" == \(* ]]; then
            echo "$title  not noticed: $verdict"
            continue
        fi
        awk -v function_name="$function" -v nth="$nth" -v weaker="$weaker" -f scripts/orderings.awk "$root/$file" >"$file"
        by=""
        while read -r crate suite model; do
            if finds "$crate" "$suite" "$model"; then
                by="$model in $((SECONDS - start)) s"
                if grep -q "maximum number of branches" "$log"; then by="$by, by an endless loop"; fi
                break
            fi
        done < <(cd "$root" && models | awk -v model="$verdict" 'model == "?" || $3 == model')
        cp "$root/$file" "$file"
        if [ -n "$by" ]; then echo "$title  killed by $by"; else echo "$title  SURVIVED"; fi
    done < <(grep -v '^#' "$root/$table" | grep . | grep -E "$3")
}

lanes=$(nproc 2>/dev/null || echo 1)
[ "$lanes" -le 4 ] || lanes=4
mkdir -p "$target"
results="$target/results"
: >"$results"
jobs=()
# Each lane is a process group of its own, which ends with this script.
set -m
for ((lane = 0; lane < lanes; lane++)); do
    mkdir -p "$target/$lane"
    { weaken "$lane" "$lanes" "${1:-.}" | tee -a "$results"; } &
    jobs+=($!)
done
trap 'kill -- "${jobs[@]/#/-}" 2>/dev/null || true' INT TERM HUP
status=0
for job in "${jobs[@]}"; do wait "$job" || status=1; done

count() { grep -c "$1" "$results" || true; }
echo "$(count '  killed by ') weakened orderings killed, $(count '  not noticed: ') unnoticed for a reason, $(count '  SURVIVED$') survived"
[ "$status" -eq 0 ] && [ "$(count '  SURVIVED$')" -eq 0 ]
