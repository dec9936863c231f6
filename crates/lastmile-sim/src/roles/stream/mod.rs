//! Streaming: RTP senders and receivers of `[[stream]]`, and each stream's results.

use std::any::Any;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use lastmile::control::{Decision as Controlled, RateController, StreamGroup};
use lastmile::endpoint::any;
use lastmile::endpoint::stream::source::FrameSource;
use lastmile::endpoint::stream::{
    ControlConfig, Decision, FrameSink, MEDIA, Receiver, Sender, SenderConfig, SenderRate,
};
use lastmile::node::Datagram;
use lastmile::rng::Stream;
use lastmile::time::{Span, Time};
use lastmile::units::Bytes;
use lastmile::wire::{RtpPacket, is_rtcp};
use serde_json::{Value, json};

use super::{Ended, Made, Makers, Place, Placed, Role, Surroundings};
use crate::monitor::flows;
use crate::network::meter::udp_payload;
use crate::scenario::roles::stream::{Grouped, Spec, Streaming};
use crate::scenario::{CountedFlow, FlowCounts, RunError, Scenario, Simulation};

mod outcome;
mod truth;

use truth::Truth;

pub use outcome::StreamOutcome;

/// Makes the rate controllers and the video of streams. By default controllers are the registered ones that the tables name, and frames have
/// no content.
#[derive(Clone, Default)]
pub struct Make {
    controller: Option<Arc<MakeController>>,
    video: Option<Arc<MakeVideo>>,
}

type MakeController = dyn Fn(&Spec) -> Option<Box<dyn RateController>> + Send + Sync;
type MakeVideo = dyn Fn(&Spec, &SenderConfig) -> Result<Option<Video>, RunError> + Send + Sync;

/// Real video in a stream: its frames and its viewer.
pub struct Video {
    /// The sender's frames, whichever source the table names.
    pub source: Box<dyn FrameSource>,
    /// The receiver's viewer.
    pub viewer: Box<dyn FrameSink>,
}

impl Makers {
    /// With rate controllers of one's own for the streams that `make` gives one for.
    ///
    /// ```
    /// use lastmile::{control, units::Rate};
    /// use lastmile_sim::{roles::Makers, runs::{Hooks, simulate}, scenario::Scenario};
    /// let text = r#"
    ///     name = "own"
    ///     duration = "2 s"
    ///     link = [{ from = "a", to = "b", rate = "1 Mbit/s", delay = "5 ms" }]
    ///     stream = [{ from = "a", to = "b", control = "tfrc" }]
    ///     [host]
    ///     a = {}
    ///     b = {}
    /// "#;
    /// let make = Makers::default().controlling(|_| {
    ///     let setting = control::Setting { start: Some(Rate::ip(300_000)), ..Default::default() };
    ///     control::build(&"fixed".parse().unwrap(), &setting).ok()
    /// });
    /// let run = simulate(&Scenario::parse("own.toml", text)?, 1, &make, Hooks::default())?;
    /// let sent = run.found.stream.outcomes[0].sent_bytes;
    /// assert!((70_000..=80_000).contains(&sent), "{sent}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn controlling(
        self,
        make: impl Fn(&Spec) -> Option<Box<dyn RateController>> + Send + Sync + 'static,
    ) -> Makers {
        Makers { stream: Make { controller: Some(Arc::new(make)), ..self.stream }, ..self }
    }

    /// With real video in the streams that `make` gives some for. It gets the sender's configuration for the settings of the source.
    #[must_use]
    pub fn filming(
        self,
        make: impl Fn(&Spec, &SenderConfig) -> Result<Option<Video>, RunError> + Send + Sync + 'static,
    ) -> Makers {
        Makers { stream: Make { video: Some(Arc::new(make)), ..self.stream }, ..self }
    }
}

/// Results of all streams of a run.
#[derive(Debug, Default)]
pub struct Found {
    /// Stream by stream, in the order of the file.
    pub outcomes: Vec<StreamOutcome>,
}

/// State of the streams while they run.
pub struct Running(Vec<Watched>);

/// A stream that is looked at.
#[derive(Default)]
struct Watched {
    ssrc: u32,
    delays: Arc<Mutex<Delays>>,
    truth: Arc<Truth>,
}

/// Departures of packets that have not arrived, by sequence number, and the delays of the others.
#[derive(Debug, Default)]
struct Delays {
    left: BTreeMap<u16, Time>,
    counts: FlowCounts,
    longest: Span,
}

impl Role for Streaming {
    type Make = Make;
    type Running = Running;
    type Found = Found;
    const KEY: &'static str = "streams";
    const ROW: &'static str = "stream";

