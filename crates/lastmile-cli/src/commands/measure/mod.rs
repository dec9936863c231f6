//! `lastmile measure HOST`: capacity and available bandwidth of the path to a reflector.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::ValueEnum;
use lastmile::endpoint::iperf3;
use lastmile::estimate::ALL;
use lastmile::options::Choice;
use lastmile::report::Direction;
use lastmile::time::Span;
use lastmile::units::Bytes;

use crate::roles::measure::answer::head;
use crate::roles::measure::monitor::{self, Asked, MonitorArgs};
use crate::roles::measure::result::table;
use crate::roles::measure::{screen, seen};
use crate::shell::dscp::dscp;
use crate::shell::exit::{self, Exit};
use crate::shell::network::{KeyArgs, SocketArgs};
use crate::shell::options::{MethodArgs, seconds};
use crate::shell::time_of_day;

mod session;

pub(crate) use session::{Session, measure};
use session::{cost, measure_iperf3, summary};

/// Measure the capacity and the available bandwidth of the path to HOST
///
/// HOST runs `lastmile serve`; for `--direction round-trip` any STAMP or TWAMP Light reflector will do, and with `--peer iperf3` any
/// `iperf3 -s`, for the capacity of the way from there. Rates count IP packets of the probe's size. Forward is from here to HOST.
#[derive(clap::Args)]
#[command(
    mut_arg("port", |port| port.help("UDP port of `serve` on HOST [default: 8620], or TCP and UDP port of iperf3 [default: 5201]")),
    mut_arg("direction", |way| way.help("Direction to measure [default: both, or reverse from iperf3]")),
    mut_arg("max_bytes", |most| most.help(
        "End after so many bytes, both directions together [default: no limit, or 300 kB from iperf3]"
    ))
)]
pub(crate) struct Args {
    #[command(flatten)]
    path: PathArgs,
    /// Program on HOST
    #[arg(long, value_enum, value_name = "PROGRAM", default_value_t = PeerArg::Stamp)]
    peer: PeerArg,
    #[command(flatten)]
    method: MethodArgs,
    /// Print a table of all numbers, with the burst and the cost of each
    #[arg(long, short, conflicts_with = "json")]
    verbose: bool,
    #[command(flatten)]
    monitor: MonitorArgs,
}

/// The path to measure, and the limits of a session.
#[derive(clap::Args)]
pub(crate) struct PathArgs {
    /// Host name or address, with or without a port
    pub(crate) host: String,
    /// UDP port of `serve` on HOST [default: 8620]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Direction to measure [default: both]
    #[arg(long, value_enum)]
    direction: Option<DirectionArg>,
    /// End after so many bytes, both directions together [default: no limit]
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<Bytes>,
    /// End after this time: seconds, or a time such as 500ms
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    max_seconds: Option<f64>,
    #[command(flatten)]
    socket: SocketArgs,
    #[command(flatten)]
    key: KeyArgs,
    /// DiffServ codepoint of the packets: a name such as ef, af41 or cs1, or 0 to 63
    #[arg(long, value_name = "DSCP", default_value = "0", value_parser = dscp)]
    dscp: u8,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write all packets and decisions to FILE, for `lastmile replay` and `lastmile report`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

/// The program at the other end.
#[derive(Clone, Copy, Debug, ValueEnum, PartialEq, Eq)]
enum PeerArg {
    /// `lastmile serve`, or another reflector of STAMP
    Stamp,
    /// `iperf3 -s` as it is: the capacity of the way from there
    Iperf3,
}

/// The direction as an option.
#[derive(Clone, Copy, Debug, ValueEnum, PartialEq, Eq)]
pub(crate) enum DirectionArg {
    Forward,
    Reverse,
    Both,
    RoundTrip,
}

impl DirectionArg {
    pub(crate) fn directions(self) -> &'static [Direction] {
        match self {
            DirectionArg::Forward => &[Direction::Forward],
            DirectionArg::Reverse => &[Direction::Reverse],
            DirectionArg::Both => &[Direction::Forward, Direction::Reverse],
            DirectionArg::RoundTrip => &[Direction::RoundTrip],
        }
    }
}

impl PathArgs {
    pub(crate) fn directions(&self) -> &'static [Direction] {
        self.direction.unwrap_or(DirectionArg::Both).directions()
    }

    /// The option that ended a session at its limit of bytes: `limit` is what the hour's budget left for it.
    fn for_more_bytes(&self, limit: Option<Bytes>) -> String {
        match limit.filter(|left| self.max_bytes.is_none_or(|most| *left < most)) {
            Some(left) => format!("; --max-bytes-per-hour left {left} for this round"),
            None => "; raise --max-bytes".to_owned(),
        }
    }

    /// The session that began at `time`. One that could not begin is a document too, where documents are asked for.
    pub(crate) fn begun(&self, time: &str, session: anyhow::Result<Session>) -> anyhow::Result<Session> {
        session.inspect_err(|error| {
            if self.json && exit::of(error) != Exit::Usage {
                crate::shell::say(&monitor::failed(time, &self.host, error));
            }
        })
    }
}

impl PeerArg {
    fn directions(self, path: &PathArgs) -> &'static [Direction] {
        match self {
            PeerArg::Stamp => path.directions(),
            PeerArg::Iperf3 => path.direction.unwrap_or(DirectionArg::Reverse).directions(),
        }
    }

    fn method(self, method: &Choice) -> String {
        match self {
            PeerArg::Stamp => method.to_string(),
            PeerArg::Iperf3 => iperf3::METHOD.to_owned(),
        }
    }

    fn measure(self, path: &PathArgs, method: &Choice, limit: Option<Bytes>) -> anyhow::Result<Session> {
        match self {
            PeerArg::Stamp => measure(path, method, limit),
            PeerArg::Iperf3 => measure_iperf3(path, method, limit),
        }
    }
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    let (path, method) = (&args.path, args.method.choice());
    args.monitor.check()?;
    if let Some(every) = args.monitor.every {
        if method.name == ALL {
            return Err(Exit::Usage.blame(anyhow!("--every repeats one method: name it instead of {ALL}")));
        }
        let peer = args.peer;
        let asked =
            Asked { host: &path.host, method: &peer.method(&method), directions: peer.directions(path) };
        return monitor::run(&args.monitor, every, asked, |limit| {
            Ok(peer.measure(path, &method, limit)?.round)
        });
    }
    let time = time_of_day();
    let session = path.begun(&time, args.peer.measure(path, &method, None))?;
    if !session.is_said(path, &time)? {
        let Session { round, events, records, .. } = &session;
        let trip = round.rtt.map(Span::from_secs_f64);
        crate::shell::say(&head(&path.host, round.peer, trip, cost(events)));
        match args.verbose {
            true => crate::shell::say(table(&round.rows).trim_end()),
            false => {
                let seen = seen::rows(records.iter().cloned(), &path.host);
                crate::shell::say(screen(&round.rows, &path.host, &seen).trim_end());
            }
        }
        round.warnings.iter().for_each(|(text, _)| crate::shell::say_in_lines(text));
        if args.verbose {
            crate::shell::say_in_lines(&summary(events));
        }
    }
    session.end()
}
