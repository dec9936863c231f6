//! Parts of a [`Scenario`](super::Scenario), checked: hosts, links, WLANs, traffic and measurements.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use lastmile::node::PortId;
use lastmile::rng::Stream;
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};

use crate::network::clock::ClockConfig;
use crate::network::link::{LinkConfig, Walk};
use crate::network::tcp::{App, TcpConfig};
use crate::network::traffic::{Arrivals, Lengths, OnOff};
use crate::network::wlan::WlanConfig;

/// A host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSpec {
    /// Its name.
    pub name: String,
    /// Its IPv4 address.
    pub v4: Ipv4Addr,
    /// Its IPv6 address.
    pub v6: Ipv6Addr,
    /// Errors of its clock.
    pub clock: ClockConfig,
}

impl HostSpec {
    /// Its address of that IP version.
    pub fn address(&self, ipv6: bool) -> IpAddr {
        if ipv6 { self.v6.into() } else { self.v4.into() }
    }
}

/// One direction of a link between two vertices: a host's number, or the number of hosts plus a router's.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// The vertex where packets enter.
    pub from: usize,
    /// The vertex where they leave.
    pub to: usize,
    /// Rate, delay, queue and channels.
    pub config: LinkConfig,
    /// Changes of the rate that the seed draws.
    pub walk: Option<Walk>,
    /// For each of the configuration's losses the names of the flows that it is for; empty for all packets.
    pub loss_flows: Vec<Vec<String>>,
}

/// A WLAN. Its stations are hosts or routers by their names.
#[derive(Clone, Debug, PartialEq)]
pub struct WlanSpec {
    /// Its standard, stations and channel.
    pub config: WlanConfig,
    /// Its directions: the medium's port, and the vertices whence and whither.
    pub directions: Vec<(PortId, usize, usize)>,
}

impl WlanSpec {
    /// The name of its first station, which also names its random numbers.
    pub fn name(&self) -> &str {
        self.config.station.first().map_or("wlan", |station| &station.name)
    }
}

/// A host changes the link by which packets go to it and from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandoffSpec {
    /// When.
    pub at: Time,
    /// The host.
    pub host: usize,
    /// The neighbour, router or host, to which its packets go from then on, and from which they come.
    pub to: usize,
    /// Fate of packets on the links that nothing goes by any more.
    pub old_queue: OldQueue,
}

/// Fate of packets in the queues that a hand-off leaves behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OldQueue {
    /// They are dropped, as are those that still come there.
    #[default]
    Drop,
    /// They are delivered, by the old link.
    Deliver,
}

/// A source of the simulator's own traffic, and its sink.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficSpec {
    /// Its name, which decides its random numbers.
    pub name: String,
    /// The law of arrivals.
    pub arrivals: Arrivals,
    /// The sending host.
    pub from: usize,
    /// The receiving host.
    pub to: usize,
    /// Its mean rate of IP packets.
    pub rate: Rate,
    /// The size of its packets with the IP header.
    pub size: Bytes,
    /// When it starts, at the earliest.
    pub start: Time,
    /// Within this time from then it starts, at random.
    pub start_within: Span,
    /// When it stops; [`Time::MAX`] if it goes on for as long as the run does, which in the lab may be longer than the
    /// scenario's duration.
    pub stop: Time,
    /// Other mean rates from some times on.
    pub changes: Vec<(Time, Rate)>,
    /// A TCP connection, which knows no arrivals and no rate; its size is that of a full segment.
    pub tcp: Option<TcpSpec>,
}

/// A TCP connection and the data that it sends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TcpSpec {
    /// Its options.
    pub config: TcpConfig,
    /// The data to send.
    pub app: App,
}

impl TrafficSpec {
    /// Packets of one size at even times between two hosts, from one time to another.
    pub(crate) fn cbr(
        name: &str,
        (from, to): (usize, usize),
        (rate, size): (Rate, Bytes),
        (start, stop): (Time, Time),
    ) -> TrafficSpec {
        let (arrivals, changes, name) = (Arrivals::Cbr, Vec::new(), name.to_owned());
        let start_within = Span::ZERO;
        TrafficSpec { name, arrivals, from, to, rate, size, start, start_within, stop, changes, tcp: None }
    }

    /// When it starts in a run with that seed.
    pub fn starts(&self, seed: u64) -> Time {
        starts(&self.name, (self.start, self.start_within), seed)
    }

    /// Name of its kind in the file.
    pub fn kind(&self) -> &'static str {
        if let Some(tcp) = &self.tcp {
            return match tcp.app {
                App::Bulk => "ftp",
                App::File { .. } => "file",
                App::Files { .. } => "files",
            };
        }
        match &self.arrivals {
            Arrivals::Cbr => "cbr",
            Arrivals::Poisson => "poisson",
            Arrivals::OnOff(OnOff { lengths: Lengths::Exponential, .. }) => "onoff",
            Arrivals::OnOff(_) => "pareto",
            Arrivals::Trace(_) => "trace",
        }
    }
}

/// Start of a flow of that name: at that time, or at random within so long after it. All kinds of flows with the name start
/// then.
pub(crate) fn starts(name: &str, (start, within): (Time, Span), seed: u64) -> Time {
    let share = match within {
        Span::ZERO => 0.0,
        _ => Stream::new(seed, &format!("start/{name}")).unit(),
    };
    start + within.scaled(share)
}
