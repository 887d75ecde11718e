//! Tables, shown as Markdown.

use std::fmt;

use comfy_table::{CellAlignment, ContentArrangement, Row, Table, presets};

use super::print::WIDTH;

#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    /// Explanation of the cells.
    pub lead: String,
    pub header: Vec<String>,
    /// How many columns name a line; where the table is too wide to print, each part of it repeats them.
    pub labels: usize,
    /// The lines, each with as many cells as the header or fewer.
    pub lines: Vec<Vec<String>>,
    /// Explanations of marks and words in the table, and other notes.
    pub notes: Vec<String>,
}

/// Formats a table that pastes into Markdown unchanged, unless it is so wide that cells are wrapped. The columns
/// `numbers` are aligned to the right.
pub(crate) fn markdown(
    header: impl Into<Row>,
    lines: impl IntoIterator<Item: Into<Row>>,
    numbers: impl IntoIterator<Item = usize>,
) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH as u16);
    table.set_header(header);
    table.add_rows(lines);
    for column in numbers {
        let column = table.column_mut(column).expect("the table has the column");
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

impl Sheet {
    /// Groups the columns that are no labels, so that each group with the labels is as wide as can be printed.
    fn parts(&self) -> Vec<Vec<usize>> {
        let width = |column: usize| {
            let cells = self.lines.iter().filter_map(|line| line.get(column));
            let cells = cells.chain([&self.header[column]]);
            3 + cells
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or_default()
        };
        let labels = 1 + (0..self.labels).map(width).sum::<usize>();
        let (mut parts, mut used) = (Vec::<Vec<usize>>::new(), WIDTH);
        for column in self.labels..self.header.len() {
            used += width(column);
            if used > WIDTH {
                parts.push((0..self.labels).collect());
                used = labels + width(column);
            }
            parts.last_mut().expect("one was pushed").push(column);
        }
        parts
    }
}

impl fmt::Display for Sheet {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        writeln!(formatter, "{}\n", self.lead)?;
        for part in self.parts() {
            let cells_of_part = |cells: &Vec<String>| -> Vec<String> {
                part.iter()
                    .map(|&at| cells.get(at).cloned().unwrap_or_default())
                    .collect()
            };
            let table = markdown(
                cells_of_part(&self.header),
                self.lines.iter().map(cells_of_part),
                1..part.len(),
            );
            writeln!(formatter, "{table}\n")?;
        }
        self.notes
            .iter()
            .try_for_each(|note| writeln!(formatter, "{note}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_table_is_printed_in_parts() {
        let text = |cell: &str| cell.to_owned();
        let sheet = |columns: usize, cell: &str| Sheet {
            lead: "Lead.".into(),
            header: [vec![text("name")], vec![text("ratio"); columns]].concat(),
            labels: 1,
            lines: vec![[vec![text("a")], vec![text(cell); columns]].concat()],
            notes: Vec::new(),
        };
        let narrow = sheet(3, "1.00").to_string();
        assert_eq!(narrow.matches("| name").count(), 1);
        for (columns, cell) in [(12, "1.00 [0.99–1.01] faster"), (1, &*"words ".repeat(40))] {
            let printed = sheet(columns, cell).to_string();
            assert_eq!(printed.matches("ratio").count(), columns);
            let widest = printed.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(WIDTH), "{printed}");
        }
    }
}
