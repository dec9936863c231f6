//! `lastmile accuracy`: many runs against a known truth, as a table of errors.

use anyhow::anyhow;
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use lastmile::estimate::Quantity;
use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};
use lastmile_net::lab::run::{LabConfig, run as run_lab};
use lastmile_sim::run::{Hooks, Outcome, PROBE_SIZE, simulate};
use lastmile_sim::scenario::Scenario;
use rayon::prelude::*;
use serde::Serialize;

use crate::exit::Exit;
use crate::options::{KERNEL_NOISE, MethodArgs};
use crate::result::relative_error;
use crate::table::Table;
use crate::{scenarios, signals};

/// Measure known paths again and again and print the errors
///
/// The path is one link with a queue of 60 kB; cross traffic takes 40 % of it, in packets of 1500 B, at a random phase in
/// each run. Errors are fractions of the truth at the IP layer: against the long-run spare rate ("mean") and against the
/// spare rate of the probe's own window ("window").
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Runs for each row
    #[arg(long, value_name = "N", default_value_t = 30)]
    runs: usize,
    /// Simulator or lab
    #[arg(long, value_enum, value_delimiter = ',', default_value = "sim")]
    world: Vec<World>,
    /// Rate of the link, such as "10 Mbit/s", or a bare number of Mbit/s; several with commas
    #[arg(long, value_name = "RATE", value_delimiter = ',', default_value = "10 Mbit/s", value_parser = rate)]
    rate: Vec<Rate>,
    /// Cross traffic
    #[arg(long, value_enum, value_delimiter = ',', default_value = "idle,cbr,poisson")]
    cross: Vec<Cross>,
    /// How to measure; several with commas
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "wbest")]
    method: Vec<String>,
    /// Trains to average; several with commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1")]
    trains: Vec<u32>,
    /// Real-time priority for the measuring programs of the lab
    #[arg(long)]
    realtime: bool,
    /// Draws all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A rate with its unit, or a bare number of Mbit/s.
fn rate(text: &str) -> Result<Rate, String> {
    let with_unit = match text.trim().parse::<f64>() {
        Ok(_) => format!("{text} Mbit/s"),
        Err(_) => text.to_owned(),
    };
    match with_unit.parse::<Rate>() {
        Ok(rate) if rate.bits_per_second() >= 10_000 => Ok(rate),
        Ok(rate) => Err(format!("{rate} is too slow for probes of 1488 B: at least 10 kbit/s")),
        Err(error) => Err(error.to_string()),
    }
}

/// Where runs take place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum World {
    Sim,
    Lab,
}

/// What else is on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Cross {
    Idle,
    Cbr,
    Poisson,
}

/// The share of the link that cross traffic takes.
const CROSS_SHARE: f64 = 0.4;

/// One kind of path and method. Errors are fractions of the truth.
#[derive(Debug, Serialize)]
struct Row {
    world: World,
    rate_mbps: f64,
    cross: Cross,
    method: String,
    trains: u32,
    /// Runs that printed a number.
    n: usize,
    /// Runs that printed none.
    refused: usize,
    /// Runs that printed only a lower bound; they count as refused.
    more_than: usize,
    seconds_p50: Option<f64>,
    /// Bytes of probes at the IP layer; requests apart.
    bytes_p50: Option<f64>,
    control_bytes_p50: Option<f64>,
    error_mean_p50: Option<f64>,
    error_mean_p90: Option<f64>,
    error_window_p50: Option<f64>,
    error_window_p90: Option<f64>,
    /// The median of the signed window error: the estimator's bias.
    bias_window_p50: Option<f64>,
    /// The largest window error, as a fraction of the capacity.
    error_worst_of_capacity: Option<f64>,
    /// The share of stated intervals that hold the truth that they aim at.
    coverage: Option<f64>,
    /// The median rate.
    rate_p50_bps: Option<f64>,
    /// Why runs printed no number.
    reasons: Vec<String>,
}

/// What one run contributes.
enum Run {
    Number { outcome: Box<Outcome>, window: f64, of_capacity: f64, mean: f64, covered: Option<bool> },
    MoreThan,
    Refused(String),
}

