//! Packets that a host lost itself, beside those of links: by the kernel's counters of its namespace.

use std::fs;

use serde::Serialize;

use super::{DEVICE, LabError, NetNs};

/// Losses of a host's own device and sockets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HostLosses {
    /// The host's name.
    pub host: String,
    /// Packets for which its device's queue towards the path had no room.
    pub device: u64,
    /// Packets that its IP layer discarded, in either direction.
    pub ip: u64,
    /// Datagrams that found a UDP socket's receive buffer full.
    pub udp_receive_buffer: u64,
    /// Datagrams that found a UDP socket's send buffer full.
    pub udp_send_buffer: u64,
    /// Datagrams to a port at which nothing listened.
    pub udp_no_port: u64,
    /// TCP segments for which a socket's receive buffer had no room.
    pub tcp_receive_buffer: u64,
    /// TCP connections that found a listening socket's queue full.
    pub tcp_listen_queue: u64,
}

impl HostLosses {
    /// The counters of a host as they are.
    pub(super) fn of(host: &NetNs) -> Result<HostLosses, LabError> {
        let name = host.name().to_owned();
        host.step("reading its counters", move || {
            let read = |file: &str| fs::read_to_string(format!("/proc/thread-self/net/{file}"));
            Ok(HostLosses {
                host: name,
                ..HostLosses::read(
                    &read("dev")?,
                    &read("snmp")?,
                    &read("snmp6").unwrap_or_default(),
                    &read("netstat")?,
                )
            })
        })
    }

    fn read(dev: &str, snmp: &str, snmp6: &str, netstat: &str) -> HostLosses {
        let v4 = |group: &str, name: &str| counter(snmp, group, name);
        let tcp = |name: &str| counter(netstat, "TcpExt:", name);
        let v6 = |name: &str| {
            let value = |line: &str| line.strip_prefix(name)?.trim().parse::<u64>().ok();
            snmp6.lines().find_map(value).unwrap_or(0)
        };
        HostLosses {
            host: String::new(),
            device: device(dev).unwrap_or_default(),
            ip: v4("Ip:", "InDiscards")
                + v4("Ip:", "OutDiscards")
                + v6("Ip6InDiscards ")
                + v6("Ip6OutDiscards "),
            udp_receive_buffer: v4("Udp:", "RcvbufErrors") + v6("Udp6RcvbufErrors "),
            udp_send_buffer: v4("Udp:", "SndbufErrors") + v6("Udp6SndbufErrors "),
            udp_no_port: v4("Udp:", "NoPorts") + v6("Udp6NoPorts "),
            tcp_receive_buffer: tcp("TCPBacklogDrop")
                + tcp("TCPRcvQDrop")
                + tcp("RcvPruned")
                + tcp("OfoPruned"),
            tcp_listen_queue: tcp("ListenDrops"),
        }
    }

    /// Each kind of loss that occurred, in words with its number.
    pub fn said(&self) -> Vec<String> {
        [
            (self.device, "at its device's full queue"),
            (self.ip, "discarded by its IP layer"),
            (self.udp_receive_buffer, "at full receive buffers of UDP sockets"),
            (self.udp_send_buffer, "at full send buffers of UDP sockets"),
            (self.udp_no_port, "to UDP ports at which nothing listened"),
            (self.tcp_receive_buffer, "at full receive buffers of TCP sockets"),
            (self.tcp_listen_queue, "connections at full queues of listening sockets"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect()
    }
}

/// Packets to be sent that the host's device dropped. Its drops of received packets are not counted: the lab itself causes
/// them, by waking the device with packets that are none.
fn device(dev: &str) -> Option<u64> {
    let line = dev.lines().find_map(|line| line.trim().strip_prefix(DEVICE)?.strip_prefix(':'))?;
    // Eight columns on reception come before bytes, packets, errors and drops on transmission.
    line.split_whitespace().nth(11)?.parse().ok()
}

/// A counter of a file in which a line of names stands above a line of values.
fn counter(file: &str, group: &str, name: &str) -> u64 {
    let mut lines = file.lines().filter(|line| line.starts_with(group));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return 0 };
    let column = names.split_whitespace().position(|word| word == name);
    column.and_then(|column| values.split_whitespace().nth(column)?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_the_kernels_files() {
        let dev = "Inter-|   Receive                                                |  Transmit\n \
            face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
            lo:       0       0    0    9    0     0          0         0        0       0    0    9    0     0       0          0\n  \
            lab0:     336       4    0    2    0     0          0         0      392       5    0    3    0     0       0          0\n";
        let snmp = "Ip: Forwarding InDiscards OutDiscards\nIp: 2 1 4\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\nUdp: 9 5 7 9 7 8\n";
        let snmp6 = "Udp6RcvbufErrors                \t10\nUdp6NoPorts \t0\n";
        let netstat = "TcpExt: ListenDrops TCPBacklogDrop\nTcpExt: 6 20\nIpExt: InNoRoutes\nIpExt: 0\n";
        let losses = HostLosses::read(dev, snmp, snmp6, netstat);
        let expected = HostLosses {
            host: String::new(),
            device: 3,
            ip: 5,
            udp_receive_buffer: 17,
            udp_send_buffer: 8,
            udp_no_port: 5,
            tcp_receive_buffer: 20,
            tcp_listen_queue: 6,
        };
        assert_eq!(losses, expected);
        assert_eq!(losses.said()[2], "17 at full receive buffers of UDP sockets");
        assert!(HostLosses::default().said().is_empty());
    }
}
