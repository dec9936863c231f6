//! The party to blame for a stream's end, and warnings of its reports.

use lastmile::endpoint::stream::End;
use lastmile::units::Rate;

use super::Sending;

/// A packet in some 10 s, in bit/s: receivers take a slower sender for gone.
const NEXT_TO_NOTHING: u64 = 1_000;

impl Sending {
    /// The party to blame for an end that was not as asked, and advice.
    pub(super) fn why_not(&self) -> Option<String> {
        let (peer, heard) = (self.peer, self.feedback_packets > 0);
        let blamed = match self.ended? {
            End::PortClosed if heard => format!("nothing listens on {peer} any more: the receiver is gone"),
            End::PortClosed => {
                format!(
                    "{peer}: nothing listens on that port (ICMP port unreachable): is `lastmile receive` running there?"
                )
            }
            End::Unreachable => {
                format!("{peer} is unreachable: a router or a firewall refuses, or there is no route")
            }
            End::TooBig => {
                format!(
                    "packets are larger than the path to {peer} takes, and are never fragmented: lower --packet-size"
                )
            }
            End::MediaTimeout => {
                format!(
                    "{peer} reports that no media arrives: something on the way drops it; the stream was stopped (RFC 8083)"
                )
            }
            End::Congestion => {
                let at = self.broken.map_or_else(String::new, |(rate, loss)| {
                    format!(" at {rate} and {:.0} % of loss", 100.0 * loss)
                });
                format!(
                    "the path to {peer} does not carry the stream: it sent more than ten times as much as TCP would{at}, and was stopped \
                     (RFC 8083): lower --rate or --max, or take --no-circuit-breakers on a path of your own"
                )
            }
            End::PeerLeft => format!("the receiver at {peer} left before the end"),
            End::NoFeedback if heard && self.target_bps < NEXT_TO_NOTHING => format!(
                "the path to {peer} loses so much that the controller sent next to nothing, {}, and nobody answered for 15 s; the stream \
                 was stopped (RFC 8083)",
                Rate::ip(self.target_bps)
            ),
            End::NoFeedback if heard => {
                format!(
                    "{peer} fell silent: the receiver is gone, or the path is cut; the stream was stopped after 15 s"
                )
            }
            _ if !heard => {
                let key = match self.srtp {
                    Some(_) => "it has another key of SRTP, ",
                    None => "it takes SRTP alone (the line that `receive` prints has the key), ",
                };
                format!(
                    "{peer} does not answer: no receiver runs there, {key}or something on the way drops the packets or the answers"
                )
            }
            _ => return None,
        };
        Some(blamed)
    }

    /// A warning if reports of the receiver were impossible.
    pub(crate) fn impossible(&self) -> Option<String> {
        let (reports, peer) = (self.impossible_reports, self.peer);
        (reports > 0).then(|| {
            format!("{reports} reports of {peer} were left out: they tell of more lost than was sent, of packets that were not, or of jitter longer than the stream")
        })
    }

    /// A warning if the receiver did not count losses as the controller asks.
    pub(crate) fn miscounted(&self) -> Option<String> {
        let (control, peer) = (self.control.as_ref()?, self.peer);
        let why = format!(
            "{peer} did not count losses as {control} asks: it is of another version, or does not know the name"
        );
        self.scheme_heeded.filter(|heeded| !heeded).map(|_| why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile::endpoint::stream::{ControlConfig, SenderConfig, SenderRate};

    #[test]
    fn a_stream_that_sent_next_to_nothing_does_not_blame_its_receiver() {
        let control = ControlConfig::new("tfrc+spike".parse().unwrap());
        let config = SenderConfig::new("192.0.2.1:5004".parse().unwrap(), 7, SenderRate::Controlled(control));
        let blames = |target_bps, feedback_packets| {
            let sending = Sending {
                target_bps,
                feedback_packets,
                ended: Some(End::NoFeedback),
                ..Sending::new(&config)
            };
            sending.why_not().unwrap()
        };
        assert!(blames(896, 9).contains("sent next to nothing, 896 bit/s"), "{}", blames(896, 9));
        assert!(blames(100_000, 9).contains("fell silent") && blames(896, 0).contains("does not answer"));
    }
}
