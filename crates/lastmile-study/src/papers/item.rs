//! Tables and figures of a paper: their names, the runs that they need, and their making.

use std::fmt::Display;

use lastmile_report::table::{Cell, Table};

use super::RUNS;
use super::case::Case;
use super::results::Results;

/// Its number in the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// A table.
    Table(u32),
    /// A figure.
    Figure(u32),
}

impl Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Number::Table(number) => write!(f, "table {number}"),
            Number::Figure(number) => write!(f, "figure {number}"),
        }
    }
}

/// A table or figure, or what else a paper says of runs of its own.
pub struct Item {
    /// Its name.
    pub id: &'static str,
    /// Nothing for what the paper says in words only.
    pub number: Option<Number>,
    /// Its content in one line.
    pub shows: &'static str,
    /// Its source.
    pub how: How,
}

/// Source of an item.
pub enum How {
    /// From runs.
    Made(Made),
    /// It needs something that does not exist yet.
    Waits(&'static str),
    /// It cannot be made, and why.
    Never(&'static str),
}

/// An item that is made from runs.
pub struct Made {
    /// The runs that it is made of.
    pub cases: Vec<Case>,
    /// Makes it of what came of them.
    pub table: Box<dyn Fn(&Results) -> Table>,
    /// Only where it is asked for by name.
    pub apart: bool,
    /// Runs of each case in the simulator, unless a request says otherwise.
    pub sim: u64,
    /// Runs of each case in the lab: more than one where these decide a claim.
    pub lab: u64,
}

type Id = &'static str;

impl Item {
    fn new(id: Id, number: impl Into<Option<Number>>, shows: Id, how: How) -> Item {
        Item { id, number: number.into(), shows, how }
    }

    /// One that is made from these runs, by that.
    pub fn made(
        id: &'static str,
        number: impl Into<Option<Number>>,
        shows: &'static str,
        cases: Vec<Case>,
        table: impl Fn(&Results) -> Table + 'static,
    ) -> Item {
        let made = Made { cases, table: Box::new(table), apart: false, sim: RUNS, lab: 1 };
        Item::new(id, number, shows, How::Made(made))
    }

    /// One that no run has a part in.
    pub fn fixed(
        id: &'static str,
        number: impl Into<Option<Number>>,
        shows: &'static str,
        table: fn() -> Table,
    ) -> Item {
        Item::made(id, number, shows, Vec::new(), move |_| table())
    }

    /// A table with a row for each case: the columns of its words, then those of its numbers.
    pub fn rows(
        id: &'static str,
        number: impl Into<Option<Number>>,
        shows: &'static str,
        words: &[&'static str],
        numbers: &[(&'static str, Shown)],
        rows: impl IntoIterator<Item = Row>,
    ) -> Item {
        let rows: Vec<Row> = rows.into_iter().collect();
        let columns: Vec<_> = words.iter().copied().chain(numbers.iter().map(|number| number.0)).collect();
        let (cases, numbers) = (rows.iter().map(|row| row.case.clone()).collect(), numbers.to_vec());
        Item::made(id, number, shows, cases, move |results| {
            let mut table = Table::new(&columns);
            for row in &rows {
                let words = row.words.iter().cloned().map(Cell::from);
                table.row(words.chain(numbers.iter().map(|(_, shown)| row.cell(results, *shown))));
            }
            table
        })
    }

    /// One that waits for what does not exist yet.
    pub fn waits(id: Id, number: impl Into<Option<Number>>, shows: Id, what: Id) -> Item {
        Item::new(id, number, shows, How::Waits(what))
    }

    /// One that cannot be made, and why.
    pub fn never(id: Id, number: impl Into<Option<Number>>, shows: Id, why: Id) -> Item {
        Item::new(id, number, shows, How::Never(why))
    }

    fn with(mut self, change: impl FnOnce(&mut Made)) -> Item {
        if let How::Made(made) = &mut self.how {
            change(made);
        }
        self
    }

    /// The same with more in its table, such as charts.
    pub fn drawn(self, draw: impl Fn(&Results, &mut Table) + 'static) -> Item {
        self.with(|made| {
            let table = std::mem::replace(&mut made.table, Box::new(|_| Table::default()));
            made.table = Box::new(move |results| {
                let mut table = table(results);
                draw(results, &mut table);
                table
            });
        })
    }

    /// The same, with runs that its table does not show: a claim goes by them.
    pub fn beside(self, cases: Vec<Case>) -> Item {
        self.with(|made| made.cases.extend(cases))
    }

    /// The same, only where it is asked for by name.
    pub fn apart(self) -> Item {
        self.with(|made| made.apart = true)
    }

    /// The same, with so many runs of each case in the simulator.
    pub fn runs(self, runs: u64) -> Item {
        self.with(|made| made.sim = runs)
    }

    /// The same, with so many runs of each case in the lab.
    pub fn lab(self, runs: u64) -> Item {
        self.with(|made| made.lab = runs)
    }

    /// True if it is made where nobody names any.
    pub fn by_default(&self) -> bool {
        matches!(&self.how, How::Made(made) if !made.apart)
    }

    /// The runs that it is made of.
    pub fn cases(&self) -> &[Case] {
        if let How::Made(made) = &self.how { &made.cases } else { &[] }
    }
}

/// Value of a column: the mean, or another figure of a number.
#[derive(Clone, Copy, Debug)]
pub enum Shown {
    /// The mean with its 95 % interval, and the paper's number.
    Mean(&'static str),
    /// The mean with its 99 % interval.
    Ci99(&'static str),
    /// Its difference from the case that the row is [`over`](Row::over), seed by seed.
    Over(&'static str),
}

/// Columns that are called like their numbers.
pub fn means<const N: usize>(numbers: [&'static str; N]) -> [(&'static str, Shown); N] {
    numbers.map(|number| (number, Shown::Mean(number)))
}

type OfThePaper = Box<dyn Fn(&str) -> Option<f64>>;

/// A row of a table.
pub struct Row {
    words: Vec<String>,
    case: Case,
    over: Option<Case>,
    paper: Option<OfThePaper>,
}

impl Row {
    /// Words, and the case whose numbers stand behind them.
    pub fn new(words: &[&dyn Display], case: Case) -> Row {
        Row { words: words.iter().map(ToString::to_string).collect(), case, over: None, paper: None }
    }

    /// Beside that case.
    pub fn over(self, case: Case) -> Row {
        Row { over: Some(case), ..self }
    }

    /// The paper's value of a number.
    pub fn paper(self, paper: impl Fn(&str) -> Option<f64> + 'static) -> Row {
        Row { paper: Some(Box::new(paper)), ..self }
    }

    /// Its words.
    pub fn words(&self) -> String {
        self.words.join(", ")
    }

    /// Its case.
    pub fn case(&self) -> &Case {
        &self.case
    }

    fn cell(&self, results: &Results, shown: Shown) -> Cell {
        match shown {
            Shown::Mean(number) => {
                let paper = self.paper.as_ref().and_then(|paper| paper(number));
                (results.mean(&self.case, number), paper).into()
            }
            Shown::Ci99(number) => results.mean(&self.case, number).map(|mean| mean.at_99()).into(),
            Shown::Over(number) => {
                let over = self.over.as_ref();
                over.and_then(|over| results.difference(&self.case, over, number)).into()
            }
        }
    }
}

/// Each of the first with each of the second, in that order.
pub fn each<A: Copy, B: Copy>(first: &[A], second: &[B]) -> Vec<(A, B)> {
    first.iter().flat_map(|&a| second.iter().map(move |&b| (a, b))).collect()
}
