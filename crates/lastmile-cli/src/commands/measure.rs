//! `lastmile measure HOST`: capacity and available bandwidth of the path to a reflector.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc;

use anyhow::anyhow;
use clap::ValueEnum;
use lastmile::endpoint::iperf3::{self, Iperf3, Iperf3Config, Output};
use lastmile::endpoint::measure::{Cost, Decision, Each, MAX_REVERSE_SIZE, Prober, ProberConfig, Row};
use lastmile::endpoint::{Endpoint, Event};
use lastmile::estimate::{ALL, AllConfig, Conditions, Refusal};
use lastmile::node::{Input, Recorded};
use lastmile::options::Choice;
use lastmile::report::{Direction, StreamRecord};
use lastmile::time::Span;
use lastmile::units::Bytes;
use lastmile::wire::iperf3::PORT;
use lastmile_net::iperf3::Sockets;
use lastmile_net::recording::World;

use crate::files::recorder;
use crate::roles::measure::answer::head;
use crate::roles::measure::monitor::{self, Asked, MonitorArgs, Round, time_of_day};
use crate::roles::measure::result::{self, counted, once, table};
use crate::roles::measure::seen;
use crate::roles::measure::{RecordedSession, screen};
use crate::shell::dscp::dscp;
use crate::shell::exit::{self, Exit};
use crate::shell::network::{DEFAULT_PORT, KeyArgs, SocketArgs, any, random_seed, resolve_at, source};
use crate::shell::options::{KERNEL_NOISE, MethodArgs, estimator, packet_size, refused, seconds};
use crate::shell::progress::Progress;
use crate::shell::replace::incomplete;
use crate::shell::signals;

/// Measure the capacity and the available bandwidth of the path to HOST
///
/// HOST runs `lastmile serve`; for `--direction round-trip` any STAMP or TWAMP Light reflector will do, and with `--peer iperf3` any
/// `iperf3 -s`, for the capacity of the way from there. Rates count IP packets of the probe's size. Forward is from here to HOST.
#[derive(clap::Args)]
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
    /// UDP port of `serve` on HOST [default: 8620], or TCP and UDP port of iperf3 [default: 5201]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Direction to measure [default: both, or reverse from iperf3]
    #[arg(long, value_enum)]
    direction: Option<DirectionArg>,
    /// End after so many bytes, both directions together [default: no limit, or 300 kB from iperf3]
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

/// Results of one session.
pub(crate) struct Session {
    pub(crate) round: Round,
    events: Vec<Event>,
    records: Vec<StreamRecord>,
    /// Why the recording is not complete.
    unrecorded: Option<anyhow::Error>,
}

impl Session {
    fn of(
        (args, limit): (&PathArgs, Option<Bytes>),
        peer: SocketAddr,
        events: Vec<Event>,
        records: &mpsc::Receiver<StreamRecord>,
        unrecorded: Option<anyhow::Error>,
        budget: Option<&AllConfig>,
    ) -> Session {
        let records: Vec<StreamRecord> = records.try_iter().collect();
        let mut rows = match budget {
            Some(budget) => Row::all_with_loads(&events, &records, budget.pause),
            None => Row::all(&events),
        };
        let advice = args.for_more_bytes(limit);
        for why in rows.iter_mut().filter(|row| row.code.as_deref() == Some("byte-limit")) {
            why.refused.iter_mut().for_each(|why| *why += &advice);
        }
        let peer_at_fault = is_peer_at_fault(&events);
        let interrupted = signals::stopped() && rows.iter().any(|row| row.refused.is_some());
        let exit = match (interrupted, peer_at_fault) {
            (true, _) => Some(Exit::Interrupted),
            (_, true) => Some(Exit::Peer),
            _ => result::exit(&rows),
        };
        let (rtt, warnings) = (rtt(&events), warnings(&events));
        let (local, cost) = (source(peer, args.socket.bind), cost(&events).unwrap_or_default().into());
        let round = Round { local, peer, rtt, rows, warnings, cost, exit };
        Session { round, events, records, unrecorded }
    }

    /// Prints the document if that is asked for; an error if nothing could even be tried. False if the results are still to be said.
    pub(crate) fn is_said(&self, path: &PathArgs, time: &str) -> anyhow::Result<bool> {
        let rows = &self.round.rows;
        if path.json {
            crate::shell::json(&self.round.document(time, &path.host))?;
            return Ok(true);
        }
        let failed = matches!(self.round.exit, Some(Exit::Interrupted | Exit::Peer));
        if failed && rows.iter().all(Row::is_before_streams) {
            // One line says it.
            let mut why = rows.first().and_then(|row| row.refused.clone()).unwrap_or_default();
            self.unrecorded.iter().for_each(|error| why += &format!("; {error}"));
            return Err(self.round.exit.unwrap_or(Exit::Peer).blame(anyhow!(why)));
        }
        Ok(false)
    }

    /// The exit code; an error if the recording is not complete.
    pub(crate) fn end(self) -> anyhow::Result<Option<Exit>> {
        match self.unrecorded {
            Some(error) => Err(error),
            None => Ok(self.round.exit),
        }
    }
}

