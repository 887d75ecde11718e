//! Calls of any filter that are stopped at a step, for as long as others work, or between whose steps something
//! happens.

use std::sync::Arc;

use filter::Filter;
use kcas::steps::Access;
use kcas_testing::steps::{Frozen, count, freeze, freeze_where, with_hook, within};

use crate::small::{Caller, Operation, Tested, explained};

pub(crate) fn steps_of(call: impl FnOnce()) -> u64 {
    let ((), steps) = count(call);
    steps.loads + steps.stores + steps.exchanges + steps.others
}

/// Makes a call, and another one before this step of it.
pub(crate) fn before_step<F: 'static, R>(
    filter: &Arc<F>,
    at: u64,
    other: impl FnOnce(&F) + 'static,
    call: impl FnOnce(&F) -> R,
) -> R {
    let (others, mut other) = (Arc::clone(filter), Some(other));
    let hook = move |step| {
        if let Some(other) = other.take_if(|_| step == at) {
            other(&others);
        }
    };
    with_hook(hook, || call(filter))
}

/// Claims the thread's id without its hook: when other tests claim ids at the same time, that takes more steps.
pub(crate) fn register() {
    with_hook(|_| (), || kcas::thread_id::register().unwrap());
}

/// Stops a call in a thread of its own before this step of those that count; `None`, when it has ended, if it has
/// fewer.
fn stopped_where<F: Send + Sync + 'static, R: Send + 'static>(
    counts: fn(Access) -> bool,
    filter: &Arc<F>,
    at: u64,
    call: impl FnOnce(&F) -> R + Send + 'static,
) -> Option<Frozen<R>> {
    let filter = Arc::clone(filter);
    let call = move || {
        register();
        call(&filter)
    };
    freeze_where(counts, at, call).ok()
}

pub(crate) fn stopped<F: Send + Sync + 'static, R: Send + 'static>(
    filter: &Arc<F>,
    at: u64,
    call: impl FnOnce(&F) -> R + Send + 'static,
) -> Option<Frozen<R>> {
    stopped_where(|_| true, filter, at, call)
}

pub(crate) fn stopped_before_exchange<F: Send + Sync + 'static, R: Send + 'static>(
    filter: &Arc<F>,
    nth: u64,
    call: impl FnOnce(&F) -> R + Send + 'static,
) -> Option<Frozen<R>> {
    stopped_where(|access| access == Access::Exchange, filter, nth, call)
}

/// Stops a call before each of its steps, of which it has more than `least`, each time in a filter that is made again.
pub(crate) fn stops<F: Send + Sync + 'static, R: Send + 'static>(
    least: u64,
    make: impl Fn() -> Arc<F>,
    call: impl FnOnce(&F) -> R + Copy + Send + 'static,
) -> impl Iterator<Item = (u64, Arc<F>, Frozen<R>)> {
    (0..).map_while(move |step| {
        let filter = make();
        let stopped = stopped(&filter, step, call);
        assert!(stopped.is_some() || step > least, "{step} steps");
        Some((step, filter, stopped?))
    })
}

/// Makes a call in a thread that panics before this step; returns false if the call has fewer steps.
pub(crate) fn gone<F: Send + Sync + 'static, R: Send + 'static>(
    filter: &Arc<F>,
    at: u64,
    call: impl FnOnce(&F) -> R + Send + 'static,
) -> bool {
    let filter = Arc::clone(filter);
    let hook = move |step| assert!(step != at);
    let call = move || {
        register();
        with_hook(hook, || call(&filter))
    };
    std::thread::spawn(call).join().is_err()
}

/// A copy of a class changes buckets, by an insert of one of its keys and a remove of another.
pub(crate) fn hop(filter: &impl Filter, from: u64, to: u64) {
    filter.insert(&to).unwrap();
    assert!(filter.remove(&from).unwrap(), "{from:#x} has no copy");
}

