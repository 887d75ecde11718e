"""K-CAS with owner tags and reused records: an inductive invariant, for any number of words, threads, operations, helpers and
readers. README.md beside this file explains it; `scripts/optional.sh proof` runs it.

A Word is an array with an index. An *operation* is one K-CAS: one sequence number of one thread. Each action below is one access to shared memory, with the
function and the line that makes it. Where the code could do less than an action allows, the action allows more: helpers
may be late without bound, and what one of them has learned, all of them know.

    kcas.py             proves everything, shows that each action is possible, and that each mistake is found
    kcas.py MISTAKE     lists what one mistake leaves unproved
"""

import sys

from z3 import And, BoolSort, Const, Consts, DeclareSort, EnumSort, Exists, ForAll, Function, If, Implies, Not, Or

import prover

MISTAKES = {
    "late-tag-read-as-new": "a reader takes every owner tag of a success for the new value",
    "load-installation-over-late-owner": "a reader does so where an installation stands over it",
    "owner-tag-read-as-expected": "a reader takes every owner tag for the expected value",
    "installation-read-as-expected": "a reader takes every installation for the expected value",
    "undecided-read-as-new": "a reader takes an undecided operation for a succeeded one",
    "late-tag-released-as-new": "whoever releases an owner tag of a success writes the new value",
    "owner-tag-counts-as-confirmed": "a helper counts the owner's tag as confirmed",
    "owner-tag-confirmed-without-condition": "a helper turns the owner's tag into the confirmed tag by one exchange",
    "owner-decides-again": "the owner's success replaces a helper's",
    "decided-after-the-first-word": "whoever decides for success has seen one word only",
    "decided-in-the-way-differs": "a word that a decided operation owns is taken for one that differs",
    "release-before-decide": "the owner puts new values into words before it decides",
    "comparisons-not-installed": "nobody installs entries that only compare",
    "helper-skips-comparisons": "a helper does not install entries that only compare",
    "shared-installation-tags": "two installations have the same tag",
    "late-tag-not-looked-for": "the owner does not look for its tag after a helper's success",
    "installations-not-ended": "the owner leaves an installation over its own tag where it is",
    "late-tag-written-back": "the owner ends an installation over its own tag with that tag",
    "unreadable-installation-taken-for-done": "the owner does not look again when an installation has left the word",
    "failed-record-reused-at-once": "the record is reused when one word is clean",
    "first-word-forgotten": "the owner gives up undecided although its tag stood in a word",
    "expected-value-put-back": "whoever ends an installation puts the expected value there, not what stood there",
    "settled-with-expected": "the owner ends an installation over its own tag with the expected value",
    "installation-forgotten": "the installer begins another installation while its last one stands in a word",
    "expected-value-over-another": "the owner of a failed operation puts the expected value over one that differs",
    "installation-without-condition": "an installation becomes the confirmed tag whatever the status is",
    "failed-writes-new": "a failed operation's confirmed tag is released as the new value",
    "entries-in-given-order": "the owner does not go by index",
    "helper-installs-in-any-order": "a helper does not go by index",
    "heir-decides-for-success": "whoever takes over an undecided operation decides for success",
    "heir-forgets": "whoever takes over an undecided operation reuses its record at once",
    "heir-does-not-withdraw": "whoever takes over an operation reuses its record once it is decided",
}

Word, Op, Val, Inst, Reader = [DeclareSort(name) for name in ("Word", "Op", "Val", "Inst", "Reader")]
Kind, (VALUE, KCAS, OWNER, INSTALL) = EnumSort("Kind", ["Value", "Kcas", "Owner", "Install"])
State, (U, BY_OWNER, BY_HELPER, FAILED) = EnumSort(
    "State", ["Undecided", "SucceededByOwner", "SucceededByHelper", "Failed"]
)
Bool = BoolSort()

# What never changes: entries of an operation, the order of words, and what an installation is for.
entry = Function("entry", Op, Word, Bool)
expected = Function("expected", Op, Word, Val)
new = Function("new", Op, Word, Val)
below = Function("below", Word, Word, Bool)
target = Function("target", Inst, Op)
place_of = Function("place_of", Inst, Word)
over_owner = Function("over_owner", Inst, Bool)  # it stands over the owner's tag, otherwise over the expected value
reads = Function("reads", Reader, Word)