/// Measures once, from the host's name on, and spends at most `limit` bytes.
pub(crate) fn measure(args: &PathArgs, method: &Choice, limit: Option<Bytes>) -> anyhow::Result<Session> {
    let max_time = args.max_seconds.map(Span::from_secs_f64);
    let too_large = packet_size(method).filter(|size| *size > MAX_REVERSE_SIZE);
    if let Some(size) = too_large.filter(|_| args.directions().contains(&Direction::Reverse)) {
        return Err(Exit::Usage.blame(anyhow!(
            "--packet-size {}: reflectors send packets of at most {}; lower it, or measure with --direction forward",
            size.0, MAX_REVERSE_SIZE.0
        )));
    }
    let key = args.key.key()?;
    let seed = random_seed()?;
    let directions = args.directions();
    let method_seed = u64::from(seed[0]);
    let expanded = AllConfig::expand(method, directions).map_err(|error| refused(&error))?;
    // Made once more below, when the peer is known: wrong parameters are said before anything is resolved.
    for (_, choice) in &expanded.measured {
        estimator(choice, KERNEL_NOISE, method_seed).map_err(|error| refused(&error))?;
    }
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
    let budget = expanded.budget;
    let config = budget.iter().fold(config, ProberConfig::within);
    let progress = budget.as_ref().filter(|_| crate::shell::is_looked_at(args.json));
    let progress =
        progress.map(|_| Progress::new("measuring by all methods", expanded.measured.len() as u64));
    let measured =
        expanded.measured.into_iter().map(|(direction, choice)| (direction, choice.into())).collect();
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
    let mut ended = None;
    let mut on_event = |event: &lastmile::event::Event<Decision>| {
        if let Some(recorder) = &recorder {
            recorder.event(event);
        }
        if let Decision::Estimated { method, direction, .. } | Decision::Refused { method, direction, .. } =
            &event.what
        {
            let this = Some((method.clone(), *direction));
            progress.iter().filter(|_| this != ended).for_each(|progress| progress.bar().inc(1));
            ended = this;
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
    let unrecorded =
        args.record.as_deref().zip(unrecorded).map(|(file, error)| incomplete(file, &error.into()));
    Ok(Session::of((args, limit), peer, events, &records, unrecorded, budget.as_ref()))
}

/// Measures the way from an iperf3 server.
fn measure_iperf3(args: &PathArgs, choice: &Choice, limit: Option<Bytes>) -> anyhow::Result<Session> {
    let usage = |text: String| Err(Exit::Usage.blame(anyhow!(text)));
    if PeerArg::Iperf3.directions(args) != [Direction::Reverse] {
        return usage(format!("--direction: {}", iperf3::NO_WAY_UP));
    }
    if args.record.is_some() {
        return usage("--record: recordings hold datagrams, and the control connection of iperf3 has none; leave it out".to_owned());
    }
    if args.key.key_file.is_some() {
        return usage("--key-file: iperf3 has no such keys; leave it out".to_owned());
    }
    let own = choice.name == MethodArgs::DEFAULT && choice.options.keys().all(|name| *name == "packet_size");
    if !own {
        return usage(format!(
            "{choice}: an iperf3 server sends trains of 30 packets alone; leave the method and its options out, but for --packet-size"
        ));
    }
    // WBest's packet size is read as WBest reads it.
    estimator(choice, KERNEL_NOISE, 0).map_err(|error| refused(&error))?;
    let size = packet_size(choice).unwrap_or(Bytes(1488));
    if !(Bytes(200)..=Bytes(9_000)).contains(&size) {
        return usage(format!("--packet-size must be 200 to 9000, not {}", size.0));
    }
    let seed = random_seed()?;
    let peer = resolve_at(&args.host, args.port, PORT, args.socket.bind)?;
    let udp = args.socket.open(any(peer.ip()), 0)?;
    let mut client = Iperf3::new(Iperf3Config {
        max_bytes: args.max_bytes.unwrap_or(iperf3::MAX_BYTES).min(limit.unwrap_or(Bytes(u64::MAX))),
        max_time: args.max_seconds.map(Span::from_secs_f64),
        packet_size: size,
        dscp: args.dscp,
        conditions: Conditions::of(KERNEL_NOISE, u64::from(seed[0])),
        ..Iperf3Config::new(peer, seed)
    });
    let (mut events, (keep, records)) = (Vec::new(), mpsc::channel());
    let told = |at, output| match output {
        Output::Event(what) => {
            let seq = events.len() as u64;
            events.push(lastmile::event::Event { at, node: 0, seq, what: (*what).into() });
        }
        // Nobody reads them if the session failed.
        Output::Stream(record) => drop(keep.send(record)),
        _ => {}
    };
    let sockets = Sockets { peer, udp, interface: args.socket.interface.clone() };
    let ran = lastmile_net::iperf3::run(&mut client, &sockets, signals::stop(), told);
    ran.map_err(|error| Exit::Machine.blame(error))?;
    drop(keep);
    Ok(Session::of((args, limit), peer, events, &records, None, None))
}

/// True if there is no result, because of the peer or the path to it.
fn is_peer_at_fault(events: &[Event]) -> bool {
    let mut results = events
        .iter()
        .filter(|e| matches!(e.what.of(), Some(Decision::Estimated { .. } | Decision::Refused { .. })))
        .peekable();
    let peers = |e: &Event| match e.what.of() {
        Some(Decision::Refused { refusal, .. }) => {
            matches!(refusal, Refusal::PeerAbsent(_) | Refusal::PeerCannot(_) | Refusal::PeerSilent)
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