/// Where [`hopping`] does it: the copy is in the first bucket while a lookup reads the second one, and `more` happens
/// before the lookup reads the first one again, and at no other time.
pub(crate) const ONCE: [u64; 3] = [u64::MAX, 1, 2];

/// Looks up the key `item`, which is there throughout: its only copy is in its second bucket, the first one of the key
/// `twin`. Before the step `to` of the lookup, the copy hops to the first bucket, and before the step `back`, it hops
/// back. `more` happens before the step `first`, and, with `true`, when the copy is back.
pub(crate) fn hopping<F: Filter + 'static, R>(
    filter: &Arc<F>,
    [item, twin]: [u64; 2],
    hop: fn(&F, u64, u64),
    [first, to, back]: [u64; 3],
    look: fn(&F, &u64) -> R,
    more: impl Fn(&Arc<F>, bool) + 'static,
) -> R {
    filter.insert(&twin).unwrap();
    let others = Arc::clone(filter);
    let hook = move |step| {
        if step == first {
            more(&others, false);
        }
        if step == to {
            hop(&others, twin, item);
        }
        if step == back {
            hop(&others, item, twin);
            more(&others, true);
        }
    };
    with_hook(hook, || look(filter, &item))
}

/// Adds a key and removes it again, that many times.
pub(crate) fn add(filter: &impl Filter, key: u64, times: u64) {
    for _ in 0..times {
        filter.insert(&key).unwrap();
        assert!(filter.remove(&key).unwrap(), "{key:#x} has no copy");
    }
}

/// Each of the first with each of the second.
pub(crate) fn pairs<A: Copy, B>(
    firsts: impl IntoIterator<Item = A>,
    seconds: impl IntoIterator<Item = B> + Clone,
) -> impl Iterator<Item = (A, B)> {
    let with = move |first| {
        let seconds = seconds.clone().into_iter();
        seconds.map(move |second| (first, second))
    };
    firsts.into_iter().flat_map(with)
}

/// A filter that is stopped.
pub(crate) trait StoppableFilter: Tested {
    /// Steps of a lookup while nobody moves.
    const LOOKUP: u64;

    /// More steps than any call takes in this filter, with two stopped operations to help.
    const MAX_STEPS: u64;

    /// What the others do while threads are stopped in these operations: they look up what stays, and insert and
    /// remove the new keys.
    fn work(state: &State<Self>, others: &mut Caller<Self>, stopped: &[Operation]) {
        let (lookup, update) = (Self::LOOKUP, Self::MAX_STEPS);
        let settled = state.settled(&others.filter, stopped);
        for round in 0..2 {
            for &key in &settled {
                assert!(within(lookup, || others.contains(key)), "{key:#x} is lost");
            }
            for &new in &state.new {
                assert!(!within(lookup, || others.contains(new)));
                let inserted = match round {
                    0 => within(update, || others.insert(new)).is_ok(),
                    _ => within(update, || others.insert_if_absent(new)) == Ok(true),
                };
                assert_eq!(within(lookup, || others.contains(new)), inserted);
                assert_eq!(within(update, || others.remove(new)), inserted);
                assert!(!within(update, || others.remove(new)));
            }
        }
    }
}

/// A filter in a state that is hard to get right.
pub(crate) struct State<F> {
    pub(crate) name: &'static str,
    /// Makes a filter that holds these keys.
    pub(crate) holding: fn(&[u64]) -> Arc<F>,
    pub(crate) held: Vec<u64>,
    /// What the others insert and remove.
    pub(crate) new: Vec<u64>,
}

impl<F: StoppableFilter> State<F> {
    pub(crate) fn filter(&self) -> Arc<F> {
        (self.holding)(&self.held)
    }

