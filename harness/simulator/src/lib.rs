//! Simulated machines on which the real code of `kcas`, `filter` and the measured locks runs.
//!
//! The machine at hand may have too few cores for a question. Here the code runs unchanged on
//! simulated cores, in an order and at a price that the [`Model`] of a machine decides. It
//! predicts; it does not measure. Each result is marked as predicted and names the machine. Without the
//! feature `cores`, this crate has the models alone.
//!
//! # The model
//!
//! - **A core** is a coroutine with a clock, and runs one thread. All run on one thread of this
//!   machine, and the core whose clock is behind all others' runs until its next access to shared
//!   memory. *Compute time* passes before each access: the time of an operation on one thread, less
//!   the price of its accesses in the model, shared evenly among them. It is
//!   drawn uniformly between nothing and twice its mean. A machine's file has these times for a table in the core's own
//!   caches. The seed determines a run.
//! - **A line** of 64 bytes is held by one core, or by several that only read it. An access to a
//!   line that another core has written waits for a *hand-over*, at a latency that depends on where
//!   the two cores are. So does a write to a line that others read.
//! - **A contended line is a resource.** One hand-over ends before the next begins, and later requests
//!   queue. Cores at one distance are served in the order of their requests; near
//!   cores get the line more often than far ones, by the inverse of the distance. For a share of the
//!   hand-over (`kept`) the last owner can still use the line: it makes several exchanges per
//!   hand-over, as real cores do.
//! - **Accesses without contention overlap**: a core requests lines before it needs them, `overlap` of them at a
//!   time, but not before a pause or a mispredicted branch: then it waits the
//!   whole latency. It mispredicts when an exchange fails, and when it makes another kind of access, or an access to
//!   other memory, than it last made after the same three. A store is done when it is in the store buffer; the
//!   next exchange waits until the buffer is empty.
//! - **A line for which no core waits** takes longer than a contended one (`unawaited`): the request has
//!   a longer way.
//! - **Caches**: two levels for each core and a shared last level, set-associative. The line
//!   used longest ago is replaced.
//! - **Waiting**: pause instructions and yields have prices. A thread about to sleep on a mutex
//!   makes a system call, which first checks the mutex again. The thread that wakes a sleeper pays for that;
//!   the sleeper runs some time later, and others may acquire the mutex before. A call that wakes
//!   no thread, or finds nothing to wait for, costs far less.
//!
//! # What is not modelled
//!
//! | Not modelled | Effect |
//! |---|---|
//! | prefetchers | sequential scans are too slow; the filters make none but in copies |
//! | bandwidth of memory and of the interconnect | lookups in tables past the caches scale too well at many cores |
//! | clock frequency that falls as cores wake up | everything scales too well, by the same factor for all subjects |
//! | the keys that threads read, and whatever else they do not share | with times of one thread from a small table, tables whose keys exceed the caches are up to six times too fast |
//! | how far a core reads ahead: `overlap` is one number, whatever it computes | with 90 % lookups, 5 % inserts and 5 % removes, filters whose lookups take no lock are up to 1.28 times as fast as measured on two cores, probably for this reason (not tested) |
//! | (not explained) | in a table of a thousand keys, inserts and removes are 1.04 to 1.39 times as fast as measured on two cores, most so under one mutex |
//! | (not explained) | lookups that take no lock are 0.8 to 1.12 times as fast as measured on two cores |
//! | two threads on a core, and time slices | rows end at the number of cores |
//! | translation of addresses | tables past the caches are too fast, most so on one core |
//! | the order of loads and stores beyond one line | wrong orderings go unnoticed: cores see one order of all accesses |
//! | placement of memory on sockets | all memory is equally far |
//! | interrupts, and the system's scheduler | threads never lose their cores |
//! | mispredicted branches that do not change the kinds of accesses that follow | such branches on contended values are too cheap |
//! | two words without a name on one line | such false sharing is not seen; that of named memory is |
//!
//! On two cores, predictions were off by 3 to 9 % in the median and by at most 44 %. If the cores are far apart and
//! the table exceeds their own caches, they were off by 35 % and by at most 88 % (`paper-figures/README.md`).

#[cfg(feature = "cores")]
mod cores;
mod model;

#[cfg(feature = "cores")]
pub use cores::*;
pub use model::*;