    fn plan(scenario: &Scenario, seed: u64, make: &Make) -> Result<(Vec<Placed>, Running), RunError> {
        let (mut placed, mut kept) = (Vec::new(), Vec::new());
        let streams = &scenario.roles.stream;
        let mut groups = BTreeMap::new();
        for (index, spec) in streams.iter().enumerate() {
            let talk = spec.conversation(index);
            let mut random = Stream::new(seed, &format!("stream/{}", spec.name));
            let mut ssrc = || (random.unit() * f64::from(u32::MAX)) as u32;
            let (own, others, again) = (ssrc(), ssrc(), ssrc());
            let (seed_of_frames, start) = (ssrc().into(), spec.starts(seed));
            let peer = (scenario.hosts[spec.to].address(spec.ipv6), talk.to.1).into();
            let watched = Watched { ssrc: own, ..Watched::default() };
            let (mut config, told) = (spec.sender.clone(), watched.truth.clone());
            let own_controller = match spec.group_rate(streams) {
                Some(whole) => Some(shared(spec, whole, &mut groups, make)?),
                None => make.controller.as_ref().and_then(|make| make(spec)),
            };
            config.peer = peer;
            let video = make.video.as_ref().map_or(Ok(None), |make| make(spec, &config))?;
            let (source, viewer) = video.map(|Video { source, viewer }| (source, viewer)).unzip();
            // A recording of one of a group's streams lacks what the others told the controller, and one of real video the pictures.
            let is_whole = spec.group.is_none() && source.is_none();
            let sender = move |around: &Surroundings| {
                (config.ssrc, config.epoch) = (own, around.epoch);
                config.source.seed = seed_of_frames;
                // A scenario's times are the run's, whatever the host's clock says.
                (config.start, config.stop) = (around.local(start), around.local(config.stop));
                config.retransmission.iter_mut().for_each(|repeats| repeats.ssrc = again);
                let made = match own_controller {
                    Some(controller) => Sender::controlled(config.clone(), controller),
                    None => Sender::informed(config.clone(), told),
                };
                let mut sender = made.map_err(|error| RunError::Make(error.to_string()))?;
                if let Some(source) = source {
                    sender = sender.with_source(source);
                }
                let config: Box<dyn Any + Send> = if is_whole { Box::new(config) } else { Box::new(()) };
                Ok(Made { endpoint: any(sender), config })
            };
            let (mut config, told) = (spec.receiver.clone(), watched.truth.clone());
            config.video = viewer.as_ref().map(|_| MEDIA);
            let receiver = move |around: &Surroundings| {
                (config.ssrc, config.epoch, config.resolution) = (others, around.epoch, around.resolution);
                let mut receiver = Receiver::informed(config.clone(), told)
                    .map_err(|error| RunError::Make(error.to_string()))?;
                if let Some(viewer) = viewer {
                    receiver = receiver.with_viewer(viewer);
                }
                Ok(Made { endpoint: any(receiver), config: Box::new(config) })
            };
            let place = |(host, port): (usize, u16)| Place { host, ipv6: spec.ipv6, port, number: 0 };
            let realtime = spec.realtime;
            placed.push(Placed { place: place(talk.from), answers: false, realtime, make: Box::new(sender) });
            placed.push(Placed { place: place(talk.to), answers: true, realtime, make: Box::new(receiver) });
            kept.push(watched);
        }
        Ok((placed, Running(kept)))
    }

    fn attach(running: &mut Running, scenario: &Scenario, simulation: &mut Simulation) {
        for (index, (spec, watched)) in scenario.roles.stream.iter().zip(&running.0).enumerate() {
            let Some((flow, _)) = simulation.conversation(&spec.conversation(index)) else { continue };
            let (sender, receiver) = (simulation.hosts[spec.from], simulation.hosts[spec.to]);
            let (ssrc, delays) = (watched.ssrc, watched.delays.clone());
            simulation.roles_flows.push((spec.name.clone(), watched.delays.clone()));
            let media = move |datagram: &Datagram| {
                let rtp = udp_payload(&datagram.payload)
                    .filter(|bytes| datagram.flow == flow && !is_rtcp(bytes))?;
                let header = RtpPacket::parse(rtp).ok()?.header;
                (header.ssrc == ssrc).then_some(header.sequence)
            };
            let (left, lost) = (watched.truth.clone(), watched.truth.clone());
            simulation.engine.set_tap(Box::new(move |now, from, to, datagram| {
                if from != sender && to != receiver {
                    return;
                }
                let Some(sequence) = media(datagram) else { return };
                if from == sender {
                    left.known().left(sequence);
                }
                let mut delays = delays.lock().unwrap_or_else(PoisonError::into_inner);
                delays.saw((now, datagram.ip_size()), sequence, from == sender, to == receiver);
            }));
            simulation.engine.add_lost_tap(Box::new(move |_, _, what| {
                if let Some(sequence) = media(what.datagram) {
                    lost.known().lost(sequence, what.cause);
                }
            }));
        }
    }

