//! Texts for people: sentences and tables, short in lines of some columns, or in full.

use std::fmt::{Display, Formatter, Write};

/// Extent to which a text is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// In lines of at most so many columns, without the columns of tables that are details.
    Short(usize),
    /// All columns; each row and each sentence in a line of its own.
    Full,
}

/// Sentences and tables, one below the other.
#[derive(Debug, Default)]
pub struct Text {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Said(String),
    Table(Table),
    Either { short: String, full: String },
}

impl Text {
    /// Adds a sentence, or several in lines of their own.
    pub fn say(&mut self, lines: impl Into<String>) {
        self.parts.push(Part::Said(lines.into()));
    }

    /// Adds a table.
    pub fn table(&mut self, table: Table) {
        self.parts.push(Part::Table(table));
    }

    /// Adds what has a text of its own for each form, lines ended. The short one fits as it is.
    pub fn either(&mut self, short: String, full: String) {
        self.parts.push(Part::Either { short, full });
    }

    /// Adds another text.
    pub fn append(&mut self, more: Text) {
        self.parts.extend(more.parts);
    }

    /// The text in that form, each line ended.
    pub fn shown(&self, form: Form) -> String {
        let shown = |part: &Part| match (part, form) {
            (Part::Said(lines), Form::Full) => format!("{lines}\n"),
            (Part::Said(lines), Form::Short(width)) => {
                lines.split('\n').map(|line| wrapped(line, width)).collect()
            }
            (Part::Table(table), form) => table.shown(form),
            (Part::Either { full, .. }, Form::Full) => full.clone(),
            (Part::Either { short, .. }, Form::Short(_)) => short.clone(),
        };
        self.parts.iter().map(shown).collect()
    }
}

impl From<Table> for Text {
    fn from(table: Table) -> Text {
        Text { parts: vec![Part::Table(table)] }
    }
}

impl Display for Text {
    /// In full.
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown(Form::Full))
    }
}

/// A table with a header row: columns as wide as their widest cell, numbers to the right.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
    right: Vec<bool>,
    detail: Vec<bool>,
}

/// Blanks between columns.
const GAP: usize = 2;
/// Words of a column are not set narrower than this where a table is broken in any case.
const READABLE: usize = 24;

impl Table {
    /// A table with these columns; those whose name begins with `>` are set to the right, and those that begin with `~` are details.
    pub fn new(columns: &[&str]) -> Table {
        let name = |column: &str| column.trim_start_matches(['~', '>']).to_owned();
        Table {
            rows: vec![columns.iter().map(|column| name(column)).collect()],
            right: columns.iter().map(|column| column.trim_start_matches('~').starts_with('>')).collect(),
            detail: columns.iter().map(|column| column.starts_with('~')).collect(),
        }
    }

    /// Adds a row; missing cells are empty.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The table in full.
    pub fn text(&self) -> String {
        self.shown(Form::Full)
    }

    /// The table in that form, each line ended.
    ///
    /// In the short form words go on below each other within their column. A table that is wider even so is broken: columns follow below,
    /// behind those that name its rows.
    pub fn shown(&self, form: Form) -> String {
        let all: Vec<usize> = (0..self.right.len()).collect();
        let Form::Short(width) = form else {
            return self.lines(&all, &all.iter().map(|&at| self.natural(at)).collect::<Vec<_>>());
        };
        let chosen: Vec<usize> = all.into_iter().filter(|&at| !self.detail[at]).collect();
        if let Some(widths) = self.fitted(&chosen, width) {
            return self.lines(&chosen, &widths);
        }
        // Names that take up half of the line leave the first alone.
        let names: Vec<usize> = chosen.iter().copied().take_while(|&at| !self.right[at]).collect();
        let wide: usize = names.iter().map(|&at| self.readable(at) + GAP).sum();
        let (names, others) = chosen.split_at(if 2 * wide > width { 1 } else { names.len() });
        let room = |group: &[usize]| group.iter().map(|&at| self.readable(at) + GAP).sum::<usize>() - GAP;
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for &at in others {
            let more = groups.last().map(|group| [&group[..], &[at]].concat());
            match more.filter(|group| room(group) <= width) {
                Some(more) => *groups.last_mut().expect("the group that has grown") = more,
                None => groups.push([names, &[at]].concat()),
            }
        }
        if groups.is_empty() {
            groups.push(names.to_vec());
        }
        let fitted = |group: &Vec<usize>| {
            let narrowest = || group.iter().map(|&at| self.narrowest(at)).collect();
            self.lines(group, &self.fitted(group, width).unwrap_or_else(narrowest))
        };
        groups.iter().map(fitted).collect()
    }

    fn cell(&self, row: usize, column: usize) -> &str {
        self.rows[row].get(column).map_or("", String::as_str)
    }

    fn cells(&self, column: usize) -> impl Iterator<Item = &str> {
        (0..self.rows.len()).map(move |row| self.cell(row, column))
    }

    /// A column's width without a break.
    fn natural(&self, column: usize) -> usize {
        self.cells(column).map(|cell| cell.chars().count()).max().unwrap_or(0)
    }

