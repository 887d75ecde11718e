#!/usr/bin/env bash
# Proves the protocol of kcas and the lookups of filter for any number of words and threads, and shows that planted mistakes are
# found (kcas/proof/README.md). Needs Python 3 with z3: one to two minutes.
#
#   scripts/proof.sh
set -euo pipefail
cd "$(dirname "$0")/.."

if ! python3 -c 'import z3' 2>/dev/null; then
    echo "z3 is missing: pip install z3-solver==5.4.1 (or Debian's python3-z3)" >&2
    exit 1
fi
export PYTHONPATH=kcas/proof PYTHONDONTWRITEBYTECODE=1
status=0
for model in kcas/proof/kcas.py filter/proof/lookup.py; do
    python3 "$model" || status=1
done
exit $status
