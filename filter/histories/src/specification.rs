//! The answers that a filter may give: sequential specifications against which recorded histories
//! are checked ([`check`](crate::check)).
//!
//! A filter is a multiset over classes ([`Class`](filter::Class)). Its answers about one class
//! depend only on the copies of that class ([`OneClass`]), so a history can be taken apart by
//! classes and each part checked separately. The one exception is [`InsertError::Full`], which
//! depends on room that classes share: it is checked against the whole table where that has a
//! simple answer ([`WholeTable`]).

use std::collections::BTreeSet;
use std::fmt;
use std::hash::Hash;

use filter::InsertError;

/// The sequential object against which a history is checked.
pub trait Specification {
    /// The contents of the object.
    type State: Clone + Eq + Hash + fmt::Debug;
    /// An operation together with its answer.
    type Event: Clone + fmt::Debug;

    /// Returns the state after `event`, or `None` if the object would not have answered like that.
    fn apply(&self, state: &Self::State, event: &Self::Event) -> Option<Self::State>;

    /// True if `event` leaves every state as it is.
    fn is_read_only(&self, event: &Self::Event) -> bool;
}

/// An operation on a class, and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Insert(Result<(), InsertError>),
    InsertIfAbsent(Result<bool, InsertError>),
    Contains(bool),
    Count(u64),
    Remove(bool),
    /// In a filter that forgets, [`insert_if_absent`](filter::Filter::insert_if_absent) or
    /// `insert_if_absent`: the filter's period before the call, whether it renews a key that is there,
    /// and the answer.
    InsertAged(u64, bool, Result<bool, InsertError>),
    /// A call of `advance` that began this period. It is followed by [`Forget`](Self::Forget).
    Begin(u64),
    /// The same call forgot the class, if it is as old as that.
    Forget(u64),
}

impl Event {
    fn is_read_only(&self) -> bool {
        !matches!(
            self,
            Event::Insert(Ok(())) | Event::InsertIfAbsent(Ok(true)) | Event::Remove(true)
        )
    }

    /// Returns the number of copies of its class afterwards, if there were `copies` before; `None`
    /// if the answer does not fit that number, or is one of a filter that forgets.
    fn apply(&self, copies: u64) -> Option<u64> {
        match self {
            Event::Insert(Ok(())) => Some(copies + 1),
            Event::Insert(Err(error)) => may_be_refused(error, copies).then_some(copies),
            Event::InsertIfAbsent(Ok(inserted)) => {
                (*inserted == (copies == 0)).then_some(copies + u64::from(*inserted))
            }
            Event::InsertIfAbsent(Err(error)) => {
                (copies == 0 && may_be_refused(error, copies)).then_some(copies)
            }
            Event::Contains(found) => (*found == (copies > 0)).then_some(copies),
            Event::Count(count) => (*count == copies).then_some(copies),
            Event::Remove(true) => copies.checked_sub(1),
            Event::Remove(false) => (copies == 0).then_some(copies),
            Event::InsertAged(..) | Event::Begin(_) | Event::Forget(_) => None,
        }
    }
}

/// True if an insert may return this error while its class has this many copies.
fn may_be_refused(error: &InsertError, copies: u64) -> bool {
    match error {
        InsertError::TooManyCopies { most, .. } => copies == u64::from(*most),
        _ => true,
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Event::Count(copies) => return write!(f, "count → {copies}"),
            Event::Insert(Err(error)) => return write!(f, "insert → {error:?}"),
            Event::InsertIfAbsent(Err(error)) => return write!(f, "insert_if_absent → {error:?}"),
            Event::InsertIfAbsent(Ok(true)) => "insert_if_absent → done",
            Event::InsertIfAbsent(Ok(false)) => "insert_if_absent → there",
            Event::Insert(Ok(())) => "insert → done",
            Event::Contains(true) => "contains → yes",
            Event::Contains(false) => "contains → no",
            Event::Remove(true) => "remove → done",
            Event::Remove(false) => "remove → none there",
            Event::InsertAged(..) | Event::Begin(_) | Event::Forget(_) => {
                return fmt::Debug::fmt(self, f);
            }
        })
    }
}

