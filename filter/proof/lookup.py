"""The filter on top of K-CAS: no key that is present throughout is missed, and of several unique inserts at most one wins while
the key stays. For any number of buckets, keys, threads and lookups; README.md in kcas/proof says what is assumed.

A *class* is a fingerprint with its two buckets. Inserts, removes and whole chains of shifts are single steps, since each is one
compare-and-swap or one K-CAS (kcas/proof/kcas.py). Timestamps are numbers without bound; real ones wrap (filter/src/layout.rs).
A growing filter, whose buckets are split while it is used, is not in it.

Run it with PYTHONPATH=kcas/proof, as `scripts/optional.sh proof` does:

    lookup.py             proves everything, shows that each action is possible, and that each mistake is found
    lookup.py MISTAKE     lists what has a counterexample with one mistake
"""

import sys

from z3 import And, BoolSort, Const, DeclareSort, ForAll, Function, If, Implies, IntSort, Not, Or

import prover

MISTAKES = {
    "timestamp-not-advanced": "an addition leaves the timestamp as it was",
    "second-read-skipped": "a lookup does not read its first bucket again",
    "unique-other-bucket-not-compared": "a unique insert compares only the bucket that it changes",
}

Bucket, Class, Call = [DeclareSort(name) for name in ("Bucket", "Class", "Call")]
Bool, Int = BoolSort(), IntSort()

first = Function("first", Class, Bucket)
second = Function("second", Class, Bucket)
asks = Function("asks", Call, Class)

VARIABLES = {
    "copies": (Bucket, Class, Int),
    "time": (Bucket, Int),
    # A call: a lookup, or a unique insert, which reads alike. 0: not begun; 1: first bucket read, 2: second bucket read,
    # neither with a copy; 3: it has answered "absent"; 4: it has inserted.
    "read": (Call, Int),
    "first_time": (Call, Int),  # the timestamps that it read
    "second_time": (Call, Int),
    "was_absent": (Call, Bool),  # when it read the second bucket, neither had a copy
    "throughout": (Call, Bool),  # since it began there has been a copy at each moment
}

b = Const("b", Bucket)
c = Const("c", Class)
l = Const("l", Call)


def make(mistake):
    """The model, with this mistake in it, or with none."""
    m = prover.Model("filter", VARIABLES, small=[(Bucket, 2), (Class, 2), (Call, 2)])
    s, t = m.before, m.after

    def present(s, c):
        return Or(s.copies(first(c), c) > 0, s.copies(second(c), c) > 0)

    def invariant(s):
        one, two = first(asks(l)), second(asks(l))
        same_first = s.time(one) == s.first_time(l)
        same_second = s.time(two) == s.second_time(l)
        reading = Or(s.read(l) == 1, s.read(l) == 2)
        return {
            "copies": ForAll([b, c], s.copies(b, c) >= 0),
            "steps": ForAll([l], And(s.read(l) >= 0, s.read(l) <= 4)),
            "timestamps only rise": ForAll(
                [l],
                And(
                    Implies(reading, s.time(one) >= s.first_time(l)),
                    Implies(s.read(l) == 2, s.time(two) >= s.second_time(l)),
                ),
            ),
            "first bucket, unchanged": ForAll([l], Implies(And(reading, same_first), s.copies(one, asks(l)) == 0)),
            "second bucket, unchanged": ForAll(
                [l], Implies(And(s.read(l) == 2, same_second), s.copies(two, asks(l)) == 0)
            ),
            "absent at the second read": ForAll([l], Implies(And(s.read(l) == 2, same_first), s.was_absent(l))),
            "absent is true": ForAll([l], Implies(s.read(l) == 3, s.was_absent(l))),
            "a moment without a copy": ForAll([l], Implies(s.was_absent(l), Not(s.throughout(l)))),
            "present now": ForAll([l], Implies(s.throughout(l), present(s, asks(l)))),
        }

    m.invariant = invariant
    m.init = And(
        ForAll([b, c], s.copies(b, c) == 0),
        ForAll([b], s.time(b) >= 0),
        ForAll([l], And(s.read(l) == 0, Not(s.was_absent(l)), Not(s.throughout(l)))),
    )

    call = Const("call!", Call)
    of = asks(call)
    more = lambda b: And(t.time(b) >= s.time(b), Or(t.time(b) > s.time(b), mistake == "timestamp-not-advanced"))
    # Whoever holds a copy throughout keeps noticing whether that is still so.
    notice = ForAll([l], t.throughout(l) == And(s.throughout(l), present(t, asks(l))))

    m.action(
        "insert, remove, or shift along a chain",
        ("update.rs", "insert", "if buckets.shift(&chain, location.fingerprint, &[])"),
        ForAll([b, c], And(t.copies(b, c) >= 0, Implies(t.copies(b, c) > s.copies(b, c), more(b)))),
        ForAll([b], t.time(b) >= s.time(b)),
        notice, changed=["copies", "time", "throughout"],
    )
    m.action(
        "read the first bucket",
        ("lookup.rs", "contains_slow_path", "let first_word = buckets.read(first);"),
        Or(s.read(call) == 0, s.read(call) == 2), s.copies(first(of), of) == 0,
        m.put("read", [call], 1), m.put("first_time", [call], s.time(first(of))),
        m.put("was_absent", [call], False),
        m.put("throughout", [call], If(s.read(call) == 0, present(s, of), s.throughout(call))),
        changed=["read", "first_time", "was_absent", "throughout"],
    )
    m.action(
        "read the second bucket",
        ("lookup.rs", "contains_slow_path", "let second_word = buckets.read(second);"),
        s.read(call) == 1, s.copies(second(of), of) == 0,
        m.put("read", [call], 2), m.put("second_time", [call], s.time(second(of))),
        m.put("was_absent", [call], And(s.copies(first(of), of) == 0, s.copies(second(of), of) == 0)),
        changed=["read", "second_time", "was_absent"],
    )
    unchanged = s.time(first(of)) == s.first_time(call)
    if mistake == "second-read-skipped":
        unchanged = True
    m.action(
        "read the first bucket again, and answer absent",
        ("lookup.rs", "contains_slow_path", "if buckets.read(first) == first_word"),
        s.read(call) == 2, unchanged, m.put("read", [call], 3), changed=["read"],
    )
    both = And(s.time(first(of)) == s.first_time(call), s.time(second(of)) == s.second_time(call))
    if mistake == "unique-other-bucket-not-compared":
        both = s.time(first(of)) == s.first_time(call)
    m.action(
        "insert if absent",
        ("update.rs", "insert_if_absent", "if buckets.shift(&chain, location.fingerprint, &roots)"),
        s.read(call) == 2, both,
        ForAll([b, c], And(t.copies(b, c) >= 0, Implies(t.copies(b, c) > s.copies(b, c), more(b)))),
        ForAll([b], t.time(b) >= s.time(b)),
        present(t, of), m.put("read", [call], 4), notice, changed=["copies", "time", "read", "throughout"],
        step=("a unique insert finds no copy at the moment at which it inserts", Not(present(s, of))),
    )
    m.theorems["a key that is present throughout is not missed"] = ForAll(
        [l], Implies(s.read(l) == 3, Not(s.throughout(l)))
    )
    return m


if __name__ == "__main__":
    sys.exit(prover.run(make, MISTAKES))
