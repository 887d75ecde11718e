//! What the docs of the filter that forgets promise, while threads are stopped at chosen steps.

use std::collections::BTreeSet;
use std::sync::Arc;

use filter::ExpiringCuckooFilter;
use kcas::steps::Access;
use kcas_testing::steps::with_access_hook;

use crate::at_step::{ONCE, add, hopping, pairs, stopped_before_exchange, stops};
use crate::small::expiring::holding;
use crate::small::{BUCKETS, Identity, key_of};
use crate::stalls::never_full_while_room_moves;

/// The default division: three periods, and timestamps of 7 bits.
type Usual = ExpiringCuckooFilter<Identity, 4, 12, 2>;

const TURN: u64 = 1 << 7;

fn usual() -> Arc<Usual> {
    let builder = ExpiringCuckooFilter::builder().buckets(BUCKETS);
    let builder = builder.unmixed_hasher(Identity::default());
    Arc::new(builder.build().unwrap())
}

/// A key that has no other bucket than bucket 0.
fn usual_key(nth: usize) -> u64 {
    key_of::<4, 12>(0, 0, nth)
}

/// Not only lookups: a sweep that is stopped until the next period loses a key of that period. It is stopped at a
/// bucket, before it forgets the key. Another thread forgets it, begins the next period, and inserts the key again,
/// after some additions to the bucket. Each filter is made again.
#[test]
fn late_sweep_drops_new_key_only_after_wrap() {
    let key = usual_key(0);
    let is_lost = |exchange, additions| {
        let filter = usual();
        assert_eq!(filter.insert_or_renew(&key), Ok(true));
        filter.advance_to(2).unwrap();
        let sweep = |filter: &Usual| filter.advance().unwrap();
        let late = stopped_before_exchange(&filter, exchange, sweep)?;
        if filter.period() != 3 {
            return Some(false);
        }
        assert_eq!(filter.advance(), Ok(4));
        assert!(!filter.contains(&key), "it is three periods old");
        // Both sweeps, and the insert below.
        add(&*filter, usual_key(1), additions - 3);
        assert_eq!(filter.insert_or_renew(&key), Ok(true));
        late.thaw();
        assert_eq!(filter.period(), 4);
        Some(!filter.contains(&key))
    };
    for additions in [3, 4, TURN / 2, TURN - 1, TURN, TURN + 1, 2 * TURN] {
        // At all of them.
        let stops = (0..).map_while(|exchange| is_lost(exchange, additions));
        let lost = stops.filter(|is_lost| *is_lost).count() > 0;
        assert_eq!(lost, additions % TURN == 0, "{additions} additions");
    }
}

/// Looks a key up that is taken out of its second bucket and put into the first one, and back, each at one moment
/// between two steps of the lookup; then `periods` begin. Each is swept by this many threads, which all stop after this
/// many exchanges. False if the lookup has not noticed that the first bucket has changed.
fn is_noticed_although_periods_begin(periods: u64, threads: u64, exchanges: u64) -> bool {
    fn hop(filter: &Usual, _: u64, to: u64) {
        assert!(filter.remove(&to).unwrap());
        assert_eq!(filter.insert_or_renew(&to), Ok(true));
    }
    let keys @ [item, twin] = [key_of::<4, 12>(0, 1, 0), key_of::<4, 12>(1, 0, 0)];
    let filter = usual();
    assert_eq!(filter.class(&item), filter.class(&twin));
    let more = move |others: &Arc<Usual>, _| {
        for period in 1..=periods {
            let sweep = |thread| {
                // The first thread begins the period.
                let stop = u64::from(thread == 0) + exchanges;
                let sweeping = move |filter: &Usual| filter.advance_to(period);
                stopped_before_exchange(others, stop, sweeping).expect("it has more to sweep")
            };
            let sweeping: Vec<_> = (0..threads).map(sweep).collect();
            (sweeping.into_iter()).for_each(|sweeping| sweeping.thaw().unwrap());
            assert_eq!(others.period(), period);
            assert_eq!(others.insert_or_renew(&twin), Ok(false), "it is renewed");
        }
    };
    hopping(&filter, keys, hop, ONCE, Usual::contains, more)
}

