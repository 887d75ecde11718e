"""A small front end to z3: states, actions, and what must hold of them.

A model is a set of state variables (functions of words, operations, ...), an initial condition, actions (each relates the
state before to the state after), and an invariant (named conjuncts). Everything here is first-order logic over uninterpreted
sorts, so what is proved holds for any number of words, operations and threads.
"""

import sys
import time

from z3 import And, BoolSort, Const, ForAll, Function, Implies, Not, Or, Solver, sat, unsat

TIMEOUT_MS = 60_000


def few(sort, count):
    """There are at most so many things of this sort."""
    x = Const("x", sort)
    return ForAll([x], Or(*[x == Const(f"{sort.name()}{at}", sort) for at in range(count)]))


class State:
    """One state: each variable is a function of its arguments."""

    def __init__(self, variables, tag):
        self.variables = variables
        for name, signature in variables.items():
            setattr(self, name, Function(f"{name}_{tag}", *signature))


class Model:
    """A transition system, to be checked against its invariant.

    `variables` maps a name to the sorts of its arguments and of its value, the last one.
    """

    def __init__(self, name, variables, axioms=(), small=()):
        self.name, self.variables, self.axioms = name, variables, list(axioms)
        # Counterexamples and possible actions are looked for among few things of each sort, since solvers find those.
        self.small = [few(sort, count) for sort, count in small]
        self.before, self.after = State(variables, "before"), State(variables, "after")
        # What every action keeps to, and what follows from the invariant.
        self.actions, self.steps, self.transitions, self.theorems = {}, {}, {}, {}
        self.init, self.invariant = None, None

    def same(self, *changed):
        """All variables but these are as before."""
        facts = []
        for name, signature in self.variables.items():
            if name not in changed:
                args = [Const(f"same_{name}_{at}", sort) for at, sort in enumerate(signature[:-1])]
                was, now = getattr(self.before, name), getattr(self.after, name)
                facts.append(ForAll(args, now(*args) == was(*args)) if args else now() == was())
        return And(*facts)

    def put(self, name, at, value):
        """`name` has this value for the arguments `at`, and for all others the value that it had."""
        was, now = getattr(self.before, name), getattr(self.after, name)
        args = [Const(f"put_{name}_{n}", arg.sort()) for n, arg in enumerate(at)]
        others = Or(*[arg != one for arg, one in zip(args, at)])
        return And(now(*at) == value, ForAll(args, Implies(others, now(*args) == was(*args))))

    def learn(self, name, *at):
        """The truth `name` now also holds of `at`, and of everything else as before."""
        assert self.variables[name][-1] == BoolSort()
        return self.put(name, at, True)

    def action(self, name, code, *facts, changed, step=None):
        """Adds an action. `code` is (file, function, what stands there); `step` must follow from what held before."""
        self.actions[name] = (code, And(*facts, self.same(*changed)))
        if step is not None:
            self.steps[name] = step

    def obligations(self):
        """Yields (what, facts, goal) for all that must be proved."""
        holds, then = self.invariant(self.before), self.invariant(self.after)
        for conjunct, goal in holds.items():
            yield ("initially", conjunct), [self.init], goal
        for action, (_, relation) in self.actions.items():
            facts = [*holds.values(), relation]
            if action in self.steps:
                what, goal = self.steps[action]
                yield (action, what), facts, goal
            for what, goal in (then | self.transitions).items():
                yield (action, what), facts, goal
        for theorem, goal in self.theorems.items():
            yield ("always", theorem), list(holds.values()), goal

    def check(self):
        """Returns the obligations that were not proved, the number of all, and the longest time of one."""
        open_, count, longest = [], 0, 0.0
        for what, facts, goal in self.obligations():
            solver = self.solver(*facts, Not(goal))
            began = time.time()
            answer = solver.check()
            longest = max(longest, time.time() - began)
            count += 1
            if answer != unsat:
                open_.append((what, answer))
        return open_, count, longest

    def counterexamples(self, right):
        """Yields the obligations that have a small counterexample, first those of actions that the model `right` has otherwise."""
        same = {name for name, (_, relation) in self.actions.items() if relation.eq(right.actions.get(name, (0, relation))[1])}
        same -= self.actions.keys() - right.actions.keys()
        for what, facts, goal in sorted(self.obligations(), key=lambda obligation: obligation[0][0] in same):
            if self.solver(*self.small, *facts, Not(goal)).check() == sat:
                yield what

    def impossible(self):
        """Returns the actions that no small state allows in which the invariant holds: of them nothing would be proved."""
        holds = self.invariant(self.before)
        found = []
        for action, (_, relation) in self.actions.items():
            answer = self.solver(*self.small, *holds.values(), relation).check()
            if answer != sat:
                found.append((action, answer))
        return found

    def solver(self, *facts):
        solver = Solver()
        solver.set("timeout", TIMEOUT_MS)
        solver.add(*self.axioms, *facts)
        return solver


def run(make, mistakes):
    """The command line of a model: proves it, shows that each action is possible, and that each mistake is found.

    `make(mistake)` builds the model; `mistakes` maps a name to what is wrong.
    """
    if len(sys.argv) > 1:
        name = sys.argv[1]
        if name not in mistakes:
            print(f"no mistake is called {name}; there are: {', '.join(mistakes)}", file=sys.stderr)
            return 2
        print(f"{name}: {mistakes[name]}; these have a counterexample:")
        for action, what in make(name).counterexamples(make(None)):
            print(f"  {action}: {what}")
        return 0
    model, failed = make(None), False
    began = time.time()
    open_, count, longest = model.check()
    conjuncts = len(model.invariant(model.before))
    print(
        f"{model.name}: {len(model.actions)} actions, {conjuncts} conjuncts, {count} obligations: "
        f"{count - len(open_)} proved; {time.time() - began:.1f} s, the longest {longest:.2f} s"
    )
    for theorem in model.transitions | model.theorems:
        if all(what != theorem for (_, what), _ in open_):
            print(f"  proved: {theorem}")
    for (action, what), why in open_:
        failed = True
        print(f"  NOT PROVED: {action}: {what}: {why}")
    for action, why in model.impossible():
        failed = True
        print(f"  NEVER POSSIBLE: {action}: {why}")
    for name, what in mistakes.items():
        first = next(make(name).counterexamples(model), None)
        if first:
            print(f"  found: {name} ({what}): {first[0]}: {first[1]}")
        else:
            failed = True
            print(f"  NOT FOUND: {name} ({what})")
    return 1 if failed else 0
