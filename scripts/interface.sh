#!/usr/bin/env bash
# Compares the public interfaces of kcas and filter, as their docs show them, with the files that record them.
#
#   scripts/interface.sh            fails if an item was added, changed or removed
#   scripts/interface.sh --write    records the interfaces
set -euo pipefail
cd "$(dirname "$0")/.."

# As scripts/check.sh makes them.
RUSTDOCFLAGS="-D warnings" cargo doc --quiet --locked --workspace --all-features --no-deps
docs=${CARGO_TARGET_DIR:-target}/doc

declarations() { # PAGE PATH
    awk -v ITEM="$2" -f scripts/interface.awk "$1"
}

# Prints what a module declares. (Its folder may have pages of items that are there no longer.)
module() { # FOLDER PATH
    local link kind path
    declarations "$1/index.html" "$2"
    while read -r link kind path; do
        if [ "$kind" = mod ]; then module "$1/${link%/index.html}" "$path"; else declarations "$1/$link" "$path"; fi
    done < <(grep -oE '<dt[^>]*><a class="[a-z]+" href="[^"]+" title="[^"]+"' "$1/index.html" |
        sed -E 's/.* href="([^"]+)" title="([^"]+)"/\1 \2/')
}

status=0
for crate in kcas filter; do
    recorded=$crate/public-api.txt
    if [ "${1:-}" = --write ]; then
        module "$docs/$crate" "$crate" >$recorded
    fi
    if [ "$(grep -c '^impl' $recorded)" -lt 10 ]; then
        echo "$recorded names fewer than 10 implementations: the pages are not read as they should be" >&2
        exit 1
    fi
    diff --unified=5 $recorded <(module "$docs/$crate" "$crate") || status=1
done
[ $status = 0 ] || echo "an interface has changed: scripts/interface.sh --write records it, for CHANGELOG.md to explain" >&2
exit $status
