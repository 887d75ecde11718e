//! Small dense ids for live threads, claimed and returned without a lock.
//!
//! A thread claims a free, low id on first use and gives it back when it ends. Once three quarters of the ids are held,
//! further threads claim an id for each call. Whatever is kept per id (a descriptor, a counter) passes to the next
//! thread that claims the same id, together with everything its former owner wrote.

use std::cell::Cell;
use std::marker::PhantomData;

use crate::sync::{AtomicU64, Ordering, shared_static, thread_static};

/// Maximum number of threads that may hold an id at one moment: 4,096.
pub const MAX_THREADS: usize = WORDS * BITS_PER_WORD;

// The model checker never runs more than four threads, and every atomic slows it down.
const WORDS: usize = if cfg!(kcas_loom) { 1 } else { 64 };
const BITS_PER_WORD: usize = if cfg!(kcas_loom) { 4 } else { 64 };
const ALL_CLAIMED: u64 = u64::MAX >> (64 - BITS_PER_WORD);

/// Returns how many threads may hold an id at one moment ([limits](crate#limits)): 4,096. A later version may have
/// more.
pub const fn max_threads() -> usize {
    MAX_THREADS
}

/// A thread that finds this many ids held, three quarters of all, claims an id for one call. So idle threads that do
/// not register leave a quarter of the ids to calls under way.
const KEPT: u64 = MAX_THREADS as u64 / 4 * 3;

shared_static! {
    /// Number of ids that are held or promised, never more than there are. A thread that was
    /// promised one will find it. A scan of all the bits, word by word, could not guarantee that.
    static HELD: AtomicU64 = AtomicU64::new(0);
}

shared_static! {
    /// One bit per id, set while a live thread holds it.
    static CLAIMED: [AtomicU64; WORDS] = each AtomicU64::new(0);
}

thread_static! {
    /// The id that the current thread holds, until it ends or for one call. It needs no drop, so it outlives the
    /// thread's other locals, and no access checks whether it still exists.
    static HELD_HERE: Cell<Option<usize>> = Cell::new(None);
}

thread_static! {
    /// True if the current thread keeps its id until it ends.
    static KEEPS: Cell<bool> = Cell::new(false);
}

#[cfg(not(kcas_loom))]
thread_static! {
    static AT_THE_END: EndOfThread = EndOfThread;
}

/// The id of the current thread: below [`MAX_THREADS`], and different from every id that another thread holds.
///
/// It cannot leave its thread, so a function that gets one may write the data kept under it.
#[derive(Debug)]
pub struct ThreadId {
    index: usize,
    stays_on_its_thread: PhantomData<*const ()>,
}

/// All ids of threads are held, by threads that keep one and by calls under way ([limits](crate#limits)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no thread id is free: let threads end, or use a thread pool")]
#[non_exhaustive]
pub struct TooManyThreads;

/// Claims an id for the current thread, unless it has one. The thread keeps the id until it ends, so no later call of
/// this thread returns [`TooManyThreads`].
///
/// Progress: lock-free, but it registers the thread's end with the system, for which glibc may take the lock of its
/// dynamic linker. A thread that is being torn down (its thread-locals are gone) does not keep the id. With glibc, a
/// thread that first needs an id in a destructor of a `pthread_key_t` keeps it forever: let it call this earlier.
///
/// ```
/// let worker = std::thread::spawn(|| {
///     kcas::register()?;
///     // Each operation of this thread finds an id.
///     Ok::<(), kcas::TooManyThreads>(())
/// });
/// worker.join().unwrap().unwrap();
/// ```
///
/// # Errors
/// [`TooManyThreads`] when every id is held.
pub fn register() -> Result<(), TooManyThreads> {
    if HELD_HERE.with(Cell::get).is_none() {
        hold(&ThreadId::acquire()?.0, true);
    } else {
        // It may be for a call that this one is inside.
        keep();
    }
    Ok(())
}

/// Runs `action` with the current thread's id, and claims one if the thread has none. The thread keeps the id, except
/// in two cases: three quarters of all ids are held, or the thread is being torn down (its thread-locals are gone).
/// Then the id is for this call and the calls inside it.
///
/// Progress: wait-free if the thread has an id; otherwise as [`register`].
///
/// # Errors
/// [`TooManyThreads`] when every id is held; then `action` has not run.
#[inline]
pub fn with<R>(action: impl FnOnce(&ThreadId) -> R) -> Result<R, TooManyThreads> {
    let (id, _for_one_call) = match HELD_HERE.with(Cell::get) {
        Some(index) => (ThreadId::new(index), None),
        None => claim()?,
    };
    Ok(action(&id))
}

/// Claims an id for the current thread, unless it has one, and keeps it at least as long as the value lives. For one
/// call, use [`with`].
///
/// # Errors
/// [`TooManyThreads`] when every id is held.
pub fn for_calls() -> Result<Option<GiveBack>, TooManyThreads> {
    if HELD_HERE.with(Cell::get).is_some() {
        return Ok(None);
    }
    claim().map(|(_, for_calls)| for_calls)
}

/// Runs `action` with the current thread's id if it holds one; otherwise returns `None`, and `action` has not
/// run. This is for a fast path that falls back on [`with`]. Progress: wait-free.
#[inline]
pub fn with_held<R>(action: impl FnOnce(&ThreadId) -> R) -> Option<R> {
    let index = HELD_HERE.with(Cell::get)?;
    Some(action(&ThreadId::new(index)))
}

/// Claims an id for the current thread. If the id is for one call, also returns the value that gives it back.
#[cold]
fn claim() -> Result<(ThreadId, Option<GiveBack>), TooManyThreads> {
    let (id, held) = ThreadId::acquire()?;
    let for_one_call = hold(&id, held < KEPT);
    Ok((id, for_one_call))
}

