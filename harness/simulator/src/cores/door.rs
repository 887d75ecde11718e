//! The door between the code that runs and the machine: the hooks of [`kcas::simulation`], and the
//! stacks on which cores run.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use corosensei::{Coroutine, CoroutineResult, Yielder};
use kcas::simulation::{self, Access, Machine, Named, Pause};

use super::scheduler::Scheduler;

pub type Body = Box<dyn FnOnce(&Core)>;

/// A core, as the code that runs on it sees it.
pub struct Core {
    door: Rc<Door>,
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

type Stack = Coroutine<(), (), ()>;

pub(crate) struct Door {
    scheduler: RefCell<Scheduler>,
    /// The core that runs at the moment; none while the machine is prepared.
    now: Cell<Option<usize>>,
    /// Where each core that has begun can be suspended.
    yielders: Vec<Cell<*const Yielder<(), ()>>>,
}

impl Door {
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

    /// Runs the bodies, each on its core, until all have ended; false if some wait for ever.
    pub(crate) fn run(self: &Rc<Self>, bodies: Vec<Body>, ids: &[usize]) -> bool {
        let stack = |(number, body)| self.stack(number, body);
        let mut stacks: Vec<_> = bodies.into_iter().enumerate().map(stack).collect();
        let own = simulation::swap_id(None);
        while let Some(core) = self.with(Scheduler::next) {
            self.now.set(Some(core));
            simulation::swap_id(Some(ids[core]));
            if let CoroutineResult::Return(()) = stacks[core].resume(()) {
                self.with(|scheduler| scheduler.end(core));
            }
        }
        self.now.set(None);
        simulation::swap_id(own);
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

impl Machine for Door {
    fn access(&self, address: usize, access: Access) {
        let Some(core) = self.now.get() else {
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

    fn exchanged(&self, succeeded: bool) {
        if let (Some(core), false) = (self.now.get(), succeeded) {
            self.with(|scheduler| scheduler.failed(core));
        }
    }

    fn pause(&self, pause: Pause) {
        if let Some(core) = self.now.get()
            && !self.with(|scheduler| scheduler.pause(core, pause))
        {
            self.suspend(core);
        }
    }

    fn park(&self, address: usize) {
        if let Some(core) = self.now.get() {
            self.with(|scheduler| scheduler.park(core, address));
            self.suspend(core);
        }
    }

    fn wake(&self, address: usize) {
        if let Some(core) = self.now.get() {
            self.with(|scheduler| scheduler.wake(core, address));
        }
    }

    fn name(&self, named: Named) {
        self.with(|scheduler| scheduler.memory.regions.name(named));
    }
}
