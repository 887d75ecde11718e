"""The filter on top of K-CAS: no key that is present throughout is missed, of several unique inserts at most one wins while
the key stays, and a chain of shifts neither loses nor duplicates a key. For any number of buckets, keys, threads and lookups, and
chains of any length; README.md in kcas/proof says what is assumed.

A *class* is a fingerprint with its two buckets, in either order. Inserts, removes and whole chains of shifts are single steps,
since each is one compare-and-swap or one K-CAS (kcas/proof/kcas.py). Timestamps are numbers without bound; real ones wrap
(filter/src/layout.rs).
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
    "chain-not-compared": "a chain compares only the first of its buckets",
    "shifted-copy-left-behind": "a shift leaves the fingerprint in its old slot, too",
}

Bucket, Class, Call = [DeclareSort(name) for name in ("Bucket", "Class", "Call")]
Bool, Int = BoolSort(), IntSort()

one = Function("one", Class, Bucket)
two = Function("two", Class, Bucket)
asks = Function("asks", Call, Class)
first = Function("first", Call, Bucket)
second = Function("second", Call, Bucket)

# The chain of an insert: its buckets, and what the K-CAS moves.
on = Function("on", Bucket, Bool)
arrives = Function("arrives", Bucket, Class)
moves = Function("moves", Bucket, Bool)  # not the last
leaves = Function("leaves", Bucket, Class)
missed = Function("missed", Bucket, Class)  # has got a copy since the search read the bucket

VARIABLES = {
    "copies": (Bucket, Class, Int),
    "inserted": (Class, Int),  # inserts minus removes
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

has = lambda c, b: Or(b == one(c), b == two(c))
other = lambda c, b: If(b == one(c), two(c), one(c))
AXIOMS = [ForAll([l], And(has(asks(l), first(l)), second(l) == other(asks(l), first(l))))]


def make(mistake):
    """The model, with this mistake in it, or with none."""
    m = prover.Model("filter", VARIABLES, AXIOMS, small=[(Bucket, 2), (Class, 2), (Call, 2)])
    s, t = m.before, m.after

    def present(s, c):
        return Or(s.copies(one(c), c) > 0, s.copies(two(c), c) > 0)

    def total(s, c):
        return s.copies(one(c), c) + If(one(c) == two(c), 0, s.copies(two(c), c))

    def invariant(s):
        same_first = s.time(first(l)) == s.first_time(l)
        same_second = s.time(second(l)) == s.second_time(l)
        reading = Or(s.read(l) == 1, s.read(l) == 2)
        return {
            "copies": ForAll([b, c], s.copies(b, c) >= 0),
            "no key is lost or duplicated": ForAll([c], total(s, c) == s.inserted(c)),
            "steps": ForAll([l], And(s.read(l) >= 0, s.read(l) <= 4)),
            "timestamps only rise": ForAll(
                [l],
                And(
                    Implies(reading, s.time(first(l)) >= s.first_time(l)),
                    Implies(s.read(l) == 2, s.time(second(l)) >= s.second_time(l)),
                ),
            ),
            "first bucket, unchanged": ForAll(
                [l], Implies(And(reading, same_first), s.copies(first(l), asks(l)) == 0)
            ),
            "second bucket, unchanged": ForAll(
                [l], Implies(And(s.read(l) == 2, same_second), s.copies(second(l), asks(l)) == 0)
            ),
            "absent at the second read": ForAll([l], Implies(And(s.read(l) == 2, same_first), s.was_absent(l))),
            "absent is true": ForAll([l], Implies(s.read(l) == 3, s.was_absent(l))),
            "a moment without a copy": ForAll([l], Implies(s.was_absent(l), Not(s.throughout(l)))),
            "present now": ForAll([l], Implies(s.throughout(l), present(s, asks(l)))),
        }

    m.invariant = invariant
    m.init = And(
        ForAll([b, c], s.copies(b, c) == 0),
        ForAll([c], s.inserted(c) == 0),
        ForAll([b], s.time(b) >= 0),
        ForAll([l], And(s.read(l) == 0, Not(s.was_absent(l)), Not(s.throughout(l)))),
    )

    call = Const("call!", Call)
    of = asks(call)
    # Whoever holds a copy throughout keeps noticing whether that is still so.
    notice = ForAll([l], t.throughout(l) == And(s.throughout(l), present(t, asks(l))))
    number = lambda truth: If(truth, 1, 0)

    def add(root, of):
        """The K-CAS of a chain that begins in this bucket, where a copy of the class arrives."""
        # The K-CAS writes what the search has read and moved. A word that it compares holds what was read.
        stale = And(b != root, missed(b) == c, missed(b) != leaves(b), s.copies(b, c) > 0, mistake == "chain-not-compared")
        read = s.copies(b, c) - number(stale)
        leave = And(moves(b), leaves(b) == c, mistake != "shifted-copy-left-behind")
        written = read + number(arrives(b) == c) - number(leave)
        before, after = other(arrives(b), b), other(leaves(b), b)
        return And(
            on(root), has(of, root), arrives(root) == of,
            # What leaves a bucket arrives in its other one, which is the next of the chain. No bucket occurs twice.
            ForAll([b], Implies(And(on(b), moves(b)), And(
                has(leaves(b), b), s.copies(b, leaves(b)) > 0, after != b, after != root, on(after), arrives(after) == leaves(b)
            ))),
            ForAll([b], Implies(And(on(b), b != root), And(
                has(arrives(b), b), on(before), moves(before), leaves(before) == arrives(b)
            ))),
            ForAll([b, c], t.copies(b, c) == If(on(b), written, s.copies(b, c))),
            m.put("inserted", [of], s.inserted(of) + 1),
            ForAll([b], t.time(b) == s.time(b) + number(And(on(b), mistake != "timestamp-not-advanced"))),
            notice,
        )

    new, bucket = Const("new!", Class), Const("bucket!", Bucket)
    added = ["copies", "inserted", "time", "throughout"]
    m.action(
        "insert into an empty slot",
        ("update.rs", "insert", "if buckets.replace(bucket, word, filled)"),
        has(new, bucket), m.put("copies", [bucket, new], s.copies(bucket, new) + 1),
        m.put("inserted", [new], s.inserted(new) + 1),
        m.put("time", [bucket], s.time(bucket) + (0 if mistake == "timestamp-not-advanced" else 1)), notice, changed=added,
    )
    m.action(
        "insert along a chain",
        ("update.rs", "insert", "if buckets.shift(&chain, location.fingerprint, &[])"),
        add(bucket, new), moves(bucket), changed=added,
    )
    m.action(
        "remove",
        ("update.rs", "remove", "if buckets.replace(bucket, word, without)"),
        has(new, bucket), s.copies(bucket, new) > 0,
        m.put("copies", [bucket, new], s.copies(bucket, new) - 1),
        m.put("inserted", [new], s.inserted(new) - 1), notice, changed=["copies", "inserted", "throughout"],
    )
    m.action(
        "advance a timestamp for a clone or save",
        ("snapshot.rs", "freeze", "let frozen = self.replace(bucket, word, Layout::<SLOTS, BITS>::advance(word));"),
        m.put("time", [bucket], s.time(bucket) + 1), changed=["time"],
    )
    m.action(
        "read the first bucket",
        ("lookup.rs", "contains_slow_path", "let first_word = buckets.read(first);"),
        Or(s.read(call) == 0, s.read(call) == 2), s.copies(first(call), of) == 0,
        m.put("read", [call], 1), m.put("first_time", [call], s.time(first(call))),
        m.put("was_absent", [call], False),
        m.put("throughout", [call], If(s.read(call) == 0, present(s, of), s.throughout(call))),
        changed=["read", "first_time", "was_absent", "throughout"],
    )
    m.action(
        "read the second bucket",
        ("lookup.rs", "contains_slow_path", "let second_word = buckets.read(second);"),
        s.read(call) == 1, s.copies(second(call), of) == 0,
        m.put("read", [call], 2), m.put("second_time", [call], s.time(second(call))),
        m.put("was_absent", [call], And(s.copies(first(call), of) == 0, s.copies(second(call), of) == 0)),
        changed=["read", "second_time", "was_absent"],
    )
    unchanged = s.time(first(call)) == s.first_time(call)
    if mistake == "second-read-skipped":
        unchanged = True
    m.action(
        "read the first bucket again, and answer absent",
        ("lookup.rs", "contains_slow_path", "if buckets.read(first) == first_word"),
        s.read(call) == 2, unchanged, m.put("read", [call], 3), changed=["read"],
    )
    both = And(s.time(first(call)) == s.first_time(call), s.time(second(call)) == s.second_time(call))
    if mistake == "unique-other-bucket-not-compared":
        both = s.time(first(call)) == s.first_time(call)
    m.action(
        "insert if absent",
        ("update.rs", "insert_if_absent", "if buckets.shift(&chain, location.fingerprint, &roots)"),
        s.read(call) == 2, both, add(bucket, of), m.put("read", [call], 4), changed=["read", *added],
        step=("a unique insert finds no copy at the moment at which it inserts", Not(present(s, of))),
    )
    m.theorems["a key that is present throughout is not missed"] = ForAll(
        [l], Implies(s.read(l) == 3, Not(s.throughout(l)))
    )
    return m


if __name__ == "__main__":
    sys.exit(prover.run(make, MISTAKES))
