//! A paper of one's own is one file, and one line that adds it: a scenario, a figure made of its runs, and a claim.

use lastmile_study::fleet::Fleet;
use lastmile_study::papers::{
    Bar, Case, Claim, Item, Lines, Number, Numbers, PAPERS, Paper, Parts, Request, Row, Run, Shown, Stated,
    reproduce,
};
use lastmile_study::{Audience, World};

static HALVES: Paper = Paper {
    name: "halves",
    folder: "tests",
    citation: "Nobody, Two flows share a queue by their rates, 2026",
    tables: 0,
    figures: 1,
    scenarios: &[("shared", SHARED)],
    numbers: "share = 50",
    watch: None,
    measures: false,
    measure: shares,
    draw: |_| Lines::new(),
    items,
    claims,
};

const SHARED: &str = r#"
name = "shared"
duration = "10 s"
warm_up = "2 s"
[host.a]
[host.b]
[[link]]
from = "a"
to = "b"
rate = "2 Mbit/s"
queue = "20 kB"
[[traffic]]
name = "one"
kind = "poisson"
from = "a"
to = "b"
rate = "2 Mbit/s"
size = "1000 B"
[[traffic]]
name = "other"
kind = "poisson"
from = "a"
to = "b"
rate = "2 Mbit/s"
size = "1000 B"
"#;

/// Number kept of a run: the first flow's share, in percent.
fn shares(run: &Run<'_>) -> Numbers {
    let got: Vec<f64> = run.network.flows.iter().filter_map(|flow| flow.goodput_bps).collect();
    Numbers::from([("share".into(), 100.0 * got[0] / got.iter().sum::<f64>())])
}

/// The other flow at that many Mbit/s.
fn beside(mbps: u32) -> Case {
    Case::new("shared").set("traffic.other.rate", format!("{mbps} Mbit/s"))
}

fn items() -> Vec<Item> {
    let row = |mbps| Row::new(&[&mbps], beside(mbps)).paper(move |_| (mbps == 2).then_some(50.0));
    let (shows, columns) = ("a flow's share beside another", [("share", Shown::Mean("share"))]);
    vec![Item::rows("figure-1", Number::Figure(1), shows, &["other_mbps"], &columns, [2, 6].map(row))]
}

fn claims() -> Vec<Claim> {
    vec![Claim::new(
        "h1",
        "beside a flow of its rate a flow has half of the link, beside one of three times its rate a quarter",
        Stated::numbers("figure 1", "50 %"),
        &["figure-1"],
        |results| {
            Parts::each("%", [(2, 50.0), (6, 25.0)], |(mbps, share)| {
                let found = results.median(&beside(mbps), "share");
                (format!("beside {mbps} Mbit/s"), found, Bar::near(share, 5.0))
            })
        },
    )]
}

#[test]
fn a_paper_of_one_s_own_is_made_as_those_here() {
    PAPERS.add(&[&HALVES]).unwrap();
    let paper = PAPERS.find("halves").unwrap();
    let request = Request { runs: Some(3), world: World::Sim, ..Request::default() };
    let made = reproduce(paper, &request, &Fleet::Whole, &Audience::default()).unwrap().unwrap();
    let claim = &made.document["claims"][0];
    assert_eq!(claim["holds"], true, "{claim}");
    assert!(claim["ours"].as_str().unwrap().starts_with("beside 2 Mbit/s "), "{claim}");
    let row = &made.document["items"][0]["rows"][0];
    assert_eq!((&row["other_mbps"], &row["share_paper"]), (&"2".into(), &50.0.into()), "{row}");
    assert!(made.text.to_string().contains("h1 holds"), "{}", made.text);
}
