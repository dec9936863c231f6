//! Media streams: a row each, and how their two ends are recorded and built again.

use std::any::Any;

use anyhow::anyhow;
use lastmile::Key;
use lastmile::classify::{LossClass, Verdicts};
use lastmile::control::{self, CONTROLLERS, Composition, Controller, WRAPPERS, Wrapper};
use lastmile::endpoint::stream::source::{SOURCES, Source};
use lastmile::endpoint::stream::{
    ControlConfig, Decision, End, Left, Received, Receiver, ReceiverConfig, Sender, SenderConfig, SenderRate,
    Sent, SourceConfig,
};
use lastmile::endpoint::{self, AnyEndpoint, any};
use lastmile::node::Ecn;
use lastmile::options::Choice;
use lastmile::report::Direction;
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile_net::recording::{Header, SharedRecorder, World};
use lastmile_sim::roles::Found;
use lastmile_sim::runs::flows::as_rate;
use lastmile_sim::scenario::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::loopback::{Buffer, Driven, loopback};
use super::{Case, HeaderOf, Recorded, Role, Shown, Told};
use crate::exit::Exit;
use crate::page::describe::Mood;
use crate::page::table::table;
use crate::page::{Run, document};
use crate::table::Table;

mod plots;
pub(crate) mod result;

const NAME: &str = "stream";

/// The role.
pub(super) struct Streaming;

/// All that determines one end of a stream beside its inputs.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Which {
    Sender(Box<SenderConfig>),
    Receiver(ReceiverConfig),
}

impl Which {
    fn of(config: &dyn Any) -> Option<Which> {
        let sender = config.downcast_ref().cloned().map(Box::new).map(Which::Sender);
        sender.or_else(|| config.downcast_ref().cloned().map(Which::Receiver))
    }

    fn header(&self, world: World) -> anyhow::Result<Header> {
        let epoch = match self {
            Which::Sender(config) => config.epoch,
            Which::Receiver(config) => config.epoch,
        };
        let config = serde_json::to_value(self)?;
        Ok(Header { world, role: NAME.to_owned(), seed: [0; 32], epoch, config })
    }

    fn endpoint(self) -> anyhow::Result<AnyEndpoint> {
        Ok(match self {
            Which::Sender(config) => any(Sender::new(*config).map_err(|error| Exit::Usage.blame(error))?),
            Which::Receiver(config) => any(Receiver::new(config).map_err(|error| Exit::Usage.blame(error))?),
        })
    }
}

/// A sender on real sockets, and the first line of its recording.
pub(crate) fn sender(config: SenderConfig) -> anyhow::Result<(Header, AnyEndpoint)> {
    live(Which::Sender(Box::new(config)))
}

/// A receiver on real sockets, and the first line of its recording.
pub(crate) fn receiver(config: ReceiverConfig) -> anyhow::Result<(Header, AnyEndpoint)> {
    live(Which::Receiver(config))
}

fn live(end: Which) -> anyhow::Result<(Header, AnyEndpoint)> {
    Ok((end.header(World::Real)?, end.endpoint()?))
}

/// What `conformance` sends; 2 Mbit/s is what its path has left in both directions.
const RATE: Rate = Rate::ip(2_000_000);
/// Where controllers begin: those that begin with a packet a second would hear nothing in the time.
const START: Rate = Rate::ip(400_000);
const SECONDS: i64 = 1;
/// A large frame and smaller ones.
const TRACE: [u32; 4] = [9_000, 700, 800, 900];

