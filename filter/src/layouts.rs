//! The named layouts, one type each. Any other is a [`CuckooFilter`] with its numbers.
//!
//! | Type | Wrong about one absent key in | Bits per key | Load to plan for | Timestamp bits |
//! |---|---:|---:|---:|---:|
//! | [`Filter8x7`] | 7.9 | 8.2 | 0.975 | 7 |
//! | [`Filter7x8`] | 18.1 | 9.4 | 0.975 | 7 |
//! | [`Filter6x8`] | 21.2 | 11.0 | 0.97 | 15 |
//! | [`Filter6x9`] | 42.5 | 11.0 | 0.97 | 9 |
//! | [`Filter5x10`] | 102 | 13.3 | 0.96 | 13 |
//! | [`Filter5x11`] | 205 | 13.3 | 0.96 | 8 |
//! | [`Filter4x8`] | 31.8 | 16.8 | 0.95 | 31 |
//! | [`Filter4x12`], the default | 512 | 16.8 | 0.95 | 15 |
//! | [`Filter4x13`] | 1,024 | 16.8 | 0.95 | 11 |
//! | [`Filter4x14`] | 2,048 | 16.8 | 0.95 | 7 |
//! | [`Filter3x16`] | 10,900 | 23.2 | 0.92 | 15 |
//! | [`Filter3x18`] | 43,700 | 23.2 | 0.92 | 9 |
//! | [`Filter2x24`] | 4,190,000 | 38.6 | 0.83 | 15 |
//! | [`Filter2x28`] | 67,100,000 | 38.6 | 0.83 | 7 |
//!
//! The error rate is that of a table with every slot taken, which is the maximum
//! ([`FALSE_POSITIVE_RATE`](crate::layout::Layout::FALSE_POSITIVE_RATE)); it falls with the load.
//! Bits per key are those of a table at the load to plan for
//! ([`BITS_A_KEY`](crate::layout::Layout::BITS_A_KEY),
//! [`WORKABLE_LOAD`](crate::layout::Layout::WORKABLE_LOAD)); small tables take more.
//!
//! Memory depends only on the number of slots. Among layouts with the same number of slots, one
//! with shorter fingerprints is wrong more often, but leaves more bits for the timestamp ([what
//! they are for](crate::layout#when-a-timestamp-wraps)).
//! [`Builder::false_positive_rate`](crate::Builder::false_positive_rate) chooses at run time among
//! all of these except [`Filter4x8`]. `cargo run --release -p harness -- layouts` measures most of
//! them.

use crate::{CuckooFilter, FixedState};

/// Eight slots of 7 bits: the least memory per key of all dependable layouts.
pub type Filter8x7<S = FixedState> = CuckooFilter<8, 7, S>;

/// Seven slots of 8 bits.
pub type Filter7x8<S = FixedState> = CuckooFilter<7, 8, S>;

/// Six slots of 8 bits.
pub type Filter6x8<S = FixedState> = CuckooFilter<6, 8, S>;

/// Six slots of 9 bits.
pub type Filter6x9<S = FixedState> = CuckooFilter<6, 9, S>;

/// Five slots of 10 bits.
pub type Filter5x10<S = FixedState> = CuckooFilter<5, 10, S>;

/// Five slots of 11 bits.
pub type Filter5x11<S = FixedState> = CuckooFilter<5, 11, S>;

/// Four slots of 8 bits: the same memory as the default and 16 times its error rate, but 31 bits of
/// timestamp, which take [a minute](crate::layout#when-a-timestamp-wraps) to wrap.
pub type Filter4x8<S = FixedState> = CuckooFilter<4, 8, S>;

/// Four slots of 12 bits, the default.
pub type Filter4x12<S = FixedState> = CuckooFilter<4, 12, S>;

/// Four slots of 13 bits.
pub type Filter4x13<S = FixedState> = CuckooFilter<4, 13, S>;

/// Four slots of 14 bits.
pub type Filter4x14<S = FixedState> = CuckooFilter<4, 14, S>;

/// Three slots of 16 bits.
pub type Filter3x16<S = FixedState> = CuckooFilter<3, 16, S>;

/// Three slots of 18 bits.
pub type Filter3x18<S = FixedState> = CuckooFilter<3, 18, S>;

/// Two slots of 24 bits.
pub type Filter2x24<S = FixedState> = CuckooFilter<2, 24, S>;

/// Two slots of 28 bits: the lowest error rate of all dependable layouts.
pub type Filter2x28<S = FixedState> = CuckooFilter<2, 28, S>;
