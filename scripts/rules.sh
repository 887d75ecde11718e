#!/usr/bin/env bash
# Checks what neither the compiler nor clippy does: house rules, and tables and patches against the
# code. Builds nothing; takes 3 s.
set -euo pipefail
cd "$(dirname "$0")/.."

broken=0
fail() {
    echo "$1" >&2
    broken=1
}

# Comments may name what the code must not use.
code() { grep -rnE "$1" kcas/src filter/src --include='*.rs' | grep -vE '^[^:]*:[0-9]+: *//'; }

for crate in kcas filter; do
    for rule in 'forbid(unsafe_code)' 'deny(clippy::disallowed_methods, clippy::disallowed_types)'; do
        grep -qF "$rule" "$crate/src/lib.rs" || fail "$crate/src/lib.rs must have: $rule"
    done
done
# Clippy cannot tell through which module a type was named. (`use std::sync::{Arc, atomic::AtomicU64};` names it, too.)
if code '\batomic(::|[,;}]| as )' | grep -vE '^kcas/src/sync\.rs:'; then
    fail "atomics must come from kcas::sync, or the model checker does not see them"
fi

# Words and names that this project does not use.
set -f
while IFS=$'\t' read -r pattern instead; do
    case $pattern in
        '#'* | '') ;;
        '['*) files=${pattern:1:-1} ;;
        # shellcheck disable=SC2086 # The files are a list of patterns.
        *) ! git grep -nE -e "$pattern" -- $files || fail "write instead: $instead (scripts/words.txt)" ;;
    esac
done <scripts/words.txt
set +f
subject=$(git log -1 --no-merges --format=%s)
[ "${#subject}" -le 72 ] || fail "the subject of the last commit has ${#subject} characters: at most 72"

if git grep -nE '^(<{7}|>{7}) '; then
    fail "a merge was left unfinished: resolve the conflict"
fi

for patch in {kcas,filter}/tests/planted/*.patch; do
    git apply --check "$patch" || fail "$patch no longer fits the code: update it (scripts/planted.sh --refit PATCH)"
    check=$(sed -n 's/^Caught by: \([^ ]*\).*/\1/p' "$patch")
    grep -rqE "fn ${check##*::}\(" {kcas,filter}/{src,tests} kcas/{shared-memory,testing} --include='*.rs' ||
        fail "$patch is caught by \"$check\", but there is no such test"
done

diff kcas/proof/planted.md <(scripts/planted.sh --table) >&2 ||
    fail "kcas/proof/planted.md (<) is not what the patches say (>): scripts/planted.sh --table >kcas/proof/planted.md"
scripts/orderings.sh --compare || broken=1
diff <(sed -n 's/^| [a-z-]* | `\(.*\)` | [0-9].*/\1/p' kcas/testing/models.md | uniq) <(. scripts/copy.sh; models | awk '{ print $3 }') >&2 ||
    fail "kcas/testing/models.md has other models (<) than the tests (>): scripts/loom.sh --table MODEL"

# Each action of the proofs stands for a line of a function, which must still be there.
proven() { # SOURCE FILE FUNCTION TEXT
    awk -v name="fn $2[<(]" -v text="$3" '$0 ~ name { end = $0; sub(/[^ ].*/, "}", end) } end && index($0, text) { found = 1 }
        $0 == end { end = "" } END { exit !found }' "$1"
}
for proof in kcas/proof/kcas.py filter/proof/lookup.py; do
    lines=0
    while IFS=$'\t' read -r file function text; do
        lines=$((lines + 1))
        proven "${proof%%/*}/src/$file" "$function" "$text" ||
            fail "$proof: an action stands for \"$text\" in $function of $file, which is not there"
    done < <(sed -nE 's/^ +\("([a-z_]+\.rs)", "([a-z_]+)", "(.*)"\),$/\1\t\2\t\3/p' "$proof")
    # An action that is written otherwise would not be looked for.
    [ "$lines" -eq "$(grep -cE '^ +(m\.)?action\($' "$proof")" ] ||
        fail "$proof: an action does not name its file, function and line as the others do"
done

