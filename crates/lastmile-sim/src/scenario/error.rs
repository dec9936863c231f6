//! [`ScenarioError`]: an error in a scenario file, with file, line and key.

use core::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// An error in a scenario file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{file}{}: {}{reason}",
    if *line > 0 { format!(":{line}") } else { String::new() },
    if key.is_empty() { String::new() } else { format!("{key}: ") }
)]
pub struct ScenarioError {
    /// The file, as the caller named it.
    pub file: String,
    /// The line, from one; zero where an override is to blame that stands in no file.
    pub line: usize,
    /// The key with its path, such as `link[0].rate`; empty where the text is no TOML.
    pub key: String,
    /// The reason, in words.
    pub reason: String,
}

/// A scenario file as it stands: finds lines and keys for errors.
pub(crate) struct ScenarioFile<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
    pub(super) document: DeTable<'a>,
}

impl ScenarioFile<'_> {
    pub(crate) fn error(&self, span: Range<usize>, reason: impl Into<String>) -> ScenarioError {
        ScenarioError {
            file: self.name.to_owned(),
            line: line_of(self.text, span.start),
            key: self.as_written(&self.key_at(&span)),
            reason: reason.into(),
        }
    }

    /// An error of the key at a path such as `wlan[0].station[1].queue`, whether it stands there or is left out. Its line is
    /// then that of the narrowest table around it that stands in the file.
    pub(crate) fn error_at(&self, path: &str, reason: impl Into<String>) -> ScenarioError {
        let line = line_of(self.text, self.find(path).0.start);
        ScenarioError { file: self.name.to_owned(), line, key: self.as_written(path), reason: reason.into() }
    }

    /// A path with the places of the file, where copies stand between: these have the span of what they are copies of.
    fn as_written(&self, path: &str) -> String {
        let mut table = Some(&self.document);
        let steps = path.split('.').map(|step| {
            let (key, number) = step.split_once('[').unwrap_or((step, ""));
            let value = table.and_then(|table| table.get(key)).map(Spanned::get_ref);
            table = value.and_then(DeValue::as_table);
            let list = value.and_then(DeValue::as_array);
            let (Some(list), Ok(index)) = (list, number.trim_end_matches(']').parse::<usize>()) else {
                return step.to_owned();
            };
            table = list.get(index).and_then(|item| item.get_ref().as_table());
            let copied = list.windows(2).take(index).filter(|two| two[0].span() == two[1].span()).count();
            format!("{key}[{}]", index - copied)
        });
        steps.collect::<Vec<_>>().join(".")
    }

    /// True if a key is there.
    pub(super) fn has(&self, path: &str) -> bool {
        self.find(path).1.is_some()
    }

    /// Span of the narrowest part of a path that stands in the file, and the value at the path's end.
    fn find(&self, path: &str) -> (Range<usize>, Option<&DeValue<'_>>) {
        let (mut at, mut table, mut found) = (0..0, Some(&self.document), None);
        for step in path.split('.') {
            let (key, numbers) = step.split_once('[').unwrap_or((step, ""));
            let mut value = table.and_then(|table| table.get(key));
            for number in numbers.split('[').filter(|number| !number.is_empty()) {
                let number = number.trim_end_matches(']').parse::<usize>();
                value = value.and_then(|list| list.get_ref().as_array()?.get(number.ok()?));
            }
            let Some(value) = value else { return (at, None) };
            // Values that an override has made stand nowhere.
            if !value.span().is_empty() {
                at = value.span();
            }
            table = value.get_ref().as_table();
            found = Some(value.get_ref());
        }
        (at, found)
    }

    pub(crate) fn toml_error(&self, error: &toml::de::Error) -> ScenarioError {
        let span = error.span().unwrap_or(0..0);
        let reason = match (error.message().trim(), self.text.get(span.clone())) {
            ("duplicate key", Some(key)) => format!("`{key}` is given twice in one table"),
            (message, _) => message.replace('\n', "; "),
        };
        self.error(span, reason)
    }

    /// The path of the narrowest key or value that contains the span's start.
    fn key_at(&self, span: &Range<usize>) -> String {
        let mut best = (usize::MAX, String::new());
        narrow_table(&self.document, "", span, &mut best);
        best.1
    }
}

fn consider(at: Range<usize>, path: &str, span: &Range<usize>, best: &mut (usize, String)) {
    // Not narrower: of a value and an override in its place, the deeper path is the better.
    if at.start <= span.start && span.end <= at.end && at.len() <= best.0 {
        *best = (at.len(), path.to_owned());
    }
}

fn narrow_table(table: &DeTable<'_>, prefix: &str, span: &Range<usize>, best: &mut (usize, String)) {
    for (key, value) in table {
        let path = match prefix {
            "" => key.get_ref().to_string(),
            _ => format!("{prefix}.{}", key.get_ref()),
        };
        consider(key.span(), &path, span, best);
        narrow_value(value, &path, span, best);
    }
}

fn narrow_value(value: &Spanned<DeValue<'_>>, path: &str, span: &Range<usize>, best: &mut (usize, String)) {
    consider(value.span(), path, span, best);
    match value.get_ref() {
        DeValue::Table(table) => narrow_table(table, path, span, best),
        DeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                narrow_value(item, &format!("{path}[{index}]"), span, best);
            }
        }
        _ => {}
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
}
