//! Turns measurements into [statistics](stats), [tables](table) and [figures](plot). The crate knows
//! neither subjects nor files: rows become [`stats::Summary`] values, and those become cells and points.
//!
//! # Which figure uses which form
//!
//! | Figures | Form |
//! |---|---|
//! | `full`, `full-large`, `rivals`, `relatives`, `oversubscribed`, `simulated-machines` | [`Form::Line`] over threads on a [`Scale::Log`] axis, with [`Panel::shade`] from more threads than cores on |
//! | `kcas`, `processes`, `load-factor`, `growth` | [`Form::Line`] over words, processes, load factor or keys |
//! | `pair*`, `ablations`, `speed-*` | [`Form::Dots`] in [`Panel::rows`], with [`Panel::reference`] 1 |
//! | `latency` | [`Form::Tail`] over threads |
//! | `stalls` | [`Form::Line`], and [`Form::Cloud`] for single rounds |
//! | `memory` | [`Form::Dots`] with [`Series::labels`], and [`Form::Guide`] for the bounds |
//!
//! [`Form::Line`]: plot::Form::Line
//! [`Form::Dots`]: plot::Form::Dots
//! [`Form::Tail`]: plot::Form::Tail
//! [`Form::Cloud`]: plot::Form::Cloud
//! [`Form::Guide`]: plot::Form::Guide
//! [`Scale::Log`]: plot::Scale::Log
//! [`Panel::shade`]: plot::Panel::shade
//! [`Panel::rows`]: plot::Panel::rows
//! [`Panel::reference`]: plot::Panel::reference
//! [`Series::labels`]: plot::Series::labels

pub mod plot;
pub mod stats;
pub mod table;