    fn found(running: Running, ended: &Ended<'_>) -> Result<Found, RunError> {
        let mut lost = flows::lost(ended.simulation);
        let mut outcomes = Vec::new();
        for (index, (spec, watched)) in ended.scenario.roles.stream.iter().zip(&running.0).enumerate() {
            let talk = spec.conversation(index);
            let lost = ended.simulation.conversation(&talk).and_then(|(flow, _)| lost.remove(&flow));
            let delays = watched.delays.lock().unwrap_or_else(PoisonError::into_inner);
            let FlowCounts { packets, total_delay, .. } = delays.counts;
            let delay = (packets > 0)
                .then(|| (total_delay.as_secs_f64() / packets as f64, delays.longest.as_secs_f64()));
            let (sender, receiver) = (ended.number(talk.from, talk.ipv6), ended.number(talk.to, talk.ipv6));
            let (mut sent, mut came, mut judged, mut capacity, mut hand_offs) = (None, None, None, None, 0);
            let mut pacing = Vec::new();
            for (_, what) in ended.decisions(sender).chain(ended.decisions(receiver)) {
                match what {
                    Decision::MediaEnded { why, sent: all } => sent = sent.or(Some((*why, *all))),
                    Decision::SourceLeft { received, .. } => came = came.or(Some(*received)),
                    Decision::MediaProgress { target, pacing: Some(paced), .. } => {
                        pacing.extend(paced.ratio(*target));
                    }
                    Decision::LossesJudged(verdicts) => judged = judged.or_else(|| Some(verdicts.clone())),
                    Decision::Control(Controlled::Capacity { rate, .. }) => capacity = Some(*rate),
                    Decision::Control(Controlled::HandOff { .. }) => hand_offs += 1,
                    _ => {}
                }
            }
            let host = |host: usize| ended.scenario.hosts[host].name.clone();
            outcomes.push(StreamOutcome::new(
                (spec, host(spec.from), host(spec.to)),
                sent,
                came,
                lost.unwrap_or_default(),
                delay,
                (judged, watched.truth.known().clone()),
                (capacity, hand_offs, lastmile::observe::stats::mean(&pacing)),
            ));
        }
        Ok(Found { outcomes })
    }

    fn rows(found: &Found) -> Vec<Value> {
        found.outcomes.iter().map(|stream| json!(stream)).collect()
    }
}

/// A stream's share of its group's controller, which the first of the group's streams makes.
fn shared(
    spec: &Spec,
    whole: ControlConfig,
    groups: &mut BTreeMap<String, StreamGroup>,
    make: &Make,
) -> Result<Box<dyn RateController>, RunError> {
    let wrong = |error: &dyn core::fmt::Display| RunError::Make(format!("stream {}: {error}", spec.name));
    let SenderRate::Controlled(own) = &spec.sender.rate else { return Err(wrong(&"its rate is fixed")) };
    let limits = own.min..=own.max;
    let Some(Grouped { name, priority }) = &spec.group else { return Err(wrong(&"it has no group")) };
    let group = match groups.entry(name.clone()) {
        Entry::Occupied(group) => group.into_mut(),
        Entry::Vacant(place) => {
            let mut asked = spec.clone();
            asked.sender.rate = SenderRate::Controlled(whole.clone());
            let controller = match make.controller.as_ref().and_then(|make| make(&asked)) {
                Some(controller) => controller,
                None => whole.build(spec.sender.packet_size).map_err(|error| wrong(&error))?,
            };
            place.insert(StreamGroup::new(controller))
        }
    };
    group.stream(*priority, limits).ok_or_else(|| wrong(&"its group has too many streams"))
}

impl CountedFlow for Mutex<Delays> {
    fn counts(&self) -> FlowCounts {
        self.lock().unwrap_or_else(PoisonError::into_inner).counts
    }
}

impl Delays {
    fn saw(&mut self, (now, size): (Time, Bytes), number: u16, leaves: bool, arrives: bool) {
        if leaves {
            self.left.insert(number, now);
            self.counts.sent += size;
        }
        if arrives && let Some(left) = self.left.remove(&number) {
            let took = now - left;
            self.counts.packets += 1;
            self.counts.arrived += size;
            self.counts.total_delay += took;
            self.longest = self.longest.max(took);
        }
    }
}
