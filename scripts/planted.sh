#!/usr/bin/env bash
# Plants each known bug in a copy of the code and shows that a check catches it: a check that cannot fail
# proves nothing. The bugs are kept as patches under kcas/tests/planted and filter/tests/planted; each names
# the check that must fail with it: a model (run under loom), or a test of the suite in brackets (`lib`: beside the code).
#
#   scripts/planted.sh [PATCH ...]              all of them by default
#   scripts/planted.sh --histories [PATCH ...]  the same bugs, looked for by `harness check`, up to a minute each
#
# A bug that no history on this kind of machine shows says so in its patch ("Not in histories: REASON").
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
target="${CARGO_TARGET_DIR:-$root/target}/planted"
copy="$target/copy"

histories=""
if [ "${1:-}" = --histories ]; then
    histories=yes
    shift
fi
patches=("$@")
[ ${#patches[@]} -gt 0 ] || patches=(kcas/tests/planted/*.patch filter/tests/planted/*.patch)

export RUST_BACKTRACE=0

. scripts/copy.sh

fresh_copy() {
    copy_to "$copy"
    if [ "$histories" ]; then
        cp -R "$root/kcas-epoch" "$root/harness" "$root/Cargo.toml" "$copy"
    fi
}

# Builds the check in the copy: build SUITE CRATE
build() {
    cd "$copy"
    case $1 in
        histories)
            # The profile of the models: without the optimisation across crates, which takes longer than the search.
            CARGO_TARGET_DIR="$target/histories" cargo build --profile loom -p harness --features steps
            ;;
        *) run "$1" "$2" --no-run ;;
    esac
}

# Runs it: run SUITE CRATE [ARGUMENT ...]
run() {
    local suite=$1 crate=$2
    shift 2
    cd "$copy"
    case $suite in
        histories)
            "$target/histories/loom/harness" check --subject lock-free --threads 8 --seconds 60 --patience 20
            ;;
        model)
            RUSTFLAGS="--cfg kcas_loom ${RUSTFLAGS:-}" CARGO_TARGET_DIR="$target" \
                cargo test --profile loom -p "$crate" --lib --test 'loom*' "$@"
            ;;
        lib)
            CARGO_TARGET_DIR="$target/tests" cargo test -p "$crate" --features steps --lib "$@"
            ;;
        *)
            CARGO_TARGET_DIR="$target/tests" cargo test -p "$crate" --features steps --test "$suite" "$@"
            ;;
    esac
}

caught=0 survived=0 left_out=0
for patch in "${patches[@]}"; do
    crate=${patch%%/tests/planted/*}
    bug=$(basename "$patch" .patch)
    read -r name suite < <(sed -n 's/^Caught by: //p' "$patch")
    suite=${suite//[()]/}
    suite=${suite:-model}
    if [ "$histories" ]; then
        why=$(sed -n 's/^Not in histories: //p' "$patch")
        if [ "$why" ]; then
            printf 'left out  %-34s %s\n' "$bug" "$why"
            left_out=$((left_out + 1))
            continue
        fi
        suite=histories name=""
    fi
    fresh_copy
    # The directory keeps git from taking the copy for a part of this repository.
    (cd "$copy" && GIT_CEILING_DIRECTORIES="$target" git apply -p1 "$root/$patch")
    log="$target/$bug.log"
    if ! (build "$suite" "$crate") >"$log" 2>&1; then
        cat "$log" >&2
        echo "$patch does not compile: mend the patch" >&2
        exit 1
    fi
    start=$SECONDS
    # A model that only explores less than before has not caught anything.
    if (run "$suite" "$crate" -- "$name" --nocapture) >>"$log" 2>&1 || grep -q "were explored before" "$log"; then
        printf 'SURVIVED  %-34s %s\n' "$bug" "$name"
        survived=$((survived + 1))
    elif grep -q "^test .*$name.* FAILED\|panicked at\|^VIOLATION\|^STUCK" "$log"; then
        printf 'caught    %-34s by %s %s in %d s\n' "$bug" "$suite" "$name" $((SECONDS - start))
        caught=$((caught + 1))
    else
        cat "$log" >&2
        echo "$patch: $name neither passed nor failed" >&2
        exit 1
    fi
done
echo "$caught planted bugs caught, $survived survived${histories:+, $left_out left out}"
[ "$survived" -eq 0 ]
