#!/usr/bin/env bash
# Builds kcas and filter, and runs their tests with ordinary threads: for this machine, or for another one in an
# emulator. What packs bits must not depend on the size of a word or on the order of its bytes, and saved filters
# of one machine are loaded by all.
#
#   scripts/machine.sh            this machine
#   scripts/machine.sh TARGET     such as i686-unknown-linux-gnu or s390x-unknown-linux-gnu, by `cross`; with
#                                 CARGO=cargo by the linker and the runner in the configuration of cargo
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# -eq 0 ]; then
    exec cargo test --locked -p lfcf-kcas -p lfcf-filter --features lfcf-filter/serde --test ordinary --test alone
fi
if ! "${CARGO:=cross}" --version >/dev/null 2>&1; then
    echo "$CARGO is missing: cargo install --locked cross@0.2.5 (it needs Docker or Podman)" >&2
    exit 2
fi
# (Tests of memory and time limits say nothing in an emulator.)
exec "$CARGO" test --locked --target "$1" -p lfcf-kcas -p lfcf-filter --features lfcf-filter/serde --test ordinary "${@:2}"
