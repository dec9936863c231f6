//! `lastmile traffic`: packets by a law of arrivals, and the sink that counts them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::anyhow;
use clap::ValueEnum;
use lastmile::arrivals::{Arrivals, Lengths, OnOff, Trace};
use lastmile::endpoint::Endpoint;
use lastmile::endpoint::traffic::{
    Ended, Sink, SinkConfig, SinkEvent, Source, SourceConfig, SourceEvent, Summary,
};
use lastmile::event::Event;
use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};
use lastmile::wire::traffic::{Counts, PORT};
use serde_json::{Value, json};

use crate::shell::Log;
use crate::shell::dscp::dscp;
use crate::shell::ecn::EcnArg;
use crate::shell::exit::Exit;
use crate::shell::network::{SocketArgs, any, random_numbers, random_seed, resolve_at};
use crate::shell::options::{MAX_TRACE_FILE, read_file, seconds};
use crate::shell::signals;

/// Generate traffic by a law of arrivals, or count it
///
/// The laws are those of a scenario's [[traffic]], and with the same seed the departures too. HOST runs `lastmile traffic sink`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Send(Box<SendArgs>),
    Sink(SinkArgs),
}

/// Send UDP packets to HOST, which runs `lastmile traffic sink`
///
/// Nothing but a hello is sent before the sink has answered. The traffic ends when its time is over, when the sink says so, and when the sink is
/// silent for 3 s.
#[derive(clap::Args)]
pub(crate) struct SendArgs {
    /// Host name or address of the sink, with or without a port
    host: String,
    /// UDP port of the sink [default: 8621]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Law of arrivals
    #[arg(long, value_enum, default_value_t = Law::Cbr, help_heading = "Traffic")]
    arrivals: Law,
    /// Mean rate of IP packets
    #[arg(long, value_name = "RATE", default_value = "1 Mbit/s", help_heading = "Traffic")]
    rate: Rate,
    /// Size of the packets, IP headers included
    #[arg(long, value_name = "BYTES", default_value = "1200 B", help_heading = "Traffic")]
    packet_size: Bytes,
    /// Mean length of bursts, of onoff and pareto [default: 500 ms]
    #[arg(long, value_name = "TIME", help_heading = "Traffic")]
    on: Option<Span>,
    /// Mean length of silences, of onoff and pareto [default: 500 ms]
    #[arg(long, value_name = "TIME", help_heading = "Traffic")]
    off: Option<Span>,
    /// Shape of the Pareto distribution of both lengths, of pareto [default: 1.9]
    #[arg(long, value_name = "NUMBER", help_heading = "Traffic")]
    shape: Option<f64>,
    /// File of packets for --arrivals trace: a line each, seconds from the start and bytes of the IP packet
    #[arg(long, value_name = "FILE", required_if_eq("arrivals", "trace"), help_heading = "Traffic")]
    trace: Option<PathBuf>,
    /// Seed of the departures; without it a new one for each run
    #[arg(long, value_name = "N", help_heading = "Traffic")]
    seed: Option<u64>,
    /// ECN codepoint of the packets
    #[arg(long, value_enum, default_value_t = EcnArg::NotEct, help_heading = "Traffic")]
    ecn: EcnArg,
    /// DiffServ codepoint of the packets: 0 to 63, or a name such as ef
    #[arg(long, value_name = "NAME", default_value = "df", value_parser = dscp, help_heading = "Traffic")]
    dscp: u8,
    /// Duration: seconds, or a time such as 2min
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    seconds: f64,
    /// End after so many bytes of IP packets
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<Bytes>,
    #[command(flatten)]
    socket: SocketArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Count traffic, and tell its source each second what came
///
/// A source gets no more bytes than it sent, and nothing but as many bytes as its hello before it has proved its address. Runs until
/// Ctrl-C, which tells all sources to stop.
#[derive(clap::Args)]
pub(crate) struct SinkArgs {
    /// UDP port
    #[arg(long, default_value_t = PORT)]
    port: u16,
    /// Most sources at a time; one network has half of the places at most
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(2..=1_024))]
    sources: u16,
    /// Tell a source to stop after so many bytes
    #[arg(long, value_name = "BYTES", default_value = "10000 GB")]
    max_bytes: Bytes,
    /// Tell a source to stop after this time: seconds, or a time such as 2h
    #[arg(long, value_name = "SECONDS", default_value = "86400", value_parser = seconds)]
    max_seconds: f64,
    /// End when the first source has left
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    socket: SocketArgs,
    /// Print decisions as JSON lines
    #[arg(long)]
    json: bool,
}

