//! The numbers and what they say. [`rows`] and their CSV files: those of a sweep in [`record`] and
//! [`file`](mod@file), those of a file of keys in [`description`]. [`statistics`], each the [`summary`] of a [`series`]
//! paired within rounds, with intervals by [`bootstrap`], a [`verdict`], and the [`headline`].

pub mod bootstrap;
pub mod description;
pub mod file;
pub mod headline;
pub mod record;
pub mod rows;
pub mod series;
pub mod statistics;
pub mod summary;
pub mod verdict;
