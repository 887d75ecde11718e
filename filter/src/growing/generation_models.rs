//! Models of a closed [`Generation`]. When one is closed is up to the epochs; here it is closed
//! after the addition.

use std::sync::Arc;

use kcas::model::{explore, spawn};
use kcas::thread_id;

use super::generation::Generation;

/// A copy is added, and then the generation is closed. A thread that sees it closed sees the copy;
/// otherwise it would take the generation for spent, and drop it with the copy.
#[test]
fn what_was_added_before_it_was_closed_is_seen() {
    explore(
        "what_was_added_before_it_was_closed_is_seen",
        None,
        10,
        || {
            let generation = Arc::new(Generation::holding(0, 0));
            let other = Arc::clone(&generation);
            let other = spawn(move || {
                thread_id::with(|id| other.count_insert(id)).unwrap();
                other.close();
            });
            assert!(!generation.is_spent());
            other.join().unwrap();
        },
    );
}
