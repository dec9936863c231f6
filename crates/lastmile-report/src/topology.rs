//! A network as a drawing: hosts and routers in columns from left to right, links between them with their rates and delays.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;

use serde_json::{Map, Value};

use crate::html::esc;
use crate::rows::cell;

/// Space of a column and of a row, and around all of it.
const COLUMN: f64 = 210.0;
const ROW: f64 = 56.0;
const MARGIN: f64 = 60.0;
/// Nodes that are drawn.
const MAX_NODES: usize = 120;

/// The links of a network, each pair of ends once.
#[derive(Default)]
struct Network {
    names: Vec<String>,
    /// Rate and delay of each way, by its ends; there, and back.
    links: BTreeMap<(usize, usize), [Option<String>; 2]>,
}

impl Network {
    fn of(rows: &[Map<String, Value>]) -> Network {
        let mut network = Network::default();
        for row in rows {
            let of = |key: &str| row.get(key).map_or_else(String::new, |value| cell(key, value));
            let (from, to) = (network.node(of("from")), network.node(of("to")));
            let known = [of("rate"), of("delay")].into_iter().filter(|text| !text.is_empty() && text != "-");
            let carries = known.collect::<Vec<_>>().join(", ");
            let ways = network.links.entry((from.min(to), from.max(to))).or_default();
            ways[usize::from(from > to)] = Some(carries);
        }
        network
    }

    fn node(&mut self, name: String) -> usize {
        self.names.iter().position(|known| *known == name).unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        })
    }

    fn neighbours(&self, node: usize) -> impl Iterator<Item = usize> {
        self.links.keys().filter_map(move |&(a, b)| match node {
            _ if a == node => Some(b),
            _ if b == node => Some(a),
            _ => None,
        })
    }

    /// The hops from some nodes to each, and through which.
    fn hops(&self, from: &[usize]) -> Vec<Option<(usize, usize)>> {
        let mut found: Vec<Option<(usize, usize)>> = vec![None; self.names.len()];
        from.iter().for_each(|&node| found[node] = Some((0, node)));
        let mut open: VecDeque<usize> = from.iter().copied().collect();
        while let Some(node) = open.pop_front() {
            let Some((hops, _)) = found[node] else { continue };
            for next in self.neighbours(node) {
                if found[next].is_none() {
                    found[next] = Some((hops + 1, node));
                    open.push_back(next);
                }
            }
        }
        found
    }

    /// The longest of the shortest ways: most of it from left to right.
    fn spine(&self) -> Vec<usize> {
        let furthest = |from: usize| {
            let found = self.hops(&[from]);
            // The first of those that are as far.
            let far = (0..found.len()).rev().filter_map(|node| Some((found[node]?.0, node)));
            (far.max_by_key(|(hops, _)| *hops).map_or(from, |(_, node)| node), found)
        };
        let (end, _) = furthest(0);
        let (mut at, found) = furthest(end);
        let mut spine = vec![at];
        while let Some((_, before)) = found[at].filter(|(hops, _)| *hops > 0) {
            at = before;
            spine.push(at);
        }
        if spine.first() > spine.last() {
            spine.reverse();
        }
        spine
    }

    /// The column and the row of each node. Nodes beside the first and the last hop stand in the outer columns, others above and below.
    fn places(&self) -> Vec<(f64, f64)> {
        let spine = self.spine();
        let last = spine.len() - 1;
        let found = self.hops(&spine);
        let column = |node: usize| {
            if let Some(at) = spine.iter().position(|&own| own == node) {
                return at;
            }
            let (mut at, mut hops) = (node, 0);
            while let Some((_, before)) = found[at].filter(|(hops, _)| *hops > 0) {
                (at, hops) = (before, hops + 1);
            }
            match spine.iter().position(|&own| own == at) {
                Some(at) if at <= 1 => at.saturating_sub(hops),
                Some(at) if at + 1 >= last => (at + hops).min(last),
                Some(at) => at,
                None => 0,
            }
        };
        let mut columns: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        spine.iter().for_each(|&node| columns.entry(column(node)).or_default().push(node));
        let others = (0..self.names.len()).filter(|node| !spine.contains(node));
        others.for_each(|node| columns.entry(column(node)).or_default().push(node));
        let mut places = vec![(0.0, 0.0); self.names.len()];
        for (at, nodes) in columns {
            for (k, &node) in nodes.iter().enumerate() {
                // 0, 1, -1, 2, -2: around the spine.
                let row = k.div_ceil(2) as f64 * if k % 2 == 1 { 1.0 } else { -1.0 };
                places[node] = (at as f64, row);
            }
        }
        places
    }
}