VARIABLES = {
    # A word, as it stands. `op` counts for Kcas and Owner, `inst` for Install, `value` for Value.
    "kind": (Word, Kind),
    "value": (Word, Val),
    "op": (Word, Op),
    "inst": (Word, Inst),
    # What the words mean to whoever uses them: changed at linearization points only.
    "abstract": (Word, Val),
    # An operation: its status, and what its owner has done.
    "state": (Op, State),
    "begun": (Op, Bool),
    "shown": (Op, Bool),  # its tag has stood in a word, so others may know it
    "placed": (Op, Word, Bool),  # `place` returned Yes
    "differed": (Op, Bool),  # a word of it did not mean the expected value, at a moment since it began
    "over": (Op, Bool),  # the owner knows the decision, and places nothing any more
    "clean": (Op, Word, Bool),  # `withdraw` has returned
    "reused": (Op, Bool),
    "dead": (Op, Bool),  # its owner has been killed: whoever takes over its id does what is left to do
    # Helpers, all together.
    "confirmed": (Op, Word, Bool),  # `install` returned Yes
    "installed": (Inst, Bool),  # the installation's tag has stood in its word
    "saw_undecided": (Inst, Bool),  # somebody who finishes it has read "undecided"
    "saw_decided": (Inst, Bool),
    "ended": (Inst, Bool),  # its installer has begun another
    # A reader: what it loaded, and what its word has meant since it began.
    "began": (Reader, Bool),
    "loaded": (Reader, Bool),
    "got_kind": (Reader, Kind),
    "got_value": (Reader, Val),
    "got_op": (Reader, Op),
    "got_inst": (Reader, Inst),
    "meant": (Reader, Val, Bool),
}
WORD = ("kind", "value", "op", "inst")

w, w2, w3 = Consts("w w2 w3", Word)
o = Const("o", Op)
i = Const("i", Inst)
r = Const("r", Reader)
v = Const("v", Val)

ORDER = [
    ForAll([w], Not(below(w, w))),
    ForAll([w, w2, w3], Implies(And(below(w, w2), below(w2, w3)), below(w, w3))),
    ForAll([w, w2], Or(w == w2, below(w, w2), below(w2, w))),
]


