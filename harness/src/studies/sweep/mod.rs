//! The table and the figure of rows that K-CAS leaves.

mod figure;
mod table;

use super::study::Presented;
use crate::results::{Judge, Row};
use crate::show::chart::Figure;
use crate::show::{Sheet, Sidecar};

impl Presented for Vec<Row> {
    fn sheet(&self, sidecar: Option<&Sidecar>, judge: &Judge) -> Option<Sheet> {
        table::summary(self, sidecar, judge)
    }

    fn figure(&self, sidecar: Option<&Sidecar>) -> Option<Figure> {
        Some(figure::of(self, sidecar))
    }
}