/// The docs: "one addition to every bucket", "one for each of them that is at the same run".
#[test]
fn sweep_advances_each_timestamp_once_per_thread() {
    let numbers = [1, 2, TURN - 2, TURN - 1, TURN];
    let cases = numbers.map(|number| [(1, number), (number, 1)]).concat();
    for ((periods, threads), exchanges) in pairs([cases, vec![(3, 85)]].concat(), 0..3) {
        // Stopped before its first exchange, a thread finds the bucket swept by the first one.
        let sweeps = periods * if exchanges == 0 { 1 } else { threads };
        assert_eq!(
            is_noticed_although_periods_begin(periods, threads, exchanges),
            (1 + sweeps) % TURN != 0,
            "{periods} periods, {threads} threads that stop after {exchanges} exchanges"
        );
    }
}

/// A key that came before a leaping call is gone in period 3 and in every later one, wherever that call has stopped.
#[test]
fn leap_forgets_for_shorter_leaps() {
    let key = usual_key(0);
    let make = || {
        let filter = usual();
        filter.insert(&key).unwrap();
        filter
    };
    let leap = |filter: &Usual| filter.advance_to(1_000).unwrap();
    for (_, filter, stopped) in stops(0, make, leap) {
        let period = filter.period();
        if period > 3 {
            filter.advance_to(period).unwrap();
            let found = filter.contains(&key);
            assert!(!found, "a key of period 0, in period {}", filter.period());
        }
        stopped.thaw();
        assert!(!filter.contains(&key));
    }
}

/// The docs of `advance_to`: what expires is counted in periods that have begun, and a skipped one has not; and a call
/// begins no more than twice as many as there are ages. It begins periods 1 to 4, skips a multiple of the four ages,
/// and begins the last few.
#[test]
fn key_inserted_during_leap_outlives_skipped_periods() {
    let key = usual_key(0);
    for target in 1_001..1_005 {
        let leap = move |filter: &Usual| filter.advance_to(target).unwrap();
        let mut since = BTreeSet::new();
        for (_, filter, stopped) in stops(0, usual, leap) {
            let inserted = filter.period();
            filter.insert(&key).unwrap();
            stopped.thaw();
            let skipped = if inserted < 1_001 { 996 } else { 0 };
            for period in target..target + 4 {
                filter.advance_to(period).unwrap();
                let begun = period - inserted - skipped;
                assert_eq!(filter.contains(&key), begun < 3, "{inserted} to {period}");
            }
            since.insert(inserted);
        }
        assert_eq!(since, (0..5).chain(1_001..=target).collect());
    }
}

/// The docs of `try_clone`: "others may insert, remove and advance meanwhile", "the copy's period is the one in which
/// the call ends", and progress as in a filter of fixed size: a limited number of steps for each bucket. A save is the
/// same.
#[test]
fn copy_while_periods_begin_ends_in_last() {
    let load = |bytes: Vec<u8>| {
        let builder = ExpiringCuckooFilter::builder().unmixed_hasher(Identity::default());
        builder.load_bytes(&bytes).unwrap()
    };
    let calls: [&dyn Fn(&Usual) -> Usual; 2] = [&|filter| filter.try_clone().unwrap(), &|filter| {
        load(filter.to_bytes().unwrap())
    }];
    for copy in calls {
        let filter = usual();
        let others = Arc::clone(&filter);
        let hook = move |step, access| {
            assert!(step < 1_000, "not done after {step} steps");
            if access == Access::Exchange {
                others.advance().unwrap();
            }
        };
        let copy = with_access_hook(hook, || copy(&filter));
        assert!(filter.period() >= BUCKETS as u64);
        assert_eq!(copy.period(), filter.period());
    }
}

/// The same as `insert_with_constant_room_is_never_refused`, in a filter that forgets.
#[test]
fn expiring_insert_while_room_moves_is_never_full() {
    never_full_while_room_moves(holding::<2>);
}
