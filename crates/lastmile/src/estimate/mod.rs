//! Samples to capacity and available bandwidth: one file per tool.
//!
//! An [`Estimator`] is a probe pattern, a congestion signal and a turning-point search (ECNProbe, Table I). It
//! never sees a packet: it says what to send next ([`Step::Send`]), is given the [`StreamRecord`], and in the end
//! says what it found, or why it found nothing. Endpoints, recordings and the simulator drive it alike.

mod aggregation;
mod all;
mod base;
mod batched;
mod burst_check;
mod capprobe_minima;
mod cell;
mod clumps;
mod contention;
mod fair_queue;
mod framework;
mod gap_search;
mod guard;
mod idle;
mod known_capacity;
mod line;
mod method;
mod overflow;
mod plan;
mod policer;
mod result;
pub mod search;
mod shaper;
mod tight_link;
pub mod trains;
mod wbest_capacity;
mod wbest_config;
pub mod wbest_errors;
mod wbest_fluid;

pub use all::{ALL, AllConfig, Expanded};
pub use base::{Base, bits_per_second};
pub use framework::{Probes, Search, Signal};
pub use guard::Guard;
pub use method::{COALESCING, Conditions, Made, Method};
pub use plan::{ProbePacket, StreamPlan};
pub use result::{
    Answer, Estimate, Interval, IntervalMethod, NextMissing, Outcome, Quantity, Refusal, TruthKind,
    TruthOver, Value, Warning, WarningCode,
};

use crate::options::{self, Choice, ChoiceError};
use crate::report::StreamRecord;
use crate::time::Span;
use crate::units::Bytes;

options::registry! {
    /// All methods, in the order in which they are listed.
    ///
    /// ```
    /// let names: Vec<&str> = lastmile::estimate::METHODS.iter().map(|m| m.name).collect();
    /// assert_eq!(names[..2], ["wbest", "capprobe"]);
    /// ```
    pub static METHODS: Method;
    wbest,
    capprobe,
    dispersion,
    pathrate,
    spruce,
    igi,
    ptr,
    topp,
    diettopp,
    pathload,
    pathchirp,
    ecnprobe,
    enough,
    #[cfg(feature = "probegap")]
    probegap,
}

/// Makes the method of that name, with the options given to it.
///
/// ```
/// use lastmile::estimate::{Conditions, build};
/// let error = build(&"dowsing".parse()?, &Conditions::default()).err().unwrap();
/// assert!(error.to_string().starts_with("there is no method \"dowsing\"; known: wbest, capprobe, "));
/// let error = build(&"capprobe(trains=4)".parse()?, &Conditions::default()).err().unwrap();
/// assert!(error.to_string().starts_with("capprobe has no option trains; its options: "));
/// # Ok::<(), lastmile::options::OptionError>(())
/// ```
pub fn build(choice: &Choice, conditions: &Conditions) -> Result<Box<dyn Estimator>, ChoiceError> {
    METHODS.find(&choice.name)?.build(&choice.options, conditions)
}

/// Next step that an estimator asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Send this stream and give back its record.
    Send(StreamPlan),
    /// Leave the path alone for so long, then ask again.
    Pause(Span),
    /// This is what it found.
    Done(Outcome),
}

/// A tool's state machine.
///
/// ```
/// use lastmile::estimate::{Conditions, Step, build};
/// let mut wbest = build(&"wbest".parse()?, &Conditions::default())?;
/// let Step::Send(plan) = wbest.step() else { panic!() };
/// assert_eq!(plan.packets.len(), 60); // thirty pairs
/// # Ok::<(), lastmile::options::ChoiceError>(())
/// ```
pub trait Estimator: Send {
    /// The next step. Asked again only after the record of a stream was given, a pause is over, or
    /// at the start.
    fn step(&mut self) -> Step;

    /// Takes in what became of the stream that [`step`](Estimator::step) asked for.
    fn on_stream(&mut self, record: &StreamRecord);

    /// Takes note that packets of more than `size` do not reach the other side, before anything was learnt from any; true
    /// if it was about to send larger ones, and sends none any more. An estimator of one size returns false.
    fn shrink(&mut self, _size: Bytes) -> bool {
        false
    }

    /// Estimates that already hold, for a run that ends early: a limit was reached, or the user had enough.
    /// Empty once [`step`](Estimator::step) has said [`Step::Done`].
    fn so_far(&self) -> Vec<Estimate> {
        Vec::new()
    }
}

/// Runs an estimator over streams that were recorded: each plan gets the next one of its shape, that is of its pattern,
/// as many packets and their sizes.
///
/// A recording that lacks one is a [`Refusal::NotRecorded`]; [`so_far`](Estimator::so_far) has the estimates that hold even
/// so.
///
/// ```
/// use lastmile::estimate::{Conditions, Outcome, build, replay};
/// let mut capprobe = build(&"capprobe".parse()?, &Conditions::default())?;
/// let Outcome::Refused(why) = replay(&mut *capprobe, &[]) else { panic!() };
/// assert_eq!(why.to_string(), "the method wants at least 1 stream of 40 packets of 1488 B as pairs, and 0 were recorded");
/// # Ok::<(), lastmile::options::ChoiceError>(())
/// ```
pub fn replay(estimator: &mut dyn Estimator, records: &[StreamRecord]) -> Outcome {
    let mut used = vec![false; records.len()];
    loop {
        match estimator.step() {
            Step::Pause(_) => {}
            Step::Done(outcome) => return outcome,
            Step::Send(plan) => {
                let mut unused = (0..records.len()).filter(|&i| !used[i]);
                let Some(next) = unused.clone().find(|&i| fits(&plan, &records[i])) else {
                    // Packets may have been made smaller to fit the path: then the method plans with their size.
                    let smaller = unused.find(|&i| is_shaped(&plan, &records[i]));
                    let largest = smaller.and_then(|i| records[i].packets.iter().map(|p| p.size).max());
                    if largest.is_some_and(|size| estimator.shrink(size)) {
                        continue;
                    }
                    let recorded = records.iter().filter(|record| fits(&plan, record)).count();
                    return Outcome::Refused(Refusal::NotRecorded {
                        pattern: plan.pattern,
                        packets: plan.packets.len(),
                        size: plan.packets.first().map_or(Bytes::ZERO, |p| p.size),
                        recorded,
                    });
                };
                used[next] = true;
                estimator.on_stream(&records[next]);
            }
        }
    }
}

/// True if a recorded stream is as planned, but for the sizes.
fn is_shaped(plan: &StreamPlan, record: &StreamRecord) -> bool {
    plan.pattern == record.pattern && plan.packets.len() == record.packets.len()
}

/// True if a recorded stream is as planned.
fn fits(plan: &StreamPlan, record: &StreamRecord) -> bool {
    is_shaped(plan, record) && plan.packets.iter().zip(&record.packets).all(|(p, r)| alike(p.size, r.size))
}

/// True if a packet from a reflector has the size that was planned. Reflectors round sizes down to multiples of four
/// (asymmetrical-pkts, 3), and some add an HMAC TLV of 20 bytes.
pub(crate) fn alike(planned: Bytes, got: Bytes) -> bool {
    got.0 + 4 > planned.0 && got.0 <= planned.0 + 20
}