/// Laws of arrivals by their names in scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Law {
    /// Equal gaps
    Cbr,
    /// Exponential gaps
    Poisson,
    /// Bursts and silences of exponential length
    Onoff,
    /// Bursts and silences of Pareto length
    Pareto,
    /// As recorded
    Trace,
}

impl Law {
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    match args.command {
        Command::Send(args) => send(&args),
        Command::Sink(args) => sink(&args),
    }
}

impl SendArgs {
    fn arrivals(&self, smallest: Bytes) -> anyhow::Result<Arrivals> {
        let wrong = |text: String| Err(Exit::Usage.blame(anyhow!(text)));
        let usual = Span::from_millis(500);
        let (on, off, shape) =
            (self.on.unwrap_or(usual), self.off.unwrap_or(usual), self.shape.unwrap_or(1.9));
        let on_off = |lengths| Arrivals::OnOff(OnOff { lengths, on, off });
        let is_bursty = matches!(self.arrivals, Law::Onoff | Law::Pareto);
        for (option, given, means) in [
            ("--on", self.on.is_some(), is_bursty),
            ("--off", self.off.is_some(), is_bursty),
            ("--shape", self.shape.is_some(), self.arrivals == Law::Pareto),
            ("--trace", self.trace.is_some(), self.arrivals == Law::Trace),
        ] {
            if given && !means {
                return wrong(format!("{option} means nothing to --arrivals {}", self.arrivals.name()));
            }
        }
        if is_bursty && (on < Span::from_micros(1) || off < Span::ZERO) {
            return wrong(format!("--on must be 1 us or more and --off not negative, not {on} and {off}"));
        }
        Ok(match self.arrivals {
            Law::Cbr => Arrivals::Cbr,
            Law::Poisson => Arrivals::Poisson,
            Law::Onoff => on_off(Lengths::Exponential),
            Law::Pareto if !(1.05..=100.0).contains(&shape) => {
                return wrong(format!(
                    "--shape must be 1.05 to 100, not {shape}: below one there is no mean"
                ));
            }
            Law::Pareto => on_off(Lengths::Pareto { shape }),
            Law::Trace => {
                let file = self.trace.as_deref().unwrap_or(Path::new(""));
                Arrivals::Trace(Arc::new(read_trace(file, smallest)?))
            }
        })
    }
}

fn read_trace(file: &Path, smallest: Bytes) -> anyhow::Result<Trace> {
    let text = read_file("--trace", file, MAX_TRACE_FILE)?;
    let cannot = |why: String| Exit::Usage.blame(anyhow!("--trace {}: {why}", file.display()));
    Trace::read(&text, smallest).map_err(cannot)
}

