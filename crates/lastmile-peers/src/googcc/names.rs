//! Names that str0m's estimator takes from the crate that it is part of: some of its files as they are, and what it needs of the rest.

// str0m's files give these names on.
#![allow(unreachable_pub)]

use std::time::Instant;

// str0m tells a log what it does.
macro_rules! trace {
    ($($t:tt)*) => {};
}
macro_rules! debug {
    ($($t:tt)*) => {};
}
macro_rules! warn {
    ($($t:tt)*) => {};
}
macro_rules! log_stat {
    ($($t:tt)*) => {};
}
pub(crate) use log_stat;

pub use crate::bandwidth::{Bitrate, DataSize};

/// The reason for a deadline.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Reason {
    #[default]
    NotHappening,
    BweDelayControl,
    BweProbeControl,
    BweProbeEstimator,
}

pub(crate) mod util {
    use super::Instant;
    pub(crate) use crate::average::MovingAverage;
    pub(crate) use crate::time_tricks::{already_happened, not_happening};

    pub(crate) trait Soonest {
        fn soonest(self, other: Self) -> Self;
    }

    impl<T> Soonest for (Option<Instant>, T) {
        fn soonest(self, other: Self) -> Self {
            match (self.0, other.0) {
                (Some(own), Some(others)) if own < others => self,
                (_, Some(_)) => other,
                _ => self,
            }
        }
    }
}

pub(crate) mod rtp_ {
    use std::time::{Duration, Instant};

    pub use super::{Bitrate, DataSize};

    macro_rules! number {
        ($name:ident) => {
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub(crate) struct $name(u64);
            impl From<u64> for $name {
                fn from(number: u64) -> $name {
                    $name(number)
                }
            }
            impl std::fmt::Display for $name {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    self.0.fmt(f)
                }
            }
        };
    }
    number!(TwccSeq);
    number!(TwccClusterId);

    impl TwccClusterId {
        pub(crate) fn inc(&mut self) -> TwccClusterId {
            let before = *self;
            self.0 = self.0.wrapping_add(1);
            before
        }
    }

    /// A packet that left, and what a report says of it: no time of arrival if it is lost.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct TwccSendRecord {
        pub(crate) seq: TwccSeq,
        pub(crate) cluster: Option<TwccClusterId>,
        pub(crate) local_send_time: Instant,
        pub(crate) size: u16,
        pub(crate) local_recv_time: Option<Instant>,
        pub(crate) remote_recv_time: Option<Instant>,
    }

    impl TwccSendRecord {
        pub(crate) fn seq(&self) -> TwccSeq {
            self.seq
        }
        pub(crate) fn cluster(&self) -> Option<TwccClusterId> {
            self.cluster
        }
        pub(crate) fn local_send_time(&self) -> Instant {
            self.local_send_time
        }
        pub(crate) fn local_recv_time(&self) -> Option<Instant> {
            self.local_recv_time
        }
        pub(crate) fn size(&self) -> usize {
            self.size.into()
        }
        pub(crate) fn remote_recv_time(&self) -> Option<Instant> {
            self.remote_recv_time
        }
        pub(crate) fn rtt(&self) -> Option<Duration> {
            self.local_recv_time.map(|at| at - self.local_send_time)
        }
    }

    /// Of a session, which there is none of.
    #[derive(Debug, PartialEq)]
    pub(crate) struct Mid;
}

pub(crate) mod bwe {
    pub use super::Bitrate;
}

/// A session with an estimator, which there is none of: str0m's file of the estimator's public side names it.
pub(crate) struct Rtc {
    pub(crate) session: Session,
}

pub(crate) struct Session;

impl Session {
    pub(crate) fn set_bwe_bitrate(&mut self, _minimum: Bitrate, _desired: Bitrate) {}
    pub(crate) fn reset_bwe(&mut self, _initial: Bitrate) {}
}

impl Rtc {
    pub(crate) fn no_events(&mut self) {}
}

pub(crate) mod poll {
    use super::Rtc;

    pub(crate) struct RtcMut<'a>(&'a mut Rtc);

    impl<'a> RtcMut<'a> {
        pub(crate) fn new(rtc: &'a mut Rtc) -> RtcMut<'a> {
            RtcMut(rtc)
        }
        pub(crate) fn mutate(&mut self) -> &mut Rtc {
            self.0
        }
    }
}
