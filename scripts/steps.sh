# shellcheck shell=bash
# For check.sh and deep.sh, whose steps are functions, and for scripts that choose tests by name.

background=""

step() { printf '\n== %s (at %d s)\n' "$1" $SECONDS; }

# Builds what these arguments of cargo choose, and prints "DIRECTORY" "PROGRAM" for each test program: cargo runs it there.
test_programs() { # ARGUMENT ...
    cargo test "$@" --no-run >&2
    cargo test "$@" --no-run --quiet --message-format=json |
        sed -n 's/.*"manifest_path":"\([^"]*\)\/Cargo.toml".*"profile":{[^}]*"test":true}.*"executable":"\([^"]*\)".*/"\1" "\2"/p'
}

# Runs tests of at least this many programs: names that match none would pass.
some_of_each() { # PROGRAMS COMMAND ...
    "${@:2}" | awk -v programs="$1" '{ print; fflush() } /^running [1-9]/ { programs-- }
        END { if (programs > 0) { print "test programs in which no test was chosen: " programs >"/dev/stderr"; exit 1 } }'
}

# Runs a step in the background, since many steps keep only one core busy: beside STEP. Its output is
# shown when it is awaited.
beside() {
    step "$1: beside what follows, output in target/$1.log"
    mkdir -p target
    # Each background job is a process group of its own, which is stopped if anything fails before.
    set -m
    trap '[ -z "$background" ] || kill -- "-$background" 2>/dev/null || true' EXIT
    "$1" >"target/$1.log" 2>&1 &
    background=$!
}

await() { # STEP
    local failed=""
    wait "$background" || failed=yes
    background=""
    cat "target/$1.log"
    if [ "$failed" ]; then
        echo "$1 failed" >&2
        return 1
    fi
}

# Runs the steps that are named, or `everything`.
run_steps() { # "ALL STEPS" [STEP ...]
    local all=$1 name
    shift
    for name; do
        if [[ " $all " != *" $name "* ]]; then
            echo "\"$name\" is no step; there are: $all" >&2
            exit 2
        fi
    done
    if [ $# -eq 0 ]; then everything; else for name; do "$name"; done; fi
    step "passed: ${*:-$all}"
}
