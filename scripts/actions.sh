#!/usr/bin/env bash
# Counts how often each model, and a run of random steps, takes each action of the proof (kcas/proof/kcas.py), and writes
# kcas/proof/actions.csv.
#
#   scripts/actions.sh              all models, and CONFORMANCE_STEPS random steps, by default ten million: about 10 minutes
#   scripts/actions.sh MODEL ...    these models: the other rows stay
#   scripts/actions.sh --compare    only: does the table have each model and each action, and is no action taken by nothing?
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
. scripts/copy.sh
table=kcas/proof/actions.csv
steps="random steps of four threads"

actions() {
    awk '/^ +action\($/ { getline; while (match($0, /"[^"]*"/)) { print substr($0, RSTART + 1, RLENGTH - 2); $0 = substr($0, RSTART + RLENGTH) } }' \
        kcas/proof/kcas.py
}

compare() {
    diff <(head -1 $table | sed 's/^model,//; s/\("[^"]*"\|[^,]*\),\{0,1\}/\1\n/g' | tr -d '"' | grep .) <(actions) >&2 ||
        { echo "$table has other actions (<) than the proof (>): scripts/actions.sh" >&2; return 1; }
    diff <(sed '1d; s/,.*//' $table | LC_ALL=C sort) <({ models | awk '{ print $3 }'; echo "$steps"; } | LC_ALL=C sort) >&2 ||
        { echo "$table has other rows (<) than there are models (>): scripts/actions.sh" >&2; return 1; }
    awk -F, 'NR > 1 { for (at = 2; at <= NF; at++) sum[at] += $at }
        END { for (at in sum) if (!sum[at]) { print FILENAME ": nothing takes action " at - 1 > "/dev/stderr"; exit 1 } }' $table
}

if [ "${1:-}" != --compare ]; then
    ACTIONS=$(mktemp) others=$(mktemp)
    export ACTIONS
    trap 'rm -f "$ACTIONS" "$others"' EXIT
    scripts/loom.sh "$@"
    if [ $# -eq 0 ]; then
        CONFORMANCE_STEPS=${CONFORMANCE_STEPS:-10000000} cargo test --locked -p lfcf-kcas --features steps --lib each_write
    else
        awk -F, 'NR == FNR { new[$1]; next } FNR > 1 && !($1 in new)' "$ACTIONS" $table >"$others"
    fi
    {
        actions | awk 'BEGIN { printf "model" } { printf /,/ ? ",\"%s\"" : ",%s", $0 } END { print "" }'
        # Some models are explored in several forms.
        awk -F, '{ for (at = 2; at <= NF; at++) sum[$1, at] += $at; rows[$1] } END { for (row in rows) {
            printf "%s", row; for (at = 2; at <= NF; at++) printf ",%d", sum[row, at]; print "" } }' "$ACTIONS" | cat - "$others" | LC_ALL=C sort
    } >$table
fi
compare
