# Finds every memory ordering of a Rust file outside comments and tests, with each weaker one that
# could stand there, for scripts/orderings.sh:
#
#   FUNCTION NTH ACCESS ORDERING WEAKER        NTH: counted among the orderings of the function, from 1
#
# With -v all=yes those too that cannot be weakened: for them, WEAKER is "-".
#
# With -v function_name=F -v nth=N -v weaker=W it prints the file instead, with that one ordering
# weakened.
#
# A tag in a comment at each ordering would be no simpler: rustfmt moves it off the line of a `match`, a
# `compare_exchange` has two orderings on a line, and the protocol would be read past 40 such names.

BEGIN {
    weaker_than["load", "Acquire"] = weaker_than["failure", "Acquire"] = "Relaxed"
    weaker_than["load", "SeqCst"] = weaker_than["failure", "SeqCst"] = "Acquire Relaxed"
    weaker_than["store", "Release"] = "Relaxed"
    weaker_than["store", "SeqCst"] = "Release Relaxed"
    weaker_than["rmw", "Acquire"] = weaker_than["rmw", "Release"] = "Relaxed"
    weaker_than["rmw", "AcqRel"] = "Acquire Release Relaxed"
    weaker_than["rmw", "SeqCst"] = "AcqRel Acquire Release Relaxed"
    if (all) weaker_than["load", "Relaxed"] = weaker_than["store", "Relaxed"] = weaker_than["failure", "Relaxed"] = weaker_than["rmw", "Relaxed"] = "-"
}

# Tests next to the code, but not the declaration of a file of models.
cfg_of_tests && /\{$/ { in_tests = 1 }
{ cfg_of_tests = /^#\[cfg\(all\(test/ }

!in_tests && !/^ *\/\// {
    done = ""
    rest = $0
    while (match(rest, /fn [a-z_0-9]+|fence\(|\.(load|store|swap|compare_exchange[a-z_]*|fetch_[a-z]+)\(|Ordering::[A-Z][A-Za-z]+/)) {
        found = substr(rest, RSTART, RLENGTH)
        done = done substr(rest, 1, RSTART - 1)
        rest = substr(rest, RSTART + RLENGTH)
        if (found ~ /^fn /) {
            current = substr(found, 4)
        } else if (found ~ /^fence/) {
            print FILENAME ": a fence: teach scripts/orderings.awk to take it out" >"/dev/stderr"
            exit 1
        } else if (found ~ /^\./) {
            access = substr(found, 2, RLENGTH - 2)
            argument = 0
        } else {
            found = ordering(substr(found, 11))
        }
        done = done found
    }
    $0 = done rest
}

weaker { print }

function ordering(order,    role, choices, count, i) {
    count_of[current]++
    argument++
    role = access
    if (access ~ /^compare_exchange/) role = argument == 1 ? "success" : "failure"
    if (weaker) {
        if (current == function_name && count_of[current] == nth) order = weaker
    } else {
        count = split(weaker_than[role ~ /^(load|store|failure)$/ ? role : "rmw", order], choices, " ")
        for (i = 1; i <= count; i++) print current, count_of[current], role, order, choices[i]
    }
    return "Ordering::" order
}