impl Args {
    /// Whether any of it is measured in the lab.
    pub(crate) fn needs_lab(&self) -> bool {
        self.world.contains(&World::Lab)
    }
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    if args.runs == 0 {
        return Err(Exit::Usage.blame(anyhow!("--runs 0 measures nothing: at least 1")));
    }
    if args.realtime && !args.needs_lab() {
        return Err(Exit::Usage.blame(anyhow!("--realtime is for the lab: add --world lab, or leave it out")));
    }
    for method in &args.method {
        for &trains in &args.trains {
            // Before the first run, and not after all those of the methods ahead of it.
            MethodArgs::named(method, trains as usize).build(Span::ZERO, 0)?;
        }
    }
    signals::stop();
    let mut rows = Vec::new();
    let kinds = args.world.len() * args.rate.len() * args.cross.len() * args.method.len() * args.trains.len();
    let bar = ProgressBar::new((kinds * args.runs) as u64);
    bar.set_style(ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}")?);
    for &world in &args.world {
        for &rate in &args.rate {
            for &cross in &args.cross {
                for method in &args.method {
                    for &trains in &args.trains {
                        bar.set_message(format!("{world:?} {rate} {cross:?} {method} x{trains}"));
                        rows.push(row(&args, world, rate, cross, method, trains, &bar)?);
                    }
                }
            }
        }
    }
    bar.finish_and_clear();
    if args.json {
        crate::say(&serde_json::to_string_pretty(&rows)?);
    } else {
        crate::say(text(&rows).trim_end());
    }
    Ok(None)
}

fn row(
    args: &Args,
    world: World,
    rate: Rate,
    cross: Cross,
    method: &str,
    trains: u32,
    bar: &ProgressBar,
) -> anyhow::Result<Row> {
    let scenario = path(rate, cross, method, trains)?;
    let one = |k: usize| -> anyhow::Result<Run> {
        if signals::stopped() {
            return Err(Exit::Interrupted.blame(anyhow!("interrupted")));
        }
        let seed = args.seed.wrapping_mul(1_000_003).wrapping_add(k as u64);
        let (outcomes, refused) = match world {
            World::Sim => {
                let make = scenarios::maker(Span::ZERO, seed);
                let run = simulate(&scenario, seed, &make, Hooks::default()).map_err(scenarios::blame)?;
                (run.outcomes, None)
            }
            World::Lab => {
                let make = scenarios::maker(KERNEL_NOISE, seed);
                let config = LabConfig { seed, realtime: args.realtime, ..LabConfig::default() };
                let run = run_lab(&scenario, &make, config, signals::stop()).map_err(super::lab::blame)?;
                (run.outcomes, run.lateness.refused)
            }
        };
        bar.inc(1);
        Ok(refused.map_or_else(|| judge(&outcomes, rate, cross), Run::Refused))
    };
    let runs: Vec<Run> = match world {
        World::Sim => (0..args.runs).into_par_iter().map(one).collect::<Result<_, _>>()?,
        // The lab is one wall clock: one run at a time.
        World::Lab => (0..args.runs).map(one).collect::<Result<_, _>>()?,
    };
    Ok(summarise(world, rate, cross, method, trains, &runs))
}

/// The path as a scenario: the same for both worlds.
fn path(rate: Rate, cross: Cross, method: &str, trains: u32) -> anyhow::Result<Scenario> {
    let traffic = match cross {
        Cross::Idle => String::new(),
        Cross::Cbr | Cross::Poisson => format!(
            "[[traffic]]\nname = \"cross\"\nkind = \"{}\"\nfrom = \"sender\"\nto = \"receiver\"\nrate = \"{} bit/s\"\nsize = \"1500 B\"\n",
            if cross == Cross::Cbr { "cbr" } else { "poisson" },
            rate.scaled(CROSS_SHARE).bits_per_second(),
        ),
    };
    let text = format!(
        "name = \"accuracy\"\nduration = \"20 s\"\nwarm_up = \"0.2 s\"\nseed = 1\n[host.sender]\n[host.receiver]\n\
         [[link]]\nfrom = \"sender\"\nto = \"receiver\"\nrate = \"{} bit/s\"\ndelay = \"2 ms\"\nqueue = \"60 kB\"\n{traffic}\
         [[measure]]\nfrom = \"sender\"\nto = \"receiver\"\nmethod = \"{method}\"\ndirection = \"forward\"\ntrains = {trains}\nstart = \"300 ms\"\n",
        rate.bits_per_second()
    );
    Scenario::parse("accuracy", &text).map_err(|error| Exit::Usage.blame(error))
}

/// Holds a run's last number (the available bandwidth, where the method has one) against the truths.
fn judge(outcomes: &[Outcome], rate: Rate, cross: Cross) -> Run {
    let Some(outcome) = outcomes.last() else { return Run::Refused("the run's time was over".into()) };
    let Some(estimate) = &outcome.estimate else {
        return Run::Refused(outcome.refusal.as_ref().map_or_else(String::new, ToString::to_string));
    };
    let Some(value) = estimate.value.rate() else { return Run::MoreThan };
    let is_capacity = estimate.quantity == Quantity::Capacity;
    let share = if is_capacity || cross == Cross::Idle { 1.0 } else { 1.0 - CROSS_SHARE };
    let long_run = rate.scaled(share);
    let own = outcome.truth.and_then(|t| t.of(estimate));
    let (Some(mean), Some(window)) =
        (relative_error(Some(value), Some(long_run)), relative_error(Some(value), own))
    else {
        return Run::Refused("the queue never saw the stream: no truth to hold the number against".into());
    };
    // The truth that the interval aims at is the long-run one.
    let covered = estimate.interval.map(|i| i.contains(long_run));
    let off = value.bits_per_second().abs_diff(own.map_or(0, Rate::bits_per_second)) as f64;
    let of_capacity = off / rate.bits_per_second() as f64;
    Run::Number { outcome: Box::new(outcome.clone()), window, of_capacity, mean, covered }
}

