//! Media streams: a row each, and the recording of their two ends, which can be built again from it.

use std::any::Any;

use anyhow::anyhow;
use lastmile::Key;
use lastmile::control::{CONTROLLERS, Composition, Controller, RateController, WRAPPERS, Wrapper};
use lastmile::endpoint::stream::source::{SOURCES, Source};
use lastmile::endpoint::stream::{
    ControlConfig, Decision, Receiver, ReceiverConfig, Retransmission, Sender, SenderConfig, SenderRate,
    SourceConfig,
};
use lastmile::endpoint::{self, AnyEndpoint, any};
use lastmile::node::Ecn;
use lastmile::options::Choice;
use lastmile::report::Direction;
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile_net::recording::{Header, SharedRecorder, World};
use lastmile_sim::monitor::flows::as_rate;
use lastmile_sim::roles::Found;
use lastmile_sim::scenario::Scenario;
use serde::{Deserialize, Serialize};

use super::loopback::{Buffer, Driven, loopback};
use super::{Case, HeaderOf, Recorded, Role, Shown, Told};
#[cfg(feature = "pages")]
use crate::roles::run::Run;
use crate::shell::exit::Exit;
use lastmile_report::text::{Table, Text};

mod answer;
pub(crate) mod audio;
#[cfg(all(feature = "video", feature = "pages"))]
pub(crate) mod film;
#[cfg(feature = "pages")]
mod plots;
pub(crate) mod receiving;
pub(crate) mod secure;
pub(crate) mod sending;
pub(crate) mod video;
mod words;

use words::told;

const NAME: &str = "stream";

/// The role.
pub(super) struct Streaming;

/// All that determines one end of a stream beside its inputs.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Which {
    Sender(Box<SenderConfig>),
    Receiver(Box<ReceiverConfig>),
}

impl Which {
    fn of(config: &dyn Any) -> Option<Which> {
        let sender = config.downcast_ref().cloned().map(Box::new).map(Which::Sender);
        sender.or_else(|| config.downcast_ref().cloned().map(Box::new).map(Which::Receiver))
    }

    fn header(&self, world: World) -> anyhow::Result<Header> {
        let epoch = match self {
            Which::Sender(config) => config.epoch,
            Which::Receiver(config) => config.epoch,
        };
        let config = serde_json::to_value(self)?;
        Ok(Header { world, role: NAME.to_owned(), seed: [0; 32], epoch, config })
    }

    /// The same, with units where a recording has none.
    fn with_units(mut self) -> Which {
        if let Which::Sender(config) = &mut self
            && let SenderRate::Controlled(config) = &mut config.rate
        {
            let Composition { controller, wrapper, .. } = &mut config.control;
            let found = CONTROLLERS.iter().find(|entry| entry.name == controller.name);
            *controller = super::with_units(controller.clone(), found.map_or(&[], |entry| entry.options));
            let around = |around: Choice| {
                let found = WRAPPERS.iter().find(|entry| entry.name == around.name);
                super::with_units(around, found.map_or(&[], |entry| entry.options))
            };
            *wrapper = wrapper.take().map(around);
        }
        self
    }

    fn endpoint(self) -> anyhow::Result<AnyEndpoint> {
        Ok(match self {
            Which::Sender(config) => any(Sender::new(*config).map_err(|error| Exit::Usage.blame(error))?),
            Which::Receiver(config) => any(Receiver::new(*config).map_err(|error| Exit::Usage.blame(error))?),
        })
    }
}

/// A sender on real sockets, and the first line of its recording; under a controller that it shares, if it is given.
pub(crate) fn sender(
    config: SenderConfig,
    shared: Option<Box<dyn RateController>>,
) -> anyhow::Result<(Header, AnyEndpoint)> {
    let header = Which::Sender(Box::new(config.clone())).header(World::Real)?;
    Ok((header, any(sender_under(config, shared)?)))
}

fn sender_under(config: SenderConfig, shared: Option<Box<dyn RateController>>) -> anyhow::Result<Sender> {
    let sender = match shared {
        Some(controller) => Sender::controlled(config, controller),
        None => Sender::new(config),
    };
    sender.map_err(|error| Exit::Usage.blame(error))
}