fn send(args: &SendArgs) -> anyhow::Result<Option<Exit>> {
    let peer = resolve_at(&args.host, args.port, PORT, args.socket.bind)?;
    let smallest = SourceConfig::smallest(peer);
    if !(smallest.0..=9_000).contains(&args.packet_size.0) {
        return Err(Exit::Usage
            .blame(anyhow!("--packet-size must be {smallest} to 9000 B, not {}", args.packet_size)));
    }
    if args.rate == Rate::ip(0) || args.rate > Rate::ip(100_000_000_000) {
        return Err(
            Exit::Usage.blame(anyhow!("--rate must be above 0 and at most 100 Gbit/s, not {}", args.rate))
        );
    }
    let arrivals = args.arrivals(smallest)?;
    let first = match &arrivals {
        Arrivals::Trace(trace) => trace.packets().first().map_or(smallest, |first| first.1),
        _ => args.packet_size,
    };
    if let Some(most) = args.max_bytes.filter(|most| *most < first) {
        return Err(
            Exit::Usage.blame(anyhow!("--max-bytes must allow the first packet, {first}, not {most}"))
        );
    }
    let (seed, nonce) = random_numbers()?;
    let seed = args.seed.unwrap_or(u64::from(seed));
    let config = SourceConfig {
        peer,
        nonce,
        arrivals,
        rate: args.rate,
        packet_size: args.packet_size,
        seed,
        lasts: Span::from_secs_f64(args.seconds),
        max_bytes: args.max_bytes,
        ecn: args.ecn.into(),
        dscp: args.dscp,
    };
    let socket = args.socket.open(any(peer.ip()), 0)?;
    let mut driver = args.socket.driver(vec![socket])?;
    let looked_at = crate::shell::is_looked_at(args.json);
    let mut summary = None;
    let mut source = Source::new(config);
    let mut show = |event: &Event<SourceEvent>| match &event.what {
        SourceEvent::Ended(ended) => summary = Some(*ended),
        SourceEvent::Reported { packets, counts } if looked_at => {
            crate::shell::look(&format!("{} {packets} packets sent, {} arrived", event.at, counts.packets));
        }
        _ => {}
    };
    driver.run(&mut source, &mut show, signals::stop(), Endpoint::is_finished)?;
    let Some(summary) = summary else {
        return Err(Exit::Interrupted.blame(anyhow!("interrupted")));
    };
    if args.json {
        crate::shell::json(&document(args, &peer.to_string(), seed, &summary))?;
    } else {
        told(&summary).iter().for_each(|line| crate::shell::say(line));
    }
    let blame = |exit: Exit, why: String| match args.json {
        true => Ok(Some(exit)),
        false => Err(exit.blame(anyhow!(why))),
    };
    match summary.ended {
        Ended::Done | Ended::Bytes | Ended::Stopped => Ok(None),
        Ended::Interrupted => Ok(Some(Exit::Interrupted)),
        Ended::NoAnswer => {
            blame(Exit::Peer, format!("{peer} does not answer: run `lastmile traffic sink` there"))
        }
        Ended::NoPlace => blame(
            Exit::Peer,
            format!("a sink at {peer} has no place for one more source (--sources), or its answers are lost"),
        ),
        Ended::Silent => blame(Exit::Peer, format!("{peer} fell silent")),
        _ => blame(Exit::Peer, format!("nothing listens at {peer}, or the network refuses the packets")),
    }
}

/// Packets that did not arrive, once the sink has counted all.
fn lost(summary: &Summary) -> Option<u64> {
    let counts = summary.counts.filter(|_| summary.complete)?;
    Some(summary.packets.saturating_sub(counts.packets))
}

/// The result for people.
fn told(summary: &Summary) -> Vec<String> {
    if summary.packets == 0 {
        let why = match summary.ended {
            Ended::Done | Ended::Bytes => "none was due",
            Ended::Stopped => "the sink said stop",
            _ => return Vec::new(),
        };
        return vec![format!("sent no packet: {why}")];
    }
    let Summary { packets, bytes, seconds, .. } = *summary;
    let rate = if seconds > 0.0 { Rate::ip((bytes as f64 * 8.0 / seconds) as u64) } else { Rate::ip(0) };
    let mut lines = vec![format!("sent {packets} packets, {}, in {seconds:.3} s: {rate}", Bytes(bytes))];
    if let (Some(median), Some(p99)) = (summary.gap_error_median, summary.gap_error_p99) {
        let [median, p99] = [median, p99].map(Span::from_secs_f64);
        lines.push(format!(
            "gaps off by {median} (median) and {p99} (99 %), of {} gaps, by kernel stamps",
            summary.gaps
        ));
    }
    if summary.held_up > 0.0 {
        lines.push(format!(
            "this host was too slow, or stood still: {:.3} s of traffic were put off",
            summary.held_up
        ));
    }
    if summary.ended == Ended::Stopped {
        lines.push("the sink said stop".to_owned());
    }
    if let Some(counts) = summary.counts {
        let Counts { packets: came, disordered, marked, copies, .. } = counts;
        let lost = lost(summary).map_or_else(|| "no final count".to_owned(), |lost| format!("{lost} lost"));
        let copies = if copies > 0 { format!(", {copies} copies beside them") } else { String::new() };
        lines.push(format!(
            "{came} packets arrived, {lost}, {disordered} out of order, {marked} marked{copies}"
        ));
    }
    lines
}