/// One class of a filter. An insert adds a copy, a unique insert only if there is none; a remove
/// takes one if there is one (whichever key of the class was inserted); a lookup says whether there
/// is one, and a count how many. [`InsertError::Full`] may come at any time, since other classes
/// may take the room. The state is the number of copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OneClass {
    /// Number of copies that there is room for.
    pub most: u64,
}

impl Specification for OneClass {
    type State = u64;
    type Event = Event;

    fn apply(&self, &copies: &u64, event: &Event) -> Option<u64> {
        event.apply(copies).filter(|&copies| copies <= self.most)
    }

    fn is_read_only(&self, event: &Event) -> bool {
        event.is_read_only()
    }
}

/// A whole table whose classes all share the same buckets, and few threads: in addition to
/// [`OneClass`], an insert is refused exactly when every slot is occupied. The state is the number
/// of copies of each class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WholeTable {
    /// Number of slots in those buckets.
    pub slots: u64,
}

/// An event of the class with this number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfClass(pub usize, pub Event);

impl fmt::Display for OfClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "class {}: {}", self.0, self.1)
    }
}

impl Specification for WholeTable {
    type State = Vec<u64>;
    type Event = OfClass;

    fn apply(&self, copies: &Vec<u64>, OfClass(class, event): &OfClass) -> Option<Vec<u64>> {
        let occupied: u64 = copies.iter().sum();
        let room = occupied < self.slots;
        match event {
            Event::Insert(result) if result.is_ok() != room => None,
            Event::InsertIfAbsent(Ok(true)) if !room => None,
            Event::InsertIfAbsent(Err(_)) if room => None,
            _ => {
                let mut after = copies.clone();
                after[*class] = event.apply(copies[*class])?;
                Some(after)
            }
        }
    }

    fn is_read_only(&self, OfClass(_, event): &OfClass) -> bool {
        event.is_read_only()
    }
}

/// One class of a filter that forgets: it has one copy or none. A key that is inserted or renewed gets the
/// age of some period during the call, and is forgotten by the call of `advance` that begins the
/// period `periods` later, at some moment after it has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OneExpiringClass {
    /// Number of periods for which a key is remembered.
    pub periods: u64,
}

/// What is known of a class that may expire.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Remembered {
    /// The period that began last.
    pub period: u64,
    /// The periods in which the copy may have been inserted or renewed, and whether there may be none.
    pub since: BTreeSet<Option<u64>>,
}

impl Remembered {
    /// Returns what is left if the class has a copy, or has none.
    fn only(&self, there: bool) -> Option<Remembered> {
        let mut left = self.clone();
        left.since.retain(|since| since.is_some() == there);
        (!left.since.is_empty()).then_some(left)
    }
}

impl Specification for OneExpiringClass {
    type State = Remembered;
    type Event = Event;

    fn apply(&self, state: &Remembered, event: &Event) -> Option<Remembered> {
        let period = state.period;
        let with = |since| Remembered { period, since };
        match *event {
            Event::InsertAged(since, renew, Ok(new)) => {
                let before = state.only(!new)?;
                let aged = (since..=period).map(Some).collect();
                Some(if new || renew { with(aged) } else { before })
            }
            Event::InsertAged(_, _, Err(_)) => state.only(false),
            Event::Contains(found) => state.only(found),
            Event::Remove(removed) => {
                state.only(removed)?;
                Some(with(BTreeSet::from([None])))
            }
            Event::Begin(period) => (period == state.period + 1).then(|| Remembered {
                period,
                ..state.clone()
            }),
            Event::Forget(period) => {
                let forget = |since: &u64| since + self.periods > period;
                let since = state.since.iter().map(|since| since.filter(forget));
                Some(with(since.collect()))
            }
            Event::Insert(_) | Event::InsertIfAbsent(_) | Event::Count(_) => None,
        }
    }

    /// None is: where the state leaves open whether there is a copy, an answer decides it.
    fn is_read_only(&self, _: &Event) -> bool {
        false
    }
}
