//! What the `window` study compares.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use arc_swap::{ArcSwap, Cache};
use cuckoo_clock::config::{BitCount, ConfigError, CuckooConfiguration, TtlConfig};
use cuckoo_clock::{InsertValues, LookupValues};
use filter::{CuckooFilter, ExpiringCuckooFilter, Filter};

use super::run::{Plan, Remembers, run};
use super::{Row, TICKS};
use crate::studies::Entrant;

type Run = fn(&Plan) -> Result<Vec<Row>>;

/// All of them, ours first.
pub(super) const ALL: [Entrant<Run>; 3] = [of::<Expiring>(), of::<Rotating>(), of::<CuckooClock>()];

const fn of<C: Remembers>() -> Entrant<Run> {
    Entrant {
        name: C::NAME,
        meaning: C::MEANING,
        run: run::<C>,
    }
}

/// A period, of which two make a window, and the number of periods after which the first keys are forgotten.
const PERIOD: usize = TICKS / 2;
const PERIODS: u32 = 3;

/// Room for the keys of three periods.
const fn of_three_periods(keys: usize) -> usize {
    keys / 2 * PERIODS as usize
}

struct Expiring(ExpiringCuckooFilter);

impl Remembers for Expiring {
    const NAME: &'static str = "expiring";
    const MEANING: &'static str = "the lock-free filter that forgets: three periods of half a window, with room for all three";

    fn for_window(keys: usize) -> Result<Self> {
        let builder = ExpiringCuckooFilter::builder().capacity(of_three_periods(keys));
        Ok(Self(builder.build()?))
    }

    type View<'a> = &'a ExpiringCuckooFilter;

    fn view(&self) -> Self::View<'_> {
        &self.0
    }

    #[inline]
    fn insert(filter: &mut Self::View<'_>, key: u64) -> bool {
        filter.insert_unique(&key).is_ok()
    }

    #[inline]
    fn contains(filter: &mut Self::View<'_>, key: u64) -> bool {
        filter.contains(&key)
    }

    fn begin(&self, tick: usize) -> Result<bool> {
        let before = self.0.period();
        self.0.advance_to((tick / PERIOD) as u64)?;
        Ok(self.0.period() != before)
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}

/// What keys are inserted into, and what they were inserted into in the window before.
struct Rotating {
    filters: ArcSwap<Two>,
    keys: usize,
}

type Two = [Arc<CuckooFilter>; 2];

impl Rotating {
    fn new_filter(keys: usize) -> Result<Arc<CuckooFilter>> {
        Ok(Arc::new(CuckooFilter::builder().capacity(keys).build()?))
    }
}

impl Remembers for Rotating {
    const NAME: &'static str = "rotating";
    const MEANING: &'static str = "two lock-free filters that take turns: keys go into one of them for a window, which is then \
         kept for another one and thrown away; each has room for a window";

    fn for_window(keys: usize) -> Result<Self> {
        // While one takes over, keys still go into the other for up to a tick.
        let keys = keys + keys / TICKS;
        let filters = [Self::new_filter(keys)?, Self::new_filter(1)?];
        let filters = ArcSwap::from_pointee(filters);
        Ok(Self { filters, keys })
    }

    /// It keeps the filters at hand as long as they are the current ones, and counts no references.
    type View<'a> = Cache<&'a ArcSwap<Two>, Arc<Two>>;

    fn view(&self) -> Self::View<'_> {
        Cache::new(&self.filters)
    }

    #[inline]
    fn insert(filters: &mut Self::View<'_>, key: u64) -> bool {
        filters.load()[0].insert_unique(&key).is_ok()
    }

    #[inline]
    fn contains(filters: &mut Self::View<'_>, key: u64) -> bool {
        let [newest, older] = &**filters.load();
        let hash = newest.hash(&key);
        newest.contains_hash(hash) || older.contains_hash(hash)
    }

    fn begin(&self, tick: usize) -> Result<bool> {
        let begins = tick > 0 && tick.is_multiple_of(TICKS);
        if begins {
            let newest = Self::new_filter(self.keys)?;
            let older = Arc::clone(&self.filters.load()[0]);
            self.filters.store(Arc::new([newest, older]));
        }
        Ok(begins)
    }

    fn memory_bytes(&self) -> usize {
        let filters = self.filters.load();
        filters.iter().map(|filter| filter.memory_bytes()).sum()
    }
}

/// The published crate, whose buckets have a mutex and a piece of memory on the heap each: a lookup of an
/// absent key takes two of both, and looks at each slot bit by bit. That is why it is so much slower.
struct CuckooClock(cuckoo_clock::CuckooFilter<filter::FixedState>);

impl Remembers for CuckooClock {
    const NAME: &'static str = "cuckoo-clock";
    const MEANING: &'static str = "the crate cuckoo-clock, a mutex for each bucket of four slots of 12 bits with two bits of age: \
                                   three periods of half a window, with room for all three, rounded up to a power of two";

    fn for_window(keys: usize) -> Result<Self> {
        let wrong = |error: ConfigError| anyhow!("cuckoo-clock: {error}");
        let bits = |bits: usize| BitCount::try_from(bits).map_err(wrong);
        let config = CuckooConfiguration::builder(of_three_periods(keys))
            .fingerprint_bits(bits(12)?)
            .bucket_size(4.try_into()?)
            .with_ttl(TtlConfig {
                ttl: PERIODS.try_into()?,
                ttl_bits: bits(2)?,
            });
        let filter =
            cuckoo_clock::CuckooFilter::new(config.build().map_err(wrong)?, filter::FixedState);
        Ok(Self(filter))
    }

    type View<'a> = &'a Self;

    fn view(&self) -> Self::View<'_> {
        self
    }

    /// A key that it drops instead, to make room, counts as refused.
    #[inline]
    fn insert(clock: &mut Self::View<'_>, key: u64) -> bool {
        let renewed = LookupValues {
            ttl: Some(PERIODS),
            counter_diff: None,
        };
        let new = InsertValues::default();
        let dropped = clock
            .0
            .insert_if_not_present_with_update(&key, new, renewed);
        dropped.is_none()
    }

    #[inline]
    fn contains(clock: &mut Self::View<'_>, key: u64) -> bool {
        clock.0.contains(&key)
    }

    fn begin(&self, tick: usize) -> Result<bool> {
        let begins = tick > 0 && tick.is_multiple_of(PERIOD);
        if begins {
            self.0.scan_and_update_ttl();
        }
        Ok(begins)
    }

    fn memory_bytes(&self) -> usize {
        self.0.get_memory_usage()
    }
}