/// The result for programs.
fn document(args: &SendArgs, peer: &str, seed: u64, summary: &Summary) -> Value {
    let sent = (summary.seconds > 0.0).then(|| summary.bytes as f64 * 8.0 / summary.seconds);
    json!({
        "schema": lastmile::SCHEMA,
        "peer": peer,
        "arrivals": args.arrivals.name(),
        "rate_bps": args.rate.bits_per_second(),
        "packet_size": args.packet_size.0,
        "seed": seed,
        "ended": summary.ended,
        "packets": summary.packets,
        "bytes": summary.bytes,
        "seconds": summary.seconds,
        "sent_bps": sent,
        "failed": summary.failed,
        "held_up_s": summary.held_up,
        "gaps": summary.gaps,
        "gap_error_median_s": summary.gap_error_median,
        "gap_error_p99_s": summary.gap_error_p99,
        "received": summary.counts,
        "complete": summary.complete,
        "lost": lost(summary),
    })
}

fn sink(args: &SinkArgs) -> anyhow::Result<Option<Exit>> {
    let sockets = args.socket.listen(args.port)?;
    let addresses: Vec<_> = sockets.iter().map(|socket| socket.local_addr().to_string()).collect();
    let mut driver = args.socket.driver(sockets)?;
    let mut sink = Sink::new(SinkConfig {
        sources: usize::from(args.sources),
        longest: Span::from_secs_f64(args.max_seconds),
        most: args.max_bytes,
        ..SinkConfig::new(random_seed()?)
    });
    if !args.json {
        crate::shell::log(&format!(
            "counting on {}; send to it with: lastmile traffic send HOST",
            addresses.join(" and ")
        ));
    }
    let looked_at = crate::shell::is_looked_at(args.json);
    let left = std::cell::Cell::new(false);
    let mut log = Log::new();
    let mut show = |event: &Event<SinkEvent>| {
        left.set(left.get() || matches!(event.what, SinkEvent::SourceLeft { .. }));
        if args.json {
            return crate::shell::json_line(event);
        }
        match &event.what {
            SinkEvent::SourceFound { peer } => log.event(&format!("traffic from {peer}")),
            SinkEvent::Counted { peer, counts } if looked_at => {
                crate::shell::look(&format!("{} {} packets from {peer}", event.at, counts.packets));
            }
            SinkEvent::SourceLeft { peer, counts, seconds, silent } => {
                let end = if *silent { "silence" } else { "end" };
                let missing = counts.expected.saturating_sub(counts.packets);
                let line = format!(
                    "{end} of {peer}: {} packets, {} in {seconds:.3} s, {missing} missing, {} out of order, {} marked",
                    counts.packets,
                    Bytes(counts.bytes),
                    counts.disordered,
                    counts.marked
                );
                // At the end they are the results: one of each source, of which there is a limit.
                if signals::stopped() { crate::shell::log_event(&line) } else { log.event(&line) }
            }
            SinkEvent::TurnedAway { peer } => {
                log.event(&format!("no place for {peer}: raise --sources"));
            }
            _ => {}
        }
    };
    driver.run(&mut sink, &mut show, signals::stop(), |_| args.once && left.get())?;
    Ok((args.once && signals::stopped()).then_some(Exit::Interrupted))
}
