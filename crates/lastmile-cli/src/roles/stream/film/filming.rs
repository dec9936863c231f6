//! Real video in a scenario's stream, in the lab and in the simulator: its making, and what is told of it while it runs.

use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use lastmile::endpoint::Event;
use lastmile::endpoint::stream::{Decision, Sent, Viewed};
use lastmile::observe::stats::{mean, median};
use lastmile::time::Time;
use lastmile::wire::is_rtcp;
use lastmile_net::media::{Coding, SharedCoding, SharedSeen};
use lastmile_report::chart::{Axis, Chart};
use lastmile_sim::network::lost::LossCause;
use lastmile_sim::network::meter::udp_payload;
use lastmile_sim::roles::Makers;
use lastmile_sim::roles::stream::Video;
use lastmile_sim::runs::Prepare;
use lastmile_sim::scenario::RunError;
use serde_json::{Map, Value, json};

use super::{Film, Moment, keyed, marked};
use crate::roles::stream::video::{Size, VideoName, pictures, source, viewer};

/// The causes of losses with their colours, from the bottom of a column to its top.
const CAUSES: [(LossCause, &str); 4] = [
    (LossCause::Channel, "cb"),
    (LossCause::Queue, "c1"),
    (LossCause::Collision, "c2"),
    (LossCause::Handoff, "ci"),
];

/// Share of frames that may take longer to code than until the next one.
const MAX_SLOW: f64 = 0.01;

/// News of a run.
pub(crate) enum News {
    Decided(Box<Event>),
    /// The network lost a packet of media.
    Lost(Time, LossCause),
}

/// A second of a video under way.
#[derive(Clone)]
pub(crate) struct Second {
    /// Seconds since the first picture.
    pub(crate) at: f64,
    /// Rate of IP packets that arrived, Mbit/s.
    pub(crate) received: f64,
    /// Packets that the network lost.
    pub(crate) lost: usize,
    pub(crate) frames: f64,
    /// Of the places on the screen that were compared since the second before.
    pub(crate) ssim: Option<f64>,
    /// Median from the source to the screen, seconds.
    pub(crate) delay: Option<f64>,
}

/// Makers with the test pattern in each stream, decoded and compared with nothing. Coding takes time in real time alone.
pub(crate) fn filmed(make: Makers, (width, height): (usize, usize), in_real_time: bool) -> Makers {
    let size = Size { width, height };
    make.filming(move |_, config| {
        let made = || {
            let (pattern, size) = pictures(&VideoName::TestPattern, Some(size), Some(config.frame_rate))?;
            let (source, _) = source(pattern, size, config)?;
            let source = if in_real_time { source } else { source.untimed() };
            let viewer = viewer(None, None, Some(config.frame_rate))?;
            anyhow::Ok(Some(Video { source: Box::new(source), viewer: Box::new(viewer) }))
        };
        made().map_err(|error| RunError::Make(error.to_string()))
    })
}

/// A stream that is filmed.
#[derive(Clone, Default)]
pub(crate) struct Filming {
    ends: Arc<Mutex<Option<(SharedCoding, SharedSeen)>>>,
}

impl Filming {
    /// Makers with the test pattern in the scenario's stream, and a look at the screen where another video was at its worst. Coding takes time in real
    /// time alone.
    pub(crate) fn makers(&self, make: Makers, in_real_time: bool, beside: Option<&Filmed>) -> Makers {
        let watch = beside.and_then(|other| other.seen.lock().worst.as_ref().map(|still| still.number));
        let slot = Arc::clone(&self.ends);
        make.filming(move |_, config| {
            let made = || {
                let (pattern, size) = pictures(&VideoName::TestPattern, None, Some(config.frame_rate))?;
                let (source, _) = source(pattern, size, config)?;
                let viewer = viewer(None, Some(&VideoName::TestPattern), Some(config.frame_rate))?;
                viewer.seen().lock().watch = watch;
                *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some((source.coding(), viewer.seen()));
                let source = if in_real_time { source } else { source.untimed() };
                anyhow::Ok(Some(Video { source: Box::new(source), viewer: Box::new(viewer) }))
            };
            made().map_err(|error| RunError::Make(error.to_string()))
        })
    }

    /// Has the decisions of the run and the losses of media told.
    pub(crate) fn prepare(&self, news: Sender<News>) -> Prepare {
        Box::new(move |scenario, simulation| {
            let flows: Vec<_> = scenario
                .conversations()
                .iter()
                .filter_map(|talk| simulation.conversation(talk).map(|(flow, _)| flow))
                .collect();
            let decided = news.clone();
            // Nobody may listen any more.
            simulation.engine.add_decision_tap(Box::new(move |_, event| {
                let _ = decided.send(News::Decided(Box::new(event.clone())));
            }));
            simulation.engine.add_lost_tap(Box::new(move |_, _, lost| {
                let is_media = flows.contains(&lost.datagram.flow)
                    && udp_payload(&lost.datagram.payload).is_some_and(|bytes| !is_rtcp(bytes));
                if is_media {
                    let _ = news.send(News::Lost(lost.at, lost.cause));
                }
            }));
        })
    }

