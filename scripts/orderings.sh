#!/usr/bin/env bash
# Weakens every memory ordering of kcas and filter, one at a time, in a copy of the code, and shows which
# model notices: an ordering that nobody would miss is a guess. scripts/orderings.txt names for each the
# model that must notice, or the reason why none can.
#
#   scripts/orderings.sh [PATTERN]        about 10 minutes on two cores
#
# PATTERN (of grep -E) chooses lines of the file. A line that ends in "?" is held against all models.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
table=scripts/orderings.txt
target="${CARGO_TARGET_DIR:-$root/target}/orderings"
copy="$target/copy"
log="$target/log"

export RUSTFLAGS="--cfg kcas_loom ${RUSTFLAGS:-}"
export CARGO_TARGET_DIR="$target"
export RUST_BACKTRACE=0
# A weaker ordering allows more executions, sometimes very many more. A model that has found nothing after
# so many seconds is not waited for.
export LOOM_MAX_DURATION="${LOOM_MAX_DURATION:-120}"
export LOOM_CHECKPOINT_INTERVAL=500

. scripts/copy.sh

# FILE FUNCTION NTH ACCESS ORDERING WEAKER, of every ordering that can be weakened.
orderings() {
    local file
    find kcas/src filter/src -name '*.rs' | grep -vE '/(sync|model|steps|[a-z_]+_models)\.rs$' | sort |
        while read -r file; do awk -f scripts/orderings.awk "$file" | sed "s|^|$file |"; done
}

plant() { # FILE FUNCTION NTH WEAKER
    copy_to "$copy"
    awk -v function_name="$2" -v nth="$3" -v weaker="$4" -f scripts/orderings.awk "$1" >"$copy/$1"
}

# CRATE MODEL, of every model there is.
models() {
    awk '/^#\[test\]/ { getline; sub(/^fn /, ""); sub(/\(.*/, ""); split(FILENAME, path, "/"); print path[1], $0 }' \
        kcas/src/*_models.rs kcas/tests/loom.rs filter/tests/loom.rs
}

# True when the model finds a bug. One that only explored less than it says has found nothing.
finds() { # CRATE MODEL
    if (cd "$copy" && cargo test --profile loom -p "$1" --lib --test loom -- "$2") >"$log" 2>&1; then
        return 1
    elif ! grep -q "panicked at" "$log"; then
        cat "$log" >&2
        exit 1
    fi
    ! grep -q "were explored before" "$log"
}

mkdir -p "$target"

# The table is made for the code as it is: the same orderings in the same order.
if ! diff <(grep -v '^#' $table | awk 'NF { print $1, $2, $3, $4, $5, $6 }') <(orderings) >"$log"; then
    cat "$log" >&2
    echo "$table lists other orderings (<) than the code has (>): mend it, with ? for a model you do not know" >&2
    exit 1
fi

killed=0 explained=0 survived=0
while read -r file function nth access ordering weaker verdict; do
    title=$(printf '%-22s %-18s %-9s %-7s → %-7s' "$file" "$function $nth" "$access" "$ordering" "$weaker")
    if [[ "$verdict" == \(* ]]; then
        grep -q "^# $verdict " $table || { echo "$table does not tell what $verdict means" >&2; exit 1; }
        echo "$title  not noticed: $verdict"
        explained=$((explained + 1))
        continue
    fi
    plant "$file" "$function" "$nth" "$weaker"
    (cd "$copy" && cargo test --profile loom -p kcas -p filter --lib --test loom --no-run) >"$log" 2>&1 ||
        { cat "$log" >&2; exit 1; }
    by=""
    while read -r crate model; do
        start=$SECONDS
        if finds "$crate" "$model"; then
            by="$model in $((SECONDS - start)) s"
            if grep -q "maximum number of branches" "$log"; then by="$by, by an endless loop"; fi
            break
        fi
    done < <(models | grep -E " ($verdict)$" || [ "$verdict" = "?" ] && models)
    if [ -n "$by" ]; then
        echo "$title  killed by $by"
        killed=$((killed + 1))
    else
        echo "$title  SURVIVED"
        survived=$((survived + 1))
    fi
done < <(grep -v '^#' $table | grep -E "${1:-.}")
echo "$killed weakened orderings killed, $explained with a reason not to be, $survived survived"
[ "$survived" -eq 0 ]
