//! `lastmile accuracy`: many runs against a known truth, as a table of errors.

use anyhow::anyhow;
use clap::ValueEnum;
use lastmile::estimate::{Conditions, build};
use lastmile::report::Direction;
use lastmile::units::{Bytes, Rate};
use lastmile_study::accuracy::{self, Request, accuracy, document, text};
use lastmile_study::enough::{self, CROSS, Kind, Path};

use crate::shell::PrintArgs;
use crate::shell::exit::Exit;
use crate::shell::experiment::World;
use crate::shell::options::{self, MethodLists};
use crate::shell::progress::audience;

/// Measure known paths again and again and print the errors
///
/// The path is one link with a queue of 60 kB; cross traffic takes 40 % of it, in packets of 1500 B, at a random phase in
/// each run. Errors are fractions of the truth at the IP layer: against the long-run spare rate ("mean") and against the
/// spare rate of the probe's own window ("window"). With --scenario the path is that of a scenario, and its truth is read
/// from its queues. With a WLAN on it twin simulations find the truth, and the rate of one saturating flow beside it.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Runs for each row
    #[arg(long, value_name = "N", default_value_t = 30)]
    runs: usize,
    /// Ask if multiples of what is left are enough, beside the outcome: the method enough on five kinds of paths
    #[arg(long, conflicts_with_all = ["world", "scenario", "rate", "cross", "method", "realtime"])]
    enough: bool,
    /// Kinds of paths for --enough; several with commas
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "fifo,fq-codel,bucket,g,n",
        requires = "enough"
    )]
    paths: Vec<PathKind>,
    /// Rates for --enough, as multiples of what is left; several with commas
    #[arg(long, value_delimiter = ',', default_value = "2,1.2,1,0.8,0.5", requires = "enough")]
    times: Vec<f64>,
    /// Rates of others' traffic on the links of --enough, of 10 Mbit/s; several with commas
    #[arg(long, value_name = "RATE", value_delimiter = ',', default_value = "4 Mbit/s", requires = "enough")]
    loads: Vec<Rate>,
    /// Shares of packets that the links of --enough lose, such as 0.01; several with commas
    #[arg(long, value_name = "SHARE", value_delimiter = ',', default_value = "0", requires = "enough")]
    losses: Vec<f64>,
    /// Bytes that the buckets of --enough hold; several with commas
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "10 kB", requires = "enough")]
    bursts: Vec<Bytes>,
    /// Directions for --enough; the path is the same: in reverse the host that receives asks
    #[arg(long, value_enum, value_delimiter = ',', default_value = "forward", requires = "enough")]
    directions: Vec<Way>,
    /// Simulator or lab
    #[arg(long, value_enum, value_delimiter = ',', default_value = "sim")]
    world: Vec<World>,
    /// Scenario file, or the name of one that is built in, instead of the link; several with commas. Its measurements are made
    /// with each method and each combination of its options, and the last number of a run counts
    #[arg(long, value_name = "SCENARIO", value_delimiter = ',', conflicts_with_all = ["rate", "cross"])]
    scenario: Vec<String>,
    /// Rate of the link, such as 10M; several with commas
    #[arg(long, value_name = "RATE", value_delimiter = ',', default_value = "10 Mbit/s", value_parser = rate)]
    rate: Vec<Rate>,
    /// Cross traffic
    #[arg(long, value_enum, value_delimiter = ',', default_value = "idle,cbr,poisson")]
    cross: Vec<Cross>,
    #[command(flatten)]
    method: MethodLists,
    /// Real-time priority for the measuring programs of the lab
    #[arg(long)]
    realtime: bool,
    /// Seed of all random numbers; with --enough that of the first run
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    print: PrintArgs,
}

/// A rate that probes can be sent at.
fn rate(text: &str) -> Result<Rate, String> {
    match text.parse::<Rate>() {
        Ok(rate) if rate.bits_per_second() >= 10_000 => Ok(rate),
        Ok(rate) => Err(format!("{rate} is too slow for probes of 1488 B: at least 10 kbit/s")),
        Err(error) => Err(error.to_string()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Cross {
    Idle,
    Cbr,
    Poisson,
}

/// Kinds of paths for --enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PathKind {
    Fifo,
    FqCodel,
    Bucket,
    G,
    N,
}

impl From<PathKind> for Kind {
    fn from(kind: PathKind) -> Kind {
        match kind {
            PathKind::Fifo => Kind::Fifo,
            PathKind::FqCodel => Kind::FqCodel,
            PathKind::Bucket => Kind::Bucket,
            PathKind::G => Kind::G,
            PathKind::N => Kind::N,
        }
    }
}

/// Directions for --enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Way {
    Forward,
    Reverse,
}

impl Args {
    /// Each kind of path with each of its properties.
    fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        for &kind in &self.paths {
            for cross in CROSS {
                for &load in &self.loads {
                    for &loss in &self.losses {
                        for &burst in &self.bursts {
                            paths.extend(self.directions.iter().map(|&way| {
                                let direction = match way {
                                    Way::Forward => Direction::Forward,
                                    Way::Reverse => Direction::Reverse,
                                };
                                Path { load, loss, burst, direction, ..Path::of(kind.into(), cross) }
                            }));
                        }
                    }
                }
            }
        }
        paths
    }

    /// True if any part is measured in the lab.
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
    if args.enough {
        let request = enough::Request {
            runs: args.runs,
            seed: args.seed,
            paths: args.paths(),
            times: args.times,
            ..enough::Request::default()
        };
        let rows = enough::enough(&request, &audience())?;
        args.print.show(&enough::document(&rows), &enough::text(&rows).into())?;
        return Ok(None);
    }
    let methods = args.method.choices()?;
    for method in &methods {
        build(method, &Conditions::default()).map_err(|error| options::refused(&error))?;
    }
    let cross = args.cross.iter().map(|cross| match cross {
        Cross::Idle => accuracy::Cross::Idle,
        Cross::Cbr => accuracy::Cross::Cbr,
        Cross::Poisson => accuracy::Cross::Poisson,
    });
    let request = Request {
        runs: args.runs,
        worlds: args.world.iter().map(|&world| world.into()).collect(),
        scenarios: args.scenario,
        rates: args.rate,
        cross: cross.collect(),
        methods,
        realtime: args.realtime,
        seed: args.seed,
    };
    let rows = accuracy(&request, &audience())?;
    args.print.show(&document(&rows), &text(&rows))?;
    Ok(None)
}
