//! The page around the figures, and the one way by which text gets into it.

/// Text that came from anywhere, safe in elements and in quoted attributes.
pub fn esc(text: &str) -> String {
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
pub fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{} - lastmile</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        esc(title)
    )
}

/// The page's title and its facts, each a name and a value.
pub fn heading<K: AsRef<str>>(title: &str, facts: &[(K, String)]) -> String {
    let fact = |(name, value): &(K, String)| {
        format!("<div><dt>{}</dt><dd>{}</dd></div>", esc(name.as_ref()), esc(value))
    };
    let items: String = facts.iter().map(fact).collect();
    format!("<header>\n<h1>{}</h1>\n<dl class=\"facts\">{items}</dl>\n</header>\n", esc(title))
}

/// Figures in a card, beside one another; nothing without figures.
pub fn plots(figures: &[String]) -> String {
    let all = figures.concat();
    if all.is_empty() {
        return all;
    }
    format!("<div class=\"card\"><div class=\"plots wide\">\n{all}</div></div>\n")
}

pub(crate) const STYLE: &str = include_str!("style.css");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_through() {
        assert_eq!(esc("<a b='c' d=\"e\">&\0"), "&lt;a b=&#39;c&#39; d=&quot;e&quot;&gt;&amp;\u{fffd}");
    }
}
