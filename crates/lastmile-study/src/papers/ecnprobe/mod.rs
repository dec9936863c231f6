//! ECNProbe: X. Hei, S. Chen, B. Bensaou, D. Tsang, "Towards unified self-congestion probing for bandwidth measurement".

use lastmile::time::Span;

use crate::papers::{Item, Number, Paper, Watch, each};

mod cases;
mod claims;
mod future;
mod generators;
mod judge;
mod measure;
mod signals;
mod tables;

use cases::{AQMS, FIVE, HALF, KINDS, Kind, LOADS, MANY, RUNS, Tool, beside};

/// The paper.
pub(super) const PAPER: Paper = Paper {
    name: "ecnprobe",
    folder: "crates/lastmile-study/src/papers/ecnprobe/scenarios",
    citation: "X. Hei, S. Chen, B. Bensaou, D. Tsang, Towards unified self-congestion probing for bandwidth measurement, 2008",
    tables: 8,
    figures: 11,
    scenarios: &[
        ("hub", include_str!("scenarios/hub.toml")),
        ("aqm", include_str!("scenarios/aqm.toml")),
        ("generators", include_str!("scenarios/generators.toml")),
    ],
    numbers: include_str!("figures.toml"),
    watch: Some(Watch { way: Some(("probe-tx", "probe-rx")), ..Watch::every(Span::from_secs(10)) }),
    measures: true,
    measure: measure::measure,
    draw: measure::draw,
    items,
    claims: claims::claims,
};

/// The paper's own numbers.
fn figures() -> toml::Table {
    PAPER.numbers.parse().unwrap_or_default()
}

/// A number of the paper beside 5 Mbit/s of CBR.
fn printed(name: &str) -> Option<f64> {
    figures().get("cbr_5")?.get(name)?.as_float()
}

/// Runs in the lab that decide claims.
const IN_LAB: u64 = 5;
/// Gap-based and rate-based sequences [section IV-C], and those of the other tools.
const GAP_BASED: [Tool; 2] = [Tool::Igi, Tool::Pathchirp];
const RATE_BASED: [Tool; 2] = [Tool::Pathload, Tool::Diettopp];
const OTHERS: [Tool; 2] = [Tool::Spruce, Tool::Ours];

