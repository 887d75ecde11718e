//! A checker of linearizability, for tests: could calls that overlapped in time have taken effect
//! one after the other?
//!
//! A history is linearizable (Herlihy & Wing 1990) if each call can be assigned one moment between
//! its start and its end such that a sequential object would have given the same answers in the
//! order of these moments. [`check`] searches for such an order as Lowe does (*Testing for
//! linearizability*, 2017: just-in-time linearization, after Wing & Gong 1993). It walks through
//! starts and ends in order of time and keeps every *configuration* that explains what has ended so
//! far: a state of the object, and the set of calls under way that have already taken effect. A
//! call takes effect only when some end requires it. Therefore a longer history needs no more memory, and
//! takes time in proportion to its length as long as few calls overlap.
//!
//! Other crates check histories: `todc-utils` 0.1 keeps one bit for each call in each
//! configuration that it remembers, which is quadratic, and stateright 0.31 remembers none, which
//! is exponential; neither reports which calls are to blame.

use std::collections::HashSet;
use std::fmt;
use std::rc::Rc;

use filter::FixedState;

pub use specification::{
    Event, OfClass, OneClass, OneExpiringClass, Remembered, Specification, WholeTable,
};

mod specification;

/// One call of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call<E> {
    /// The thread that made it. Calls of one thread take effect in the order of their starts, even
    /// if their times overlap, and in the order of the history if they start together: so a model
    /// can give everything that it runs at once the same time.
    pub thread: usize,
    /// A time before its first access to the object.
    pub start: u64,
    /// A time after its last access to the object. A call that starts after this is later.
    pub end: u64,
    /// The operation and its answer.
    pub event: E,
}

/// Why a history was not found to be linearizable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure<State, Event> {
    /// It is not linearizable.
    Violation(Violation<State, Event>),
    /// Too many calls overlap, and the search was abandoned.
    TooManyOverlap,
}

pub type FailureOf<S> = Failure<<S as Specification>::State, <S as Specification>::Event>;

/// Calls that no order explains. No read-only call could be left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation<State, Event> {
    /// The states possible before.
    pub since: Vec<State>,
    /// The calls, in the order of their starts.
    pub calls: Vec<Call<Event>>,
    /// The call at whose end no order was left: an index into `calls`.
    pub blamed: usize,
}

/// Maximum number of calls under way at one moment: a configuration has a bit for each.
const MAX_OVERLAP: usize = u64::BITS as usize;

/// Maximum number of configurations at one moment.
const MAX_CONFIGURATIONS: usize = 1 << 20;

/// Checks whether some order explains all calls, which begin in one of the states `since`; returns
/// the states that are possible after them.
///
/// # Errors
/// [`Failure::Violation`] with a small part of the history that cannot be explained;
/// [`Failure::TooManyOverlap`] when more than 64 calls are under way at one moment, or there are
/// more than 2^20 configurations.
pub fn check<S: Specification>(
    specification: &S,
    since: &[S::State],
    calls: &[Call<S::Event>],
) -> Result<Vec<S::State>, FailureOf<S>> {
    walk(specification, since, calls).map_err(|failure| match failure {
        Failure::Violation(violation) => Failure::Violation(smaller(specification, violation)),
        Failure::TooManyOverlap => Failure::TooManyOverlap,
    })
}

/// Leaves out as many read-only calls as possible: what cannot be explained without them cannot be
/// explained with them. (Leaving out a call that changes the state might deprive others of their
/// explanation.)
fn smaller<S: Specification>(
    specification: &S,
    mut violation: Violation<S::State, S::Event>,
) -> Violation<S::State, S::Event> {
    let mut chunk = violation.calls.len();
    while chunk > 0 {
        let before = violation.calls.len();
        let mut from = 0;
        while from < violation.calls.len() {
            let left_out = from..from + chunk;
            let kept: Vec<_> = (violation.calls.iter().enumerate())
                .filter(|(at, call)| {
                    !left_out.contains(at) || !specification.is_read_only(&call.event)
                })
                .map(|(_, call)| call.clone())
                .collect();
            let fewer = kept.len() < violation.calls.len();
            match walk(specification, &violation.since, &kept) {
                Err(Failure::Violation(found)) if fewer => violation = found,
                _ => from += chunk,
            }
        }
        // What was needed before others were left out may not be needed now.
        if chunk > 1 || violation.calls.len() == before {
            chunk /= 2;
        }
    }
    violation
}

