#!/usr/bin/env bash
# Measures README.md's table of sizes again, and puts it there: memory (of the key, as MEMORY USAGE says) and how often
# an absent item is found. A minute, once the module is built.
set -euo pipefail
cd "$(dirname "$0")"

module=$(realpath -e "${CARGO_TARGET_DIR:-target}/release/libcuckoo_redis.so") || {
    echo "build the module first: cargo build --release" >&2
    exit 1
}
dir=$(mktemp -d)
trap 'kill %1; rm -r "$dir"' EXIT
redis-server --port 0 --unixsocket "$dir/socket" --save "" --dir "$dir" --logfile log \
    --loadmodule "$module" &
cli() { redis-cli -s "$dir/socket" "$@"; }
until cli ping >/dev/null 2>&1; do sleep 0.1; done

row() { # ITEMS RESERVED
    cli FLUSHALL >/dev/null
    [ "$2" = - ] || cli CF.RESERVE f "$2" >/dev/null
    seq "$1" | sed 's/^/CF.ADD f /' | cli --pipe >/dev/null
    absent=1000000
    found=$(seq -f 'absent%.0f' $absent | xargs -n 10000 redis-cli -s "$dir/socket" CF.MEXISTS f | grep -c '^1$' || true)
    awk -v items="$1" -v reserved="$2" -v bytes="$(cli MEMORY USAGE f)" -v found="$found" -v absent=$absent 'BEGIN {
        rate = found ? sprintf("1 in %.0f", absent / found) : "none of " absent
        printf "| %s | %s | %s | %.1f | %s |\n", items, reserved, bytes, bytes * 8 / items, rate }'
}

table() {
    echo '| Items | Reserved for | Bytes | Bits per item | Absent items found |'
    echo '|---:|---:|---:|---:|---:|'
    row 1 8
    for items in 1 1000 10000 100000 1000000 3000000 10000000; do
        row $items -
    done
    row 1000000 1000000
    row 1000000 2000000
    cli FLUSHALL >/dev/null
    cli CF.RESERVE f 8 >/dev/null
    echo
    echo "An empty filter of 8 takes $(cli MEMORY USAGE f) bytes."
}

table | tee "$dir/table"
sed -i -e "/^<!-- sizes -->$/r $dir/table" -e '/^<!-- sizes -->$/,/^<!-- end of sizes -->$/{/^<!--/!d}' README.md