/// Makes this the current thread's id. Returns the value that gives it back, unless the thread is to keep it until it
/// ends, and is not ending already.
fn hold(id: &ThreadId, keep: bool) -> Option<GiveBack> {
    HELD_HERE.with(|held| held.set(Some(id.index)));
    let keeps = keep && self::keep();
    (!keeps).then(|| GiveBack(PhantomData))
}

/// Makes the current thread keep the id that it has until it ends, unless it is ending already.
fn keep() -> bool {
    // Loom drops a thread's locals only after the thread can be joined, and perhaps after the
    // statics are gone, so the threads of a model end with a call to `end_of_thread`.
    #[cfg(kcas_loom)]
    let keeps = true;
    #[cfg(not(kcas_loom))]
    let keeps = AT_THE_END.try_with(|_| ()).is_ok();
    KEEPS.with(|kept| kept.set(keeps));
    keeps
}

/// Gives back the current thread's id when dropped, unless the thread has [registered](register) meanwhile.
#[derive(Debug)]
pub struct GiveBack(PhantomData<*const ()>);

impl Drop for GiveBack {
    fn drop(&mut self) {
        if KEEPS.with(Cell::get) {
            return;
        }
        if let Some(index) = HELD_HERE.with(Cell::take) {
            ThreadId::new(index).give_back();
        }
    }
}

/// Gives back the current thread's id when dropped.
struct EndOfThread;

impl Drop for EndOfThread {
    fn drop(&mut self) {
        KEEPS.with(|keeps| keeps.set(false));
        drop(GiveBack(PhantomData));
    }
}

/// Gives back the current thread's id.
#[cfg(kcas_loom)]
#[doc(hidden)]
pub fn end_of_thread() {
    drop(EndOfThread);
}

/// An id that no thread holds, for simulated cores, which share a thread. It is given back when dropped.
#[cfg(any(kcas_loom, feature = "__steps"))]
#[derive(Debug)]
pub struct SpareId(ThreadId);

#[cfg(any(kcas_loom, feature = "__steps"))]
impl SpareId {
    /// Claims an id and names its descriptors (`name` in [`steps`](crate::steps)).
    ///
    /// # Errors
    /// [`TooManyThreads`] when every id is held.
    pub fn claim() -> Result<SpareId, TooManyThreads> {
        let (id, _) = ThreadId::acquire()?;
        crate::descriptor::name(id.index);
        Ok(SpareId(id))
    }

    /// Runs `action` with this id instead of the current thread's.
    pub fn lend<R>(&self, action: impl FnOnce() -> R) -> R {
        struct Restore(Option<usize>);
        impl Drop for Restore {
            fn drop(&mut self) {
                HELD_HERE.with(|held| held.set(self.0));
            }
        }
        let _restore = Restore(HELD_HERE.with(|held| held.replace(Some(self.0.index))));
        action()
    }
}

#[cfg(any(kcas_loom, feature = "__steps"))]
impl Drop for SpareId {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

impl ThreadId {
    pub(crate) fn new(index: usize) -> ThreadId {
        ThreadId {
            index,
            stays_on_its_thread: PhantomData,
        }
    }

    /// Returns the id as a number below [`MAX_THREADS`].
    #[inline]
    pub fn index(&self) -> usize {
        self.index
    }

    /// Claims an id; also returns how many were held before.
    fn acquire() -> Result<(ThreadId, u64), TooManyThreads> {
        let held = promise()?;
        loop {
            if let Some(index) = (0..WORDS).find_map(claim_in) {
                return Ok((ThreadId::new(index), held));
            }
            // Every bit was set when examined, although one was free at each moment: others claimed
            // and gave back ids meanwhile.
        }
    }

    fn give_back(&self) {
        let bit = 1 << (self.index % BITS_PER_WORD);
        // Release pairs with the Acquire in `claim_in`.
        CLAIMED[self.index / BITS_PER_WORD].fetch_and(!bit, Ordering::Release);
        // After the bit, so that no id is promised before it is free. Release pairs with the
        // Acquire on the same counter in `promise`.
        HELD.fetch_sub(1, Ordering::Release);
    }
}

/// Promises the thread an id, unless all are promised; returns how many were before.
fn promise() -> Result<u64, TooManyThreads> {
    // Relaxed: a number that was given back before is seen, by coherence.
    let mut held = HELD.load(Ordering::Relaxed);
    while held < MAX_THREADS as u64 {
        // Acquire pairs with the Release in `give_back`, so the bit that was cleared before it is
        // seen. A failure needs no ordering: nothing is read because of it.
        match HELD.compare_exchange(held, held + 1, Ordering::Acquire, Ordering::Relaxed) {
            Ok(held) => return Ok(held),
            Err(now) => held = now,
        }
    }
    Err(TooManyThreads)
}

/// Claims an id from one word of bits.
fn claim_in(word: usize) -> Option<usize> {
    // Relaxed: only a hint; the exchange below decides.
    let mut seen = CLAIMED[word].load(Ordering::Relaxed);
    while seen != ALL_CLAIMED {
        let bit = (!seen).trailing_zeros() as usize;
        // Acquire pairs with the Release in `give_back`: all that the id's former owner wrote
        // (sequence numbers, counters) is visible to the new one. Nothing is published by the claim
        // itself, so Release is not needed.
        match CLAIMED[word].compare_exchange(
            seen,
            seen | 1 << bit,
            Ordering::Acquire,
            Ordering::Relaxed,
        ) {
            Ok(_) => return Some(word * BITS_PER_WORD + bit),
            Err(now) => seen = now,
        }
    }
    None
}