    /// Collects the news until the run is over; `show` is told of each second.
    pub(crate) fn collect(&self, name: &str, news: &Receiver<News>, mut show: impl FnMut(&Second)) -> Filmed {
        let mut filmed = Filmed {
            name: name.to_owned(),
            coding: SharedCoding::default(),
            seen: SharedSeen::default(),
            viewed: Viewed::default(),
            began: None,
            seconds: Vec::new(),
            said: Vec::new(),
            lost: Vec::new(),
        };
        let mut told = Told::default();
        for news in news {
            if let Some(ends) = self.ends.lock().unwrap_or_else(PoisonError::into_inner).take() {
                (filmed.coding, filmed.seen) = ends;
            }
            let event = match news {
                News::Lost(at, cause) => {
                    filmed.lost.push((at, cause));
                    continue;
                }
                News::Decided(event) => event,
            };
            match event.what.of::<Decision>() {
                Some(Decision::MediaStarted { .. }) => filmed.began = Some(event.at),
                Some(Decision::MediaProgress { sent, .. }) => filmed.said.push((event.at, *sent)),
                Some(Decision::FramesViewed { viewed, .. }) => {
                    filmed.viewed = *viewed;
                    let second = told.second(&filmed, event.at);
                    second.iter().for_each(&mut show);
                    filmed.seconds.extend(second);
                }
                _ => {}
            }
        }
        filmed
    }
}

/// The line that was told last.
#[derive(Default)]
struct Told {
    at: Option<Time>,
    frames: u64,
    lost: usize,
    places: usize,
}

impl Told {
    fn second(&mut self, filmed: &Filmed, at: Time) -> Option<Second> {
        let began = filmed.began?;
        let before = self.at.replace(at).unwrap_or(began);
        let seconds = (at - before).as_secs_f64();
        let seen = filmed.seen.lock();
        let places = seen.places.get(self.places..).unwrap_or_default();
        let ssim: Vec<f64> = places.iter().map(|place| place.ssim).collect();
        let delay =
            |number: u64, shown: Time| (shown - began).as_secs_f64() - number as f64 / seen.frame_rate;
        let delays: Vec<f64> =
            places.iter().filter_map(|place| Some(delay(place.number, place.shown?))).collect();
        let second = Second {
            at: (at - began).as_secs_f64(),
            received: filmed.rates().last().map_or(0.0, |(_, rate)| *rate),
            lost: filmed.lost.len() - self.lost,
            frames: (filmed.viewed.frames - self.frames) as f64 / seconds,
            ssim: mean(&ssim),
            delay: median(&delays),
        };
        (self.frames, self.lost, self.places) = (filmed.viewed.frames, filmed.lost.len(), seen.places.len());
        (seconds > 0.5).then_some(second)
    }
}

/// A stream that was filmed.
pub(crate) struct Filmed {
    pub(crate) name: String,
    pub(crate) seen: SharedSeen,
    coding: SharedCoding,
    viewed: Viewed,
    began: Option<Time>,
    /// All of its seconds.
    pub(crate) seconds: Vec<Second>,
    /// The sender's counts each second.
    said: Vec<(Time, Sent)>,
    lost: Vec<(Time, LossCause)>,
}