impl Role for Streaming {
    fn name(&self) -> &'static str {
        NAME
    }

    fn shown(&self, _: &Scenario, found: &Found) -> Shown {
        let found = &found.stream;
        let mut table = Table::new(&[
            "stream",
            "from",
            "to",
            "control",
            ">goodput (IP)",
            ">sent",
            ">received",
            "lost",
            ">delay",
            ">longest",
            ">jitter",
            ">marked",
            ">feedback",
            "congestion, wireless",
            ">Mc, Mw",
            ">capacity",
            ">hand-offs",
        ]);
        let percent =
            |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |s| format!("{:.1} %", s * 100.0));
        let milliseconds =
            |seconds: Option<f64>| seconds.map_or_else(|| "-".to_owned(), |s| format!("{:.2} ms", s * 1e3));
        for stream in &found.outcomes {
            let lost: Vec<_> =
                stream.lost.iter().map(|(cause, packets)| format!("{packets} {cause}")).collect();
            table.row([
                stream.stream.clone(),
                stream.from.clone(),
                stream.to.clone(),
                stream.control.clone().unwrap_or_else(|| "-".to_owned()),
                stream.goodput_bps.map_or_else(|| "-".to_owned(), |bps| as_rate(bps).to_string()),
                stream.sent.to_string(),
                stream.received.to_string(),
                if lost.is_empty() { "-".to_owned() } else { lost.join(", ") },
                milliseconds(stream.delay_mean_s),
                milliseconds(stream.delay_max_s),
                milliseconds(stream.jitter_s),
                stream.ecn_marked.to_string(),
                Bytes(stream.feedback_bytes).to_string(),
                format!("{}, {}", stream.congestion_lost, stream.wireless_lost),
                match (stream.mc, stream.mw) {
                    (None, None) => "-".to_owned(),
                    (mc, mw) => format!("{}, {}", percent(mc), percent(mw)),
                },
                stream.capacity_bps.map_or_else(|| "-".to_owned(), |bps| Rate::ip(bps).to_string()),
                stream.hand_offs.map_or_else(|| "-".to_owned(), |hand_offs| hand_offs.to_string()),
            ]);
        }
        let table = (!found.outcomes.is_empty()).then(|| table.text());
        let rows = found.outcomes.iter().map(|stream| json!(stream)).collect();
        Shown { key: "streams", row: NAME, rows, table, exit: None }
    }

    fn header(&self, _: &Scenario, what: Recorded) -> HeaderOf {
        Box::new(move |config| Some(Which::of(config)?.header(what.world)))
    }

    fn endpoint(&self, header: &Header, _: Option<Key>) -> anyhow::Result<AnyEndpoint> {
        let which = super::recorded::<Which>(header)?;
        match &which {
            Which::Sender(config) if !config.is_possible() => {
                Err(Exit::Usage.blame(anyhow!("the recording's stream has impossible frames")))
            }
            _ => which.endpoint(),
        }
    }

    /// Both ends of one stream, a sender at the rate of each controller, and one with each source.
    fn cases(&self, _full: bool) -> Vec<Case> {
        let case = |kind, name, which, rate: SenderRate, source: SourceConfig| Case {
            kind,
            name,
            direction: Direction::Forward,
            table: format!(
                "[[stream]]\nfrom = \"sender\"\nto = \"receiver\"\necn = \"ect1\"\n{}{}\
                 start = \"100 ms\"\nstop = \"{} ms\"\n",
                match &rate {
                    SenderRate::Fixed(rate) => format!("rate = \"{} bit/s\"\n", rate.bits_per_second()),
                    SenderRate::Controlled(config) => {
                        let bps = |rate: Rate| rate.bits_per_second();
                        let (start, max) = (config.start.map_or(0, bps), bps(config.max));
                        let limits = format!("start_rate = \"{start} bit/s\"\nmax_rate = \"{max} bit/s\"");
                        format!("control = \"{}\"\n{limits}\n", config.control)
                    }
                },
                match &source.source {
                    None => String::new(),
                    Some(choice) if source.sizes.is_empty() => format!("source = \"{choice}\"\n"),
                    Some(choice) => format!("source = \"{choice}\"\nframes = {:?}\n", source.sizes),
                },
                1_000 * SECONDS + 100,
            ),
            which,
            over_loopback: Box::new(move || over_loopback(which, &rate, &source)),
        };
        let controlled = |scheme: &&Controller| {
            let control = Composition::of(Choice::named(scheme.name));
            let config = ControlConfig { start: Some(START), max: RATE, ..ControlConfig::new(control) };
            case("controller", scheme.name, 0, SenderRate::Controlled(config), SourceConfig::default())
        };
        let wrapped = |wrapper: &&Wrapper| {
            let brief = |choice: Choice, (name, value): &(&str, &str)| choice.with(name, value);
            let around = wrapper.brief.iter().fold(Choice::named(wrapper.name), brief);
            let first = Composition::of(Choice::named(CONTROLLERS[0].name));
            let control = Composition { wrapper: Some(around), ..first };
            let config = ControlConfig { start: Some(START), max: RATE, ..ControlConfig::new(control) };
            case("wrapper", wrapper.name, 0, SenderRate::Controlled(config), SourceConfig::default())
        };
        let source = |source: &&Source| {
            let sizes = if source.needs_sizes { TRACE.to_vec() } else { Vec::new() };
            let config = SourceConfig { source: Some(Choice::named(source.name)), seed: 1, sizes };
            case("source", source.name, 0, RATE.into(), config)
        };
        let end = |name, which| case(NAME, name, which, RATE.into(), SourceConfig::default());
        let ends = [end("rtp-sender", 0), end("rtp-receiver", 1)];
        let controlled = CONTROLLERS.iter().map(controlled).chain(WRAPPERS.iter().map(wrapped));
        ends.into_iter().chain(controlled).chain(SOURCES.iter().map(source)).collect()
    }

    fn section(&self, document: &Map<String, Value>) -> String {
        document::flows(document, "Streams", NAME)
    }

    fn lanes(&self) -> &'static [&'static str] {
        &LANES
    }

    fn told(&self, what: &endpoint::Decision) -> Option<Told> {
        what.of().map(told)
    }

    fn is_result(&self, what: &endpoint::Decision) -> bool {
        matches!(what.of(), Some(Decision::MediaEnded { .. } | Decision::SourceLeft { .. }))
    }

    fn plots(&self, run: &Run) -> String {
        plots::section(run)
    }

    fn results(&self, run: &Run) -> String {
        let ends = run.results.iter().filter_map(|event| Some(end_row(event.node, event.what.of()?)));
        let ends: Vec<_> = ends.collect();
        if ends.is_empty() {
            return String::new();
        }
        let first = ["node", "end", "packets", "bytes", "lost", "marked", "acknowledged"];
        format!("<h2>Media streams</h2>\n{}", table(&ends.iter().collect::<Vec<_>>(), &first))
    }
}

