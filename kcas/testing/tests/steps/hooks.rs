//! The hooks themselves: each access is a step, and has its kind and its address.

use std::cell::RefCell;
use std::rc::Rc;

use kcas::engines::MISMATCH;
use kcas::steps::{Access, Observer, step, with_observer};
use kcas::sync::{AtomicU64, OnFirstUse, Ordering};
use kcas::thread_id::{self, SpareId, ThreadId};
use kcas::{Entry, WordArray};
use kcas_testing::steps::{Counts, count, with_hook};

/// Accesses with their addresses; `None` for each exchange that failed.
#[derive(Default)]
struct Recorded(RefCell<Vec<Option<(Access, usize)>>>);

impl Observer for Recorded {
    fn step(&self, access: Access, address: usize) {
        self.0.borrow_mut().push(Some((access, address)));
    }

    fn failed(&self) {
        self.0.borrow_mut().push(None);
    }
}

#[test]
fn observer_learns_addresses_and_failures() {
    let word = AtomicU64::new(5);
    let recorded = Rc::new(Recorded::default());
    let (success, failure) = (Ordering::SeqCst, Ordering::Relaxed);
    word.store(6, Ordering::Relaxed);
    with_observer(Rc::clone(&recorded) as Rc<dyn Observer>, || {
        assert_eq!(word.load(Ordering::Relaxed), 6);
        word.store(7, Ordering::Relaxed);
        let _ = word.compare_exchange(7, 8, success, failure);
        let _ = word.compare_exchange(7, 8, success, failure);
    });
    word.load(Ordering::Relaxed);
    let at = |access| Some((access, std::ptr::from_ref(&word).addr()));
    let [load, store, exchange] = [Access::Load, Access::Store, Access::Exchange].map(at);
    assert_eq!(
        *recorded.0.borrow(),
        [load, store, exchange, exchange, None]
    );
}

#[test]
fn spare_id_replaces_own_while_lent() {
    let spare = [(); 2].map(|()| SpareId::claim().unwrap());
    let held = || thread_id::with(ThreadId::index).unwrap();
    let own = held();
    let [one, two] = &spare;
    let lent = [one.lend(held), two.lend(|| one.lend(held)), two.lend(held)];
    assert!(lent[0] == lent[1] && lent[0] != lent[2] && !lent.contains(&own));
    assert_eq!(held(), own);
}

#[test]
fn steps_are_counted_by_kind() {
    let atomic = AtomicU64::new(0);
    let made = OnFirstUse::new(|(): ()| 1, ());
    let ((), counts) = count(|| {
        atomic.load(Ordering::SeqCst);
        made.get();
        made.get_or_make();
        (0..2).for_each(|value| atomic.store(value, Ordering::SeqCst));
        atomic.fetch_and(0, Ordering::SeqCst);
        atomic.fetch_sub(1, Ordering::SeqCst);
        for current in [0, u64::MAX, 7, 8] {
            let (success, failure) = (Ordering::SeqCst, Ordering::Relaxed);
            let _ = atomic.compare_exchange(current, 7, success, failure);
        }
        step();
    });
    let expected = Counts {
        loads: 3,
        stores: 2,
        exchanges: 6,
        others: 1,
    };
    assert_eq!(counts, expected);
    assert_eq!(count(|| ()), ((), Counts::default()));
}

/// The cost that the docs of [`WordArray::kcas`] promise.
#[test]
fn undisturbed_operations_cost_2k_plus_1_exchanges() {
    let words = WordArray::new(WordArray::MAX_ENTRIES);
    let entries_of = |entries, expected, new| -> Vec<_> {
        let entry = |index| Entry::new(index, expected, new);
        (0..entries).map(entry).collect()
    };
    // A thread's first operation also claims an id.
    words.kcas(&entries_of(2, 0, 0)).unwrap();
    for k in 1..=WordArray::MAX_ENTRIES {
        let owned = count(|| words.kcas(&entries_of(k, 0, 1)));
        let dcss = count(|| words.kcas_by_dcss(&entries_of(k, 1, 0)));
        let first_differs = count(|| words.kcas(&entries_of(k, 5, 6)));
        let results = [owned.0, dcss.0, first_differs.0];
        assert_eq!(results, [Ok(()), Ok(()), Err(MISMATCH)]);
        let counts = [owned.1, dcss.1, first_differs.1];
        let expected = match k {
            1 => [1; 3],
            _ => [2 * k + 1, 3 * k + 1, 1],
        };
        let exchanges = counts.map(|counts| counts.exchanges as usize);
        assert_eq!(exchanges, expected, "{k} entries");
    }
}

#[test]
fn hook_accesses_are_not_steps() {
    let words = Rc::new(WordArray::new(1));
    let inside = Rc::clone(&words);
    let hook = move |step| {
        assert_eq!(step, 0);
        inside.compare_exchange(0, 0, 5).unwrap();
    };
    assert_eq!(with_hook(hook, || words.load(0)), 5);
    assert_eq!(count(|| ()).1, Counts::default());
}
