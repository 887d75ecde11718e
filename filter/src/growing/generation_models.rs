//! Models of a [`Generation`] that is closed. When that happens is the epochs' business: here it happens after the addition.

use std::sync::Arc;

use kcas::model::{explore, spawn};
use kcas::thread_id;

use super::generation::Generation;

/// A copy is added, and the generation is closed. Whoever learns that it is closed sees the copy: otherwise the generation
/// would be taken for spent, and dropped with the copy.
#[test]
fn what_was_added_before_it_was_closed_is_seen() {
    explore(
        "what_was_added_before_it_was_closed_is_seen",
        None,
        10,
        || {
            let generation = Arc::new(Generation::new());
            let other = Arc::clone(&generation);
            let other = spawn(move || {
                thread_id::with(|id| other.count_insert(id)).unwrap();
                other.close(0);
            });
            assert!(!generation.is_spent());
            other.join().unwrap();
        },
    );
}
