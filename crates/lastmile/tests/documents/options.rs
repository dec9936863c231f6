//! Options of algorithms as a table in Markdown.

use std::fmt::Write;

use lastmile::options::Opt;

pub(crate) fn table(out: &mut String, options: &[Opt]) {
    if options.is_empty() {
        return out.push_str("It has no options.\n");
    }
    out.push_str("| option | kind | default | possible | what it does | from |\n|---|---|---|---|---|---|\n");
    for opt in options {
        let default = opt.default().map_or_else(String::new, |default| default.to_string());
        let Opt { name, kind, help, source, .. } = opt;
        writeln!(out, "| `{name}` | {kind} | {default} | {} | {help} | {source} |", opt.possible()).unwrap();
    }
}
