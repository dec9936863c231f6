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
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'\">\n\
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

/// Leaves the first so many charts, and gives the notice of the others, if there are any.
pub fn at_most<T>(charts: &mut Vec<T>, most: usize) -> String {
    let left_out = charts.len().saturating_sub(most);
    charts.truncate(most);
    match left_out {
        0 => String::new(),
        1 => "<p class=\"soft\">1 more chart is not drawn.</p>\n".to_owned(),
        more => format!("<p class=\"soft\">{more} more charts are not drawn.</p>\n"),
    }
}

/// Figures in a card, beside one another; nothing without figures.
pub fn plots(figures: &[String]) -> String {
    let all = figures.concat();
    if all.is_empty() {
        return all;
    }
    format!("<div class=\"card\"><div class=\"plots wide\">\n{all}</div></div>\n")
}

/// A picture that stands in the page itself, with its words.
pub fn picture(caption: &str, png: &[u8]) -> String {
    let caption = esc(caption);
    let data = base64(png);
    format!(
        "<figure><img class=\"still\" alt=\"{caption}\" src=\"data:image/png;base64,{data}\"><figcaption>{caption}</figcaption></figure>\n"
    )
}

/// Bytes as RFC 4648, section 4, has them.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | group.get(at).map_or(0, |byte| u32::from(*byte)));
        for at in 0..4 {
            let sextet = ALPHABET[(bits >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= group.len() { char::from(sextet) } else { '=' });
        }
    }
    text
}

pub(crate) const STYLE: &str = include_str!("style.css");

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of RFC 4648, section 10.
    #[test]
    fn pictures_are_text() {
        let vectors = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        vectors.iter().for_each(|(bytes, text)| assert_eq!(base64(bytes.as_bytes()), *text));
        assert!(
            picture("a \"b\"", b"foo").contains("alt=\"a &quot;b&quot;\" src=\"data:image/png;base64,Zm9v\"")
        );
    }

    #[test]
    fn nothing_gets_through() {
        assert_eq!(esc("<a b='c' d=\"e\">&\0"), "&lt;a b=&#39;c&#39; d=&quot;e&quot;&gt;&amp;\u{fffd}");
    }
}
