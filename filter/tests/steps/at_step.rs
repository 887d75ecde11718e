//! Calls of a filter that are stopped at a step, or between whose steps something happens.

use std::sync::Arc;

use filter::Filter;
use kcas::steps::{Frozen, count, freeze, with_hook};

use crate::small::growing::Growing;

/// Makes a call in a thread that has changed the filter before; the filter does not have the key `absent`. Otherwise
/// the number of steps would depend on the thread's id, and so on other tests.
pub(crate) fn counted<R>(
    absent: u64,
    call: impl FnOnce(&Growing) -> R + Copy,
) -> impl FnOnce(&Growing) -> R + Copy {
    move |filter| {
        with_hook(|_| (), || assert!(!filter.remove(&absent)));
        call(filter)
    }
}

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

/// Stops a call in a thread of its own before this step; `None`, when it has ended, if it has fewer.
pub(crate) fn stopped<F: Send + Sync + 'static, R: Send + 'static>(
    filter: &Arc<F>,
    at: u64,
    call: impl FnOnce(&F) -> R + Send + 'static,
) -> Option<Frozen<R>> {
    let filter = Arc::clone(filter);
    freeze(at, move || {
        register();
        call(&filter)
    })
    .ok()
}

/// Stops a call before each of its steps, of which it has more than `least`, each time in a filter that is made anew.
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
    assert!(filter.remove(&from), "{from:#x} has no copy");
}

/// Where [`hopping`] does it: the copy is in the first bucket while a lookup reads the second one, and `more` happens
/// before the lookup reads the first one again, and at no other time.
pub(crate) const ONCE: [u64; 3] = [u64::MAX, 1, 2];

/// Looks up the key `here`, which is there throughout: its only copy is in its second bucket, the first one of the key
/// `there`. Before the step `to` of the lookup, the copy hops to the first bucket, and before the step `back`, it hops
/// back. `more` happens before the step `first`, and, with `true`, when the copy is back.
pub(crate) fn hopping<F: Filter + 'static, R>(
    filter: &Arc<F>,
    [here, there]: [u64; 2],
    hop: fn(&F, u64, u64),
    [first, to, back]: [u64; 3],
    look: fn(&F, &u64) -> R,
    more: impl Fn(&Arc<F>, bool) + 'static,
) -> R {
    filter.insert(&there).unwrap();
    let others = Arc::clone(filter);
    let hook = move |step| {
        if step == first {
            more(&others, false);
        }
        if step == to {
            hop(&others, there, here);
        }
        if step == back {
            hop(&others, here, there);
            more(&others, true);
        }
    };
    with_hook(hook, || look(filter, &here))
}

/// Adds a key and removes it again, that many times.
pub(crate) fn add(filter: &impl Filter, key: u64, times: u64) {
    for _ in 0..times {
        filter.insert(&key).unwrap();
        assert!(filter.remove(&key), "{key:#x} has no copy");
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
