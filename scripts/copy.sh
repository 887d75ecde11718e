# For scripts that change the code on purpose: `copy_to DIRECTORY` copies the sources of the workspace there, from the
# directory $root, uncommitted ones included.
copy_to() {
    rm -rf "$1"
    mkdir -p "$1"
    (
        cd "$root"
        git ls-files -z --cached --others --exclude-standard -- ':!paper-figures' |
            # A file may have been deleted and still be known to git.
            while IFS= read -r -d '' file; do if [ -e "$file" ]; then printf '%s\0' "$file"; fi; done |
            tar --create --null --files-from=- --file=-
    # Touched: a build directory that has seen other sources under this path must not take these for older.
    ) | tar --extract --touch --file=- --directory "$1"
}

# `borrow_loom_build TARGET LANE`: what the models depend on has been built for LANE already, if they have been run.
borrow_loom_build() {
    if [ ! -e "$1/$2/loom" ] && [ -e "$1/../loom/loom" ]; then
        cp -R -p "$1/../loom/loom" "$1/$2"
    fi
}