/// States, each with the calls under way that have taken effect: the bits of their places.
type Configurations<S> = HashSet<(u64, <S as Specification>::State), FixedState>;

/// A call under way. Its place in the list is its bit in a configuration.
struct Open<State> {
    call: usize,
    /// Bits of earlier calls of the same thread.
    after: u64,
    /// Where the report begins if this call cannot be explained.
    anchor: Rc<Anchor<State>>,
}

/// A moment at which all configurations agree on what has taken effect.
struct Anchor<State> {
    states: Vec<State>,
    /// Calls that have started and not taken effect.
    open: Vec<usize>,
    /// Number of calls that have started.
    started: usize,
}

struct Walk<'a, S: Specification> {
    specification: &'a S,
    calls: &'a [Call<S::Event>],
    open: Vec<Option<Open<S::State>>>,
    anchor: Rc<Anchor<S::State>>,
    configurations: Configurations<S>,
}

/// [`check`], but with everything since the [`Anchor`] in a violation.
fn walk<S: Specification>(
    specification: &S,
    since: &[S::State],
    calls: &[Call<S::Event>],
) -> Result<Vec<S::State>, FailureOf<S>> {
    let mut starts: Vec<usize> = (0..calls.len()).collect();
    let mut ends = starts.clone();
    starts.sort_by_key(|&call| calls[call].start);
    ends.sort_by_key(|&call| calls[call].end);

    let mut walk = Walk {
        specification,
        calls,
        open: Vec::new(),
        anchor: Rc::new(Anchor {
            states: since.to_vec(),
            open: Vec::new(),
            started: 0,
        }),
        configurations: since.iter().map(|state| (0, state.clone())).collect(),
    };
    let mut started = 0;
    for ending in ends {
        // A call that starts at the very time of an end overlaps with it.
        while let Some(&call) = starts.get(started) {
            if calls[call].start > calls[ending].end {
                break;
            }
            walk.start(call)?;
            started += 1;
        }
        let anchor = walk.end(ending)?;
        if walk.configurations.is_empty() {
            let mut concerned = anchor.open.clone();
            concerned.extend(&starts[anchor.started..started]);
            let blamed = concerned.iter().position(|&call| call == ending);
            return Err(Failure::Violation(Violation {
                since: anchor.states.clone(),
                calls: concerned.iter().map(|&call| calls[call].clone()).collect(),
                blamed: blamed.expect("it started after its anchor"),
            }));
        }
        walk.move_anchor(started);
    }
    let states = walk.configurations.into_iter().map(|(_, state)| state);
    let states: HashSet<_, FixedState> = states.collect();
    Ok(states.into_iter().collect())
}

