//! Files that tests make, such as documents and tables of numbers: held to what the code says, or written anew.

use std::path::Path;

/// With this variable in the environment tests write all of these files anew.
pub(crate) const UPDATE: &str = "LASTMILE_UPDATE_DOCS";

pub(crate) fn updates() -> bool {
    std::env::var_os(UPDATE).is_some()
}

/// Fails where the file is not `made`, with the first line that differs; writes it where that is asked for. Read the
/// difference before committing it.
#[track_caller]
pub(crate) fn hold(file: impl AsRef<Path>, made: &str) {
    let file = file.as_ref();
    if updates() {
        std::fs::write(file, made).unwrap();
    }
    let filed = std::fs::read_to_string(file).unwrap_or_default();
    if let Some(difference) = difference(&filed, made) {
        panic!("{}, {difference}\n{UPDATE}=1 cargo test writes it anew", file.display());
    }
}

/// The first line in which two texts differ.
fn difference(filed: &str, made: &str) -> Option<String> {
    let lines = |text: &str| text.split('\n').map(|line| format!("{line:?}")).collect::<Vec<_>>();
    let (filed, made) = (lines(filed), lines(made));
    let number = (0..filed.len().max(made.len())).find(|&number| filed.get(number) != made.get(number))?;
    let line = |text: &[String]| text.get(number).cloned().unwrap_or_else(|| "nothing".to_owned());
    Some(format!("line {}:\n  is        {}\n  should be {}", number + 1, line(&filed), line(&made)))
}

#[test]
fn the_first_line_that_differs_is_named() {
    assert_eq!(difference("a\nb\n", "a\nb\n"), None);
    let said = difference("a\nb\nc\n", "a\nB\nC\n").unwrap();
    assert_eq!(said, "line 2:\n  is        \"b\"\n  should be \"B\"");
    assert_eq!(difference("a\n", "a").unwrap(), "line 2:\n  is        \"\"\n  should be nothing");
}
