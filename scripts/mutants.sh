#!/usr/bin/env bash
# Changes the code of kcas and filter in small ways, one at a time in a copy. A change that the tests and
# stalls let pass is tried again under the models. Fails if one passes those, too, and scripts/mutants.txt
# does not say why. What is left out, and why, is in .cargo/mutants.toml. (Memory orderings are covered by
# scripts/orderings.sh.)
#
#   scripts/mutants.sh [FILE ...]        of these files, by default all: days on two cores. SHARD=0/3: of every third
#   scripts/mutants.sh --compare         only: does the table fit the code
set -euo pipefail
cd "$(dirname "$0")/.."
table=scripts/mutants.txt

# The table names functions that there are. (Only cargo-mutants knows more.)
compare() {
    local file change function status=0
    while IFS=: read -r file change; do
        function=${change##*[ :]}
        grep -qE "fn $function\b" "$file" || { echo "$table: there is no function \"$function\" in $file" >&2; status=1; }
    done < <(grep -v '^#\|^$' $table)
    return $status
}

compare
[ "${1:-}" != --compare ] || exit 0
if ! cargo mutants --version >/dev/null 2>&1; then
    echo "cargo-mutants is missing: cargo install --locked cargo-mutants@27.1.0" >&2
    exit 1
fi

output="${CARGO_TARGET_DIR:-$PWD/target}"
mkdir -p "$output"
# Each build has its own target directory, next to its copy of the code.
unset CARGO_TARGET_DIR
export RUST_BACKTRACE=0 CARGO_MUTANTS_JOBS="${CARGO_MUTANTS_JOBS:-2}"
files=()
[ $# -gt 0 ] || set -- {kcas,filter,filter/histories}/src/'**'
for file; do files+=(--file "$file"); done
# Statuses 2 and 3: some were missed, or looped for ever. The latter count as caught.
run() {
    local status=0
    cargo mutants --output "$output" "${files[@]}" "$@" || status=$?
    [ "$status" -eq 0 ] || [ "$status" -eq 2 ] || [ "$status" -eq 3 ]
}
run ${SHARD:+--shard "$SHARD" --sharding round-robin}
missed=$output/mutants.missed
cp "$output/mutants.out/missed.txt" "$missed"
if [ -s "$missed" ]; then
    names=()
    while IFS= read -r name; do names+=(--re "^$(sed 's/[][\.*^$()+?{}|]/\\&/g' <<<"$name")\$"); done <"$missed"
    RUSTFLAGS="--cfg kcas_loom" MODEL_FLOORS=off run --profile loom "${names[@]}" -- --lib --test loom
fi

# (Some are tried under the models whatever the names are.)
survived=$(grep -xFf "$missed" "$output/mutants.out/missed.txt" | sed -E 's/^([^:]*):[0-9]+:[0-9]+: /\1: /' |
    grep -vxFf <(grep -v '^#\|^$' $table) || true)
[ -z "$survived" ] || { printf 'These changes passed, and %s does not say why:\n%s\n' $table "$survived" >&2; exit 1; }
