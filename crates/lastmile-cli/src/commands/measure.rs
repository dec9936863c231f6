//! `lastmile measure HOST`: capacity and available bandwidth of the path to a reflector.

use std::path::PathBuf;
use std::sync::mpsc;

use anyhow::anyhow;
use clap::ValueEnum;
use lastmile::endpoint::measure::{Cost, Decision, Each, MAX_REVERSE_SIZE, Prober, ProberConfig, Row};
use lastmile::endpoint::{Endpoint, Event};
use lastmile::estimate::Refusal;
use lastmile::node::{Input, Recorded};
use lastmile::report::{Direction, StreamRecord};
use lastmile::time::Span;
use lastmile::units::Bytes;
use lastmile_net::recording::World;

use crate::files::recorder;
use crate::roles::measure::RecordedSession;
use crate::roles::measure::answer::{answer, head};
use crate::roles::measure::monitor::{self, Asked, MonitorArgs, Round, time_of_day};
use crate::roles::measure::result::{counted, exit, once, table};
use crate::roles::measure::seen;
use crate::shell::dscp::dscp;
use crate::shell::exit::Exit;
use crate::shell::network::{DEFAULT_PORT, KeyArgs, SocketArgs, any, random_seed, resolve_at, source};
use crate::shell::options::{KERNEL_NOISE, MethodArgs, packet_size, seconds};
use crate::shell::signals;

/// Measure the capacity and the available bandwidth of the path to HOST
///
/// HOST runs `lastmile serve`; for `--direction round-trip` any STAMP or TWAMP Light reflector will do. Rates count IP
/// packets of the probe's size. Forward is from here to HOST.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Host name or address, with or without a port
    host: String,
    /// UDP port of `serve` on HOST [default: 8620]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    #[command(flatten)]
    method: MethodArgs,
    /// Direction to measure
    #[arg(long, value_enum, default_value_t = DirectionArg::Both)]
    direction: DirectionArg,
    /// End after so many bytes, both directions together
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
    /// Print a table of all numbers, with the burst and the cost of each
    #[arg(long, short, conflicts_with = "json")]
    verbose: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write all packets and decisions to FILE, for `lastmile replay` and `lastmile report`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    #[command(flatten)]
    monitor: MonitorArgs,
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

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    if let Some(every) = args.monitor.every {
        let method = args.method.choice().to_string();
        let asked = Asked { host: &args.host, method: &method, directions: args.direction.directions() };
        return monitor::run(&args.monitor, every, asked, |limit| Ok(measure(&args, limit)?.round));
    }
    let time = time_of_day();
    let Session { round, events, records, unrecorded } = measure(&args, None)?;
    let (peer, rows) = (round.peer, &round.rows);
    if args.json {
        crate::shell::json(&round.document(&time, &args.host))?;
    } else if matches!(round.exit, Some(Exit::Interrupted | Exit::Peer))
        && rows.iter().all(Row::is_before_streams)
    {
        // One line says it: nothing could even be tried.
        let mut why = rows.first().and_then(|row| row.refused.clone()).unwrap_or_default();
        unrecorded.iter().for_each(|error| why += &format!("; {error}"));
        return Err(round.exit.unwrap_or(Exit::Peer).blame(anyhow!(why)));
    } else {
        let trip = round.rtt.map(Span::from_secs_f64);
        crate::shell::say(&head(&args.host, peer, trip, cost(&events)));
        match args.verbose {
            true => crate::shell::say(table(rows).trim_end()),
            false => {
                let seen = seen::rows(records.try_iter(), &args.host);
                crate::shell::say(answer(rows, &args.host, &seen).trim_end());
            }
        }
        round.warnings.iter().for_each(|(text, _)| crate::shell::say_in_lines(text));
        if args.verbose {
            crate::shell::say_in_lines(&summary(&events));
        }
    }
    match unrecorded {
        Some(error) => Err(Exit::Machine.blame(error)),
        None => Ok(round.exit),
    }
}

/// Results of one session.
struct Session {
    round: Round,
    events: Vec<Event>,
    records: mpsc::Receiver<StreamRecord>,
    /// Why the recording is not complete.
    unrecorded: Option<anyhow::Error>,
}