impl<S: Specification> Walk<'_, S> {
    fn start(&mut self, call: usize) -> Result<(), FailureOf<S>> {
        let thread = self.calls[call].thread;
        let earlier = |(place, open): (usize, &Option<Open<_>>)| match open {
            Some(open) if self.calls[open.call].thread == thread => 1u64 << place,
            _ => 0,
        };
        let after = self.open.iter().enumerate().map(earlier).sum();
        let anchor = Rc::clone(&self.anchor);
        let open = Some(Open {
            call,
            after,
            anchor,
        });
        match self.open.iter().position(Option::is_none) {
            Some(place) => self.open[place] = open,
            None if self.open.len() < MAX_OVERLAP => self.open.push(open),
            None => return Err(Failure::TooManyOverlap),
        }
        let before = std::mem::take(&mut self.configurations);
        self.configurations = (before.into_iter())
            .map(|(done, state)| (self.with_reads(done, &state), state))
            .collect();
        Ok(())
    }

    /// Lets all read-only calls take effect that can be explained in this state: they are in
    /// nobody's way, now or later.
    fn with_reads(&self, mut done: u64, state: &S::State) -> u64 {
        loop {
            let reads: u64 = (self.ready(done))
                .filter(|&(_, event)| {
                    self.specification.is_read_only(event)
                        && self.specification.apply(state, event).is_some()
                })
                .map(|(bit, _)| bit)
                .sum();
            if reads == 0 {
                return done;
            }
            done |= reads;
        }
    }

    /// Returns the calls that can take effect next: their bits and events.
    fn ready(&self, done: u64) -> impl Iterator<Item = (u64, &S::Event)> {
        let open = self.open.iter().enumerate();
        open.filter_map(move |(place, open)| {
            let open = open.as_ref()?;
            let ready = done & 1 << place == 0 && open.after & !done == 0;
            ready.then(|| (1 << place, &self.calls[open.call].event))
        })
    }

    /// Keeps the configurations in which `call` has taken effect, or can do so after others that
    /// are under way. Returns the anchor before its start.
    fn end(&mut self, call: usize) -> Result<Rc<Anchor<S::State>>, FailureOf<S>> {
        let is_it = |open: &Option<Open<_>>| open.as_ref().is_some_and(|open| open.call == call);
        let place = self.open.iter().position(is_it);
        let place = place.expect("it has started");
        let bit = 1 << place;

        let mut kept = Configurations::<S>::default();
        let mut seen = Configurations::<S>::default();
        let mut waiting: Vec<_> = self.configurations.drain().collect();
        while let Some((done, state)) = waiting.pop() {
            if done & bit != 0 {
                kept.insert((done & !bit, state));
            } else if seen.insert((done, state.clone())) {
                for (bit, event) in self.ready(done) {
                    if self.specification.is_read_only(event) {
                        continue;
                    }
                    if let Some(next) = self.specification.apply(&state, event) {
                        waiting.push((self.with_reads(done | bit, &next), next));
                    }
                }
                if seen.len() > MAX_CONFIGURATIONS {
                    return Err(Failure::TooManyOverlap);
                }
            }
        }
        self.configurations = kept;
        for open in self.open.iter_mut().flatten() {
            open.after &= !bit;
        }
        let ended = self.open[place].take().expect("it is at this place");
        Ok(ended.anchor)
    }

    /// Makes this moment the anchor, if all configurations agree.
    fn move_anchor(&mut self, started: usize) {
        let mut configurations = self.configurations.iter();
        let Some(&(done, _)) = configurations.next() else {
            return;
        };
        if configurations.all(|&(other, _)| other == done) {
            let states = self.configurations.iter().map(|(_, state)| state.clone());
            let open = (self.open.iter().enumerate())
                .filter(|(place, _)| done & 1 << place == 0)
                .filter_map(|(_, open)| open.as_ref().map(|open| open.call));
            self.anchor = Rc::new(Anchor {
                states: states.collect(),
                open: open.collect(),
                started,
            });
        }
    }
}

