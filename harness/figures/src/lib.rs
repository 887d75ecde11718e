//! Turns measurements into [statistics](stats), [tables](table) and [figures](plot). The crate knows
//! neither subjects nor files: rows become [`stats::Summary`] values, and those become cells and points.
//!
//! # Which figure uses which form
//!
//! | Figures | Form |
//! |---|---|
//! | `full`, `full-large`, `rivals`, `relatives`, `oversubscribed`, `simulated-machines` | [`Form::Line`] over threads on a [`Scale::Log`] axis, with [`Panel::shade`] from more threads than cores on |
//! | `kcas`, `processes`, `load-factor` | [`Form::Line`] over words, processes or load factor |
//! | `pair*`, `ablations`, `speed-*` | [`Form::Dots`] in [`Panel::rows`], with [`Panel::reference`] 1 |
//! | `latency` | [`Form::Tail`] over threads |
//! | `stalls` | [`Form::Line`], and [`Form::Cloud`] for single rounds |
//! | `growth` | [`Form::Band`] over keys |
//! | `memory` | [`Form::Dots`] with [`Series::labels`], and [`Form::Guide`] for the bounds |
//!
//! # Why plotters
//!
//! `pair` and `full` were drawn from the same rows with `plotters` 0.3.7 and with `kuva` 0.6.0. `plotters` numbers an
//! axis with the values that it is given (1, 2, 4 and 8 threads) and places marks at any distance from their true
//! place, so subjects of equal speed stay visible. `kuva` numbers a logarithmic axis with 1, 2, 5 and 10, repeats the
//! names of rows in each panel and overlaps numbers of narrow panels. `plotters` is built without `ttf`, so no drawing
//! looks for fonts.
//!
//! [`Form::Line`]: plot::Form::Line
//! [`Form::Dots`]: plot::Form::Dots
//! [`Form::Tail`]: plot::Form::Tail
//! [`Form::Cloud`]: plot::Form::Cloud
//! [`Form::Band`]: plot::Form::Band
//! [`Form::Guide`]: plot::Form::Guide
//! [`Scale::Log`]: plot::Scale::Log
//! [`Panel::shade`]: plot::Panel::shade
//! [`Panel::rows`]: plot::Panel::rows
//! [`Panel::reference`]: plot::Panel::reference
//! [`Series::labels`]: plot::Series::labels

pub mod plot;
pub mod stats;
pub mod table;
