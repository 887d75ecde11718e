//! Single calls of any subject, chosen at run time.

use filter::{Class, InsertError};
use histories::Event;

use crate::Subject;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    Insert,
    InsertIfAbsent,
    Contains,
    Count,
    Remove,
}

/// A subject that is called dynamically, with numbers as keys. Every [`Subject`] is one.
pub trait Calls: Send + Sync {
    /// Makes one call, and returns its answer.
    fn call(&self, operation: Operation, key: u64) -> Event;

    fn class(&self, key: u64) -> Option<Class>;
}

impl<S: Subject> Calls for S {
    #[inline]
    fn call(&self, operation: Operation, key: u64) -> Event {
        match operation {
            Operation::Insert => {
                Event::Insert(self.insert(&key).then_some(()).ok_or(InsertError::Full))
            }
            Operation::InsertIfAbsent => Event::InsertIfAbsent(self.insert_if_absent(&key)),
            Operation::Contains => Event::Contains(self.contains(&key)),
            Operation::Count => Event::Count(self.count(&key)),
            Operation::Remove => Event::Remove(self.remove(&key)),
        }
    }

    fn class(&self, key: u64) -> Option<Class> {
        Subject::class(self, &key)
    }
}
