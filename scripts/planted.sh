#!/usr/bin/env bash
# Plants each known bug in a copy of the code and shows that a check catches it: a check that cannot
# fail proves nothing. The bugs are kept as patches under kcas/tests/planted and
# filter/tests/planted. Each names the check that must fail with it: a model (run under loom), or a
# test with its suite in brackets (`lib`: next to the code).
#
#   scripts/planted.sh [PATCH ...]              all of them by default, models and suites side by side
#   scripts/planted.sh --histories [PATCH ...]  the same bugs, looked for by `harness check`, up to a minute each
#   scripts/planted.sh --steps [PATCH ...]      the bugs of kcas, looked for by random steps of real threads against the proof
#   scripts/planted.sh --table                  prints who catches which bug of kcas, for kcas/proof/planted.md
#   scripts/planted.sh --refit [PATCH ...]      rewrites patches whose surroundings have changed, so that they fit again
#
# The bugs are patches, not switches in the code, which would add eighty wrong branches to the protocol.
# `scripts/rules.sh` finds a patch that no longer fits.
#
# A bug that no history on this kind of machine shows says so in its patch ("Not in histories:
# REASON"), as does one that random steps do not show ("Not in steps: REASON"), or that the model of the proof cannot express
# ("Not in the proof: REASON"). HISTORY_SECONDS is how long each search lasts, CONFORMANCE_STEPS how many steps.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/planted

# What looks for a bug: a test or a model, unless it is histories or steps of threads.
histories="" steps="" refit=""
case ${1:-} in
    --histories) histories=yes; shift ;;
    --steps) steps=yes; shift ;;
    --refit) refit=yes; shift ;;
