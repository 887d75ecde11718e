//! Tables.

use std::fmt;

use comfy_table::{CellAlignment, Table, presets};

/// A table, with what stands above and below it. It is shown as Markdown.
#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    /// What the cells are.
    pub lead: String,
    /// Names of the columns.
    pub header: Vec<String>,
    /// The lines, of as many cells as the header has, or fewer.
    pub lines: Vec<Vec<String>>,
    /// What marks and words in the table mean, and what else must be known.
    pub notes: Vec<String>,
}

impl fmt::Display for Sheet {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let mut table = Table::new();
        // Pastes into Markdown as it is, and never wraps a ratio over two lines.
        table.load_style(presets::ASCII_MARKDOWN);
        table.set_header(&self.header);
        table.add_rows(&self.lines);
        // Numbers to the right.
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        writeln!(formatter, "{}\n\n{table}\n", self.lead)?;
        self.notes
            .iter()
            .try_for_each(|note| writeln!(formatter, "{note}"))
    }
}
