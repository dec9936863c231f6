//! The written form of inputs, packets and the header, which the library keeps free of any form.

use std::net::SocketAddr;

use lastmile::endpoint::Event;
use lastmile::node::{Datagram, Ecn, Failure, Flow, Input, Model, Payload, PortId, TransmitId};
use lastmile::time::{Epoch, Span, Time};
use serde::{Deserialize, Serialize};

use super::{Counts, Header, MAX_PAYLOAD, VERSION, World};

/// The first line.
#[derive(Serialize, Deserialize)]
pub(super) struct HeaderForm {
    lastmile: String,
    version: u32,
    world: World,
    #[serde(default)]
    role: String,
    seed: String,
    epoch: Epoch,
    config: serde_json::Value,
}

/// The part of the first line that every version keeps, to tell the kind of file before reading the rest.
#[derive(Deserialize)]
pub(super) struct Kind {
    pub(super) lastmile: String,
    pub(super) version: u32,
}

pub(super) const KIND: &str = "recording";

impl HeaderForm {
    pub(super) fn of(header: &Header) -> HeaderForm {
        HeaderForm {
            lastmile: KIND.to_owned(),
            version: VERSION,
            world: header.world,
            role: header.role.clone(),
            seed: to_hex(&header.seed),
            epoch: header.epoch,
            config: header.config.clone(),
        }
    }

    pub(super) fn header(self) -> Result<Header, String> {
        let seed = from_hex(&self.seed).and_then(|bytes| bytes.try_into().ok());
        let seed = seed.ok_or("the seed is not 64 hexadecimal digits")?;
        Ok(Header { world: self.world, role: self.role, seed, epoch: self.epoch, config: self.config })
    }
}

/// Any line after the first, to read: exactly one of the fields is there, and `now` beside `input`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LineForm {
    pub(super) now: Option<Time>,
    pub(super) input: Option<InputForm>,
    pub(super) event: Option<Event>,
    /// A record of the role's own; the key is named after those of measurements.
    pub(super) stream: Option<serde_json::Value>,
    pub(super) end: Option<Counts>,
}

/// Any line after the first, to write.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case", untagged)]
pub(super) enum LineOut<E, R> {
    Input { now: Time, input: InputForm },
    Event { event: E },
    Stream { stream: R },
    End { end: Counts },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum InputForm {
    Datagram(PacketForm),
    Sent {
        id: TransmitId,
        at: Time,
    },
    Queued {
        id: TransmitId,
        wait: Span,
    },
    Failed {
        /// Left out where it is the only one.
        #[serde(default, skip_serializing_if = "is_first")]
        port: PortId,
        id: Option<TransmitId>,
        reason: Failure,
    },
    ClockStepped {
        by: Span,
    },
    Wake,
    Interrupted,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PacketForm {
    port: PortId,
    at: Time,
    from: SocketAddr,
    to: SocketAddr,
    flow: Flow,
    ecn: Ecn,
    dscp: u8,
    hop_limit: u8,
    /// UDP payload in hexadecimal. Exactly one of the three is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    udp: Option<String>,
    /// A whole IP packet in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    ip: Option<String>,
    /// Bytes of `udp` or `ip`, which leave out trailing zeros: most of a probe is padding.
    #[serde(skip_serializing_if = "Option::is_none")]
    len: Option<usize>,
    /// A packet of the simulator that has no bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<ModelForm>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelForm {
    ip_size: u32,
    words: [u64; 4],
}

impl InputForm {
    /// The form of an input; `None` for an input that this version of the format cannot hold.
    pub(super) fn of(input: &Input) -> Option<InputForm> {
        Some(match input {
            Input::Datagram { port, at, datagram } => {
                let Datagram { from, to, flow, ecn, dscp, hop_limit, .. } = *datagram;
                let (port, at, payload) = (*port, *at, &datagram.payload);
                let (mut udp, mut ip, mut len, mut model) = (None, None, None, None);
                match payload {
                    Payload::Udp(bytes) => (udp, len) = (Some(elided(bytes)?), Some(bytes.len())),
                    Payload::Ip(bytes) => (ip, len) = (Some(elided(bytes)?), Some(bytes.len())),
                    &Payload::Model(Model { ip_size, words }) => model = Some(ModelForm { ip_size, words }),
                }
                let packet =
                    PacketForm { port, at, from, to, flow, ecn, dscp, hop_limit, udp, ip, len, model };
                InputForm::Datagram(packet)
            }
            &Input::Sent { id, at } => InputForm::Sent { id, at },
            &Input::Queued { id, wait } => InputForm::Queued { id, wait },
            &Input::Failed { port, id, reason } => InputForm::Failed { port, id, reason },
            &Input::ClockStepped { by } => InputForm::ClockStepped { by },
            Input::Wake => InputForm::Wake,
            Input::Interrupted => InputForm::Interrupted,
            _ => return None,
        })
    }

    pub(super) fn input(self) -> Result<Input, String> {
        Ok(match self {
            InputForm::Datagram(packet) => {
                let PacketForm { port, at, from, to, flow, ecn, dscp, hop_limit, .. } = packet;
                let payload = match (packet.udp, packet.ip, packet.len, packet.model) {
                    (Some(udp), None, Some(len), None) => Payload::Udp(restored(&udp, len)?),
                    (None, Some(ip), Some(len), None) => Payload::Ip(restored(&ip, len)?),
                    (None, None, None, Some(ModelForm { ip_size, words })) => {
                        Payload::Model(Model { ip_size, words })
                    }
                    _ => return Err("a packet has udp and len, ip and len, or model".into()),
                };
                let datagram = Datagram { from, to, flow, ecn, dscp, hop_limit, payload };
                Input::Datagram { port, at, datagram }
            }
            InputForm::Sent { id, at } => Input::Sent { id, at },
            InputForm::Queued { id, wait } => Input::Queued { id, wait },
            InputForm::Failed { port, id, reason } => Input::Failed { port, id, reason },
            InputForm::ClockStepped { by } => Input::ClockStepped { by },
            InputForm::Wake => Input::Wake,
            InputForm::Interrupted => Input::Interrupted,
        })
    }
}

fn is_first(port: &PortId) -> bool {
    port.0 == 0
}

/// The bytes without their trailing zeros; `None` where no packet is so large.
fn elided(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().rposition(|&b| b != 0).map_or(0, |i| i + 1);
    (bytes.len() <= MAX_PAYLOAD).then(|| to_hex(&bytes[..end]))
}

/// The bytes with their trailing zeros. `len` is checked first: it is a claim of the file and is allocated.
fn restored(hex: &str, len: usize) -> Result<Vec<u8>, String> {
    if len > MAX_PAYLOAD {
        return Err(format!("a payload of {len} bytes does not fit a packet"));
    }
    let mut bytes = from_hex(hex).ok_or("the payload is not hexadecimal")?;
    if bytes.len() > len {
        return Err(format!("{} bytes of payload are more than the length of {len}", bytes.len()));
    }
    bytes.resize(len, 0);
    Ok(bytes)
}

pub(super) fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |n: u8| char::from(DIGITS[usize::from(n)]);
    bytes.iter().flat_map(|&b| [digit(b >> 4), digit(b & 15)]).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| char::from(c).to_digit(16).map(|d| d as u8);
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| if let &[high, low] = pair { Some(digit(high)? << 4 | digit(low)?) } else { None })
        .collect()
}