impl Filmed {
    /// It as its viewer saw it.
    pub(crate) fn film<'a>(&self, seen: &'a lastmile_net::media::Seen) -> Film<'a> {
        Film { name: self.name.clone(), seen, viewed: self.viewed, began: self.began }
    }

    /// Seconds since the first picture.
    fn since(&self, at: Time) -> f64 {
        (at - self.began.unwrap_or(Time::ZERO)).as_secs_f64()
    }

    /// Mbit/s of IP packets that arrived, in the seconds before these times.
    fn rates(&self) -> Vec<(f64, f64)> {
        let rate = |pair: &[(Time, Sent)]| {
            let [(from, before), (to, now)] = pair else { return None };
            let seconds = (*to - *from).as_secs_f64();
            let bits = (now.acknowledged_bytes - before.acknowledged_bytes).bits();
            (seconds > 0.1).then(|| (self.since(*to), bits as f64 / seconds / 1e6))
        };
        self.said.windows(2).filter_map(rate).collect()
    }

    /// Packets of each second, by the cause of their loss.
    fn losses(&self) -> Vec<[usize; CAUSES.len()]> {
        let mut seconds = Vec::new();
        for (at, cause) in &self.lost {
            let second = self.since(*at).max(0.0) as usize;
            if seconds.len() <= second {
                seconds.resize(second + 1, [0; CAUSES.len()]);
            }
            if let Some(place) = CAUSES.iter().position(|(known, _)| known == cause) {
                seconds[second][place] += 1;
            }
        }
        seconds
    }

    /// Why its numbers are not the path's alone: this machine was too slow for the codec.
    pub(crate) fn too_slow(&self) -> Option<String> {
        let Coding { pictures, slow, .. } = self.coding.get();
        let share = slow as f64 / pictures.max(1) as f64;
        (share > MAX_SLOW).then(|| {
            format!(
                "{:.0} % of the frames took this machine longer to code than until the next one",
                share * 100.0
            )
        })
    }

    /// Columns of its row.
    pub(crate) const COLUMNS: [&'static str; 18] = [
        "video",
        "received_bps",
        "packets lost",
        "sent again",
        "frames",
        "left out by the sender",
        "shown",
        "damaged",
        "late",
        "freezes",
        "frozen_s",
        "median delay_s",
        "P95 delay_s",
        "SSIM on the screen",
        "SSIM of frames shown",
        "PSNR of frames shown, dB",
        "coding a frame_s",
        "decoding a frame_s",
    ];

    /// Its row in a table.
    pub(crate) fn row(&self) -> Map<String, Value> {
        let seen = self.seen.lock();
        let (film, coding) = (self.film(&seen), self.coding.get());
        let sent = self.said.last().map(|(_, sent)| *sent).unwrap_or_default();
        let of = |cause: LossCause| self.lost.iter().filter(|(_, known)| *known == cause).count();
        let lost: Vec<String> = LossCause::ALL
            .iter()
            .filter(|cause| of(**cause) > 0)
            .map(|cause| format!("{} {}", of(*cause), cause.name()))
            .collect();
        let seconds = film.seconds();
        let row = json!({
            "video": self.name,
            "received_bps": sent.acknowledged_bytes.bits() as f64 / seconds.max(1.0),
            "packets lost": lost.join(", "),
            "sent again": sent.retransmitted,
            "frames": sent.frames,
            "left out by the sender": sent.frames_dropped,
            "shown": self.viewed.frames,
            "damaged": self.viewed.damaged,
            "late": self.viewed.late,
            "freezes": self.viewed.freezes,
            "frozen_s": self.viewed.frozen.as_secs_f64(),
            "median delay_s": film.delay(0.5),
            "P95 delay_s": film.delay(0.95),
            "SSIM on the screen": seen.screen_ssim(),
            "SSIM of frames shown": seen.ssim(),
            "PSNR of frames shown, dB": seen.psnr(),
            "coding a frame_s": coding.took.as_secs_f64() / coding.pictures.max(1) as f64,
            "decoding a frame_s": seen.decoding.as_secs_f64() / self.viewed.frames.max(1) as f64,
        });
        row.as_object().cloned().unwrap_or_default()
    }
}

/// Charts of the rates of videos that ran over the same path, and of the losses of each.
pub(crate) fn charts_beside(all: &[&Filmed], moments: &[Moment]) -> Vec<String> {
    let seen: Vec<_> = all.iter().map(|filmed| filmed.seen.lock()).collect();
    let films: Vec<Film<'_>> = all.iter().zip(&seen).map(|(filmed, seen)| filmed.film(seen)).collect();
    let seconds = films.iter().map(Film::seconds).fold(0.0, f64::max);
    let time = || Axis::from_zero("time, s", [seconds]);
    let rates: Vec<_> = all.iter().map(|filmed| filmed.rates()).collect();
    let most = Axis::from_zero("Mbit/s of IP packets", rates.iter().flatten().map(|point| point.1));
    let mut chart = marked(keyed(Chart::new("Received", time(), most), &films), moments);
    for (rates, class) in rates.iter().zip(["c1", "c2"]) {
        chart = chart.line(class, rates);
    }
    let mut figures = vec![chart.figure()];
    figures.extend(super::charts(&films, moments));
    let losses: Vec<_> = all.iter().map(|filmed| filmed.losses()).collect();
    let most = || losses.iter().flatten().map(|second| second.iter().sum::<usize>() as f64);
    for (filmed, losses) in all.iter().zip(&losses) {
        let title = format!("{}: packets lost in each second, by cause", filmed.name);
        let mut chart = Chart::new(&title, time(), Axis::from_zero("packets", most()));
        for (place, (cause, class)) in CAUSES.iter().enumerate() {
            let count: usize = losses.iter().map(|second| second[place]).sum();
            if count > 0 {
                chart = chart.key(class, &format!("{}: {count}", cause.name()));
            }
            for (second, lost) in losses.iter().enumerate().filter(|(_, lost)| lost[place] > 0) {
                let below = lost[..place].iter().sum::<usize>() as f64;
                let (from, count) = (second as f64, lost[place]);
                let tip = format!("{second} s: {count} {}", cause.name());
                chart = chart.column(class, (from, from + 1.0), (below, below + count as f64), &tip);
            }
        }
        figures.push(marked(chart, moments).figure());
    }
    figures
}
