#!/usr/bin/env bash
# Plants each known bug in a copy of the code and shows that the model checker catches it: a check that
# cannot fail proves nothing. The bugs are kept as patches under kcas/tests/planted and
# filter/tests/planted; each names the model that must fail with it.
#
#   scripts/planted.sh [PATCH ...]        all of them by default
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
target="${CARGO_TARGET_DIR:-$root/target}/planted"
copy="$target/copy"

patches=("$@")
[ ${#patches[@]} -gt 0 ] || patches=(kcas/tests/planted/*.patch filter/tests/planted/*.patch)

export RUSTFLAGS="--cfg kcas_loom ${RUSTFLAGS:-}"
export CARGO_TARGET_DIR="$target"
export RUST_BACKTRACE=0

fresh_copy() {
    mkdir -p "$copy"
    rm -rf "$copy/kcas" "$copy/filter"
    cp -R "$root/Cargo.lock" "$root/kcas" "$root/filter" "$copy"
    # Without the harness, which the models do not need.
    sed 's/, "harness"//' "$root/Cargo.toml" >"$copy/Cargo.toml"
}

caught=0 survived=0
for patch in "${patches[@]}"; do
    crate=${patch%%/tests/planted/*}
    model=$(sed -n 's/^Caught by: //p' "$patch")
    fresh_copy
    # The directory keeps git from taking the copy for a part of this repository.
    (cd "$copy" && GIT_CEILING_DIRECTORIES="$target" git apply -p1 "$root/$patch")
    log="$target/$(basename "$patch" .patch).log"
    if ! (cd "$copy" && cargo test --profile loom -p "$crate" --lib --test loom --no-run) >"$log" 2>&1; then
        cat "$log" >&2
        echo "$patch does not compile: mend the patch" >&2
        exit 1
    fi
    start=$SECONDS
    # A model that only explores less than before has not caught anything.
    if (cd "$copy" && cargo test --profile loom -p "$crate" --lib --test loom -- "$model" --nocapture) >>"$log" 2>&1 || grep -q "were explored before" "$log"; then
        printf 'SURVIVED  %-34s %s\n' "$(basename "$patch" .patch)" "$model"
        survived=$((survived + 1))
    elif grep -q "^test .*$model.* FAILED\|panicked at" "$log"; then
        printf 'caught    %-34s by %s in %d s\n' "$(basename "$patch" .patch)" "$model" $((SECONDS - start))
        caught=$((caught + 1))
    else
        cat "$log" >&2
        echo "$patch: $model neither passed nor failed" >&2
        exit 1
    fi
done
echo "$caught planted bugs caught, $survived survived"
[ "$survived" -eq 0 ]