# Each figure shows a clean commit of this history, which the results page names.
shallow=$(git rev-parse --is-shallow-repository)
for sidecar in paper-figures/{,other-processors/}*.machine.toml; do
    name=$(basename "$sidecar" .machine.toml)
    # What measured, and the harness in it; older descriptions have one for both.
    sources=$(sed -nE '/^\[(program|harness|source)\]/,/^$/p' "$sidecar")
    commit=$(sed -n 's/^commit = "\(.*\)"/\1/p' <<<"$sources" | sort -u)
    note=""
    if [ "$shallow" = false ] && ! git merge-base --is-ancestor "$commit" HEAD 2>/dev/null; then
        note=", not in this history"
    fi
    if grep '^modified = ' <<<"$sources" | grep -qv 'false$'; then
        note+=", modified"
    fi
    [ -z "$note" ] || fail "$name shows the code of ${commit:0:10}$note: measure it again from a clean commit"
    page=paper-figures/index.md
    [[ $sidecar != */other-processors/* ]] || page=paper-figures/other-processors/README.md
    grep -qE "^\| \[$name\]\(.*\| \`${commit:0:10}\` \|$" $page || fail "$page must say that $name shows the code of ${commit:0:10}"
done

# What was measured is never edited, not even where no page shows it.
measured() { git hash-object paper-figures/{,other-processors/}*.{csv,machine.toml} | git hash-object --stdin; }
[ "$(measured)" = "$(cat paper-figures/measured.hash)" ] ||
    fail "rows or a description in paper-figures differ from what was measured; for new results, write $(measured) into measured.hash there"

# What a user of the crates builds, as these packages outside the workspace are.
if grep -nH '^name = "loom"' filter/{c,python,examples/redis}/Cargo.lock; then
    fail "whoever uses kcas has loom in the lock file, which only the models need"
fi

# Each test that the page of bugs names exists.
functions=$(git grep -hoE '(fn|def) [a-z0-9_]+\(' -- {kcas,filter}/'*.'{rs,py})
while IFS=: read -r page header; do
    named=$(awk -F'|' -v header="$header" '$0 == header { table = 1 } !/^\|/ { table = 0 }
        table { number = split($(NF - 1), parts, "`"); for (at = 2; at <= number; at += 2) print parts[at] }' "$page")
    [ "$(wc -l <<<"$named")" -gt 10 ] || fail "$page names few tests under \"$header\""
    for name in $named; do
        grep -qE "(fn|def) $name\(" <<<"$functions" || fail "$page names the test $name, which is not there"
    done
done <<'END'
scripts/bugs-found.md:| Bug | Test |
END

# Scripts that pages, comments and workflows name are there, as are the optional checks.
while IFS=: read -r page name; do
    read -r script check <<<"$name"
    if [ ! -e "$script" ] || { [ "$script" = scripts/optional.sh ] && [ "$check" ] && ! grep -q "^## ${check}[ :]" "$script"; }; then
        fail "$page names $name, which is not there"
    fi
done < <(git grep -oE '(filter/examples/redis|scripts)/[a-z]+\.sh( [a-z]+)?')

# Links of pages lead to files that are there, and to headings of them; docs name headings of their crate.
anchors() { sed -nE 's,^(//[/!] )?#+ (.*)$,\2,p' "$@" | tr '[:upper:]' '[:lower:]' | sed -E 's/[^a-z0-9 _-]//g; s/ /-/g'; }
while IFS=: read -r page link; do
    link=${link:2:-1}
    file=$(dirname "$page")/${link%%#*}
    case $page:$link in
        *.md:*.md* | *.md:*.rs) [ -n "${link%%#*}" ] || file=$page ;;
        */src/*)
            crate=${page%%/src/*}
            [[ $link != kcas::* ]] || crate=kcas
            file=$(git ls-files "$crate/src" | grep -E '\.(rs|md)$')
            ;;
        *) [ -n "${link%%#*}" ] || file=$page ;;
    esac
    # shellcheck disable=SC2086 # The names of files have no spaces.
    if ! ls $file >/dev/null 2>&1 || { [[ $link = *#* ]] && ! grep -qxF -- "${link#*#}" <(anchors $file); }; then
        fail "$page links to $link, which is not there"
    fi
done < <(
    git grep -oE '\]\([^)]*\)' -- '*.md' ':!*/src/*.md' | grep -v ://
    git grep -oE '\]\([A-Za-z:_]*#[^)]*\)' -- '*/src/*.md' '*/src/*.rs'
    git grep -oE '^\[[^]]*\]: .*[.#].*' -- '*/src/*.md' | sed -E 's/:\[[^]]*\]: (.*)/:](\1)/'
)

# Pages of sources are read as files, by the definitions of links at their ends, and in rustdoc, by those of links.md.
! git grep -nE '\]\((crate|kcas)\b' -- '*/src/*.md' || fail "write instead: [text][crate::…], and define it at the end of the page and in links.md"
used() { grep -ohE '\]\[[a-z]+::[^]]*\]' "$@" | cut -c2- | LC_ALL=C sort -u; }
pages=$(git ls-files 'filter/src/*.md' | grep -v /links.md)
for page in $pages; do
    diff <(used "$page") <(sed -nE 's/^(\[[a-z]+::.*\]): .*/\1/p' "$page" | LC_ALL=C sort) >&2 ||
        fail "$page uses other links (<) than it defines (>)"
done
# shellcheck disable=SC2086 # The names of files have no spaces.
diff <(used $pages | sed -E 's/\[(.*)\]/[\1]: \1/') <(LC_ALL=C sort filter/src/links.md) >&2 ||
    fail "filter/src/links.md (>) defines other links than pages use (<)"

exit $broken
