//! The figures of a page as files of SVG, each with its title, its colours and their names.

use crate::html::STYLE;

/// Room for the title and the names of colours, and around all of it.
const HEAD: f64 = 46.0;
const MARGIN: f64 = 10.0;

/// The figures of a page that this crate made: names for files, and SVG that stands alone.
pub fn figures(page: &str) -> Vec<(String, String)> {
    let figures = page.split("<figure>").skip(1).filter_map(|rest| rest.split_once("</figure>"));
    let alone = figures.filter_map(|(figure, _)| alone(figure));
    alone.enumerate().map(|(at, (title, svg))| (format!("{:02}-{}.svg", at + 1, slug(&title)), svg)).collect()
}

/// A figure's title and its SVG.
fn alone(figure: &str) -> Option<(String, String)> {
    let attribute = |name: &str| Some(figure.split_once(&format!("{name}=\""))?.1.split_once('"')?.0);
    let frame: Vec<f64> = attribute("viewBox")?.split(' ').filter_map(|number| number.parse().ok()).collect();
    let &[x, y, width, height] = &frame[..] else { return None };
    let title = attribute("aria-label")?;
    let body = figure.split_once("<svg")?.1.split_once('>')?.1.split_once("</svg>")?.0;
    // Names of colours follow one another; a letter has some 7 units.
    let (mut keys, mut at) = (String::new(), x);
    for key in figure.split("<span class=\"key ").skip(1) {
        let (class, rest) = key.split_once("\"><i>")?;
        let text = rest.split_once("</i>")?.0;
        keys += &format!(
            "<circle class=\"dot {class}\" cx=\"{:.0}\" cy=\"{:.0}\" r=\"4\"/><text x=\"{:.0}\" y=\"{:.0}\">{text}</text>",
            at + 4.0,
            y - 14.0,
            at + 12.0,
            y - 10.0
        );
        at += 26.0 + 7.2 * text.chars().count() as f64;
    }
    let width = width.max(at - x);
    let (left, top, wide, high) = (x - MARGIN, y - HEAD, width + 2.0 * MARGIN, height + HEAD + MARGIN);
    Some((
        title.to_owned(),
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"{left} {top} {wide} {high}\" width=\"{wide}\" height=\"{high}\" role=\"img\">\n\
             <style>\n{STYLE}</style>\n<rect x=\"{left}\" y=\"{top}\" width=\"{wide}\" height=\"{high}\" style=\"fill: var(--card)\"/>\n\
             <text x=\"{x}\" y=\"{}\" style=\"font-weight: 600; font-size: 14px\">{title}</text>\n{keys}\n{body}</svg>\n",
            y - 30.0
        ),
    ))
}

/// A title as part of a file's name.
fn slug(title: &str) -> String {
    let plain = title.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), " ");
    plain.split_whitespace().take(8).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Axis, Chart};

    #[test]
    fn figures_stand_alone_with_their_titles_and_colours() {
        let axis = || Axis::from_zero("x", [1.0]);
        let chart = |title: &str| {
            Chart::new(title, axis(), axis()).key("c1", "a<b").line("c1", &[(0.0, 1.0)]).figure()
        };
        let all = figures(&crate::html::page("t", &(chart("Rates & more") + &chart("Again"))));
        assert_eq!(
            all.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            ["01-rates-amp-more.svg", "02-again.svg"]
        );
        let svg = &all[0].1;
        for part in ["xmlns", "Rates &amp; more</text>", ">a&lt;b</text>", "class=\"line c1\"", ".c1 {"] {
            assert!(svg.contains(part), "{part} is missing: {svg}");
        }
        assert_eq!(svg.matches("<svg").count(), 1);
    }
}
