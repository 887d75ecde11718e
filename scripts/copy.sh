# shellcheck shell=bash
# For scripts that deliberately change the code: `copy_to DIRECTORY` copies the sources of the
# workspace there from the directory $root, uncommitted ones included.
copy_to() {
    rm -rf "$1"
    mkdir -p "$1"
    (
        cd "$root"
        git ls-files -z --cached --others --exclude-standard -- ':!paper-figures' |
            # A file may have been deleted and still be known to git.
            while IFS= read -r -d '' file; do if [ -e "$file" ]; then printf '%s\0' "$file"; fi; done |
            tar --create --null --files-from=- --file=-
    # Touched, so that a build directory that has seen other sources under this path does not take
    # these for older ones.
    ) | tar --extract --touch --file=- --directory "$1"
}

# `borrow_build FROM TO`: copies what was built from one profile directory to another that does not
# exist yet. Not the programs: they are linked again in any case.
borrow_build() {
    if [ -e "$1" ] && [ ! -e "$2" ]; then
        mkdir -p "$2"
        (cd "$1" && find build .fingerprint deps ! -type d \( ! -path 'deps/*' -o -name '*.*' \) -print0 |
            tar --create --null --files-from=- --file=-) | tar --extract --file=- --directory "$2"
    fi
}

# Prints CRATE SUITE MODEL for every model there is.
models() {
    awk 'FNR == 1 { crate = FILENAME ~ /^kcas/ ? "kcas-testing" : "lfcf-filter" }
         /^#\[test\]/ { getline; while (/^#/) getline; sub(/^fn /, ""); sub(/\(.*/, ""); print crate, "--test=loom", $0 }' \
        kcas/testing/tests/loom/*.rs filter/tests/loom/*.rs
}
