//! Tables of text cells: for Markdown, and for a terminal of [`WIDTH`] columns.
//!
//! The first column names its row. All other columns are aligned to the right.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

/// The columns of a terminal into which every printed table fits.
pub const WIDTH: u16 = 100;

/// Formats a Markdown table.
pub fn markdown(header: &[String], rows: &[Vec<String>]) -> String {
    let mut table = table(true, header, rows);
    table.set_content_arrangement(ContentArrangement::Disabled);
    let mut lines: Vec<_> = table.lines().collect();
    // Markdown aligns a column to the right if its rule ends in a colon.
    lines[1] = lines[1].replace("-|", ":|").replacen(":|", "-|", 1);
    lines.join("\n")
}

/// Formats a table of at most [`WIDTH`] columns of text.
///
/// If the columns do not fit, several tables follow one another, each with the first column.
pub fn terminal(header: &[String], rows: &[Vec<String>]) -> String {
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for column in 1..header.len().max(2) {
        let width = |columns: &[usize]| {
            let [header, rows] = [&[header.to_vec()][..], rows].map(|all| cells(all, columns));
            let table = table(false, &header[0], &rows).to_string();
            table.lines().map(|line| line.chars().count()).max()
        };
        match parts.last_mut() {
            Some(part) if width(&[&part[..], &[column]].concat()) <= Some(WIDTH.into()) => {
                part.push(column);
            }
            _ => parts.push(vec![0, column]),
        }
    }
    let part = |columns: &Vec<usize>| {
        let header = cells(&[header.to_vec()], columns);
        let mut table = table(false, &header[0], &cells(rows, columns));
        // Wraps what is too wide in two columns alone.
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(WIDTH);
        table.trim_fmt()
    };
    let parts: Vec<_> = parts.iter().map(part).collect();
    parts.join("\n\n")
}

fn cells(rows: &[Vec<String>], columns: &[usize]) -> Vec<Vec<String>> {
    let cell = |row: &Vec<String>, column: usize| row.get(column).cloned().unwrap_or_default();
    let cells = |row| columns.iter().map(|&column| cell(row, column)).collect();
    rows.iter().map(cells).collect()
}

fn table(is_markdown: bool, header: &[String], rows: &[Vec<String>]) -> Table {
    let bar = if is_markdown { "\\|" } else { "|" };
    let line = |cells: &[String]| -> Vec<String> {
        let cells = cells.iter();
        cells
            .map(|cell| cell.replace('|', bar).replace('\n', " "))
            .collect()
    };
    let mut table = Table::new();
    table.load_style(if is_markdown {
        presets::ASCII_MARKDOWN
    } else {
        presets::NOTHING
    });
    table.set_header(line(header));
    table.add_rows(rows.iter().map(|row| line(row)));
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(rows: &[&[&str]]) -> Vec<Vec<String>> {
        let line = |row: &&[&str]| row.iter().map(|&cell| cell.into()).collect();
        rows.iter().map(line).collect()
    }

    #[test]
    fn markdown_escapes_cells_and_aligns_numbers() {
        let rows = lines(&[&["subject", "ratio"], &["a|b", "1.5"], &["c\nd", "10.25"]]);
        let expected = "\
            | subject | ratio |\n\
            |---------|------:|\n\
            | a\\|b    |   1.5 |\n\
            | c d     | 10.25 |";
        assert_eq!(markdown(&rows[0], &rows[1..]), expected);
    }

    #[test]
    fn terminal_table_never_exceeds_its_width() {
        for (columns, width) in [(1, 5), (2, 60), (3, 300), (40, 20), (300, 1)] {
            let cell = |column| format!("{column}:{}", "x ".repeat(width));
            let header: Vec<_> = (0..columns).map(cell).collect();
            let shown = terminal(&header, &[header.clone(), header.clone()]);
            let widest = shown.lines().map(|line| line.chars().count()).max();
            assert!(
                widest <= Some(WIDTH.into()),
                "{columns} {width}: {widest:?}"
            );
            for column in 0..columns {
                let found = shown.matches(&format!("{column}:")).count();
                assert!(found >= 3, "{columns} {width}: column {column}");
            }
        }
    }

    #[test]
    fn terminal_table_repeats_first_column() {
        let wide = "1".repeat(60);
        let rows = lines(&[&["name", "a", "b"], &["first", &wide, &wide]]);
        let shown = terminal(&rows[0], &rows[1..]);
        assert_eq!(shown.matches("first").count(), 2, "{shown}");
    }
}