fn summarise(world: World, rate: Rate, cross: Cross, method: &str, trains: u32, runs: &[Run]) -> Row {
    let (mut seconds, mut bytes, mut control, mut mean, mut window) =
        (vec![], vec![], vec![], vec![], vec![]);
    let (mut signed, mut covered, mut rates, mut worst, mut reasons) =
        (vec![], vec![], vec![], vec![], vec![]);
    let mut more_than = 0;
    for run in runs {
        match run {
            Run::Number { outcome, window: w, of_capacity, mean: m, covered: c } => {
                seconds.push(outcome.cost.elapsed.as_secs_f64());
                bytes.push(outcome.cost.probe_bytes.0 as f64);
                control.push(outcome.cost.control_bytes.0 as f64);
                mean.push(m.abs());
                window.push(w.abs());
                signed.push(*w);
                worst.push(*of_capacity);
                covered.extend(c.map(|c| if c { 1.0 } else { 0.0 }));
                let value = outcome.estimate.as_ref().and_then(|e| e.value.rate());
                rates.extend(value.map(|r| r.bits_per_second() as f64));
            }
            Run::MoreThan => more_than += 1,
            Run::Refused(why) => {
                if !reasons.contains(why) && reasons.len() < 10 {
                    reasons.push(why.clone());
                }
            }
        }
    }
    let n = window.len();
    let share = |of: &[f64]| (!of.is_empty()).then(|| of.iter().sum::<f64>() / of.len() as f64);
    Row {
        world,
        rate_mbps: rate.bits_per_second() as f64 / 1e6,
        cross,
        method: method.to_owned(),
        trains,
        n,
        refused: runs.len() - n,
        more_than,
        seconds_p50: quantile(&seconds, 0.5),
        bytes_p50: quantile(&bytes, 0.5),
        control_bytes_p50: quantile(&control, 0.5),
        error_mean_p50: quantile(&mean, 0.5),
        error_mean_p90: quantile(&mean, 0.9),
        error_window_p50: quantile(&window, 0.5),
        error_window_p90: quantile(&window, 0.9),
        bias_window_p50: quantile(&signed, 0.5),
        error_worst_of_capacity: quantile(&worst, 1.0),
        coverage: share(&covered),
        rate_p50_bps: quantile(&rates, 0.5),
        reasons,
    }
}

fn quantile(values: &[f64], q: f64) -> Option<f64> {
    lastmile::observe::stats::quantile(values, q)
}

fn text(rows: &[Row]) -> String {
    let mut table = Table::new(&[
        "world",
        ">Mbit/s",
        "cross",
        "method",
        ">trains",
        ">n",
        ">refused",
        ">seconds",
        ">probes",
        ">requests",
        ">mean p50",
        ">p90",
        ">window p50",
        ">p90",
        ">bias",
        ">worst/C",
        ">coverage",
    ]);
    let percent = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| format!("{:.1} %", x * 100.0));
    let size = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| Bytes(x as u64).to_string());
    for row in rows {
        table.row([
            format!("{:?}", row.world).to_lowercase(),
            format!("{}", row.rate_mbps),
            format!("{:?}", row.cross).to_lowercase(),
            row.method.clone(),
            row.trains.to_string(),
            row.n.to_string(),
            row.refused.to_string(),
            row.seconds_p50.map_or_else(|| "-".to_owned(), |s| format!("{s:.2}")),
            size(row.bytes_p50),
            size(row.control_bytes_p50),
            percent(row.error_mean_p50),
            percent(row.error_mean_p90),
            percent(row.error_window_p50),
            percent(row.error_window_p90),
            percent(row.bias_window_p50),
            percent(row.error_worst_of_capacity),
            percent(row.coverage),
        ]);
    }
    let mut text = table.text();
    for row in rows {
        for why in &row.reasons {
            text.push_str(&format!(
                "{:?} {} {:?} {}: {why}\n",
                row.world, row.rate_mbps, row.cross, row.method
            ));
        }
    }
    text.push_str(&format!(
        "Rates and truths at the IP layer; the window's truth is stated for packets of {PROBE_SIZE}.\n"
    ));
    text
}
