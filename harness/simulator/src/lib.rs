//! Simulated machines on which the real code of `kcas`, `filter` and the measured locks runs.
//!
//! The machine at hand may have too few cores for a question. Here the code runs unchanged on
//! simulated cores, in an order and at a price that the [`Model`] of a machine decides. It
//! predicts; it does not measure. Whatever comes from it says so, and names the machine. (Without the
//! feature `cores`, this crate has the models alone.)
//!
//! # The model
//!
//! - **A core** is a coroutine with a clock, and runs one thread. All run on one thread of this
//!   machine, and the core whose clock is behind all others' runs until its next access to shared
//!   memory. *Compute time* passes before each access: what an operation takes on one thread, less
//!   what the model charges for its accesses there, shared evenly among them. It is
//!   drawn uniformly between nothing and twice its mean. A machine's file has these times for a table in the core's own
//!   caches. A run is determined by its seed.
//! - **A line** of 64 bytes is held by one core, or by several that only read it. An access to a
//!   line that another core has written waits for a *hand-over*, at a latency that depends on where
//!   the two cores are. So does a write to a line that others read.
//! - **A contended line is a resource.** One hand-over ends before the next begins, and those who
//!   ask meanwhile queue. Cores at one distance are served in the order in which they asked; near
//!   ones get the line more often than far ones, by the inverse of the distance. For a share of the
//!   hand-over (`kept`) the last owner can still use the line: it makes several exchanges for one
//!   hand-over, as real cores do.
//! - **What is not contended overlaps**: a core asks for lines before it needs them, as many at a
//!   time as `overlap` says, but not before a pause or a branch that it mispredicted: then it waits the
//!   whole latency. It mispredicts when an exchange fails, and when it makes another kind of access, or one of
//!   other memory, than it last made after the same three. A store is done when it is in the store buffer; the
//!   next exchange waits until the buffer is empty.
//! - **A line that nobody waits for yet** takes longer than one in a fight (`unawaited`): the request has
//!   farther to go.
//! - **Caches**: two levels for each core and a shared last level, set-associative, in which the line
//!   used longest ago makes room.
//! - **Waiting**: pause instructions and yields have prices. A thread about to sleep on a mutex
//!   makes a system call, which first checks the mutex again. Whoever wakes a sleeper pays for that;
//!   the sleeper runs some time later, and meanwhile others may take the mutex. A call that wakes
//!   nobody, or finds nothing to wait for, costs far less.
//!
//! # What it leaves out
//!
//! | Left out | What that does |
//! |---|---|
//! | prefetchers | sequential scans are too slow; the filters make none but in copies |
//! | bandwidth of memory and of the interconnect | lookups in tables past the caches scale too well at many cores |
//! | clock frequency that falls as cores wake up | everything scales too well, by the same factor for all subjects |
//! | the keys that threads read, and whatever else they do not share | with times of one thread from a small table, tables whose keys exceed the caches are up to six times too fast |
//! | how far a core reads ahead: `overlap` is one number, whatever it computes meanwhile | with 90 % lookups, 5 % inserts and 5 % removes, filters whose lookups take no lock are up to 1.28 times as fast as measured on two cores, probably for this reason (not tested) |
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
