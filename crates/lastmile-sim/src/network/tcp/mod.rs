//! TCP between a [`Sender`] and a [`Receiver`], as models: segments have a size and no bytes.
//!
//! The growth and shrinking of the window is a law of [`lastmile::control::window`]; sequence numbers, ACKs, the
//! retransmission timer and loss recovery are here. Sequence numbers count segments, there is no handshake and no
//! closing, and data goes one way, as in ns-2's one-way TCP. Differences between implementations are options of
//! [`TcpConfig`], whose defaults are the standards'; [`PRESETS`] are Linux' and ns-2's.
mod app;
mod config;
mod packet;
mod receiver;
mod rto;
mod scoreboard;
mod sender;
#[cfg(test)]
mod tests;
mod types;

pub use app::{App, FileSize};
pub use config::{PRESETS, Recovery, TcpConfig};
pub use packet::MAX_WINDOW;
pub(crate) use packet::{Ack, Segment};
pub use receiver::{Receiver, ReceiverCounters};
pub use sender::Sender;
pub use types::{Ends, SenderCounters};