    /// Returns the keys that stay, whatever these operations remove: none is sure to, once a period has begun.
    pub(crate) fn settled(&self, filter: &F, operations: &[Operation]) -> Vec<u64> {
        if (F::PERIOD)(filter) > 0 {
            return Vec::new();
        }
        let mut settled = self.held.clone();
        for operation in operations {
            if let Operation::Remove(key) = operation {
                settled.retain(|held| (F::CLASS)(filter, held) != (F::CLASS)(filter, key));
            }
        }
        settled
    }

    /// Stops each operation at each of its steps. Then the others make the calls `after`, or do their usual work if
    /// there are none.
    pub(crate) fn stopped_at_every_step(
        &self,
        operations: &[(&str, Operation)],
        after: &[Operation],
    ) {
        for (&(name, operation), was) in
            pairs(operations, [Registration::New, Registration::Registered])
        {
            let is_stopped = |step: &u64| self.is_stopped(was, [(operation, *step)], after, true);
            let steps = (0..).take_while(is_stopped).count();
            assert!(steps > 0, "{name} has no steps");
            println!("{}, {name}: stopped at each of {steps} steps", self.name);
        }
    }

    /// The same with two: the second meets the first, stopped at each of its steps, and is itself stopped at each step
    /// of what it then does. Either one of the two goes on first.
    pub(crate) fn stopped_at_every_pair_of_steps(
        &self,
        [first, second]: [Operation; 2],
        after: &[Operation],
    ) {
        let mut count = 0;
        for was in [Registration::New, Registration::Registered] {
            let stops = (0..).map(|first_step| {
                let is_stopped = |second_step: &u64| {
                    let calls = [(first, first_step), (second, *second_step)];
                    let is_stopped = |in_order| self.is_stopped(was, calls, after, in_order);
                    [true, false].map(is_stopped) != [false; 2]
                };
                (0..).take_while(is_stopped).count()
            });
            count += stops.take_while(|stops| *stops > 0).sum::<usize>();
        }
        let name = self.name;
        println!("{name}: {first:x?} with {second:x?}: {count} pairs of steps, in both orders");
    }

    /// Makes each call in a thread of its own, up to this step of it. The others then make those `after`, or do their
    /// usual work; and the threads go on, the first one first or last. False if one of the calls has no such step.
    fn is_stopped<const N: usize>(
        &self,
        was: Registration,
        calls: [(Operation, u64); N],
        after: &[Operation],
        in_order: bool,
    ) -> bool {
        let filter = self.filter();
        let mut stopped = Vec::new();
        for (thread, (operation, step)) in (1..).zip(calls) {
            assert!(step < F::MAX_STEPS, "{operation:?} has no end");
            match freeze(step, run_on(&filter, thread, was, operation)) {
                Ok(frozen) => stopped.push(frozen),
                Err(_) => {
                    stopped.into_iter().for_each(|frozen| _ = frozen.thaw());
                    return false;
                }
            }
        }
        let mut others = Caller::new(&filter, 0);
        for &operation in after {
            within(F::MAX_STEPS, || F::run(&mut others, operation));
        }
        let begun = [&calls.map(|(operation, _)| operation), after].concat();
        if after.is_empty() {
            F::work(self, &mut others, &begun);
        }
        for key in self.settled(&filter, &begun) {
            assert!(filter.contains(&key), "{key:#x} is lost");
        }
        if !in_order {
            stopped.reverse();
        }
        let callers = stopped.into_iter().map(Frozen::thaw);
        explained(&self.held, callers.chain([others]));
        true
    }
}

/// Whether a thread has made a change before it is stopped: if so, it tries an update at once; if not, it
/// claims an id first.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Registration {
    Registered,
    New,
}

pub(crate) fn run_on<F: StoppableFilter>(
    filter: &Arc<F>,
    thread: usize,
    was: Registration,
    operation: Operation,
) -> impl FnOnce() -> Caller<F> + use<F> {
    let mut caller = Caller::new(filter, thread);
    move || {
        if was == Registration::Registered {
            register();
        }
        F::run(&mut caller, operation);
        caller
    }
}