/// The calls along a time axis, each with its event. The axis shows only the order in which they
/// started and ended, which is all that matters; the numbers show how long they took.
impl<State: fmt::Debug, Event: fmt::Display> fmt::Display for Violation<State, Event> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WIDTH: usize = 60;
        let begin = self.calls.iter().map(|call| call.start).min().unwrap_or(0);
        // Calls may still have been under way, and end much later: they are drawn up to the margin.
        let end = self.calls.get(self.blamed).map_or(begin, |call| call.end);
        let mut times: Vec<u64> = (self.calls.iter())
            .flat_map(|call| [call.start, call.end.min(end)])
            .collect();
        times.sort_unstable();
        times.dedup();
        let column = |time: u64| {
            let rank = times.partition_point(|&earlier| earlier < time.min(end));
            rank * (WIDTH - 1) / (times.len() - 1).max(1)
        };
        let events = self.calls.iter().map(|call| call.event.to_string());
        let events: Vec<_> = events.collect();
        let widths = events.iter().map(|event| event.chars().count());
        let name = widths.max().unwrap_or(0);
        let states: Vec<_> = self.since.iter().map(|s| format!("{s:?}")).collect();
        writeln!(f, "copies before: {}", states.join(" or "))?;
        for (at, (call, event)) in self.calls.iter().zip(events).enumerate() {
            let (from, to) = (column(call.start), column(call.end));
            let bar = match to - from {
                0 => "|".to_owned(),
                length => format!("|{}|", "-".repeat(length - 1)),
            };
            let bar = if call.end > end {
                format!("{}…", bar.trim_end_matches('|'))
            } else {
                bar
            };
            let mark = ["", "  <- no order is left"][usize::from(at == self.blamed)];
            writeln!(
                f,
                "  thread {:<3} {event:<name$}  {}{bar:<width$} {:>7} to {:>7} ns{mark}",
                call.thread,
                " ".repeat(from),
                call.start - begin,
                call.end - begin,
                width = WIDTH + 1 - from,
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Event::{Contains, Count, Insert, InsertIfAbsent, Remove};
    use filter::InsertError;
    use proptest::prelude::*;

    const CLASS: OneClass = OneClass { most: 8 };

    fn call<E>(thread: usize, start: u64, end: u64, event: E) -> Call<E> {
        Call {
            thread,
            start,
            end,
            event,
        }
    }

    fn violation(since: u64, calls: &[Call<Event>]) -> Violation<u64, Event> {
        match check(&CLASS, &[since], calls) {
            Err(Failure::Violation(violation)) => violation,
            other => panic!("not found: {other:?}"),
        }
    }

    #[test]
    fn calls_with_equal_times_keep_thread_order() {
        let insert = call(0, 1, 1, Insert(Ok(())));
        let contains = |thread, found| call(thread, 1, 1, Contains(found));
        violation(0, &[insert.clone(), contains(0, false)]);
        let others = [insert.clone(), contains(1, false), contains(1, true)];
        assert_eq!(check(&CLASS, &[0], &others), Ok(vec![1]));
        let unseen = [others[0].clone(), others[2].clone(), others[1].clone()];
        violation(0, &unseen);
        let of_one = [contains(0, false), insert, contains(0, true)];
        assert_eq!(check(&CLASS, &[0], &of_one), Ok(vec![1]));
    }

    #[test]
    fn full_answer_needs_full_moment() {
        let table = WholeTable { slots: 2 };
        let event = |class, event| OfClass(class, event);
        let full = call(1, 5, 15, event(1, Insert(Err(InsertError::Full))));
        let remove = call(0, 0, 10, event(0, Remove(true)));
        let calls = [remove, full];
        assert!(check(&table, &[vec![2, 0]], &calls).is_ok());
        assert!(check(&table, &[vec![1, 0]], &calls).is_err());
        let room = [call(0, 0, 1, event(1, Insert(Ok(()))))];
        assert!(check(&table, &[vec![2, 0]], &room).is_err());
        assert_eq!(check(&table, &[vec![1, 0]], &room), Ok(vec![vec![1, 1]]));
    }

    /// A key may be forgotten at any moment of a call, but an answer tells whether it was.
    #[test]
    fn key_found_absent_stays_absent() {
        let before = Remembered {
            period: 0,
            since: [Some(0)].into(),
        };
        let renewed = Event::InsertAged(0, true, Ok(false));
        let events = [(0, renewed), (0, Contains(false)), (1, Event::Begin(1))];
        let forgotten = call(1, 0, 0, Event::Forget(1));
        let mut calls: Vec<_> = events
            .map(|(thread, event)| call(thread, 0, 0, event))
            .into();
        calls.push(forgotten);
        for found in [false, true] {
            let last = call(0, 1, 1, Contains(found));
            let all = [&*calls, &[last]].concat();
            let checked = check(
                &OneExpiringClass { periods: 1 },
                std::slice::from_ref(&before),
                &all,
            );
            assert_eq!(checked.is_err(), found, "{checked:?}");
        }
    }

    #[test]
    fn late_violation_is_reported_briefly() {
        let mut calls = Vec::new();
        for n in 0..10_000 {
            let (thread, time) = (n % 3, 10 * n as u64);
            calls.push(call(thread, time, time + 5, Insert(Ok(()))));
            calls.push(call(thread + 3, time, time + 15, Contains(true)));
            calls.push(call(thread, time + 6, time + 9, Remove(true)));
        }
        calls.push(call(9, 99_985, 100_000, Contains(false)));
        let found = violation(1, &calls);
        assert!(found.calls.len() <= 5, "{found}");
        let blamed = &found.calls[found.blamed];
        assert_eq!((blamed.thread, &blamed.event), (9, &Contains(false)));
        assert_eq!(found.since, [1]);
    }

    #[test]
    fn too_many_overlapping_calls_are_not_accepted() {
        let refused = |n| call(n, 0, 10, Insert(Err(InsertError::Full)));
        let calls: Vec<_> = (0..65).map(refused).collect();
        assert_eq!(check(&CLASS, &[0], &calls), Err(Failure::TooManyOverlap));
        assert_eq!(check(&CLASS, &[0], &calls[..64]), Ok(vec![0]));
        // Each of these leaves its own mark on a configuration: there are 2^21 of them before the
        // first one ends.
        let inserts: Vec<_> = (0..22).map(|n| call(n, 0, 10, Insert(Ok(())))).collect();
        let most = OneClass { most: 64 };
        assert_eq!(check(&most, &[0], &inserts), Err(Failure::TooManyOverlap));
        assert_eq!(check(&most, &[0], &inserts[..10]), Ok(vec![10]));
    }

    /// Tries every order.
    fn has_order(copies: u64, left: &[Call<Event>]) -> bool {
        left.is_empty()
            || (0..left.len()).any(|at| {
                let next = &left[at];
                let mut rest = left.to_vec();
                rest.remove(at);
                let precedes = |other: &Call<Event>| {
                    other.end < next.start
                        || other.thread == next.thread && other.start < next.start
                };
                let first = !rest.iter().any(precedes);
                let after = CLASS.apply(&copies, &next.event);
                first && after.is_some_and(|copies| has_order(copies, &rest))
            })
    }

    fn events() -> impl Strategy<Value = Event> {
        prop_oneof![
            Just(Insert(Ok(()))),
            Just(Insert(Err(InsertError::Full))),
            Just(InsertIfAbsent(Err(InsertError::Full))),
            any::<bool>().prop_map(|inserted| InsertIfAbsent(Ok(inserted))),
            (0u64..3).prop_map(Count),
            any::<bool>().prop_map(Contains),
            any::<bool>().prop_map(Remove),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3_000))]
        #[test]
        fn agrees_with_trying_every_order(
            copies in 0u64..3,
            calls in proptest::collection::vec((0usize..3, 0u64..4, 0u64..8, events()), 1..7),
        ) {
            let mut free = [0; 3];
            let calls: Vec<_> = calls
                .into_iter()
                .map(|(thread, pause, length, event)| {
                    let start = free[thread] + pause;
                    free[thread] = start + length + 1;
                    call(thread, start, start + length, event)
                })
                .collect();
            let found = check(&CLASS, &[copies], &calls);
            prop_assert_eq!(found.is_ok(), has_order(copies, &calls));
            if let Err(Failure::Violation(small)) = found {
                let unexplained = small.since.iter().all(|&copies| !has_order(copies, &small.calls));
                prop_assert!(unexplained, "the smaller history has an order");
                for at in 0..small.calls.len() {
                    let mut fewer = small.calls.clone();
                    let needed = !CLASS.is_read_only(&fewer.remove(at).event)
                        || small.since.iter().any(|&copies| has_order(copies, &fewer));
                    prop_assert!(needed, "{:?} could be left out of {:?}", small.calls[at], small);
                }
            }
        }
    }
}
