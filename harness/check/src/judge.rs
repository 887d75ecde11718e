//! Judges whether the answers of a subject in one round can be explained: the calls recorded by all
//! threads are checked against the sequential specification of a filter.
//!
//! If the subject reveals the class of a key, answers must be exact. Scenarios [of two
//! buckets](crate::scenario::Kind::is_of_two_buckets) are checked against the whole table
//! ([`WholeTable`]), the others class by class ([`OneClass`]), where any refusal is accepted. If the
//! subject does not ([`CopySpec::most`]), each key is checked separately: a "yes" is accepted, since it
//! may be a false positive, and a "no" only while the key is absent.
//!
//! In a [set](subject::Subject::SET) the number of copies is at most one, whatever was
//! accepted.
//!
//! The parts are checked in parallel, on all cores.

use std::fmt;

use histories::{Call, Event, Failure, OfClass, OneClass, Specification, Violation, WholeTable};
use rayon::prelude::*;

use crate::candidate::Candidate;
use crate::scenario::{Group, Key, Scenario};

/// A call's key, the operation and the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OfKey(pub Key, pub Event);

/// Checks the calls of a scenario on a subject against the specification. Returns the number of parts
/// of the history in which too many calls overlapped to decide. Fails with a description if some
/// answers cannot be explained.
pub(crate) fn judge(
    scenario: &Scenario,
    candidate: &Candidate,
    calls: &[Call<OfKey>],
) -> Result<usize, String> {
    if scenario.kind.is_of_two_buckets() && !candidate.grows {
        let slots = candidate.room(scenario.buckets) as u64;
        let calls: Vec<_> = (calls.iter())
            .map(|call| with_event(call, OfClass(call.event.0.group, call.event.1.clone())))
            .collect();
        let empty = vec![0; scenario.groups.len()];
        let describe =
            |violation| describe_violation(&violation, scenario.groups.iter().enumerate());
        let checked = histories::check(&WholeTable { slots }, &[empty], &calls);
        return verdict(checked, describe);
    }
    let mut parts = vec![Vec::new(); scenario.groups.len()];
    for call in calls {
        parts[call.event.0.group].push(with_event(call, call.event.1.clone()));
    }
    let verdicts = parts.par_iter().enumerate().map(|(number, calls)| {
        let group = &scenario.groups[number];
        let describe = |violation| describe_violation(&violation, [(number, group)]);
        let most = group.class.map(|class| {
            let [first, second] = class.buckets();
            let buckets = 1 + usize::from(first != second);
            let room = candidate.room(buckets) as u64;
            if candidate.grows { u64::MAX } else { room }
        });
        let set = candidate.set;
        verdict(
            histories::check(&CopySpec { set, most }, &[0], calls),
            describe,
        )
    });
    verdicts.try_reduce(|| 0, |one, other| Ok(one + other))
}

fn with_event<E, F>(call: &Call<E>, event: F) -> Call<F> {
    Call {
        thread: call.thread,
        start: call.start,
        end: call.end,
        event,
    }
}

fn verdict<State, E>(
    checked: Result<Vec<State>, Failure<State, E>>,
    describe: impl FnOnce(Violation<State, E>) -> String,
) -> Result<usize, String> {
    match checked {
        Ok(_) => Ok(0),
        Err(Failure::TooManyOverlap) => Ok(1),
        Err(Failure::Violation(violation)) => Err(describe(violation)),
    }
}

fn describe_violation<'a, State: fmt::Debug, E: fmt::Display>(
    violation: &Violation<State, E>,
    groups: impl IntoIterator<Item = (usize, &'a Group)>,
) -> String {
    let mut text = String::new();
    for (number, group) in groups {
        let keys: Vec<String> = group.keys.iter().map(u64::to_string).collect();
        let keys = keys.join(", ");
        text += &group.class.map_or(format!("key {keys}\n"), |class| {
            let (fingerprint, [first, second]) = (class.fingerprint(), class.buckets());
            format!("class {number}: fingerprint {fingerprint:#x} in bucket {first} or {second}; keys {keys}\n")
        });
    }
    text + &violation.to_string()
}

/// The copies of one key or class that a subject holds.
struct CopySpec {
    /// Whether the subject is a set, which holds at most one copy, whatever it accepted.
    set: bool,
    /// Room for copies of a class; `None` if classes are unknown. Then threads remove only keys that they inserted:
    /// since keys may collide, a key may be found at any time, but must not be missed while it is in.
    most: Option<u64>,
}

impl Specification for CopySpec {
    type State = u64;
    type Event = Event;

    fn apply(&self, &copies: &u64, event: &Event) -> Option<u64> {
        let most = self.most.unwrap_or(u64::MAX);
        let after = match (event, self.most) {
            (Event::Insert(Err(_)), None)
            | (Event::InsertIfAbsent(Ok(false) | Err(_)) | Event::Contains(true), None) => copies,
            (Event::InsertIfAbsent(Ok(true)), None) => copies + 1,
            (Event::Count(count), None) if *count >= copies => copies,
            _ => OneClass { most }.apply(&copies, event)?,
        };
        Some(if self.set { after.min(1) } else { after })
    }

    fn is_read_only(&self, event: &Event) -> bool {
        OneClass { most: u64::MAX }.is_read_only(event)
    }
}
