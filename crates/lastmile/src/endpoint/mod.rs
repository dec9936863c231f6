//! Endpoints: nodes that send and answer at hosts, by role. A role is the joint task of two endpoints.
//!
//! Each role has a folder here with its nodes and the decisions that they make, and at most one in each of the other
//! crates. Beside the folders it is named in the list below alone; simulator, lab, recordings and the program know
//! [`Endpoint`]s and the one ordered stream of [`Event`]s.

use core::any::Any;
use core::convert::Infallible;

use crate::event;
use crate::node::{Input, Node, Output, Recorded};
use crate::time::Time;

mod host;
pub mod iperf3;
mod shares;
mod token;
pub mod traffic;
pub use host::{Decided, Endpoints};

/// Declares what each role decides as one type.
macro_rules! roles {
    ($($(#[$doc:meta])* $role:ident($module:ident)),+ $(,)?) => {
        /// A decision of an endpoint of any role.
        ///
        /// ```
        /// use lastmile::{endpoint::{Decision, measure}, time::Span};
        /// let stepped = Decision::from(measure::Decision::ClockStepped { by: Span::ZERO });
        /// assert!(stepped.of::<measure::Decision>().is_some());
        /// ```
        #[derive(Clone, Debug, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(untagged))]
        #[non_exhaustive]
        pub enum Decision {
            $($(#[$doc])* $role($module::Decision)),+
        }

        impl Decision {
            /// The decision of one role, if it was that one.
            pub fn of<E: 'static>(&self) -> Option<&E> {
                match self {
                    $(Decision::$role(decision) => (decision as &dyn Any).downcast_ref()),+
                }
            }
        }

        $(impl From<$module::Decision> for Decision {
            fn from(decision: $module::Decision) -> Decision {
                Decision::$role(decision)
            }
        })+
    };
}

// The list of roles, which is these lines.
pub mod measure;
pub mod stream;
roles! {
    /// Of a measurement.
    Measure(measure),
    /// Of a media stream.
    Stream(stream),
}

impl From<Infallible> for Decision {
    fn from(never: Infallible) -> Decision {
        match never {}
    }
}

/// A decision of any role with its place in the run.
pub type Event = event::Event<Decision>;

/// A node that stands at a host.
pub trait Endpoint: Node {
    /// True if all is done and said. An endpoint that only answers others never is finished.
    fn is_finished(&self) -> bool;

    /// The endpoint of one role that [`any`] was given, for a look at its state after a run. Others give nothing.
    fn into_any(self: Box<Self>) -> Option<Box<dyn Any + Send>> {
        None
    }
}

impl<N: Endpoint + ?Sized> Endpoint for Box<N> {
    fn is_finished(&self) -> bool {
        (**self).is_finished()
    }
    fn into_any(self: Box<Self>) -> Option<Box<dyn Any + Send>> {
        (*self).into_any()
    }
}

impl<N: Endpoint, T: FnMut(Time, &Input)> Endpoint for Recorded<N, T> {
    fn is_finished(&self) -> bool {
        self.node().is_finished()
    }
    fn into_any(self: Box<Self>) -> Option<Box<dyn Any + Send>> {
        Box::new(self.into_node()).into_any()
    }
}

/// An endpoint of any role, boxed for drivers and hosts.
pub type AnyEndpoint = Box<dyn Endpoint<Event = Decision> + Send>;

/// An endpoint of one role as one of any.
///
/// ```
/// use lastmile::endpoint::{any, measure::*};
/// let reflector = any(Reflector::new(ReflectorConfig::new([7; 32])));
/// assert!(!reflector.is_finished());
/// assert!(reflector.into_any().unwrap().is::<Reflector>());
/// ```
pub fn any<N>(endpoint: N) -> AnyEndpoint
where
    N: Endpoint<Event: Into<Decision>> + Send + 'static,
{
    Box::new(OfAnyRole(endpoint))
}

struct OfAnyRole<N>(N);

impl<N: Node<Event: Into<Decision>>> Node for OfAnyRole<N> {
    type Event = Decision;

    fn handle(&mut self, now: Time, input: Input) {
        self.0.handle(now, input);
    }
    fn poll(&mut self, now: Time) -> Output<Decision> {
        self.0.poll(now).map(Into::into)
    }
}

impl<N: Endpoint<Event: Into<Decision>> + Send + 'static> Endpoint for OfAnyRole<N> {
    fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
    fn into_any(self: Box<Self>) -> Option<Box<dyn Any + Send>> {
        Some(Box::new(self.0))
    }
}