const LANES: [&str; 2] = ["sender", "receiver"];

/// A stream's decision in words.
fn told(what: &Decision) -> Told {
    let [sender, receiver] = LANES;
    let (lane, mood, text) = match what {
        Decision::MediaStarted { peer, ssrc, rate } => {
            (sender, Mood::Good, format!("stream {ssrc:08x} to {peer} began at {rate}"))
        }
        Decision::TargetChanged { target } => (sender, Mood::Neutral, format!("the rate is to be {target}")),
        Decision::MediaProgress { target, sent } => {
            let Sent { packets, acknowledged, .. } = sent;
            let text =
                format!("{packets} packets sent, {acknowledged} acknowledged; the rate is to be {target}");
            (sender, Mood::Neutral, text)
        }
        Decision::MediaReported { lost, jitter, rtt } => {
            let rtt = rtt.map_or_else(String::new, |rtt| format!(", round trip {rtt}"));
            (sender, Mood::Neutral, format!("the receiver reports {lost} lost, jitter {jitter}{rtt}"))
        }
        Decision::CircuitBroken { why: End::Congestion, ends: false, .. } => (
            sender,
            Mood::Bad,
            "ten times as much as TCP would send: a tenth of the rate is tried".to_owned(),
        ),
        Decision::CircuitBroken { .. } => (sender, Mood::Bad, "a circuit breaker ends the stream".to_owned()),
        Decision::MediaEnded { why, sent } => {
            let (mood, why) = match why {
                End::Stop => (Mood::Good, "as planned"),
                End::NoFeedback => (Mood::Bad, "since no feedback came"),
                End::MediaTimeout => (Mood::Bad, "since reports say that no media arrives"),
                End::Congestion => (Mood::Bad, "since it sent ten times as much as TCP would"),
                End::PortClosed => (Mood::Bad, "since nothing listens there"),
                End::Unreachable => (Mood::Bad, "since the receiver is unreachable"),
                End::TooBig => (Mood::Bad, "since packets are larger than the path takes"),
                End::PeerLeft => (Mood::Neutral, "since the receiver left"),
                End::ByteLimit => (Mood::Neutral, "at its limit of bytes"),
                _ => (Mood::Neutral, "interrupted"),
            };
            let Sent { packets, acknowledged, marked, .. } = sent;
            let text =
                format!("ended {why}: {packets} packets sent, {acknowledged} acknowledged, {marked} marked");
            (sender, mood, text)
        }
        Decision::SourceFound { peer, ssrc } => {
            (receiver, Mood::Good, format!("stream {ssrc:08x} comes from {peer}"))
        }
        Decision::SourceProgress { ssrc, received, .. } => {
            let Received { packets, lost, jitter, .. } = received;
            let text = format!("stream {ssrc:08x}: {packets} packets came, {lost} lost, jitter {jitter}");
            (receiver, Mood::Neutral, text)
        }
        Decision::SourceLeft { peer, ssrc, why, received } => {
            let Received { packets, lost, jitter, .. } = received;
            let why = match why {
                Left::Goodbye => "said goodbye",
                Left::Silent => "is silent",
                Left::Displaced => "made room for another",
                _ => "is no longer listened to",
            };
            let text = format!(
                "stream {ssrc:08x} of {peer} {why}: {packets} packets came, {lost} lost, jitter {jitter}"
            );
            (receiver, if *lost == 0 { Mood::Good } else { Mood::Neutral }, text)
        }
        Decision::LossesJudged(verdicts) => (sender, Mood::Neutral, judged(verdicts)),
        Decision::Control(decision) => controlled(decision),
        // The event type grows; an event of a kind that has no words yet is better shown than hidden.
        other => (sender, Mood::Neutral, format!("{other:?}")),
    };
    Told { lane, mood, text }
}

