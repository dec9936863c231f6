//! The page around the figures, and the one way by which text gets into it.

use lastmile::time::{Epoch, Time};
use lastmile_net::recording::Header;

use super::Run;

/// Of a configuration no more is shown.
const MAX_CONFIG: usize = 20_000;

/// Text that came from anywhere, safe in elements and in quoted attributes.
pub(crate) fn esc(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            // Not allowed in HTML, and of no use in a log line either.
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A whole page.
pub(crate) fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{} - lastmile</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        esc(title)
    )
}

/// Title and the facts of the run.
pub(crate) fn heading(run: &Run) -> String {
    let counts = run.counts;
    let mut facts = Vec::new();
    if let Some(Header { world, seed, epoch, .. }) = &run.header {
        facts.push(("world", world.to_string()));
        if *epoch != Epoch::default() {
            facts.push(("started", utc(*epoch)));
        }
        // The whole seed stands in the recording; its beginning is enough to tell two runs apart.
        let short: String = seed.iter().take(4).map(|b| format!("{b:02x}")).collect();
        facts.push(("seed", format!("{short}…")));
        facts.push(("inputs", counts.inputs.to_string()));
    } else {
        facts.push(("kind", "event file, without streams".to_owned()));
    }
    facts.push(("decisions", counts.events.to_string()));
    if run.network.records > 0 {
        facts.push(("network events", run.network.records.to_string()));
    }
    if run.header.is_some() {
        facts.push(("streams", counts.records.to_string()));
    }
    if let Some(cut) = &run.cut {
        facts.push(("not whole", cut.clone()));
    }
    let items: String =
        facts.iter().map(|(k, v)| format!("<div><dt>{}</dt><dd>{}</dd></div>", esc(k), esc(v))).collect();
    format!("<header>\n<h1>{}</h1>\n<dl class=\"facts\">{items}</dl>\n</header>\n", esc(&run.file))
}

/// The configuration, folded.
pub(crate) fn configuration(run: &Run) -> String {
    let Some(header) = run.header.as_ref().filter(|h| !h.config.is_null()) else { return String::new() };
    let mut text = serde_json::to_string_pretty(&header.config).unwrap_or_default();
    if text.len() > MAX_CONFIG {
        let end = (0..=MAX_CONFIG).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    format!("<details>\n<summary>Configuration</summary>\n<pre>{}</pre>\n</details>\n", esc(&text))
}

/// A moment in UTC to the second (days to dates: Hinnant, "chrono-compatible low-level date algorithms").
fn utc(epoch: Epoch) -> String {
    let seconds = epoch.unix_nanos(Time::ZERO) / 1_000_000_000;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let z = days + 719_468;
    let (era, day) = (z / 146_097, z % 146_097);
    let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let d = day_of_year - (153 * month + 2) / 5 + 1;
    let m = if month < 10 { month + 3 } else { month - 9 };
    let y = year_of_era + era * 400 + u64::from(m <= 2);
    format!("{y:04}-{m:02}-{d:02} {:02}:{:02}:{:02} UTC", second / 3600, second / 60 % 60, second % 60)
}

const STYLE: &str = include_str!("style.css");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let at = |s: u64| utc(Epoch::from_unix_nanos(s * 1_000_000_000));
        assert_eq!(at(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(at(951_827_696), "2000-02-29 12:34:56 UTC");
        assert_eq!(at(1_798_761_599), "2026-12-31 23:59:59 UTC");
    }

    #[test]
    fn nothing_gets_through() {
        assert_eq!(esc("<a b='c' d=\"e\">&\0"), "&lt;a b=&#39;c&#39; d=&quot;e&quot;&gt;&amp;\u{fffd}");
    }
}
