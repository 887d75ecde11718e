//! A program with a module of this name writes `::filter`.

mod filter {}

use filter::CuckooFilter; //~ E0432: CuckooFilter
