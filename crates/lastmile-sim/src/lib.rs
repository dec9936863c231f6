//! The network as nodes, in virtual time: a discrete-event engine, links with their queues, traffic, hosts with
//! clocks of their own, and scenario files that describe all of these. `docs/architecture.md` has the rooms.
//!
//! The same engine serves the simulator and the lab. Nothing here reads a clock or opens a socket; the same scenario and seed
//! give the same bytes on every machine, and in WebAssembly.
//!
//! [`Scenario::run`](scenario::Scenario::run) runs a scenario and gives what the program prints of it. Any [node] of yours may
//! stand at its hosts, beside the endpoints of its tables: it says what it likes, and comes back with its state and its events.
//!
//! [node]: lastmile::node::Node
//!
//! ```
//! use lastmile::node::{Datagram, Input, Node, Output, PortId, Transmit, TransmitId};
//! use lastmile::time::{Span, Time};
//! use lastmile_sim::{network::host::{Own, Seat}, scenario::builtin};
//! use std::{convert::Infallible, net::SocketAddr};
//!
//! fn packet(now: Time, to: SocketAddr, payload: Vec<u8>) -> Transmit {
//!     let from = ([0; 4], 0).into(); // its host's address and its own port
//!     let datagram = Datagram::udp(from, to, payload);
//!     Transmit { id: TransmitId::UNTRACKED, at: now, port: PortId(0), datagram }
//! }
//!
//! /// Sends its time every 100 ms, and says how long that took there and back.
//! struct Ping { to: SocketAddr, next: Time, sent: u32, came: Option<Span> }
//! impl Node for Ping {
//!     type Event = Span;
//!     fn handle(&mut self, _now: Time, input: Input) {
//!         let Input::Datagram { at, datagram, .. } = input else { return };
//!         let stamp = datagram.payload.udp().and_then(|bytes| bytes.try_into().ok());
//!         self.came = stamp.map(|stamp| at - Time::from_nanos(u64::from_be_bytes(stamp)));
//!     }
//!     fn poll(&mut self, now: Time) -> Output<Span> {
//!         if let Some(rtt) = self.came.take() {
//!             return Output::Event(rtt);
//!         }
//!         if now < self.next {
//!             return Output::Wait(Some(self.next));
//!         }
//!         (self.next, self.sent) = (now + Span::from_millis(100), self.sent + 1);
//!         Output::Transmit(packet(now, self.to, now.as_nanos().to_be_bytes().into()))
//!     }
//! }
//!
//! struct Pong(Option<Datagram>);
//! impl Node for Pong {
//!     type Event = Infallible;
//!     fn handle(&mut self, _now: Time, input: Input) {
//!         if let Input::Datagram { datagram, .. } = input { self.0 = Some(datagram) }
//!     }
//!     fn poll(&mut self, now: Time) -> Output {
//!         let back = |came: Datagram| packet(now, came.from, came.payload.udp().unwrap_or_default().into());
//!         self.0.take().map_or(Output::Wait(None), |came| Output::Transmit(back(came)))
//!     }
//! }
//!
//! let path = builtin("path").unwrap(); // 5 ms each way, and a queue forward
//! let ping = Ping { to: (path.hosts[1].address(false), 7).into(), next: Time::ZERO, sent: 0, came: None };
//! let own = vec![("sender".into(), Seat::own(7, ping)), ("receiver".into(), Seat::own(7, Pong(None)))];
//! let mut run = path.run_with(1, own)?;
//! let Own { node, events } = run.take::<Own<Ping>>().unwrap();
//! assert_eq!((node.sent, events.len()), (101, 100)); // the last answer is on its way
//! assert!(events.iter().all(|(_, rtt)| *rtt > Span::from_millis(10)));
//! assert!(!run.json(&path, 1)["results"].as_array().unwrap().is_empty()); // of the file's measurement beside
//! # Ok::<(), lastmile_sim::runs::RunError>(())
//! ```

pub mod monitor;
pub mod network;
pub mod roles;
pub mod runs;
pub mod scenario;
mod text;

/// Code that tests outside of the crate share with those inside calls it by its name.
#[cfg(test)]
extern crate self as lastmile_sim;
