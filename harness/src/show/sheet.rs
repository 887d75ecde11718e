//! Tables, shown as Markdown.

use std::fmt;

use comfy_table::{CellAlignment, Row, Table, presets};

#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    /// Explanation of the cells.
    pub lead: String,
    pub header: Vec<String>,
    /// The lines, each with as many cells as the header or fewer.
    pub lines: Vec<Vec<String>>,
    /// Explanations of marks and words in the table, and other notes.
    pub notes: Vec<String>,
}

/// Name of a column, and its cell in the line of a row.
pub(crate) type Column<R> = (&'static str, fn(&R) -> String);

impl Sheet {
    /// Makes a table with a line for each row.
    pub(crate) fn of<R>(lead: &str, rows: &[R], columns: &[Column<R>], notes: Vec<String>) -> Self {
        let line = |row| columns.iter().map(|(_, cell)| cell(row)).collect();
        Self {
            lead: lead.into(),
            header: columns.iter().map(|&(name, _)| name.into()).collect(),
            lines: rows.iter().map(line).collect(),
            notes,
        }
    }
}

/// Formats a table that pastes into Markdown unchanged, and never wraps a cell. The columns `numbers`
/// are aligned to the right.
pub(crate) fn markdown(
    header: impl Into<Row>,
    lines: impl IntoIterator<Item: Into<Row>>,
    numbers: impl IntoIterator<Item = usize>,
) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(header);
    table.add_rows(lines);
    for column in numbers {
        let column = table.column_mut(column).expect("the table has the column");
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

impl Sheet {
    /// Returns the table without padding, so that a change of one number changes one line, and its notes.
    pub(crate) fn markdown(&self) -> String {
        let line = |cells: &Vec<String>| format!("| {} |", cells.join(" | "));
        let rule = format!("|---|{}", "---:|".repeat(self.header.len() - 1));
        let lines = [line(&self.header), rule].into_iter();
        let notes = (!self.notes.is_empty()).then(|| format!("\n{}", self.notes.join(" ")));
        let lines = lines.chain(self.lines.iter().map(line)).chain(notes);
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl fmt::Display for Sheet {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let table = markdown(&self.header, &self.lines, 1..self.header.len());
        writeln!(formatter, "{}\n\n{table}\n", self.lead)?;
        self.notes
            .iter()
            .try_for_each(|note| writeln!(formatter, "{note}"))
    }
}
