//! A capture read back, by hand and, where it is installed, by tshark.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use lastmile::time::Time;
use lastmile_sim::pcap::Capture;
use lastmile_sim::scenario::{Scenario, build};

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const SCENARIO: &str = r#"
name = "two"
duration = "1 s"
[host.a]
[host.b]
[[link]]
from = "a"
to = "b"
rate = "1 Mbit/s"
delay = "7 ms"
queue = "3 packets"
[[traffic]]
name = "t"
kind = "trace"
packets = "0.1 1250\n0.1 1250\n0.1 1250\n0.1 1250\n0.1 1250\n0.4 100\n"
from = "a"
to = "b"
"#;

fn capture() -> Vec<u8> {
    let scenario = Scenario::parse("two.toml", SCENARIO).unwrap();
    let mut run = build(&scenario, 1, vec![]).unwrap();
    let file = Shared::default();
    let capture = Capture::attach(&scenario, &mut run, file.clone());
    run.engine.run_until(Time::ZERO + scenario.duration).unwrap();
    capture.finish().unwrap();
    std::mem::take(&mut *file.0.lock().unwrap())
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// (interface, ns, captured, original, flags) of every packet, and the interfaces' names.
type Read = (Vec<(u32, u64, u32, u32, u32)>, Vec<String>);

fn read(mut file: &[u8]) -> Read {
    let (mut packets, mut names) = (Vec::new(), Vec::new());
    while !file.is_empty() {
        let (kind, length) = (word(file, 0), word(file, 4) as usize);
        assert_eq!((length % 4, word(file, length - 4) as usize), (0, length));
        let body = &file[8..length - 4];
        match kind {
            0x0a0d_0d0a => assert_eq!((names.len(), word(body, 0)), (0, 0x1a2b_3c4d)),
            1 => {
                assert_eq!((word(body, 0), word(body, 8) & 0xffff), (101, 2));
                let name = &body[12..12 + (word(body, 8) >> 16) as usize];
                names.push(String::from_utf8(name.to_vec()).unwrap());
            }
            6 => {
                let captured = word(body, 12);
                let options = 20 + (captured as usize).next_multiple_of(4);
                let flags = if options < body.len() { word(body, options + 4) } else { 0 };
                let at = u64::from(word(body, 4)) << 32 | u64::from(word(body, 8));
                assert_eq!(body[20] >> 4, 4, "an IPv4 packet");
                packets.push((word(body, 0), at, captured, word(body, 16), flags));
            }
            other => panic!("block type {other}"),
        }
        file = &file[length..];
    }
    (packets, names)
}

#[test]
fn every_interface_has_its_packets_at_their_times() {
    let (packets, names) = read(&capture());
    assert_eq!(names, ["a", "b", "a>b", "b>a"]);
    let of = |interface: u32| packets.iter().filter(move |p| p.0 == interface).collect::<Vec<_>>();
    let ms = 1_000_000;
    // Five at once: one is sent, three wait, one is dropped; each takes 10 ms, and 7 ms on the way.
    assert_eq!(of(0).iter().map(|p| (p.1, p.2, p.3, p.4)).collect::<Vec<_>>(), {
        let mut sent = vec![(100 * ms, 28, 1250, 2); 5];
        sent.push((400 * ms, 28, 100, 2));
        sent
    });
    let arrivals: Vec<u64> = of(1).iter().map(|p| p.1).collect();
    assert_eq!(arrivals, [117 * ms, 127 * ms, 137 * ms, 147 * ms, 400 * ms + 7_800_000]);
    assert!(of(1).iter().all(|p| p.4 == 1));
    assert_eq!(of(2).iter().map(|p| p.1).collect::<Vec<_>>(), arrivals);
    assert!(of(3).is_empty());
}

#[test]
fn tshark_reads_it() {
    if std::process::Command::new("tshark").arg("--version").output().is_err() {
        return;
    }
    let file = std::env::temp_dir().join(format!("lastmile-pcap-{}.pcapng", std::process::id()));
    std::fs::write(&file, capture()).unwrap();
    let output = std::process::Command::new("tshark")
        .args(["-n", "-T", "fields", "-e", "frame.interface_name", "-e", "frame.time_epoch", "-e", "ip.len"])
        .args(["-e", "udp.dstport", "-Y", "frame.interface_name == \"b\"", "-r"])
        .arg(&file)
        .output()
        .unwrap();
    std::fs::remove_file(&file).unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(
        text.lines().next(),
        Some("b\t0.117000000\t1250\t9"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(text.lines().count(), 5);
}
