//! Every paper has all of its tables and figures, and its claims go by what it says.

use lastmile_study::papers::{Number, PAPERS, Stated};

#[test]
fn every_table_and_figure_of_every_paper_is_known_once_and_every_claim_goes_by_items() {
    for paper in PAPERS.iter() {
        let items = (paper.items)();
        let tables = (1..=paper.tables).map(Number::Table);
        for number in tables.chain((1..=paper.figures).map(Number::Figure)) {
            let known = items.iter().filter(|item| item.number == Some(number)).count();
            assert_eq!(known, 1, "{}: {number}", paper.name);
        }
        let beyond = |number: Number| match number {
            Number::Table(table) => table > paper.tables,
            Number::Figure(figure) => figure > paper.figures,
        };
        assert!(!items.iter().filter_map(|item| item.number).any(beyond), "{}", paper.name);
        let mut ids: Vec<_> = items.iter().map(|item| item.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), items.len(), "two items of one name");

        let claims = (paper.claims)();
        for (at, claim) in claims.iter().enumerate() {
            assert!(claims[..at].iter().all(|other| other.id != claim.id), "{} twice", claim.id);
            for id in claim.items {
                assert!(ids.contains(id), "{}: no item {id}", claim.id);
            }
        }
    }
}

/// The paper's side of a claim is numbers that the paper's folder has too, or words with a bar.
#[test]
fn every_claim_has_what_the_paper_says() {
    let numbers = |text: &str| -> Vec<f64> {
        let digits = text.split(|c: char| !c.is_ascii_digit() && c != '.');
        digits.filter_map(|digits| digits.trim_matches('.').parse().ok()).collect()
    };
    for paper in PAPERS.iter() {
        let known = numbers(paper.numbers);
        for claim in (paper.claims)() {
            let id = format!("{} {}: {}", paper.name, claim.id, claim.paper);
            match &claim.paper {
                Stated::Numbers { at, says } => {
                    assert!(!at.is_empty() && !numbers(says).is_empty(), "{id}");
                    let unknown = numbers(says).into_iter().find(|number| !known.contains(number));
                    assert_eq!(unknown, None, "not in figures.toml: {id}");
                }
                Stated::Words { at, says, bar } => {
                    assert!(!at.is_empty() && says.contains(' ') && bar.contains(' '), "{id}");
                }
            }
        }
    }
}
