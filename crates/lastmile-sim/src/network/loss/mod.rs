//! Channels that lose packets: one error model per file, on all of a link's packets or on single flows.
//!
//! A model in packets moves on with every packet that meets it, also one that another has lost; a model in time goes its own
//! way, with or without packets. Each draws from a stream of its own. `docs/architecture.md` says why.

use lastmile::node::Flow;
use lastmile::time::Span;
use serde::Deserialize;

use crate::network::config_error::ConfigError;

mod bernoulli;
mod gilbert;
mod jakes;
mod markov;
mod pattern;
mod slots;

pub use bernoulli::Bernoulli;
pub use gilbert::{GilbertElliott, MarkovPackets};
pub use jakes::Jakes;
pub use markov::MarkovTime;
pub use pattern::Pattern;

/// Code that follows from the list of models: the enum that files name, and the way to a model's parameters.
macro_rules! models {
    ($($(#[$doc:meta])* $model:ident),+ $(,)?) => {
        /// Error model of a channel: it decides about each packet. In files a table with `kind`.
        #[derive(Clone, Debug, PartialEq, Deserialize)]
        #[serde(tag = "kind", rename_all = "kebab-case")]
        #[non_exhaustive]
        pub enum ErrorModel {
            $($(#[$doc])* $model($model),)+
        }

        $(impl From<$model> for ErrorModel {
            fn from(model: $model) -> ErrorModel {
                ErrorModel::$model(model)
            }
        })+

        impl ErrorModel {
            fn parameters(&self) -> &dyn Parameters {
                match self { $(ErrorModel::$model(model) => model,)+ }
            }
        }
    };
}

models! {
    /// Each packet for itself.
    Bernoulli,
    /// Two states in time.
    MarkovTime,
    /// Two states in packets, by their mean lengths.
    MarkovPackets,
    /// Two states in packets, by their probabilities.
    GilbertElliott,
    /// A recording.
    Pattern,
    /// Rayleigh fading and a frame decoder.
    Jakes,
}

/// The parameters of a model.
trait Parameters {
    /// Refuses impossible values.
    fn check(&self) -> Result<(), ConfigError>;

    /// The model at work, drawing from the stream of that seed and name.
    fn state(&self, seed: u64, name: &str) -> Box<dyn State>;
}

/// A model at work.
trait State: core::fmt::Debug + Send {
    /// True if a packet is lost; adds to `looks` the steps that this took.
    fn loses(&mut self, air: Air, looks: &mut u64) -> bool;
}

/// Place of a channel on a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossPlace {
    /// Before the queue: a lost packet costs the link nothing.
    Before,
    /// After the transmitter: a lost packet was sent in vain.
    #[default]
    After,
}

/// Part of a packet's time in the air that decides about it, for models in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Covers {
    /// The middle of its transmission alone: the loss rate is the channel's, whatever the packet's size.
    #[default]
    Instant,
    /// All of its transmission: it is lost if any part meets an error, so that larger packets and slower links
    /// lose more.
    Whole,
}

/// A channel on a link.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// Its error model.
    pub model: ErrorModel,
    /// Its place on the link.
    #[serde(default)]
    pub place: LossPlace,
    /// The numbers of the [flows](lastmile::node::Flow) whose packets alone meet it; none means all packets.
    #[serde(default)]
    pub flows: Vec<u32>,
    /// Name of its random stream: its draws stay the same when other channels come and go.
    /// Without a name it is the channel's place in the list.
    #[serde(default)]
    pub name: String,
}

impl Loss {
    /// A channel after the transmitter that all packets meet.
    pub fn of(model: impl Into<ErrorModel>) -> Loss {
        Loss { model: model.into(), place: LossPlace::After, flows: Vec::new(), name: String::new() }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        self.model.parameters().check()
    }
}

impl ErrorModel {
    /// Losses among so many packets that go one after the other, each in the air for that long; true is lost.
    pub fn lost(&self, seed: u64, air: Span, packets: u64) -> Vec<bool> {
        let (mut state, air) = (self.parameters().state(seed, "alone"), air.as_nanos().unsigned_abs());
        let at = |packet: u64| Air { starts: packet * air, ends: (packet + 1) * air - 1 };
        (0..packets).map(|packet| state.loses(at(packet), &mut 0)).collect()
    }
}

/// Time of a packet in the air, ns.
#[derive(Clone, Copy, Debug)]
struct Air {
    starts: u64,
    ends: u64,
}

impl Air {
    /// The moments that decide, first and last.
    fn deciding(self, covers: Covers) -> (u64, u64) {
        match covers {
            Covers::Instant => {
                let middle = self.starts + self.ends.saturating_sub(self.starts) / 2;
                (middle, middle)
            }
            // A packet that ends where an error begins is not hit.
            Covers::Whole => (self.starts, self.ends.saturating_sub(1).max(self.starts)),
        }
    }
}

/// Two states in time on the air of a station, for every sender.
#[derive(Debug)]
pub(in crate::network) struct Fading(Box<dyn State>);

impl Fading {
    /// # Errors
    /// If the model has impossible values.
    pub(in crate::network) fn new(model: &MarkovTime, seed: u64, name: &str) -> Result<Fading, ConfigError> {
        model.check()?;
        Ok(Fading(model.state(seed, name)))
    }

    /// True if a frame that is on the air between these times is destroyed. Times go forwards from frame to frame.
    pub(in crate::network) fn destroys(&mut self, starts: u64, ends: u64) -> bool {
        self.0.loses(Air { starts, ends }, &mut 0)
    }
}

#[derive(Debug)]
struct Part {
    place: LossPlace,
    /// Sorted.
    flows: Vec<u32>,
    state: Box<dyn State>,
}

/// All of a link's channels at work.
#[derive(Debug)]
pub(super) struct Channel {
    parts: Vec<Part>,
    /// Periods and frames looked at so far.
    pub(super) looks: u64,
}

impl Channel {
    pub(super) fn new(losses: &[Loss], seed: u64, link: &str) -> Option<Channel> {
        let part = |(index, loss): (usize, &Loss)| {
            let mut flows = loss.flows.clone();
            flows.sort_unstable();
            let own = if loss.name.is_empty() { index.to_string() } else { loss.name.clone() };
            Part {
                place: loss.place,
                flows,
                state: loss.model.parameters().state(seed, &format!("{link}/loss/{own}")),
            }
        };
        let parts: Vec<Part> = losses.iter().enumerate().map(part).collect();
        (!parts.is_empty()).then_some(Channel { parts, looks: 0 })
    }

    pub(super) fn loses_before(&mut self, now: u64, flow: Flow) -> bool {
        self.loses(LossPlace::Before, Air { starts: now, ends: now }, flow)
    }

    pub(super) fn loses_after(&mut self, starts: u64, ends: u64, flow: Flow) -> bool {
        self.loses(LossPlace::After, Air { starts, ends }, flow)
    }

    fn loses(&mut self, place: LossPlace, air: Air, flow: Flow) -> bool {
        let concerned = |part: &&mut Part| {
            part.place == place && (part.flows.is_empty() || part.flows.binary_search(&flow.0).is_ok())
        };
        let mut lost = false;
        for part in self.parts.iter_mut().filter(concerned) {
            lost |= part.state.loses(air, &mut self.looks);
        }
        lost
    }
}

fn one() -> f64 {
    1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile::time::Span;

    #[test]
    fn impossible_values_do_nothing_harmful() {
        let models: [ErrorModel; 9] = [
            Bernoulli { rate: f64::NAN }.into(),
            GilbertElliott { p: f64::NAN, r: 0.0, k: 7.0, h: -1.0 }.into(),
            GilbertElliott { p: 0.0, r: 0.0, ..Default::default() }.into(),
            MarkovPackets { good: f64::NAN, bad: -1.0 }.into(),
            MarkovTime::new(Span::ZERO, Span::ZERO).into(),
            MarkovTime::new(Span::ZERO, Span::MAX).into(),
            // As many periods as there are nanoseconds: a long pause costs bounded work all the same.
            MarkovTime::new(Span::from_nanos(1), Span::from_nanos(1)).into(),
            Pattern { lost: vec![u64::MAX], ..Pattern::default() }.into(),
            Jakes {
                paths: 0,
                interleaver: 0,
                spreading_gain: 0,
                trial_frames: 0,
                doppler_hz: f64::NAN,
                ..Jakes::default()
            }
            .into(),
        ];
        for model in models {
            let loss = Loss { place: LossPlace::After, ..Loss::of(model) };
            assert!(loss.check().is_err(), "{loss:?}");
            let mut channel = Channel::new(&[loss], 1, "link").unwrap();
            for (starts, ends) in [(0, 0), (5, 3), (1 << 40, 1 << 60), (1 << 62, u64::MAX)] {
                channel.loses_after(starts, ends, Flow(0));
            }
        }
    }
}
