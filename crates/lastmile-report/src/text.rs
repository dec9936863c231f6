//! Tables for people: columns as wide as their widest cell, numbers to the right.

use std::fmt::Write;

/// A table with a header row.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
    right: Vec<bool>,
}

impl Table {
    /// A table with these columns; those whose name begins with `>` are set to the right.
    pub fn new(columns: &[&str]) -> Table {
        Table {
            rows: vec![columns.iter().map(|c| c.trim_start_matches('>').to_owned()).collect()],
            right: columns.iter().map(|c| c.starts_with('>')).collect(),
        }
    }

    /// Adds a row; missing cells are empty.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The table as text, each line ended.
    pub fn text(&self) -> String {
        let cell = |row: &[String], i: usize| row.get(i).cloned().unwrap_or_default();
        let columns = self.right.len();
        let widths: Vec<usize> = (0..columns)
            .map(|i| self.rows.iter().map(|row| cell(row, i).chars().count()).max().unwrap_or(0))
            .collect();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (i, width) in widths.iter().enumerate() {
                let gap = if i == 0 { "" } else { "  " };
                let text = cell(row, i);
                let _ = match self.right[i] {
                    true => write!(line, "{gap}{text:>width$}"),
                    false => write!(line, "{gap}{text:<width$}"),
                };
            }
            let _ = writeln!(out, "{}", line.trim_end());
        }
        out
    }
}

/// Text as lines of at most `width` columns, each ended, those behind the first set in by two. A longer word has a line of its own.
pub fn wrapped(text: &str, width: usize) -> String {
    let (mut out, mut column) = (String::new(), 0);
    for word in text.split_whitespace() {
        let long = word.chars().count();
        match column {
            0 => column = long,
            _ if column + 1 + long > width => {
                out.push_str("\n  ");
                column = 2 + long;
            }
            _ => {
                out.push(' ');
                column += 1 + long;
            }
        }
        out.push_str(word);
    }
    out + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_no_longer_than_they_may_be() {
        assert_eq!(wrapped("one two three  four", 9), "one two\n  three\n  four\n");
        assert_eq!(wrapped("incomprehensibilities are", 9), "incomprehensibilities\n  are\n");
        assert_eq!(wrapped("", 9), "\n");
    }

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["what", ">rate"]);
        table.row(["capacity", "10 Mbit/s"]);
        table.row(["left", "5.98 Mbit/s"]);
        assert_eq!(table.text(), "what             rate\ncapacity    10 Mbit/s\nleft      5.98 Mbit/s\n");
    }
}