def make(mistake):
    """The model, with this mistake in it, or with none."""

    def succeeded(state):
        return Or(state == BY_OWNER, state == BY_HELPER)

    def confirmed_means(s, o, w):  # State::confirmed
        wins = succeeded(s.state(o))
        if mistake == "failed-writes-new":
            wins = s.state(o) != U
        elif mistake == "undecided-read-as-new":
            wins = s.state(o) != FAILED
        return If(wins, new(o, w), expected(o, w))

    def owned_means(s, o, w, late=False):  # State::owned
        wins = succeeded(s.state(o)) if late else s.state(o) == BY_OWNER
        return If(wins, new(o, w), expected(o, w))

    def install_means(s, i, w, late=False):  # commit::meaning, of what the installation stands over
        return If(over_owner(i), owned_means(s, target(i), w, late), expected(target(i), w))

    def meaning(s, w):
        return If(
            s.kind(w) == VALUE,
            s.value(w),
            If(
                s.kind(w) == KCAS,
                If(succeeded(s.state(s.op(w))), new(s.op(w), w), expected(s.op(w), w)),
                If(s.kind(w) == OWNER, owned_means(s, s.op(w), w), install_means(s, s.inst(w), w)),
            ),
        )

    def answer(s, r):
        """What a reader returns if it looks at the record now."""
        word, op, inst = reads(r), s.got_op(r), s.got_inst(r)
        owned = owned_means(s, op, word, late=mistake == "late-tag-read-as-new")
        installed = install_means(s, inst, word, late=mistake == "load-installation-over-late-owner")
        if mistake == "owner-tag-read-as-expected":
            owned = expected(op, word)
        if mistake == "installation-read-as-expected":
            installed = expected(target(inst), word)
        through = If(s.got_kind(r) == OWNER, owned, installed)
        tagged = If(s.got_kind(r) == KCAS, confirmed_means(s, op, word), through)
        return If(s.got_kind(r) == VALUE, s.got_value(r), tagged)

    m = prover.Model("K-CAS", VARIABLES, ORDER, small=[(Word, 2), (Op, 2), (Val, 3), (Inst, 2), (Reader, 1)])
    a, b = m.before, m.after

    holds_install = lambda s, i, w: And(s.kind(w) == INSTALL, s.inst(w) == i)
    # The word holds a tag of the operation, or an installation for it.
    tagged = lambda s, o, w: Or(
        And(Or(s.kind(w) == KCAS, s.kind(w) == OWNER), s.op(w) == o),
        And(s.kind(w) == INSTALL, target(s.inst(w)) == o),
    )

    def invariant(s):
        holds_kcas = lambda o, w: And(s.kind(w) == KCAS, s.op(w) == o)
        holds_owner = lambda o, w: And(s.kind(w) == OWNER, s.op(w) == o)
        installs = lambda o, w: And(s.kind(w) == INSTALL, target(s.inst(w)) == o)
        held = lambda o, w: Or(holds_kcas(o, w), holds_owner(o, w), And(installs(o, w), over_owner(s.inst(w))))
        gone = lambda o, w: And(
            s.over(o),
            s.state(o) != U,
            Not(holds_kcas(o, w)),
            Not(holds_owner(o, w)),
            Implies(installs(o, w), And(Not(over_owner(s.inst(w))), Not(s.saw_undecided(s.inst(w))))),
        )
        ever = lambda o: And(s.begun(o), s.shown(o))
        return {
            "memory": ForAll([w], s.abstract(w) == meaning(s, w)),
            "own words": ForAll(
                [w],
                And(
                    Implies(Or(s.kind(w) == KCAS, s.kind(w) == OWNER), And(entry(s.op(w), w), ever(s.op(w)))),
                    Implies(s.kind(w) == INSTALL, And(s.installed(s.inst(w)), place_of(s.inst(w)) == w)),
                ),
            ),
            "own installations": ForAll(
                [i], Implies(s.installed(i), And(ever(target(i)), entry(target(i), place_of(i))))
            ),
            "not begun": ForAll(
                [o],
                Implies(
                    Not(s.begun(o)),
                    And(s.state(o) == U, Not(s.shown(o)), Not(s.differed(o)), Not(s.over(o)), Not(s.reused(o))),
                ),
            ),
            "not shown": ForAll(
                [o, w], Implies(Not(s.shown(o)), And(s.state(o) == U, Not(s.placed(o, w)), Not(s.confirmed(o, w))))
            ),
            "placed": ForAll([o, w], Implies(And(s.state(o) == U, s.placed(o, w)), held(o, w))),
            "confirmed": ForAll([o, w], Implies(And(s.state(o) == U, s.confirmed(o, w)), holds_kcas(o, w))),
            "installed": ForAll(
                [i],
                Implies(
                    And(s.installed(i), s.state(target(i)) == U),
                    Or(holds_install(s, i, place_of(i)), holds_kcas(target(i), place_of(i))),
                ),
            ),
            "seen": ForAll([i], Implies(Or(s.saw_undecided(i), s.saw_decided(i)), s.installed(i))),
            "decided": ForAll([i], Implies(s.saw_decided(i), s.state(target(i)) != U)),
            "helper's success": ForAll(
                [i, w],
                Implies(And(holds_install(s, i, w), s.state(target(i)) == BY_HELPER), Not(s.saw_undecided(i))),
            ),
            "ended": ForAll([i, w], Implies(s.ended(i), Not(holds_install(s, i, w)))),
            "owner's success": ForAll(
                [i, w],
                Implies(
                    And(holds_install(s, i, w), s.state(target(i)) == BY_OWNER, Not(over_owner(i))),
                    Not(s.saw_undecided(i)),
                ),
            ),
            "owner ends": ForAll([o], Implies(s.state(o) == BY_OWNER, s.over(o))),
            "over": ForAll([o], Implies(And(s.over(o), s.shown(o)), s.state(o) != U)),
            "failure": ForAll([o], Implies(s.state(o) == FAILED, Or(s.differed(o), s.dead(o)))),
            "clean": ForAll([o, w], Implies(s.clean(o, w), gone(o, w))),
            "reused": ForAll(
                [o, w],
                Implies(
                    And(s.reused(o), entry(o, w)),
                    Or(gone(o, w), And(Not(s.shown(o)), s.over(o), Or(s.differed(o), s.dead(o)))),
                ),
            ),
            "order": ForAll(
                [o, w, w2],
                Implies(
                    And(s.state(o) == U, Or(held(o, w), installs(o, w)), entry(o, w2), below(w2, w)),
                    Or(s.placed(o, w2), s.confirmed(o, w2)),
                ),
            ),
            "reader's tag": ForAll(
                [r],
                Implies(
                    s.loaded(r),
                    And(
                        Implies(
                            Or(s.got_kind(r) == KCAS, s.got_kind(r) == OWNER),
                            And(entry(s.got_op(r), reads(r)), ever(s.got_op(r))),
                        ),
                        Implies(
                            s.got_kind(r) == INSTALL,
                            And(entry(target(s.got_inst(r)), reads(r)), ever(target(s.got_inst(r)))),
                        ),
                    ),
                ),
            ),
            "reader's answer": ForAll(
                [r], Implies(s.loaded(r), And(s.began(r), s.meant(r, answer(s, r))))
            ),
            "reader's moment": ForAll([r], Implies(s.began(r), s.meant(r, s.abstract(reads(r))))),
        }

    m.invariant = invariant
    m.init = And(
        ForAll([w], And(a.kind(w) == VALUE, a.abstract(w) == a.value(w))),
        ForAll(
            [o],
            And(a.state(o) == U, *[Not(getattr(a, n)(o)) for n in ("begun", "shown", "differed", "over", "reused", "dead")]),
        ),
        ForAll([o, w], And(Not(a.placed(o, w)), Not(a.confirmed(o, w)), Not(a.clean(o, w)))),
        ForAll([i], And(Not(a.installed(i)), Not(a.saw_undecided(i)), Not(a.saw_decided(i)), Not(a.ended(i)))),
        # `meant` may begin as anything, hence also empty; that run gives the theorem.
        ForAll([r], And(Not(a.began(r)), Not(a.loaded(r)))),
    )

    # The word, operation, installation, value and reader of an action.
    word, op, inst, val, rd = Const("word!", Word), Const("op!", Op), Const("inst!", Inst), Const("val!", Val), Const("rd!", Reader)
    has_kcas = And(a.kind(word) == KCAS, a.op(word) == op)
    has_owner = And(a.kind(word) == OWNER, a.op(word) == op)
    has_install = holds_install(a, inst, word)
    has_expected = And(a.kind(word) == VALUE, a.value(word) == expected(op, word))
    mine = And(a.begun(op), entry(op, word))
    working = And(mine, Not(a.over(op)), Not(a.dead(op)))
    known = And(mine, a.shown(op))  # to helpers: its tag has been seen

    def becomes(kind, what=None):
        """The word now holds this; no other changes."""
        named = {VALUE: "value", KCAS: "op", OWNER: "op", INSTALL: "inst"}[kind]
        others = [n for n in ("value", "op", "inst") if n != named]
        facts = [m.put("kind", [word], kind), m.put(named, [word], what)]
        return And(*facts, *[m.put(n, [word], getattr(a, n)(word)) for n in others])

    def lower(known_of):
        """All entries of the operation with a lower index are known of."""
        return ForAll([w], Implies(And(entry(op, w), below(w, word)), known_of(w)))

    def action(name, code, *facts, changed=(), step=None):
        """An action during which readers take note of what their words mean."""
        note = ForAll([r, v], b.meant(r, v) == Or(a.meant(r, v), And(b.began(r), v == b.abstract(reads(r)))))
        m.action(name, code, note, *facts, changed=("meant", *changed), step=step)

    takes = ForAll([w], b.abstract(w) == If(entry(op, w), new(op, w), a.abstract(w)))
    agrees = ForAll([w], Implies(entry(op, w), a.abstract(w) == expected(op, w)))
    found = "a success finds every expected value"

    action(
        "begin",
        ("descriptor.rs", "begin_kcas", ".store(status(tag, State::Undecided), Ordering::Release)"),
        Not(a.begun(op)), m.learn("begun", op), changed=["begun"],
    )
    action(
        "exchange one word",
        ("commit.rs", "compare_exchange", "Ok(_) => return Ok(current)"),
        a.kind(word) == VALUE, becomes(VALUE, val), m.put("abstract", [word], val), changed=["abstract", *WORD],
        step=("an exchange replaces what its word means", a.abstract(word) == a.value(word)),
    )
    action(
        "place the owner's tag",
        ("commit.rs", "place", "Ok(_) => return Placed::Yes"),
        working, has_expected,
        lower(lambda w: a.placed(op, w)) if mistake != "entries-in-given-order" else True,
        becomes(OWNER, op), m.learn("placed", op, word), m.learn("shown", op), changed=["placed", "shown", *WORD],
    )
    action(
        "find the own tag placed",
        ("commit.rs", "make_way", "if tag == own.tag => return Some(Placed::Yes)"),
        working, Or(has_kcas, has_owner), m.learn("placed", op, word), changed=["placed"],
    )
    differs = And(a.kind(word) == VALUE, a.value(word) != expected(op, word))
    if mistake == "decided-in-the-way-differs":
        differs = Or(differs, And(a.kind(word) == OWNER, a.op(word) != op, a.state(a.op(word)) != U))
    # Helpers see it in `install`: `return Installed::Differs`.
    action(
        "see a word differ",
        ("commit.rs", "place", "Err(raw) if tagged::is_value(raw) => return Placed::Differs"),
        mine, differs, m.learn("differed", op), changed=["differed"],
        step=("a word that differs means another value", a.abstract(word) != expected(op, word)),
    )

    def all_known(known_of, skips):
        """All entries of the operation are known of, or those that a mistake does not leave out."""
        needed = lambda w: expected(op, w) != new(op, w) if skips else True
        if mistake == "decided-after-the-first-word":
            return Exists([w], And(entry(op, w), known_of(op, w)))
        return ForAll([w], Implies(And(entry(op, w), needed(w)), known_of(op, w)))

    everywhere = all_known(a.placed, mistake == "comparisons-not-installed")
    open_to_owner = a.state(op) != FAILED if mistake == "owner-decides-again" else a.state(op) == U
    action(
        "owner decides for success",
        ("descriptor.rs", "decide_in", "status(tag, verdict)"),
        a.begun(op), a.shown(op), Not(a.over(op)), Not(a.dead(op)), open_to_owner, everywhere,
        m.put("state", [op], BY_OWNER), m.learn("over", op), takes,
        changed=["state", "over", "abstract"], step=(found, agrees),
    )
    action(
        "owner learns the decision",
        ("descriptor.rs", "decide", "Err(status) => State::decode(status)"),
        a.begun(op), a.state(op) != U, m.learn("over", op), changed=["over"],
    )
    # At any access. Whoever takes over its id decides for failure without a cause, withdraws and reuses the record. An operation
    # that was not shown is given up; perhaps its record is not complete.
    action(
        "the owner is killed",
        ("commit.rs", "take_over", "let state = own.decide(State::Failed);"),
        m.learn("dead", op), changed=["dead"],
    )
    heir = And(a.begun(op), a.shown(op), a.dead(op), a.state(op) == U)
    if mistake == "heir-decides-for-success":
        success = And(m.put("state", [op], BY_OWNER), m.learn("over", op), takes)
        action("mistake", None, heir, success, changed=["state", "over", "abstract"], step=(found, agrees))
    if mistake == "heir-forgets":
        action("mistake", None, heir, m.learn("over", op), m.learn("reused", op), changed=["over", "reused"])
    action(
        "decide for failure",
        ("descriptor.rs", "decide_in", "status(tag, verdict)"),
        a.begun(op), a.shown(op), a.state(op) == U, Or(a.differed(op), a.dead(op)), m.put("state", [op], FAILED),
        changed=["state"],
    )
    if mistake == "first-word-forgotten":
        unseen = ForAll([w], Implies(entry(op, w), Not(And(a.kind(w) == OWNER, a.op(w) == op))))
    else:
        unseen = Not(a.shown(op))
    action(
        "give up at the first word",
        ("commit.rs", "kcas", "Placed::Differs => false"),
        a.begun(op), unseen, Or(a.differed(op), a.dead(op)), m.learn("over", op), m.learn("reused", op),
        changed=["over", "reused"],
    )
    unused = mistake == "shared-installation-tags" or Not(a.installed(inst))
    for over, stands in ((False, has_expected), (True, has_owner)):
        action(
            "install over the owner tag" if over else "install over the value",
            ("commit.rs", "install", "word.compare_exchange(old, mine.raw(), Ordering::SeqCst, Ordering::SeqCst)"),
            known, stands, unused, Not(a.ended(inst)), target(inst) == op, place_of(inst) == word, over_owner(inst) == over,
            lower(lambda w: a.confirmed(op, w)) if mistake != "helper-installs-in-any-order" else True,
            becomes(INSTALL, inst), m.learn("installed", inst), changed=["installed", *WORD],
        )
    looked = True if mistake == "installation-without-condition" else a.state(target(inst)) == U
    action(
        "finish: read undecided",
        ("commit.rs", "finish_install", "let undecided = is_undecided(words, target);"),
        a.installed(inst), looked, m.learn("saw_undecided", inst), changed=["saw_undecided"],
    )
    action(
        "finish: read decided",
        ("commit.rs", "finish_install", "let undecided = is_undecided(words, target);"),
        a.installed(inst), a.state(target(inst)) != U, m.learn("saw_decided", inst), changed=["saw_decided"],
    )
    action(
        "finish: confirm",
        ("commit.rs", "finish_install", "let next = if undecided { target.raw() } else { old };"),
        a.saw_undecided(inst), has_install, target(inst) == op, becomes(KCAS, op), changed=WORD,
    )
    restored = If(over_owner(inst), becomes(OWNER, op), becomes(VALUE, expected(op, word)))
    if mistake == "expected-value-put-back":
        restored = becomes(VALUE, expected(op, word))
    action(
        "finish: put back",
        ("commit.rs", "finish_install", "let next = if undecided { target.raw() } else { old };"),
        a.saw_decided(inst), has_install, target(inst) == op, restored, changed=WORD,
    )
    action(
        "find the confirmed tag",
        ("commit.rs", "install", "Word::Kcas(tag) if tag == target => return Installed::Yes"),
        known, has_kcas, m.learn("confirmed", op, word), changed=["confirmed"],
    )
    # Or by itself: it is in the word no more.
    action(
        "find the installation gone",
        ("commit.rs", "install", "Ok(_) if finish_install(words, index, mine, target, old) => return Installed::Yes"),
        a.saw_undecided(inst), target(inst) == op, place_of(inst) == word, Not(has_install),
        m.learn("confirmed", op, word), changed=["confirmed"],
    )
    skips = mistake in ("helper-skips-comparisons", "comparisons-not-installed")
    action(
        "helper decides for success",
        ("commit.rs", "install_and_decide", "descriptor::decide(words, tag, verdict);"),
        a.begun(op), a.shown(op), a.state(op) == U,
        all_known(a.confirmed, skips),
        m.put("state", [op], BY_HELPER), takes, changed=["state", "abstract"], step=(found, agrees),
    )
    decided = And(a.begun(op), a.state(op) != U)
    late = mistake == "late-tag-released-as-new"
    action(
        "release the confirmed tag",
        ("commit.rs", "release", "Word::Kcas(found) if found == tag => state.confirmed(entry.expected, entry.new)"),
        has_kcas, decided, becomes(VALUE, confirmed_means(a, op, word)), changed=WORD,
    )
    action(
        "release the owner's tag",
        ("commit.rs", "release", "Word::Owner(found) if found == tag => state.owned(entry.expected, entry.new)"),
        has_owner, decided, becomes(VALUE, owned_means(a, op, word, late)), changed=WORD,
    )
    ends = becomes(VALUE, install_means(a, inst, word))
    if mistake == "settled-with-expected":
        ends = becomes(VALUE, expected(op, word))
    if mistake == "late-tag-written-back":
        ends = If(over_owner(inst), becomes(OWNER, op), ends)
    action(
        "withdraw: end an installation",
        ("commit.rs", "withdraw_what_is_there", "_ => Some(state.owned(entry.expected, entry.new))"),
        has_install, target(inst) == op, a.over(op), decided, ends,
        m.learn("clean", op, word), changed=["clean", *WORD],
    )
    action(
        "withdraw: take the own tag out",
        ("commit.rs", "withdraw", "Ok(_) => {}"),
        mine, Or(has_kcas, has_owner), a.over(op), decided,
        becomes(VALUE, If(a.kind(word) == KCAS, confirmed_means(a, op, word), owned_means(a, op, word))),
        m.learn("clean", op, word), changed=["clean", *WORD],
    )
    at = a.inst(word)
    harmless = And(target(at) == op, Not(over_owner(at)), succeeded(a.state(op)))
    if mistake == "installations-not-ended":
        harmless = target(at) == op
    other = a.op(word) != op
    if mistake == "late-tag-not-looked-for":
        other = Or(other, a.kind(word) == OWNER)
    # After a failure, it is the exchange of the word for itself, in the same function.
    action(
        "withdraw: find nothing left",
        ("commit.rs", "withdraw_what_is_there", "None => return"),
        mine, a.over(op), decided,
        Or(
            mistake == "unreadable-installation-taken-for-done",
            a.kind(word) == VALUE,
            And(Or(a.kind(word) == KCAS, a.kind(word) == OWNER), other),
            And(a.kind(word) == INSTALL, Or(target(at) != op, harmless)),
        ),
        m.learn("clean", op, word), changed=["clean"],
    )
    all_clean = ForAll([w], Implies(entry(op, w), a.clean(op, w)))
    if mistake == "failed-record-reused-at-once":
        all_clean = Exists([w], And(entry(op, w), a.clean(op, w)))
    if mistake == "heir-does-not-withdraw":
        all_clean = Or(a.dead(op), all_clean)
    action(
        "reuse the record",
        ("descriptor.rs", "begin_kcas", "let tag = KcasTag::new(owner.index(), next_sequence(last));"),
        a.over(op), decided, all_clean, m.learn("reused", op), changed=["reused"],
    )
    action(
        "reuse the installation's record",
        ("descriptor.rs", "begin_install", "let sequence = next_sequence(last);"),
        Or(mistake == "installation-forgotten", Not(holds_install(a, inst, place_of(inst)))), m.learn("ended", inst), changed=["ended"],
    )
    action(
        "reader begins",
        ("commit.rs", "load", "let raw = load_raw(words, index);"),
        Not(a.began(rd)), Not(a.loaded(rd)), m.learn("began", rd), changed=["began"],
    )
    action(
        "reader loads, or loads again",
        ("commit.rs", "load_through", "raw = load_raw(words, index);"),
        a.began(rd), reads(rd) == word, m.learn("loaded", rd),
        m.put("got_kind", [rd], a.kind(word)), m.put("got_value", [rd], a.value(word)),
        m.put("got_op", [rd], a.op(word)), m.put("got_inst", [rd], a.inst(word)),
        changed=["loaded", "got_kind", "got_value", "got_op", "got_inst"],
    )
    if mistake == "owner-tag-counts-as-confirmed":
        action("mistake", None, known, has_owner, m.learn("confirmed", op, word), changed=["confirmed"])
    if mistake == "owner-tag-confirmed-without-condition":
        action("mistake", None, known, has_owner, becomes(KCAS, op), changed=WORD)
    if mistake == "expected-value-over-another":
        action("mistake", None, mine, a.state(op) == FAILED, differs, becomes(VALUE, expected(op, word)), changed=WORD)
    if mistake == "release-before-decide":
        action("mistake", None, working, has_owner, becomes(VALUE, new(op, word)), changed=WORD)

    m.theorems["what a load, or an exchange that fails, answers was true since it began"] = ForAll(
        [r], Implies(a.loaded(r), a.meant(r, answer(a, r)))
    )
    m.theorems["an operation that fails, or is given up, has seen a word differ, or its owner is dead"] = ForAll(
        [o, w],
        Implies(
            And(entry(o, w), Or(a.state(o) == FAILED, And(a.reused(o), Not(a.shown(o))))), Or(a.differed(o), a.dead(o))
        ),
    )
    m.theorems["no word holds a tag of a reused record"] = ForAll(
        [o, w],
        Implies(
            And(a.reused(o), tagged(a, o, w)), And(a.kind(w) == INSTALL, Not(over_owner(a.inst(w))))
        ),
    )
    m.transitions["decided forever"] = ForAll([o], Implies(a.state(o) != U, b.state(o) == a.state(o)))
    m.transitions["an installation that has left its word stays away"] = ForAll(
        [i, w], Implies(And(a.installed(i), holds_install(b, i, w)), holds_install(a, i, w))
    )
    # Undecided operations that wait for one another do so at ever higher indices. A chain is gathered over time.
    m.transitions["a tag of an undecided operation stays in its word"] = ForAll(
        [o, w], Implies(And(tagged(a, o, w), b.state(o) == U), tagged(b, o, w))
    )
    m.theorems["waiting ascends"] = ForAll(
        [o, w, w2],
        Implies(And(a.state(o) == U, tagged(a, o, w), entry(o, w2), Not(tagged(a, o, w2))), below(w, w2)),
    )
    return m


if __name__ == "__main__":
    sys.exit(prover.run(make, MISTAKES))
