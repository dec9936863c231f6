//! Aggregation: the choice of a queue's frames that go together (IEEE 802.11-2016, 10.13, 9.7).
//!
//! An A-MPDU has frames for one receiver. Each is acknowledged by itself in the block ack, and only those that
//! failed are sent again, together with later ones, as far as the block ack's window reaches. The receiver
//! hands packets over in order: those behind a missing one wait for it.

use std::collections::VecDeque;

use super::config::AmpduConfig;
use super::phy::Phy;
use super::station::Packet;

/// Delimiter before each frame (9.7.1).
const DELIMITER: u32 = 4;
/// The most frames that one block ack answers for (9.3.1.9.3).
pub(super) const WINDOW: u32 = 64;

/// Bytes that a frame takes in an A-MPDU: delimiter, and padding to four bytes.
pub(super) fn padded(frame: u32) -> u32 {
    DELIMITER + frame.next_multiple_of(4)
}

/// Chooses the frames that go on the air with the packet at the queue's head: puts their positions into `chosen` and
/// answers the bytes of the PHY payload. One frame alone goes without delimiter.
pub(super) fn assemble(
    queue: &VecDeque<Packet>,
    config: Option<&AmpduConfig>,
    phy: &Phy,
    rate: usize,
    chosen: &mut Vec<u32>,
) -> u32 {
    chosen.clear();
    let Some(head) = queue.front() else { return 0 };
    chosen.push(0);
    let Some(config) = config else { return head.frame };
    let (max_bytes, max_time) = (config.max_bytes.0, config.max_duration.as_nanos().max(0) as u64);
    let mut bytes = padded(head.frame);
    let mut in_window = 1;
    for (position, packet) in queue.iter().enumerate().skip(1) {
        if packet.port != head.port {
            continue;
        }
        in_window += 1;
        if in_window > WINDOW || chosen.len() >= config.max_frames as usize {
            break;
        }
        if packet.received {
            continue;
        }
        let with = bytes + padded(packet.frame);
        if u64::from(with) > max_bytes || phy.plain(rate, with) > max_time {
            break;
        }
        bytes = with;
        chosen.push(position as u32);
    }
    if chosen.len() == 1 { head.frame } else { bytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::wlan::{Standard, WlanConfig};
    use lastmile::node::Datagram;
    use lastmile::time::Span;
    use lastmile::units::Bytes;

    fn queue(ports: &[u16]) -> VecDeque<Packet> {
        let any = "10.0.0.1:9".parse().unwrap();
        let packet = |&port: &u16| Packet {
            datagram: Datagram::udp(any, any, vec![]),
            port,
            frame: 1538,
            since: 0,
            attempts: 0,
            requests: 0,
            collisions: 0,
            channel_errors: 0,
            collided_last: false,
            received: false,
        };
        ports.iter().map(packet).collect()
    }

    fn choose(queue: &VecDeque<Packet>, config: &AmpduConfig, rate: usize) -> (Vec<u32>, u32) {
        let phy = Phy::new(&WlanConfig { standard: Standard::N, ..Default::default() }).unwrap();
        let mut chosen = Vec::new();
        let bytes = assemble(queue, Some(config), &phy, rate, &mut chosen);
        (chosen, bytes)
    }

    #[test]
    fn takes_what_is_missing_and_for_one_receiver() {
        let mut packets = queue(&[1, 3, 1, 1, 3, 1]);
        packets[3].received = true;
        let config = AmpduConfig::default();
        assert_eq!(choose(&packets, &config, 15), (vec![0, 2, 5], 3 * 1544));
        assert_eq!(choose(&queue(&[1, 3]), &config, 15), (vec![0], 1538));
        assert_eq!(choose(&queue(&[]), &config, 15), (vec![], 0));
    }

    #[test]
    fn keeps_within_frames_bytes_duration_and_window() {
        let config = AmpduConfig::default();
        let many = queue(&[1; 100]);
        // 5.484 ms are 28 of them at 65 Mbit/s (190 us each), 2 at 6.5; 65535 / 1544 = 42.
        assert_eq!(choose(&many, &config, 15).0.len(), 28);
        let long = AmpduConfig { max_duration: Span::from_millis(10), ..config.clone() };
        assert_eq!(choose(&many, &long, 15).0.len(), 42);
        assert_eq!(choose(&many, &config, 8).0.len(), 2);
        let short = AmpduConfig { max_duration: Span::from_millis(1), ..config.clone() };
        assert_eq!(choose(&many, &short, 15).0.len(), 5);
        let few = AmpduConfig { max_frames: 7, ..config.clone() };
        assert_eq!(choose(&many, &few, 15).0.len(), 7);
        let small = AmpduConfig { max_bytes: Bytes(4000), ..config.clone() };
        assert_eq!(choose(&many, &small, 15).0.len(), 2);
        // The window counts what the receiver holds back.
        let mut held = queue(&[1; 100]);
        held.iter_mut().take(64).skip(1).for_each(|p| p.received = true);
        assert_eq!(choose(&held, &config, 15).0, [0]);
    }
}
