# For scripts that change the code on purpose: `copy_to DIRECTORY` copies the crates kcas and filter there, and
# what they need to be built, from the directory $root.
copy_to() {
    mkdir -p "$1"
    rm -rf "$1/huge-pages" "$1/kcas" "$1/epoch-cell" "$1/filter" "$1/kcas-epoch" "$1/harness"
    cp -R "$root/Cargo.lock" "$root/huge-pages" "$root/kcas" "$root/epoch-cell" "$root/filter" "$1"
    # Without the harness, which takes long to build, and what only it needs.
    sed 's/, "kcas-epoch", "harness"//' "$root/Cargo.toml" >"$1/Cargo.toml"
}