/// How losses were judged, in words.
fn judged(verdicts: &Verdicts) -> String {
    let Verdicts { classifier, congestion, wireless, by, shares } = verdicts;
    let others = by.iter().filter(|(name, _)| name != classifier);
    let others: String = others.map(|(name, packets)| format!(", {name} {packets} of them")).collect();
    let shares: String = shares
        .iter()
        .map(|(scheme, share)| format!(", {scheme} for {:.0} % of the time", share * 100.0))
        .collect();
    format!("{classifier} judged {congestion} losses congestion and {wireless} wireless{others}{shares}")
}

/// What a controller decided, in words.
fn controlled(what: &control::Decision) -> (&'static str, Mood, String) {
    use control::Decision;
    let text = match what {
        Decision::LossJudged { id, packets, class, by } => {
            let of = if *class == LossClass::Wireless { "by the wireless link" } else { "to congestion" };
            format!("{by}: {packets} lost {of}, from packet {id} on")
        }
        Decision::LossEvent { id, loss_event_rate } => {
            let percent = loss_event_rate * 100.0;
            format!("a loss event began with packet {id}: loss event rate {percent:.3} %")
        }
        Decision::FellBack { from, to, needs, resolution } => {
            let has =
                resolution.map_or_else(|| "there are none".to_owned(), |has| format!("these are of {has}"));
            return (
                LANES[0],
                Mood::Bad,
                format!("{to} judges for {from}, which needs stamps of {needs}: {has}"),
            );
        }
        Decision::Doubted { classifier, wireless } => {
            let percent = wireless * 100.0;
            let text = format!(
                "{classifier} took {percent:.0} % of all packets for lost by the wireless link, more than one can well lose: \
                 it starts anew, and until less than a tenth are lost every loss is congestion"
            );
            return (LANES[0], Mood::Bad, text);
        }
        Decision::Restored { to } => format!("{to} judges again"),
        Decision::Capacity { rate, size, .. } => {
            format!("the path's capacity is {rate} for packets of {size}")
        }
        Decision::CapacityAbove { rate, size } => {
            format!(
                "the path's capacity is more than {rate} for packets of {size}: arrivals are not told more finely"
            )
        }
        Decision::CapacityUnknown => {
            let text = "packet pairs tell no capacity: most are lost, or times of arrival are missing or do not tell their packets apart";
            return (LANES[0], Mood::Bad, text.to_owned());
        }
        Decision::HandOff { from, to } => {
            return (LANES[0], Mood::Good, format!("a hand-off: the path's capacity was {from} and is {to}"));
        }
        Decision::SlowStartEnded { rate } => format!("slow start ended at {rate}"),
        Decision::NoFeedback { rate } => {
            return (LANES[0], Mood::Bad, format!("no feedback came for too long: the rate is {rate}"));
        }
        other => format!("{other:?}"),
    };
    (LANES[0], Mood::Neutral, text)
}

/// What came of one end of a stream, as a page's table has it.
fn end_row(node: u32, what: &Decision) -> Map<String, Value> {
    let (end, all) = match what {
        Decision::MediaEnded { sent, .. } => (LANES[0], json!(sent)),
        Decision::SourceLeft { received, .. } => {
            let mut all = json!(received);
            all["jitter"] = json!(received.jitter.to_string());
            all["first"] = json!(received.first.to_string());
            all["last"] = json!(received.last.to_string());
            (LANES[1], all)
        }
        _ => (LANES[0], Value::Null),
    };
    let mut row = Map::from_iter([("node".to_owned(), json!(node)), ("end".to_owned(), json!(end))]);
    row.extend(all.as_object().cloned().unwrap_or_default());
    row
}

fn over_loopback(which: usize, rate: &SenderRate, source: &SourceConfig) -> anyhow::Result<Buffer> {
    let buffer = Buffer::default();
    let driven = |end: Which, recorded: bool| {
        let header = end.header(World::Real)?;
        let recorder = recorded.then(|| SharedRecorder::new(buffer.clone(), &header)).transpose()?;
        Ok(Driven { endpoint: end.endpoint()?, recorder })
    };
    let receiver = |epoch| {
        let config = ReceiverConfig { epoch, ..ReceiverConfig::new(2) };
        driven(Which::Receiver(config), which == 1)
    };
    let sender = |peer, epoch| {
        let config = SenderConfig {
            ecn: Ecn::Ect1,
            stop: Time::ZERO + Span::from_secs(SECONDS),
            epoch,
            source: source.clone(),
            ..SenderConfig::new(peer, 1, rate.clone())
        };
        driven(Which::Sender(Box::new(config)), which == 0)
    };
    loopback(receiver, sender)?;
    Ok(buffer)
}