fn items() -> Vec<Item> {
    use Number::{Figure, Table};
    let beside_half = |kind: Kind| FIVE.map(|tool| cases::tool(tool, kind, HALF)).to_vec();
    let ecnprobes = [Tool::EcnProbe, Tool::Ours];
    let at_all = |kind: Kind| {
        let at = |(tool, load): (Tool, u32)| cases::tool(tool, if load > 0 { kind } else { Kind::Cbr }, load);
        each(&ecnprobes, &LOADS).into_iter().map(at).collect()
    };
    let sequence = |tools: &[Tool]| tools.iter().map(|&tool| cases::tool(tool, Kind::Cbr, HALF)).collect();
    let both: Vec<(u32, Kind)> = beside(&LOADS);
    let loaded = each(&FIVE, &both).into_iter().map(|(tool, (load, kind))| cases::tool(tool, kind, load));
    let readings =
        |(load, kind): (u32, Kind)| ecnprobes.map(|tool| cases::as_tc_reads(cases::tool(tool, kind, load)));
    let sharp = |(load, kind): (u32, Kind)| cases::sharp(kind, load);
    let fixed = |id, number, shows, table: fn() -> lastmile_report::table::Table| {
        Item::fixed(id, number, shows, table)
    };
    let items = vec![
        fixed(
            "figure-1",
            Figure(1),
            "the framework, and what of this program is each of its parts",
            tables::framework,
        ),
        fixed("table-1", Table(1), "congestion signals and searches of the tools", tables::table_1),
        fixed("table-2", Table(2), "programs and their versions", tables::table_2),
        fixed("table-3", Table(3), "parameters of IGI", || tables::parameters(tables::IGI)),
        fixed("table-4", Table(4), "parameters of Pathload", || tables::parameters(tables::PATHLOAD)),
        fixed("table-5", Table(5), "parameters of pathChirp", || tables::parameters(tables::PATHCHIRP)),
        fixed("table-6", Table(6), "parameters of Spruce", || tables::parameters(tables::SPRUCE)),
        fixed("table-7", Table(7), "parameters of DietTOPP", || tables::parameters(tables::DIETTOPP)),
        fixed("table-8", Table(8), "the testbed's machines, and what stands for each", tables::table_8),
        fixed("figure-2", Figure(2), "the testbed", || PAPER.links("hub")),
        Item::fixed("ideals", None, "what cross traffic leaves, at each layer", tables::ideals),
        Item::fixed(
            "red",
            None,
            "the paper's tc line by arithmetic: marks by the average queue",
            tables::red,
        ),
        Item::made(
            "figure-3",
            Figure(3),
            "gaps of generators of CBR: distance from a constant, and their distribution",
            generators::generations(Kind::Cbr),
            |results| generators::generators(results, Kind::Cbr),
        )
        .lab(IN_LAB),
        Item::made(
            "figure-4",
            Figure(4),
            "gaps of generators of Poisson traffic: distance from the exponential distribution",
            generators::generations(Kind::Poisson),
            |results| generators::generators(results, Kind::Poisson),
        )
        .lab(IN_LAB),
        Item::made(
            "figure-5",
            Figure(5),
            "gap-based probing sequences: IGI and pathChirp",
            sequence(&GAP_BASED),
            |results| tables::sequences(results, &GAP_BASED),
        )
        .lab(IN_LAB),
        Item::made(
            "figure-6",
            Figure(6),
            "rate-based probing sequences: Pathload and DietTOPP",
            sequence(&RATE_BASED),
            |results| tables::sequences(results, &RATE_BASED),
        )
        .lab(IN_LAB),
        Item::made(
            "sequences",
            None,
            "probing sequences of Spruce and ECNProbe",
            sequence(&OTHERS),
            |results| tables::sequences(results, &OTHERS),
        )
        .lab(IN_LAB),
        Item::made(
            "figure-7",
            Figure(7),
            "pathChirp's results by the length of its session; the paper has one session over time",
            each(&KINDS, &tables::SESSIONS).into_iter().map(|(kind, s)| tables::session(kind, s)).collect(),
            tables::pathchirp,
        ),
        Item::made(
            "figure-8",
            Figure(8),
            "five tools beside 5 Mbit/s of CBR",
            beside_half(Kind::Cbr),
            |results| tables::five(results, Kind::Cbr),
        ),
        Item::made(
            "figure-9",
            Figure(9),
            "five tools beside 5 Mbit/s of Poisson traffic",
            beside_half(Kind::Poisson),
            |results| tables::five(results, Kind::Poisson),
        ),
        Item::made(
            "figure-10",
            Figure(10),
            "ECNProbe beside CBR at five loads",
            at_all(Kind::Cbr),
            move |results| tables::ecnprobe(results, Kind::Cbr, &ecnprobes),
        ),
        Item::made(
            "figure-11",
            Figure(11),
            "ECNProbe beside Poisson traffic at five loads",
            at_all(Kind::Poisson),
            move |results| tables::ecnprobe(results, Kind::Poisson, &ecnprobes),
        ),
        {
            let at = both.clone();
            Item::made("loads", None, "five tools at five loads", loaded.collect(), move |results| {
                tables::loads(results, &FIVE, &at, &cases::tool)
            })
        },
        {
            let at = both.clone();
            Item::made(
                "bandwidth",
                None,
                "ECNProbe where `bandwidth 10000` is 10 kbit/s, as tc reads it",
                both.iter().copied().flat_map(readings).collect(),
                move |results| {
                    let of = |tool, kind, load| cases::as_tc_reads(cases::tool(tool, kind, load));
                    tables::loads(results, &ecnprobes, &at, &of)
                },
            )
        },
        {
            let at = both.clone();
            Item::made(
                "sharp",
                None,
                "ECNProbe with the paper's settings behind a queue that marks from two packets on",
                both.iter().copied().map(sharp).collect(),
                move |results| {
                    tables::loads(results, &[Tool::EcnProbe], &at, &|_, kind, load| cases::sharp(kind, load))
                },
            )
        },
        Item::made(
            "wire",
            None,
            "ECNProbe with our defaults where cross traffic takes 2, 4, 6 and 8 Mbit/s of the wire, as the paper's ideals have it",
            both.iter().map(|&(load, kind)| cases::of_the_wire(Tool::Ours.method(), kind, load)).collect(),
            tables::wire,
        ),
        Item::made(
            "readings",
            None,
            "figure 8 otherwise: DietTOPP's line without the share, and Spruce where half of the wire is left",
            vec![cases::diettopp_without_share(), cases::half_of_the_wire(Tool::Spruce)],
            tables::readings,
        ),
        Item::made(
            "noise",
            None,
            "figure 8 where each host delays each packet at random",
            each(&cases::NOISES, &FIVE)
                .into_iter()
                .map(|(us, tool)| cases::noisy(tool, Kind::Cbr, us))
                .collect(),
            tables::noise,
        ),
        Item::made(
            "signals",
            None,
            "all congestion signals at one turning point: shares of trains that each calls too fast",
            future::trains(),
            future::signals,
        ),
        Item::made(
            "aqm",
            None,
            "ECNProbe behind six queue disciplines",
            each(&each(&AQMS, &ecnprobes), &beside(&future::SWEPT))
                .into_iter()
                .map(|((aqm, tool), (load, kind))| future::behind(aqm, tool, kind, load))
                .collect(),
            future::aqms,
        ),
        Item::made(
            "sweep",
            None,
            "ECNProbe's W, L and ratio of marks",
            each(&future::settings(), &beside(&future::SWEPT))
                .into_iter()
                .map(|((_, setting), (load, kind))| setting.case(kind, load))
                .collect(),
            future::sweep,
        ),
    ];
    // So many that chance does not decide on small differences.
    let runs = |item: &Item| match item.id {
        "figure-8" | "figure-9" | "noise" | "figure-10" | "figure-11" => MANY,
        _ => RUNS,
    };
    items
        .into_iter()
        .map(|item| {
            let runs = runs(&item);
            item.runs(runs)
        })
        .collect()
}
