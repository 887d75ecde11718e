#!/usr/bin/env bash
# Measures and publishes results, each argument a command of the harness:
#
#   scripts/publish.sh                          what the README shows, in 15 minutes with the builds
#   scripts/publish.sh 'sweep load-factor' kcas
#   scripts/publish.sh all                      everything but other processors, in an hour and a half
#   scripts/publish.sh 'processes --with redis,pybloomfiltermmap3'
#                                               needs redis-server, libclang-14-dev, python3-venv, a C compiler and the network
#   scripts/publish.sh --placements 9           publishes nothing: only builds the harness with its functions in other orders
#
# Measures the last commit in a clone: changes that are not committed are not in it. COMMIT=HASH measures that one, so
# that results of several days are of one commit. It must be on main.
# Puts rows, figures and descriptions into paper-figures, and renews all that is made of them: the tables of
# Markdown pages, their commits, and measured.hash. If interrupted, it publishes what is complete.
# Look at the figures, then commit.
#
# --placements NUMBER makes target/placements/1 to NUMBER, so that measurements do not depend on where the linker put the
# code: target/placements/1 pair --builds "$(seq -f target/placements/%g -s , 9)". It compiles once, in about three
# minutes, and links once for each order. It needs a linker that can shuffle sections, as LLVM's can, which Rust uses by
# default on x86-64 Linux.
set -euo pipefail
case ${1:-} in
-h | --help)
    sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
    exit
    ;;
esac
cd "$(dirname "$0")/.."

# Builds the harness of the current directory with its functions in this number of orders.
place() { # NUMBER
    local target linker seed
    [[ ${1:-} =~ ^[1-9][0-9]?$ ]] || {
        echo "expected a number of orders from 1 to 99, for example: scripts/publish.sh --placements 9" >&2
        exit 2
    }
    target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
    rm -rf "$target/placements"
    mkdir -p "$target/placements"
    # A linker that makes the others on the way: what it links is gone when the compiler ends.
    linker=$(mktemp -d)
    cat >"$linker/cc" <<END
#!/usr/bin/env bash
set -euo pipefail
for seed in \$(seq "$1"); do
    cc "\$@" "-Wl,--shuffle-sections=.text*=\$seed"
    for ((at = 1; at < \$#; at++)); do
        [ "\${!at}" != -o ] || out=\$((at + 1))
    done
    cp "\${!out}" "$target/placements/\$seed"
done
END
    chmod +x "$linker/cc"
    # (Another linker than the last time: so it is always built.)
    CARGO_TARGET_DIR=$target cargo rustc --locked --profile figures -p harness --bin harness -- -C linker="$linker/cc" || return
    rm -rf "$linker"
    for seed in $(seq "$1"); do
        # By this list the program knows whether its sources are as committed.
        cp "$target/figures/harness.d" "$target/placements/$seed.d"
    done
}

if [ "${1:-}" = --placements ]; then
    place "${2:-}"
    exit
fi
[ $# -gt 0 ] || set -- pair
[ "$*" != all ] || set -- 'reproduce --full' 'processes --with redis,pybloomfiltermmap3'

commit=$(git rev-parse "${COMMIT:-HEAD}^{commit}")
git merge-base --is-ancestor "$commit" main || {
    echo "main does not have ${commit:0:10}: merge it first" >&2
    exit 1
}
# Among others, that no row was changed by hand: `renew` could not tell it from what is measured now.
scripts/rules.sh
work=$(mktemp -d)
git clone -q . "$work"
git -C "$work" checkout -q "$commit"
top=$PWD
mkdir "$work/target"

# Builds the harness with the given features, and prints where it lies.
build() { # FEATURES
    local target=$top/target/publish/with-$1
    (cd "$work" && cargo build --locked --profile figures -p harness --features "$1" --target-dir "$target" >&2)
    echo "$target/figures/harness"
}

# Builds the harness with its functions in 18 orders, unless that is done, and prints the option that measures with
# them: what is said must not depend on where the code lies.
placed() {
    if [ ! -e "$work/target/placements" ]; then
        (cd "$work" && CARGO_TARGET_DIR=$top/target/publish/shuffled place 18 >&2) || return
        ln -sfn "$top/target/publish/shuffled/placements" "$work/target/placements"
    fi
    echo "--builds $(seq -f target/placements/%g -s , 18)"
}

# Builds what the rivals of `processes` need in the clone: the module for Redis, and an environment of Python.
rivals() {
    # (Not elsewhere: the harness looks for it there.)
    (cd "$work/filter/examples/redis" && env -u CARGO_TARGET_DIR cargo build --locked --release >&2) || return
    "${PYTHON:-python3}" -m venv "$work/target/python" || return
    PYTHON=$work/target/python/bin/python
    export PYTHON
    "$PYTHON" -m pip install --quiet "$work/filter/python" pybloomfiltermmap3==0.6.3 >&2
}

# Runs one command in the clone, and takes over those of its results that are published.
measure() {
    local features='' harness=$plain command=$1 status=0
    case $1 in
    'sweep stalls'*) features=steps ;;
    simulate*) features=simulation ;;
    'processes --with'*) rivals || return ;;
    pair* | sweep* | reproduce*) command+=" $(placed)" ;;
    esac
    [ -z "$features" ] || harness=$(build "$features")
    rm -rf "$work/results"
    # shellcheck disable=SC2086 # a command is several words
    (cd "$work" && "$harness" $command --out results) || status=$?
    local sidecar name
    for sidecar in $(grep -l '^ended = ' "$work"/results/*.machine.toml); do
        name=$(basename "$sidecar" .machine.toml)
        if ! grep -q "^| \[$name\](" paper-figures/index.md; then
            echo "$name has no row in paper-figures/index.md: it is in target/publish/unpublished" >&2
            mkdir -p target/publish/unpublished
            cp "${sidecar%.machine.toml}".* target/publish/unpublished/
            continue
        fi
        cp "${sidecar%.machine.toml}".* paper-figures/
        sed -i -E "s/^(\| \[$name\]\(.*\| )\`[0-9a-f]*\` \|$/\1\`${commit:0:10}\` |/" paper-figures/index.md
    done
    return $status
}

renew() {
    rm -rf "$work"
    if [ "${COMMIT:-}" ]; then
        # Drawn and judged as the last commit does.
        cargo build --locked --release -p harness >&2
        plain=target/release/harness
        for rows in paper-figures/*.csv; do
            [ ! -e "${rows%.csv}.svg" ] || "$plain" plot "$rows"
        done
    fi
    git grep -lz '^<!-- table: ' -- '*.md' | xargs -0 "$plain" tables
    git hash-object paper-figures/{,other-processors/}*.{csv,machine.toml} | git hash-object --stdin >paper-figures/measured.hash
    scripts/rules.sh
}

plain=$(build '')
trap renew EXIT
for command; do
    echo "$(date +%T) $command" >&2
    measure "$command"
done
