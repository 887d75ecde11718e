#!/usr/bin/env bash
# Plants each known bug in a copy of the code and shows that a check catches it: a check that cannot fail
# proves nothing. The bugs are kept as patches under kcas/tests/planted and filter/tests/planted; each names
# the check that must fail with it: a model (run under loom), or a test of the suite in brackets.
#
#   scripts/planted.sh [PATCH ...]        all of them by default
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
target="${CARGO_TARGET_DIR:-$root/target}/planted"
copy="$target/copy"

patches=("$@")
[ ${#patches[@]} -gt 0 ] || patches=(kcas/tests/planted/*.patch filter/tests/planted/*.patch)

export RUST_BACKTRACE=0

fresh_copy() {
    mkdir -p "$copy"
    rm -rf "$copy/kcas" "$copy/filter"
    cp -R "$root/Cargo.lock" "$root/kcas" "$root/filter" "$copy"
    # Without the harness, which the checks do not need.
    sed 's/, "harness"//' "$root/Cargo.toml" >"$copy/Cargo.toml"
}

# Runs cargo test in the copy as the check wants it: check SUITE CRATE [ARGUMENT ...]
check() {
    local suite=$1 crate=$2
    shift 2
    cd "$copy"
    if [ "$suite" = model ]; then
        RUSTFLAGS="--cfg kcas_loom ${RUSTFLAGS:-}" CARGO_TARGET_DIR="$target" \
            cargo test --profile loom -p "$crate" --lib --test loom "$@"
    else
        CARGO_TARGET_DIR="$target/$suite" cargo test -p "$crate" --features steps --test "$suite" "$@"
    fi
}

caught=0 survived=0
for patch in "${patches[@]}"; do
    crate=${patch%%/tests/planted/*}
    bug=$(basename "$patch" .patch)
    read -r name suite < <(sed -n 's/^Caught by: //p' "$patch")
    suite=${suite//[()]/}
    suite=${suite:-model}
    fresh_copy
    # The directory keeps git from taking the copy for a part of this repository.
    (cd "$copy" && GIT_CEILING_DIRECTORIES="$target" git apply -p1 "$root/$patch")
    log="$target/$bug.log"
    if ! (check "$suite" "$crate" --no-run) >"$log" 2>&1; then
        cat "$log" >&2
        echo "$patch does not compile: mend the patch" >&2
        exit 1
    fi
    start=$SECONDS
    # A model that only explores less than before has not caught anything.
    if (check "$suite" "$crate" -- "$name" --nocapture) >>"$log" 2>&1 || grep -q "were explored before" "$log"; then
        printf 'SURVIVED  %-34s %s\n' "$bug" "$name"
        survived=$((survived + 1))
    elif grep -q "^test .*$name.* FAILED\|panicked at" "$log"; then
        printf 'caught    %-34s by %s %s in %d s\n' "$bug" "$suite" "$name" $((SECONDS - start))
        caught=$((caught + 1))
    else
        cat "$log" >&2
        echo "$patch: $name neither passed nor failed" >&2
        exit 1
    fi
done
echo "$caught planted bugs caught, $survived survived"
[ "$survived" -eq 0 ]