esac
patches=("$@")
[ ${#patches[@]} -gt 0 ] || patches=(kcas/tests/planted/*.patch)
[ $# -gt 0 ] || [ "$steps" ] || patches+=(filter/tests/planted/*.patch)

# Applies a patch as far as a line around each change tells where it belongs, and writes it again.
refit() { # PATCH
    local patch=$1 copy="$target/refit" file
    rm -rf "$copy"
    mkdir -p "$copy"
    while read -r file; do
        mkdir -p "$copy"/{a,b}/"$(dirname "$file")"
        cp "$file" "$copy/a/$file"
        cp "$file" "$copy/b/$file"
    done < <(sed -n 's/^+++ b\///p' "$patch")
    export GIT_CEILING_DIRECTORIES="$copy"
    (cd "$copy/b" && git apply -p1 -C1 "$root/$patch") || return
    {
        sed '/^--- a\//,$d' "$patch"
        (cd "$copy" && git diff --no-index --no-prefix a b) | sed '/^diff --git\|^index /d'
    } >"$copy/patch"
    cmp -s "$copy/patch" "$patch" || { cp "$copy/patch" "$patch"; echo "rewritten: $patch"; }
}

if [ "$refit" ]; then
    status=0
    for patch in "${patches[@]}"; do
        refit "$patch" || { echo "does not fit: $patch" >&2; status=1; }
    done
    exit $status
fi

caught_by() { # PATCH: NAME SUITE
    sed -n 's/^Caught by: \([^ ]*\) *(\{0,1\}\([a-z_]*\))\{0,1\}$/\1 \2/p' "$1" | sed 's/ $/ model/'
}

# Prints who catches which bug of kcas. Fails if the proof has no mistake for one, and the patch does not say why.
table() {
    local patch bug why proof steps name suite
    local caught=0 proved=0 stepped=0
    header() { sed -n "s/^$1: //p; /^---/q" "$patch"; }
    printf '# Planted bugs of kcas, and who catches them\n\nMade by `scripts/planted.sh --table`. %s\n\n' \
        "The last column is what \`scripts/planted.sh\` runs, the one before it \`scripts/planted.sh --steps\`, the one before that \`scripts/optional.sh proof\`."
    printf '| Bug | What is wrong | Proof | Random steps | Its own check |\n|---|---|---|---|---|\n'
    for patch in kcas/tests/planted/*.patch; do
        bug=$(basename "$patch" .patch) why=$(header "Not in the proof") steps=$(header "Not in steps") proof=$(header "In the proof")
        read -r name suite < <(caught_by "$patch")
        caught=$((caught + 1))
        if [ -z "$why" ]; then
            if ! grep -q "^    \"${proof:-$bug}\": " kcas/proof/kcas.py; then
                echo "$patch: kcas/proof/kcas.py has no such mistake" >&2
                return 1
            fi
            proved=$((proved + 1)) why="yes${proof:+, as $proof}"
        else
            why="no: $why"
        fi
        if [ "$steps" ]; then steps="no: $steps"; else stepped=$((stepped + 1)) steps=yes; fi
        printf '| [%s](../tests/planted/%s.patch) | %s | %s | %s | %s `%s` |\n' "$bug" "$bug" "$(head -1 "$patch")" "$why" "$steps" "$suite" "$name"
    done
    printf '\nOf %d bugs the proof has %d, random steps find %d, and each has a check of its own.\n' "$caught" "$proved" "$stepped"
}

if [ "${1:-}" = --table ]; then
    table
    exit
fi

export RUST_BACKTRACE=0
# A bug changes little of one crate.
export CARGO_INCREMENTAL=1
# A model that only explores less than before has not caught anything.
export MODEL_FLOORS=off

. scripts/copy.sh

# A bug is found within a second or so, less than it takes to build: the crates that change are optimised less, and in small
# units. (Not optimised at all, they overflow the stack that loom gives a thread.)
soon_built=()
for crate in lfcf-kcas kcas-testing lfcf-filter; do
    for setting in opt-level=1 codegen-units=64; do soon_built+=(--config "profile.loom.package.$crate.$setting"); done
done

# Builds or runs one check in the current directory: check SUITE NAME [ARGUMENT ...]
check() {
    local suite=$1 name=$2 crate
    shift 2
    case $suite in
        model)
            read -r crate suite < <(models | awk -v name="$name" '$3 == name { print $1, $2 }')
            RUSTFLAGS="--cfg kcas_loom ${RUSTFLAGS:-}" cargo test --locked --profile loom --features loom "${soon_built[@]}" -p "$crate" "$suite" "$@"
            ;;
        random)
            CONFORMANCE_STEPS="${CONFORMANCE_STEPS:-2000000}" cargo test --locked -p kcas-testing --features steps --test conformance "$@"
            ;;
        # All crates, whichever it is, so that their dependencies are built only once.
        lib) cargo test --locked -p lfcf-kcas -p lfcf-filter --all-features --lib "$@" ;;
        # With hooks before each access, no words are in files.
        shared) STORM_SECONDS=30 cargo test --locked -p lfcf-kcas -p lfcf-filter --features shared --test shared "$@" ;;
        locks) cargo test --locked -p lfcf-shared-memory --test locks "$@" ;;
        *) cargo test --locked -p lfcf-kcas -p kcas-testing -p lfcf-filter --all-features --test "$suite" "$@" ;;
    esac
}

# The profile of the models: without optimisation across crates, which would take longer than the
# search.
build_histories() {
    cargo build --locked --profile loom -p harness --features steps
}

# Prints NAME SUITE of what looks for a bug, unless histories do.
check_of() { # PATCH
    if [ "$steps" ]; then echo each_write_is_proof_action random; else caught_by "$root/$1"; fi
}

# Prints the subject that runs the code which a patch changes. What all filters share is looked for in the
# simplest.
subject_of() { # PATCH
    case $(sed -n 's/^+++ b\///p' "$1") in
        *filter/src/growing/*) echo growing ;;
        *filter/src/snapshot.rs*) echo lock-free-copies ;;
        *) echo lock-free ;;
    esac
}

check_histories() { # SUBJECT
    local patience=20
    # A round of lookups that each copy a hundred buckets takes many seconds on a busy machine.
    [ "$1" != lock-free-copies ] || patience=120
    "$CARGO_TARGET_DIR/loom/harness" check --subjects "$1" --threads 8 --seconds "${HISTORY_SECONDS:-60}" \
        --patience $patience
}

# Plants one bug after another in one copy, and removes it again, so that only the crate it touches
# is rebuilt. Prints a line for each: `caught`, `SURVIVED`, `left out` or `BROKEN`.
plant() { # LANE PATCH ...
    local lane=$1 patch bug name suite why log start built subject
    shift
    copy="$target/$lane/copy"
    copy_to "$copy"
    cd "$copy"
    export CARGO_TARGET_DIR="$target/$lane"
    # The dependencies of the checks are already built if the checks have been run before.
    if [ "$lane" = models ]; then
        borrow_build "$target/../loom/loom" "$CARGO_TARGET_DIR/loom"
    elif [ "$lane" = suites ] || [ "$lane" = steps ]; then
        borrow_build "$target/../debug" "$CARGO_TARGET_DIR/debug"
    fi
    # Keeps git from taking the copy for a part of this repository.
    export GIT_CEILING_DIRECTORIES="$target/$lane"
    # What fails without a bug catches none. (scripts/check.sh --full runs the suites without one in this same build, and
    # scripts/deep.sh the long models.)
    log="$target/$lane.log"
    if [ "$steps" ]; then
        CONFORMANCE_STEPS=200000 check random "" -- each_write_is_proof_action >"$log" 2>&1 ||
            { broken "random steps fail without a bug"; return; }
    elif [ "$lane" = models ]; then
        # The models of one program side by side.
        while read -r name others; do
            # shellcheck disable=SC2086 # several names
            MODELS=short check model "$name" -- "$name" $others >"$log" 2>&1 || { broken "a model fails without a bug"; return; }
        done < <(models | awk 'NR == FNR { wanted[$1]; next } $3 in wanted { names[$1 $2] = names[$1 $2] " " $3 }
            END { for (program in names) print names[program] }' <(for patch; do check_of "$patch"; done) -)
    fi
    for patch in "$@"; do
        bug=$(basename "$patch" .patch)
        log="$target/$lane/$bug.log"
        read -r name suite < <(check_of "$patch")
        subject=$(subject_of "$root/$patch")
        if [ "$histories$steps" ]; then
            why=$(sed -n "s/^Not in ${histories:+histories}${steps:+steps}: //p" "$root/$patch")
            if [ "$why" ]; then
                printf 'left out  %-34s %s\n' "$bug" "$why"
                continue
            fi
            [ ! "$histories" ] || suite=histories name=""
        fi
        git apply -p1 "$root/$patch"
        start=$SECONDS
        if [ "$suite" = histories ]; then
            build_histories >"$log" 2>&1 || { broken "$patch does not compile: update the patch"; return; }
        else
            check "$suite" "$name" --no-run >"$log" 2>&1 || { broken "$patch does not compile: update the patch"; return; }
        fi
        built=$((SECONDS - start))
        [ ! "$histories" ] || name="of $subject"
        start=$SECONDS
        if if [ "$histories" ]; then check_histories "$subject"; else check "$suite" "$name" -- "$name" --nocapture; fi \
            >"$log" 2>&1; then
            printf 'SURVIVED  %-34s %s\n' "$bug" "$name"
        # A check that fails for any other reason, such as a stack that overflows, has caught nothing.
        elif grep -q "panicked at\|^VIOLATION\|^STUCK" "$log"; then
            printf 'caught    %-34s by %s %s in %d s, built in %d s\n' "$bug" "$suite" "$name" $((SECONDS - start)) "$built"
        else
            broken "$patch: $name neither passed nor failed"
            return
        fi
        git apply -R -p1 "$root/$patch"
    done
}

broken() {
    cat "$log" >&2
    printf 'BROKEN    %s\n' "$1"
}

# Two lanes, since models and suites are built with different flags: each has its own copy and build
# directory. Random steps also have their own, so that scripts/deep.sh can look for them beside the others.
models=() suites=()
for patch in "${patches[@]}"; do
    read -r name suite < <(caught_by "$patch") || { echo "$patch names no check that must catch it" >&2; exit 1; }
    if [ "$suite" = model ] && [ ! "$histories$steps" ]; then models+=("$patch"); else suites+=("$patch"); fi
done

mkdir -p "$target"
lane=suites
[ ! "$histories" ] || lane=histories-suites
[ ! "$steps" ] || lane=steps
results="$target/results-of-$lane"
: >"$results"
lanes=()
# Each lane is a process group of its own, which ends with this script.
set -m
if [ ${#models[@]} -gt 0 ]; then
    { plant models "${models[@]}" | tee -a "$results"; } &
    lanes+=($!)
fi
if [ ${#suites[@]} -gt 0 ]; then
    { plant "$lane" "${suites[@]}" | tee -a "$results"; } &
    lanes+=($!)
fi
trap 'kill -- "${lanes[@]/#/-}" 2>/dev/null || true' INT TERM HUP
status=0
for lane in "${lanes[@]}"; do wait "$lane" || status=1; done

count() { grep -cE "^$1" "$results" || true; }
echo "$(count caught) planted bugs caught, $(count SURVIVED) survived, $(count 'left out') left out"
[ "$status" -eq 0 ] && [ "$(count caught)" -gt 0 ] && [ "$(count SURVIVED)" -eq 0 ] &&
    [ $(($(count caught) + $(count 'left out'))) -eq ${#patches[@]} ]
