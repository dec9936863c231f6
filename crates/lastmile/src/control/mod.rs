//! From feedback to a rate: one file or folder per scheme, and the one interface by which hosts reach them.
//!
//! A [`RateController`] is hosted by the simulator, by this project's RTP, and by other people's stacks: webrtc-rs, QUIC,
//! GStreamer. A host tells it of packets ([`Sent`]), of their fates ([`Feedback`]) and of the rest ([`Signal`]), and
//! reads a rate ([`Output`]). [`CONTROLLERS`] lists the schemes; a name may have a loss classifier in front, as in
//! `tfrc+zbs` ([`Composition`]). `docs/rate-control.md` has what each needs and how each departs from its source.

mod binomial;
mod composition;
mod decision;
mod discriminated;
mod feedback;
mod flow;
mod group;
mod lately;
mod rate_test;
mod receive_clock;
mod receive_rate;
mod setting;
mod spacing;
pub mod window;
mod window_rate;

pub use binomial::BinomialOptions;
pub use composition::{ALIASES, Alias, Composition};
pub use decision::{Action, Decision, Decisions};
pub use discriminated::Discriminated;
pub(crate) use feedback::arrival_order;
pub use feedback::{
    Fate, Feedback, Information, LossTruth, LostBy, PacketClass, Report, RouteChange, Sent, Signal, Source,
    Summary,
};
pub use flow::{Flow, News};
pub use group::StreamGroup;
pub use setting::Setting;

use crate::classify::{self, Verdicts};
use crate::options::{self, Choice, ChoiceError, Entry, Given, Opt, OptionError, Options};
use crate::telemetry::Visitor;
use crate::time::{Span, Time};
use crate::units::{Bytes, Rate};

/// Rates and limits that a controller gives its host. Rates are those of IP packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Output {
    /// Target of encoders and other sources, all of a transport's streams together.
    pub target: Rate,
    /// Rate at which the pacer may release packets. For moments it may be below the target, as in a test of the rate, where a new target would
    /// cost an encoder more than frames that wait.
    pub pacing: Rate,
    /// Bytes that may be in flight, where the scheme limits them: the pacer releases nothing beyond.
    pub window: Option<Bytes>,
    /// Rate to fill up to with padding while sources make less.
    pub padding: Rate,
    /// The controller would learn from more packets than the sources make: padding fills up to the target.
    pub keep_probing: bool,
    /// The round-trip time that it goes by, where packets are to tell it to the receiver (RFC 5348, section 3.2.1).
    pub rtt: Option<Span>,
    /// The number of the round, where packets are to tell it to a receiver that keeps loss events apart by it (ns-2's TFRC).
    pub round: u64,
}

impl Output {
    /// One rate for sources and pacer, and nothing else.
    pub fn rate(rate: Rate) -> Output {
        let padding = Rate::ip(0);
        Output { target: rate, pacing: rate, window: None, padding, keep_probing: false, rtt: None, round: 0 }
    }
}

/// A rate control scheme: one for each transport; a stream's target is a share of the transport's.
///
/// It has no clock. Times never go backwards from call to call; if a host's do, the controller goes on with what it has.
/// Nothing in feedback can make it panic, allocate, or give a rate that is not finite, positive and within its [`Setting`].
///
/// ```
/// use lastmile::{control::*, time::{Span, Time}, units::{Bytes, Rate}};
/// let setting = Setting { start: Some(Rate::ip(300_000)), ..Setting::default() };
/// let mut controller = build(&"fixed".parse()?, &setting)?;
/// let sent = Sent::media(0, Bytes(1200), Time::ZERO);
/// controller.on_sent(Time::ZERO, &sent);
/// let now = Time::ZERO + Span::from_millis(40);
/// let mut reports = [Report { sent, fate: Fate::arrived(Time::from_nanos(77_000_000)) }];
/// controller.on_feedback(now, &mut Feedback::exact(&mut reports, None));
/// assert_eq!(controller.output().target, Rate::ip(300_000));
/// # Ok::<(), lastmile::options::ChoiceError>(())
/// ```
pub trait RateController: core::fmt::Debug + Send + Sync {
    /// A packet left. Hosts that cannot tell may leave this out: reports carry the same.
    fn on_sent(&mut self, now: Time, sent: &Sent);

