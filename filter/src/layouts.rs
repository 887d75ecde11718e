//! The layouts that have names, one type each. Any other is a [`CuckooFilter`] with its numbers.
//!
//! | Type | Wrong, when full | Load to plan for | First refusal (2^18 buckets) | Bits a key | Timestamp bits |
//! |---|---:|---:|---:|---:|---:|
//! | [`Filter6x8`] | 4.7 % | 0.97 | 0.986 | 11.0 | 15 |
//! | [`Filter4x8`] | 3.1 % | 0.95 | 0.968 | 16.8 | 31 |
//! | [`Filter5x10`] | 0.98 % | 0.96 | 0.978 | 13.3 | 13 |
//! | [`Filter4x12`], the default | 0.20 % | 0.95 | 0.968 | 16.8 | 15 |
//! | [`Filter4x13`] | 0.098 % | 0.95 | 0.969 | 16.8 | 11 |
//! | [`Filter3x16`] | 0.0092 % | 0.92 | 0.944 | 23.2 | 15 |
//! | [`Filter2x24`] | 1 in 4.2 million | 0.83 | 0.867 | 38.6 | 15 |
//!
//! `cargo run --release -p harness -- layouts` measures all of it again.
//! [`Builder::false_positive_rate`](crate::Builder::false_positive_rate) chooses among them for you, at run time.

use crate::{CuckooFilter, FixedState};

/// Six slots of 8 bits: the least memory, for who can bear a wrong yes for one absent key in 21.
/// 11.0 bits a key at a load factor of 0.97.
pub type Filter6x8<S = FixedState> = CuckooFilter<6, 8, S>;

/// Four slots of 8 bits: as much memory as the default, and wrong about one absent key in 32, but 31 bits
/// of timestamp, which [do not wrap](crate::layout#when-a-timestamp-wraps) while a lookup sleeps.
/// 16.8 bits a key at a load factor of 0.95.
pub type Filter4x8<S = FixedState> = CuckooFilter<4, 8, S>;

/// Five slots of 10 bits: wrong about one absent key in 102. 13.3 bits a key at a load factor of 0.96.
pub type Filter5x10<S = FixedState> = CuckooFilter<5, 10, S>;

/// Four slots of 12 bits, the default: wrong about one absent key in 512. 16.8 bits a key at a load
/// factor of 0.95.
pub type Filter4x12<S = FixedState> = CuckooFilter<4, 12, S>;

/// Four slots of 13 bits: wrong half as often as the default, at the same memory, with 11 bits of timestamp
/// instead of 15. 16.8 bits a key at a load factor of 0.95.
pub type Filter4x13<S = FixedState> = CuckooFilter<4, 13, S>;

/// Three slots of 16 bits: wrong about one absent key in 10,900. 23.2 bits a key at a load factor of 0.92.
pub type Filter3x16<S = FixedState> = CuckooFilter<3, 16, S>;

/// Two slots of 24 bits: wrong about one absent key in 4.2 million. 38.6 bits a key at a load factor
/// of 0.83.
pub type Filter2x24<S = FixedState> = CuckooFilter<2, 24, S>;
