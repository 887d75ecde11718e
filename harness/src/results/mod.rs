//! Numbers: [`rows`] and the CSV files that hold them, those of a sweep in [`record`] and those of
//! a file of keys in [`description`]; and what they say: [`statistics`], each a [`series`] paired
//! within rounds, with intervals by [`bootstrap`], a [`verdict`], and the [`headline`].

pub mod bootstrap;
pub mod description;
pub mod headline;
pub mod record;
pub mod rows;
pub mod series;
pub mod statistics;
pub mod verdict;
