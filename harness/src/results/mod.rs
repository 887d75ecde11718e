//! The numbers and what they say. [`rows`] and their CSV files: those of a sweep in [`record`].
//! [`statistics`], each the summary of a [`series`] paired within rounds, with exact intervals of the
//! [`median`](mod@median), and a [`verdict`]. Where cores are moved, by [`distance`].

pub mod distance;
pub mod median;
pub mod ranks;
pub mod record;
pub mod rows;
pub mod series;
pub mod statistics;
pub mod verdict;

pub use {
    distance::*, median::*, ranks::*, record::*, rows::*, series::*, statistics::*, verdict::*,
};