/// The drawing of links; nothing where there are none, or too many to be seen.
pub fn topology(rows: &[Map<String, Value>]) -> String {
    let network = Network::of(rows);
    if network.links.is_empty() || network.names.len() > MAX_NODES {
        return String::new();
    }
    let places = network.places();
    let least = places.iter().map(|place| place.1).fold(0.0, f64::min);
    let at = |node: usize| {
        (MARGIN + places[node].0 * COLUMN, MARGIN / 2.0 + 14.0 + (places[node].1 - least) * ROW)
    };
    let said = |ways: &[Option<String>; 2]| match ways {
        [Some(there), Some(back)] if there != back => (format!("{there} →"), format!("← {back}")),
        [there, back] => (there.clone().or_else(|| back.clone()).unwrap_or_default(), String::new()),
    };
    // The most frequent label is said once.
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    network.links.values().for_each(|ways| *counts.entry(said(ways)).or_default() += 1);
    let most = counts.iter().max_by_key(|(_, count)| **count).filter(|(_, count)| **count > 2);
    let (mut svg, mut labels) = (String::new(), String::new());
    for (&(a, b), ways) in &network.links {
        let (a, b, ways) = match at(a).0 <= at(b).0 {
            true => (a, b, ways.clone()),
            false => (b, a, [ways[1].clone(), ways[0].clone()]),
        };
        let (((x1, y1), (x2, y2)), words) = ((at(a), at(b)), said(&ways));
        let tip = format!("{} to {}: {} {}", network.names[a], network.names[b], words.0, words.1);
        let _ = writeln!(
            svg,
            "<line class=\"link\" x1=\"{x1:.0}\" y1=\"{y1:.0}\" x2=\"{x2:.0}\" y2=\"{y2:.0}\"><title>{}</title></line>",
            esc(tip.trim())
        );
        if most.is_none_or(|(common, _)| *common != words) {
            // Links that meet at a router are apart at their other ends.
            let leaf = |node: usize| network.neighbours(node).count() == 1;
            let share = match (leaf(a), leaf(b)) {
                (true, false) => 0.45,
                (false, true) => 0.55,
                _ => 0.5,
            };
            let (x, y) = (x1 + share * (x2 - x1), y1 + share * (y2 - y1));
            // Along its link, so that the link does not cross it.
            let turn = match (y2 - y1).atan2(x2 - x1).to_degrees() {
                0.0 => String::new(),
                degrees => format!(" transform=\"rotate({degrees:.1} {x:.0} {y:.0})\""),
            };
            for (text, dy) in [(&words.0, -6.0), (&words.1, 14.0)].iter().filter(|(text, _)| !text.is_empty())
            {
                let _ = writeln!(
                    labels,
                    "<text class=\"label c1\" text-anchor=\"middle\" x=\"{x:.0}\" y=\"{:.0}\"{turn}>{}</text>",
                    y + dy,
                    esc(text)
                );
            }
        }
    }
    for (node, name) in network.names.iter().enumerate() {
        let (x, y) = at(node);
        // A router has more than one neighbour.
        let shape = match network.neighbours(node).count() {
            0 | 1 => format!("<circle class=\"node\" cx=\"{x:.0}\" cy=\"{y:.0}\" r=\"6\"/>"),
            _ => format!(
                "<rect class=\"node\" x=\"{:.0}\" y=\"{:.0}\" width=\"14\" height=\"14\" rx=\"2\"/>",
                x - 7.0,
                y - 7.0
            ),
        };
        let _ = writeln!(
            labels,
            "{shape}<text class=\"name\" text-anchor=\"middle\" x=\"{x:.0}\" y=\"{:.0}\">{}</text>",
            y + 21.0,
            esc(name)
        );
    }
    let width = 2.0 * MARGIN + COLUMN * places.iter().map(|place| place.0).fold(0.0, f64::max);
    let height = MARGIN + 24.0 + ROW * (places.iter().map(|place| place.1).fold(0.0, f64::max) - least);
    let others = most.map_or_else(String::new, |((there, back), _)| {
        format!("<figcaption>Links without words: {}</figcaption>", esc(format!("{there} {back}").trim()))
    });
    format!(
        "<div class=\"card scroll\"><figure>{others}\n<svg class=\"net\" style=\"max-width:{width:.0}px; --least:{:.0}px\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         aria-label=\"Topology\">\n{svg}{labels}</svg></figure></div>\n",
        0.55 * width
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rows(links: &[(&str, &str, &str)]) -> Vec<Map<String, Value>> {
        let row = |(from, to, rate): &(&str, &str, &str)| json!({"from": from, "to": to, "rate": rate, "delay": "5 ms"});
        links
            .iter()
            .flat_map(|link| [row(link), row(&(link.1, link.0, link.2))])
            .filter_map(|row| row.as_object().cloned())
            .collect()
    }

    #[test]
    fn a_dumbbell_has_hosts_left_and_right() {
        let links =
            [("a1", "r", "10"), ("a2", "r", "10"), ("r", "s", "1"), ("s", "b1", "10"), ("s", "b2", "10")];
        let network = Network::of(&rows(&links));
        let places = network.places();
        let column = |name: &str| places[network.names.iter().position(|known| known == name).unwrap()].0;
        assert_eq!(["a1", "a2", "r", "s", "b1", "b2"].map(column), [0.0, 0.0, 1.0, 2.0, 3.0, 3.0]);
        let drawn = topology(&rows(&links));
        assert_eq!(
            (drawn.matches("class=\"link\"").count(), drawn.matches("class=\"node\"").count()),
            (5, 6)
        );
        assert!(
            drawn.contains("Links without words: 10, 5 ms") && drawn.contains(">1, 5 ms</text>"),
            "{drawn}"
        );
    }

    /// The second of two hosts stands a row below the first.
    #[test]
    fn words_go_along_a_slanted_link() {
        let drawn = topology(&rows(&[("a", "r", "10"), ("b", "r", "20"), ("r", "s", "1")]));
        assert_eq!(drawn.matches(" transform=\"rotate(").count(), 1, "{drawn}");
        let angle = (-56.0_f64).atan2(210.0).to_degrees();
        assert!(drawn.contains(&format!("rotate({angle:.1} ")), "{drawn}");
    }

    #[test]
    fn two_ways_that_differ_are_both_said_and_nothing_is_nothing() {
        let mut both = rows(&[("a", "b", "2")]);
        both[1].insert("rate".into(), "1".into());
        let drawn = topology(&both);
        assert!(drawn.contains("2, 5 ms →") && drawn.contains("← 1, 5 ms"), "{drawn}");
        assert_eq!(topology(&[]), "");
    }
}
