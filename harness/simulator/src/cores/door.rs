//! The door between the code that runs and the machine: an observer of [`kcas::steps`], how code waits, and the
//! stacks on which cores run.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use corosensei::{Coroutine, CoroutineResult, Yielder};
use kcas::steps::{Access, Observer, with_observer};
use kcas::thread_id::SpareId;

use super::scheduler::Scheduler;

pub type Body = Box<dyn FnOnce(&Core)>;

/// A core, as the code that runs on it sees it.
pub struct Core {
    door: Rc<Executor>,
    number: usize,
    /// How many operations the core has done: its code counts them here.
    pub operations: Arc<AtomicU64>,
    /// Set when enough operations have been done by all cores together.
    pub stop: Arc<AtomicBool>,
}

impl Core {
    /// Waits for all other cores, and begins the next part of the run with them at the same
    /// moment. What was observed before is forgotten; `operations` and `stop` are back at their
    /// beginning.
    pub fn begin_next_part(&self) {
        self.door
            .with(|scheduler| scheduler.await_others(self.number));
        self.door.suspend(self.number);
    }
}

/// How a core waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// For as many pause instructions as this.
    Spin(u32),
    /// By giving its core to another thread, if one wants it.
    Yield,
    /// In a system call that finds nothing to wait for.
    Call,
}

scoped_tls::scoped_thread_local! {
    /// The machine on which the code of this thread runs.
    static MACHINE: Rc<Executor>
}

/// True if this thread simulates.
pub fn is_under_way() -> bool {
    MACHINE.is_set()
}

/// Calls `action` with the machine and the core that runs; returns false, at once, outside a simulation.
fn on_core(action: impl FnOnce(&Executor, usize)) -> bool {
    is_under_way() && {
        MACHINE.with(|door| door.now.get().map(|core| action(door, core)));
        true
    }
}

/// The core waits. Returns false, at once, outside a simulation.
pub fn pause(pause: Pause) -> bool {
    on_core(|door, core| {
        if !door.with(|scheduler| scheduler.pause(core, pause)) {
            door.suspend(core);
        }
    })
}

/// The core sleeps until another one [`wake`]s it.
pub fn park(address: usize) {
    on_core(|door, core| {
        door.with(|scheduler| scheduler.park(core, address));
        door.suspend(core);
    });
}

/// Wakes one core that sleeps at this address, if there is one.
pub fn wake(address: usize) {
    on_core(|door, core| door.with(|scheduler| scheduler.wake(core, address)));
}

type Stack = Coroutine<(), (), ()>;

pub(crate) struct Executor {
    scheduler: RefCell<Scheduler>,
    /// The core that runs at the moment; none while the machine is prepared.
    now: Cell<Option<usize>>,
    /// Where each core that has begun can be suspended.
    yielders: Vec<Cell<*const Yielder<(), ()>>>,
}

impl Executor {
    pub(crate) fn new(scheduler: Scheduler, cores: usize) -> Rc<Self> {
        Rc::new(Self {
            scheduler: RefCell::new(scheduler),
            now: Cell::new(None),
            yielders: (0..cores).map(|_| Cell::new(std::ptr::null())).collect(),
        })
    }

    pub(crate) fn with<R>(&self, action: impl FnOnce(&mut Scheduler) -> R) -> R {
        action(&mut self.scheduler.borrow_mut())
    }

    /// Runs `action` on this machine: all accesses of this thread during it are observed.
    pub(crate) fn within<R>(self: &Rc<Self>, action: impl FnOnce() -> R) -> R {
        MACHINE.set(self, || with_observer(Rc::clone(self) as _, action))
    }

    /// Runs the bodies, each on its core, until all have ended; false if some wait forever.
    pub(crate) fn run(self: &Rc<Self>, bodies: Vec<Body>, ids: &[SpareId]) -> bool {
        let stack = |(number, body)| self.stack(number, body);
        let mut stacks: Vec<_> = bodies.into_iter().enumerate().map(stack).collect();
        while let Some(core) = self.with(Scheduler::next) {
            self.now.set(Some(core));
            let ran = ids[core].lend(|| stacks[core].resume(()));
            if let CoroutineResult::Return(()) = ran {
                self.with(|scheduler| scheduler.end(core));
            }
        }
        self.now.set(None);
        stacks.iter().all(Stack::done)
    }

    fn stack(self: &Rc<Self>, number: usize, body: Body) -> Stack {
        let door = Rc::clone(self);
        Coroutine::new(move |yielder: &Yielder<(), ()>, ()| {
            door.yielders[number].set(yielder);
            let (operations, stop) = door.with(|scheduler| scheduler.counts(number));
            let core = Core {
                door,
                number,
                operations,
                stop,
            };
            body(&core);
        })
    }

    fn suspend(&self, core: usize) {
        let yielder = self.yielders[core].get();
        // SAFETY: the yielder is on the stack of this core, which is the one that runs: `now` is
        // set before it is resumed, and its first act is to store this pointer. The stack is
        // neither moved nor freed while it runs.
        let yielder = unsafe { &*yielder };
        yielder.suspend(());
    }
}

impl Observer for Executor {
    fn step(&self, access: Access, address: usize) {
        let Some(core) = self.now.get().filter(|_| access != Access::Other) else {
            return;
        };
        let turn = |scheduler: &mut Scheduler| {
            scheduler.compute(core, address, access);
            scheduler.take_turn(core)
        };
        if !self.with(turn) {
            self.suspend(core);
        }
        if !self.with(|scheduler| scheduler.access(core, address, access)) {
            self.suspend(core);
            self.with(|scheduler| scheduler.arrived(core, address, access));
        }
    }

    fn failed(&self) {
        if let Some(core) = self.now.get() {
            self.with(|scheduler| scheduler.failed(core));
        }
    }

    fn name(&self, what: &'static str, bytes: Range<usize>) {
        self.with(|scheduler| scheduler.memory.regions.name(what, bytes));
    }
}