    /// The least: of words each in a line of its own; numbers are not broken.
    fn narrowest(&self, column: usize) -> usize {
        let word = |text: &str| text.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0);
        let cell = |(row, cell): (usize, &str)| match self.right[column] && row > 0 {
            true => cell.chars().count(),
            false => word(cell),
        };
        self.cells(column).enumerate().map(cell).max().unwrap_or(0)
    }

    /// The least with which words are still pleasant to read.
    fn readable(&self, column: usize) -> usize {
        match self.right[column] {
            true => self.narrowest(column),
            false => self.natural(column).min(READABLE).max(self.narrowest(column)),
        }
    }

    /// Widths of columns that together fit: the widest gives way first. Nothing where they cannot.
    fn fitted(&self, columns: &[usize], width: usize) -> Option<Vec<usize>> {
        let least: Vec<usize> = columns.iter().map(|&at| self.narrowest(at)).collect();
        let mut widths: Vec<usize> = columns.iter().map(|&at| self.natural(at)).collect();
        let gaps = GAP * columns.len().saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > width {
            let widest = (0..widths.len()).filter(|&i| widths[i] > least[i]).max_by_key(|&i| widths[i])?;
            widths[widest] -= 1;
        }
        Some(widths)
    }

    /// These columns, that wide.
    fn lines(&self, columns: &[usize], widths: &[usize]) -> String {
        let mut out = String::new();
        for row in 0..self.rows.len() {
            let broken = |(&column, &width): (&usize, &usize)| broken(self.cell(row, column), width, 0);
            let cells: Vec<Vec<String>> = columns.iter().zip(widths).map(broken).collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0).max(1);
            for line in 0..height {
                let mut text = String::new();
                for ((cell, &column), &width) in cells.iter().zip(columns).zip(widths) {
                    // The last line of a heading stands above its numbers.
                    let above = if row == 0 { height - cell.len() } else { 0 };
                    let part =
                        line.checked_sub(above).and_then(|line| cell.get(line)).map_or("", String::as_str);
                    let _ = match self.right[column] {
                        true => write!(text, "{part:>width$}"),
                        false => write!(text, "{part:<width$}"),
                    };
                    text.push_str(&" ".repeat(GAP));
                }
                let _ = writeln!(out, "{}", text.trim_end());
            }
        }
        out
    }
}

/// A line in lines of at most `width` columns, each ended, set in as it is, and those behind the first by two more. A longer word has a
/// line of its own.
pub fn wrapped(line: &str, width: usize) -> String {
    let words = line.trim_start();
    let blanks = &line[..line.len() - words.len()];
    broken(words, width.saturating_sub(blanks.len()), 2)
        .iter()
        .map(|line| format!("{blanks}{line}\n"))
        .collect()
}

/// Words in lines of at most `width` columns, those behind the first set in.
fn broken(text: &str, width: usize, set_in: usize) -> Vec<String> {
    if text.chars().count() <= width {
        return vec![text.to_owned()];
    }
    let mut lines = vec![String::new()];
    let mut column = 0;
    for word in text.split_whitespace() {
        let long = word.chars().count();
        if column > 0 && column + 1 + long > width {
            lines.push(" ".repeat(set_in));
            column = set_in;
        } else if column > 0 {
            lines.last_mut().expect("a line").push(' ');
            column += 1;
        }
        lines.last_mut().expect("a line").push_str(word);
        column += long;
    }
    lines
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

    #[test]
    fn a_line_keeps_its_place() {
        assert_eq!(wrapped("  one two three", 9), "  one two\n    three\n");
        assert_eq!(wrapped("  one", 80), "  one\n");
        let mut table = Table::new(&["", ">n"]);
        table.row(["  part", "1"]);
        assert_eq!(table.shown(Form::Short(80)), "        n\n  part  1\n");
    }

    fn table() -> Table {
        let mut table = Table::new(&["name", ">sent in all", "~why", "what it is"]);
        table.row(["a", "10 kB", "because", "one that has more to say than others have"]);
        table.row(["b", "9000 kB", "", "short"]);
        table
    }

    #[test]
    fn words_go_on_within_their_column_and_details_are_left_out() {
        assert_eq!(
            table().shown(Form::Short(40)),
            "name  sent in all  what it is\n\
             a           10 kB  one that has more to\n\
             \x20                  say than others have\n\
             b         9000 kB  short\n"
        );
        assert_eq!(table().text().lines().count(), 3);
        assert!(table().text().contains("why") && !table().shown(Form::Short(200)).contains("why"));
    }

    #[test]
    fn a_table_of_many_numbers_goes_on_below() {
        let mut table = Table::new(&["name", ">first number", ">second", ">third"]);
        table.row(["a", "1.0 ±0.1", "2.0 ±0.1", "3.0 ±0.1"]);
        assert_eq!(
            table.shown(Form::Short(25)),
            "          first\nname     number    second\na      1.0 ±0.1  2.0 ±0.1\nname     third\na     3.0 ±0.1\n"
        );
    }

    #[test]
    fn no_line_of_a_text_is_longer() {
        let mut text = Text::default();
        text.say("a sentence of many words\n  and another");
        text.table(table());
        text.either("short\n".to_owned(), "in full\n".to_owned());
        for width in [20, 30, 40, 80] {
            let shown = text.shown(Form::Short(width));
            assert!(shown.lines().all(|line| line.chars().count() <= width), "{width}\n{shown}");
            assert!(shown.ends_with("short\n"));
        }
        assert!(text.to_string().starts_with("a sentence of many words\n  and another\nname"));
        assert!(text.to_string().ends_with("in full\n"));
    }
}