/// A receiver on real sockets, and the first line of its recording.
pub(crate) fn receiver(config: ReceiverConfig) -> anyhow::Result<(Header, AnyEndpoint)> {
    let end = Which::Receiver(Box::new(config));
    Ok((end.header(World::Real)?, end.endpoint()?))
}

/// A sender of real video on real sockets, and the header of its page; no recording can build it again.
#[cfg(feature = "video")]
pub(crate) fn video_sender(
    config: SenderConfig,
    shared: Option<Box<dyn RateController>>,
    source: Box<dyn lastmile::endpoint::stream::source::FrameSource>,
) -> anyhow::Result<(Header, AnyEndpoint)> {
    let header = Which::Sender(Box::new(config.clone())).header(World::Real)?;
    Ok((header, any(sender_under(config, shared)?.with_source(source))))
}

/// A receiver with a viewer on real sockets, and the first line of its recording.
#[cfg(feature = "video")]
pub(crate) fn viewing_receiver(
    config: ReceiverConfig,
    viewer: Box<dyn lastmile::endpoint::stream::FrameSink>,
) -> anyhow::Result<(Header, AnyEndpoint)> {
    let header = Which::Receiver(Box::new(config.clone())).header(World::Real)?;
    let receiver = Receiver::new(config).map_err(|error| Exit::Usage.blame(error))?;
    Ok((header, any(receiver.with_viewer(viewer))))
}

/// Rate of the streams in `conformance`: its path has 2 Mbit/s left in both directions.
const RATE: Rate = Rate::ip(2_000_000);
/// Start rate of controllers: a start at a packet a second would hear nothing in the time.
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
        let mut text = Text::default();
        if !found.outcomes.is_empty() {
            text.either(found.outcomes.iter().map(answer::answer).collect(), table.text());
        }
        Shown { text, exit: None }
    }

    fn header(&self, _: &Scenario, what: Recorded) -> HeaderOf {
        Box::new(move |config| Some(Which::of(config)?.header(what.world)))
    }

    fn endpoint(&self, header: &Header, _: Option<Key>) -> anyhow::Result<AnyEndpoint> {
        let which = super::recorded::<Which>(header)?.with_units();
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

    fn lanes(&self) -> &'static [&'static str] {
        &LANES
    }

    fn told(&self, what: &endpoint::Decision) -> Option<Told> {
        what.of().map(told)
    }

    fn is_result(&self, what: &endpoint::Decision) -> bool {
        matches!(what.of(), Some(Decision::MediaEnded { .. } | Decision::SourceLeft { .. }))
    }

    #[cfg(feature = "pages")]
    fn plots(&self, run: &Run) -> String {
        plots::section(run)
    }

    #[cfg(feature = "pages")]
    fn results(&self, run: &Run) -> String {
        plots::results(run)
    }
}

const LANES: [&str; 2] = ["sender", "receiver"];

fn over_loopback(which: usize, rate: &SenderRate, source: &SourceConfig) -> anyhow::Result<Buffer> {
    let buffer = Buffer::default();
    let driven = |end: Which, recorded: bool| {
        let header = end.header(World::Real)?;
        let recorder = recorded.then(|| SharedRecorder::new(buffer.clone(), &header)).transpose()?;
        Ok(Driven { endpoint: end.endpoint()?, recorder })
    };
    let receiver = |epoch| {
        let config = ReceiverConfig { epoch, ..ReceiverConfig::new(2) };
        driven(Which::Receiver(Box::new(config)), which == 1)
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

/// Refuses a time in which no lost packet can be asked for.
pub(crate) fn of_use(option: &str, within: Span) -> anyhow::Result<()> {
    let shortest = Retransmission::SHORTEST;
    if within >= shortest {
        return Ok(());
    }
    let why = "a packet is asked for 10 ms after a later one came";
    Err(Exit::Usage.blame(anyhow!("{option} must be {shortest} at least, not {within}: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_whose_sizes_have_no_unit_are_read() {
        let control = ControlConfig::new("tfrc(preset=ns-2, header=40)+probe(min_size=300)".parse().unwrap());
        assert!(control.build(Bytes(1200)).is_err());
        let config = SenderConfig::new("192.0.2.1:5004".parse().unwrap(), 7, SenderRate::Controlled(control));
        assert!(Which::Sender(Box::new(config)).with_units().endpoint().is_ok());
    }
}
