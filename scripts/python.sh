#!/usr/bin/env bash
# Builds a wheel of the Python module of filter, and tests it from threads of Python, which read the saved
# filters of the tests and share files with Rust (and with C, where a C compiler is). Needs Python 3.11 or
# later (PYTHON, or python3) with maturin and numpy.
#
#   scripts/python.sh        about a minute
set -euo pipefail
cd "$(dirname "$0")/.."

crate=filter/python
if ! "${PYTHON:=python3}" -c 'import sys; assert sys.version_info >= (3, 11)' 2>/dev/null; then
    echo "Python 3.11 or later is missing: name it in PYTHON" >&2
    exit 2
fi
if ! "$PYTHON" -m maturin --version >/dev/null 2>&1 || ! "$PYTHON" -c 'import numpy' 2>/dev/null; then
    echo "maturin or numpy is missing: $PYTHON -m pip install maturin==1.16.0 numpy" >&2
    exit 2
fi
export PYO3_PYTHON=$PYTHON
cargo fmt --manifest-path $crate/Cargo.toml --check
cargo clippy --locked --manifest-path $crate/Cargo.toml -- -D warnings
cargo build --locked --release --manifest-path filter/c/Cargo.toml --example share

shared=$(mktemp -d)
trap 'rm -rf "$shared"' EXIT
"$PYTHON" -m maturin build --quiet --locked --release --interpreter "$PYTHON" --manifest-path $crate/Cargo.toml --out "$shared/wheels"
# (In an environment made from another one, what that has would not be seen.)
"$PYTHON" -m pip install --quiet --no-index --no-deps --target "$shared/site" "$shared"/wheels/*.whl
export PYTHONPATH=$shared/site
ls "$shared/wheels"

share=${CARGO_TARGET_DIR:-filter/c/target}/release/examples/share
"$share" write "$shared"
GOLDEN=filter/tests/golden SHARED=$shared "$PYTHON" $crate/tests/test_lfcf.py
"$share" read "$shared" python
awk '/^```python$/ { code = 1; next } /^```$/ { code = 0 } code' $crate/README.md >"$shared/readme.py"
(cd "$shared" && "$PYTHON" readme.py)