/// Measures once, from the host's name on, and spends at most `limit` bytes.
fn measure(args: &Args, limit: Option<Bytes>) -> anyhow::Result<Session> {
    let max_time = args.max_seconds.map(Span::from_secs_f64);
    let too_large = packet_size(&args.method.choice()).filter(|size| *size > MAX_REVERSE_SIZE);
    if let Some(size) = too_large.filter(|_| args.direction.directions().contains(&Direction::Reverse)) {
        return Err(Exit::Usage.blame(anyhow!(
            "--packet-size {}: reflectors send packets of at most {}; lower it, or measure with --direction forward",
            size.0, MAX_REVERSE_SIZE.0
        )));
    }
    let key = args.key.key()?;
    let seed = random_seed()?;
    let directions = args.direction.directions();
    let method_seed = u64::from(seed[0]);
    // Made once more below, when the peer is known: wrong parameters are said before anything is resolved.
    args.method.build(KERNEL_NOISE, method_seed)?;
    let peer = resolve_at(&args.host, args.port, DEFAULT_PORT, args.socket.bind)?;
    let socket = args.socket.open(any(peer.ip()), 0)?;
    let mut driver = args.socket.driver(vec![socket])?;
    let config = ProberConfig {
        key,
        epoch: driver.epoch(),
        max_bytes: args.max_bytes.into_iter().chain(limit).min(),
        max_time,
        dscp: args.dscp,
        ..ProberConfig::new(peer, seed)
    };
    let measured = directions.iter().map(|&direction| (direction, args.method.choice().into())).collect();
    let session = RecordedSession::of(&config, KERNEL_NOISE, method_seed, measured);
    let header = session.header(World::Real)?;
    let recorder = args.record.as_deref().map(|file| recorder::to_file(file, &header)).transpose()?;
    let (kept, (keep, records)) = (recorder.clone(), mpsc::channel());
    let keep = Each(move |record: &StreamRecord| {
        kept.iter().for_each(|kept| kept.record(record));
        // Nobody reads them if the session failed.
        let _ = keep.send(record.clone());
    });
    let prober = Prober::with_sink(config, session.measurements()?, keep);
    let tell = recorder.clone();
    let mut node = Recorded::new(prober, move |now, input: &Input| {
        if let Some(recorder) = &tell {
            recorder.input(now, input);
        }
    });
    let mut events: Vec<Event> = Vec::new();
    let mut on_event = |event: &lastmile::event::Event<Decision>| {
        if let Some(recorder) = &recorder {
            recorder.event(event);
        }
        // All else can wait for the end.
        if let Decision::PeerQuiet { peer, silent, patience } = event.what {
            let (silent, patience) = (silent.as_secs_f64(), patience.as_secs_f64());
            crate::shell::note(&format!(
                "{peer} has not answered for {silent:.1} s: the path is cut, slow, or congested; waiting for {patience:.0} s more at most (Ctrl-C ends it)"
            ));
        }
        events.push(event.clone().map(Into::into));
    };
    driver.run(&mut node, &mut on_event, signals::stop(), |node| node.node().is_finished())?;
    // A failed recording takes no results away.
    let unrecorded = recorder.and_then(|recorder| recorder.finish().err());
    let unrecorded = unrecorded.map(|error| anyhow!("the recording is not complete: {error}"));
    let rows = Row::all(&events);
    let peer_at_fault = is_peer_at_fault(&events);
    let interrupted = signals::stopped() && rows.iter().any(|row| row.refused.is_some());
    let exit = match (interrupted, peer_at_fault) {
        (true, _) => Some(Exit::Interrupted),
        (_, true) => Some(Exit::Peer),
        _ => exit(&rows),
    };
    let (rtt, warnings) = (rtt(&events), warnings(&events));
    let (local, cost) = (source(peer, args.socket.bind), cost(&events).unwrap_or_default().into());
    let round = Round { local, peer, rtt, rows, warnings, cost, exit };
    Ok(Session { round, events, records, unrecorded })
}

/// True if there is no result, because of the peer or the path to it.
fn is_peer_at_fault(events: &[Event]) -> bool {
    let mut results = events
        .iter()
        .filter(|e| matches!(e.what.of(), Some(Decision::Estimated { .. } | Decision::Refused { .. })))
        .peekable();
    let peers = |e: &Event| match e.what.of() {
        Some(Decision::Refused { refusal, .. }) => {
            matches!(refusal, Refusal::PeerCannot(_) | Refusal::PeerSilent)
        }
        _ => false,
    };
    results.peek().is_some() && results.all(peers)
}

fn rtt(events: &[Event]) -> Option<f64> {
    events.iter().find_map(|e| match *e.what.of()? {
        Decision::PeerReady { rtt, .. } => Some(rtt.as_secs_f64()),
        _ => None,
    })
}

/// Each warning once, and its code.
fn warnings(events: &[Event]) -> Vec<(String, &'static str)> {
    let said = |e: &Event| match e.what.of()? {
        Decision::Warned(warning) => Some((warning.text.clone(), warning.code.code())),
        Decision::ClockStepped { by } => {
            Some((format!("the wall clock was stepped by {by} meanwhile"), "clock-stepped"))
        }
        _ => None,
    };
    let all: Vec<_> = events.iter().filter_map(said).collect();
    let each = once(all.iter().map(|(text, code)| (text.as_str(), *code)));
    each.into_iter().map(|(text, codes)| (counted(text, codes.len(), "times"), codes[0])).collect()
}

/// The cost of the whole session, if it ended.
fn cost(events: &[Event]) -> Option<Cost> {
    events.iter().rev().find_map(|e| match *e.what.of()? {
        Decision::Finished { cost } => Some(cost),
        _ => None,
    })
}

/// The cost in one line.
fn summary(events: &[Event]) -> String {
    let Some(cost) = cost(events) else { return "not finished".into() };
    let credit = match cost.credit_bytes {
        Bytes::ZERO => String::new(),
        credit => format!(" and {credit} only to pay for the reverse stream"),
    };
    format!(
        "{:.2} s; sent {} of probes, {} of requests{credit}; received {}; {} streams, {} discarded",
        cost.elapsed.as_secs_f64(),
        cost.probe_bytes,
        cost.control_bytes,
        cost.bytes_received,
        cost.streams + cost.streams_discarded,
        cost.streams_discarded
    )
}