    /// Feedback came.
    fn on_feedback(&mut self, now: Time, feedback: &mut Feedback<'_>);

    /// Something else became known.
    fn on_signal(&mut self, now: Time, signal: Signal);

    /// When [`on_timeout`](Self::on_timeout) is to be called; may change with every other call.
    fn poll_timeout(&self) -> Option<Time>;

    /// The time of [`poll_timeout`](Self::poll_timeout) has come.
    fn on_timeout(&mut self, now: Time);

    /// Takes the next request to the host; `None` if there is none.
    fn poll_action(&mut self) -> Option<Action> {
        None
    }

    /// Takes the next decision; `None` if there is none. A host that does not ask loses the oldest.
    fn poll_decision(&mut self) -> Option<Decision> {
        None
    }

    /// Losses judged so far, by verdict, if a classifier stands in front.
    fn verdicts(&self) -> Option<Verdicts> {
        None
    }

    /// Rates and limits at this moment.
    fn output(&self) -> Output;

    /// Shows what it knows.
    fn telemetry(&self, visitor: &mut dyn Visitor);

    /// One that goes on from here by itself, as QUIC stacks want it for a path that a connection migrates to.
    fn clone_box(&self) -> Box<dyn RateController>;
}

impl Clone for Box<dyn RateController> {
    fn clone(&self) -> Box<dyn RateController> {
        (**self).clone_box()
    }
}

/// A registered rate control scheme.
#[derive(Clone, Copy, Debug)]
pub struct Controller {
    /// Its name.
    pub name: &'static str,
    /// Its rule, in one line.
    pub about: &'static str,
    /// Its origin: paper or standard.
    pub paper: &'static str,
    /// The loss classifier that its source puts in front of it; a composition may name another, or `none`.
    pub classifier: Option<&'static str>,
    /// Information about packets that it needs to work as its source says.
    pub needs: Information,
    /// Its behaviour with less information.
    pub below: &'static str,
    /// Its options.
    pub options: &'static [Opt],
    /// Makes one; [`build`] says whose option is wrong.
    pub make: fn(&Given, &Setting) -> Made,
}

/// A registered wrapper, which can stand around any scheme.
#[derive(Clone, Copy, Debug)]
pub struct Wrapper {
    /// Its name.
    pub name: &'static str,
    /// Its function, in one line.
    pub about: &'static str,
    /// Its origin: paper or standard.
    pub paper: &'static str,
    /// Its options.
    pub options: &'static [Opt],
    /// Options with which it decides something within a second.
    pub brief: &'static [(&'static str, &'static str)],
    /// Puts it around a controller, with its classifier in front.
    pub make: fn(&Given, &Setting, Box<dyn RateController>) -> Made,
}

impl Entry for Wrapper {
    const WHAT: &'static str = "wrapper of rate controllers";
    fn name(&self) -> &'static str {
        self.name
    }
    fn options(&self) -> &'static [Opt] {
        self.options
    }
}

options::registry! {
    /// Wrappers that can stand around a scheme: `tfrc+probe`, `tfrc+probe+zbs`.
    pub static WRAPPERS: Wrapper;
    probe,
}

/// A controller, or which option is wrong with it.
pub type Made = Result<Box<dyn RateController>, OptionError>;

impl Entry for Controller {
    const WHAT: &'static str = "rate controller";
    fn name(&self) -> &'static str {
        self.name
    }
    fn options(&self) -> &'static [Opt] {
        self.options
    }
}

options::registry! {
    /// All schemes, in the order in which they are listed.
    ///
    /// ```
    /// let names: Vec<&str> = lastmile::control::CONTROLLERS.iter().map(|scheme| scheme.name).collect();
    /// assert_eq!(names, ["lastmile", "tfrc", "multfrc", "vtp", "iiad", "sqrt", "rap", "nada", "fixed"]);
    /// ```
    pub static CONTROLLERS: Controller;
    last_mile,
    tfrc,
    multfrc,
    vtp,
    iiad,
    sqrt,
    rap,
    nada,
    fixed,
}

/// Makes a controller, with its classifier in front unless that stands at the receiver.
///
/// ```
/// use lastmile::control::{Setting, build};
/// let error = build(&"wishful".parse()?, &Setting::default()).err().unwrap();
/// assert!(error.to_string().starts_with("there is no rate controller \"wishful\"; known: "));
/// # Ok::<(), lastmile::options::OptionError>(())
/// ```
pub fn build(composition: &Composition, setting: &Setting) -> Result<Box<dyn RateController>, ChoiceError> {
    let scheme = CONTROLLERS.find(&composition.controller.name)?;
    setting.check().map_err(|error| error.of(scheme.name))?;
    let controller =
        (scheme.make)(&composition.controller.options, setting).map_err(|error| error.of(scheme.name))?;
    if composition.at_receiver() {
        // Its classifier stands there: an unknown one is refused here too.
        build_receiver(composition, None)?;
    }
    let usual = scheme.classifier.map(Choice::named);
    let controller = match composition.classifier.as_ref().or(usual.as_ref()) {
        _ if composition.at_receiver() => controller,
        None => controller,
        Some(choice) => {
            let discriminator = classify::Discriminator::new(choice)?;
            Box::new(Discriminated::new(discriminator, controller).within(setting))
        }
    };
    let Some(choice) = &composition.wrapper else { return Ok(controller) };
    let wrapper = WRAPPERS.find(&choice.name)?;
    (wrapper.make)(&choice.options, setting, controller).map_err(|error| error.of(wrapper.name).into())
}

/// Makes the receiving side of a scheme, with its classifier in front, where losses are counted at the receiver; it gives
/// feedback every so often, or once in a round-trip time.
///
/// # Errors
/// Losses are counted at the sender, or an option or the classifier cannot be.
pub fn build_receiver(composition: &Composition, every: Option<Span>) -> Result<tfrc::Receiver, ChoiceError> {
    if !composition.at_receiver() {
        let why = "counts losses at the sender, not at the receiver: tfrc(form=receiver)";
        return Err(OptionError::new(composition.to_string(), why).into());
    }
    let Choice { name, options } = &composition.controller;
    let config = tfrc::TfrcConfig::read(options).map_err(|error| error.of(name))?;
    let classifier = composition.classifier.as_ref().map(classify::Discriminator::new).transpose()?;
    Ok(tfrc::Receiver::new(&config, classifier, every))
}
