//! Tables, shown as Markdown.

use std::fmt;

use comfy_table::{CellAlignment, Table, presets};

/// A table, with the text above and below it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    /// Explanation of the cells.
    pub lead: String,
    /// Names of the columns.
    pub header: Vec<String>,
    /// The lines, each with as many cells as the header or fewer.
    pub lines: Vec<Vec<String>>,
    /// Explanations of marks and words in the table, and other notes.
    pub notes: Vec<String>,
}

impl fmt::Display for Sheet {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let mut table = Table::new();
        // Pastes into Markdown unchanged, and never wraps a ratio.
        table.load_style(presets::ASCII_MARKDOWN);
        table.set_header(&self.header);
        table.add_rows(&self.lines);
        // Align numbers to the right.
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        writeln!(formatter, "{}\n\n{table}\n", self.lead)?;
        self.notes
            .iter()
            .try_for_each(|note| writeln!(formatter, "{note}"))
    }
}
