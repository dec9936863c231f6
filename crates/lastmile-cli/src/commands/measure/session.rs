//! One session: a measurement from the host's name to its results, and its end.

use std::net::SocketAddr;
use std::sync::mpsc;

use anyhow::anyhow;
use lastmile::endpoint::iperf3::{self, Iperf3, Iperf3Config, Output};
use lastmile::endpoint::measure::{Cost, Decision, Each, MAX_REVERSE_SIZE, Prober, ProberConfig, Row};
use lastmile::endpoint::{Endpoint, Event};
use lastmile::estimate::{AllConfig, Conditions, Refusal};
use lastmile::node::{Input, Recorded};
use lastmile::options::Choice;
use lastmile::report::{Direction, StreamRecord};
use lastmile::time::Span;
use lastmile::units::Bytes;
use lastmile::wire::iperf3::PORT;
use lastmile_net::iperf3::Sockets;
use lastmile_net::recording::World;

use super::{PathArgs, PeerArg};
use crate::files::recorder;
use crate::roles::measure::RecordedSession;
use crate::roles::measure::monitor::Round;
use crate::roles::measure::result::{self, counted, once};
use crate::shell::exit::Exit;
use crate::shell::network::{DEFAULT_PORT, any, random_seed, resolve_at, source};
use crate::shell::options::{KERNEL_NOISE, MethodArgs, estimator, packet_size, refused};
use crate::shell::progress::Progress;
use crate::shell::replace::incomplete;
use crate::shell::signals;

/// Results of one session.
pub(crate) struct Session {
    pub(crate) round: Round,
    pub(super) events: Vec<Event>,
    pub(super) records: Vec<StreamRecord>,
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
pub(super) fn measure_iperf3(
    args: &PathArgs,
    choice: &Choice,
    limit: Option<Bytes>,
) -> anyhow::Result<Session> {
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
        max_time: args.max_seconds.map_or(iperf3::MAX_TIME, Span::from_secs_f64),
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
pub(super) fn cost(events: &[Event]) -> Option<Cost> {
    events.iter().rev().find_map(|e| match *e.what.of()? {
        Decision::Finished { cost } => Some(cost),
        _ => None,
    })
}

/// The cost in one line.
pub(super) fn summary(events: &[Event]) -> String {
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
