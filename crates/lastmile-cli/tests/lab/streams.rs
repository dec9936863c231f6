//! `lastmile stream` and `lastmile receive` as programs in two namespaces, over a link that loses packets at random.

use serde_json::Value;

use super::common::{PROGRAM, Scratch, lastmile};
use super::patience::{Late, patiently};
use super::{lateness, no_lab};

const LOSSY: &str = r#"name = "lossy"
duration = "5 s"
[host.a]
[host.b]
[[link]]
from = "a"
to = "b"
rate = "4 Mbit/s"
delay = "10 ms"
queue = "50 kB"
losses = [{ model = { kind = "bernoulli", rate = 0.05 } }]
back = { losses = [] }
"#;

const CONTROL: &str = "tfrc+spike(fixed=true)";

/// A stream's results: packets sent, the share lost, losses judged wireless, packets sent again, media in Mbit/s.
#[derive(Debug)]
struct Came {
    packets: f64,
    loss: f64,
    wireless: f64,
    again: f64,
    mbps: f64,
}

impl Came {
    /// By its sender's events.
    fn read(events: &str) -> Came {
        let text = std::fs::read_to_string(events).expect("events");
        let all: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
        let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("a number: {value}"));
        let named = |name: &str| all.iter().rfind(|event| event["event"] == name);
        let ended = named("media-ended").unwrap_or_else(|| panic!("no end: {text}"));
        assert_eq!(ended["why"], "stop", "{ended}");
        let (sent, seconds) =
            (&ended["sent"], number(&named("media-progress").expect("progress")["at"]) / 1e9);
        let lost = number(&named("media-reported").expect("a report")["lost"]);
        let packets = number(&sent["packets"]);
        let mbps = number(&sent["bytes"]) * 8.0 / 1e6 / seconds;
        let [wireless, again] = ["lost_wireless", "retransmitted"].map(|key| number(&sent[key]));
        Came { packets, loss: lost / packets, wireless, again, mbps }
    }

    /// True if most of the 5 % of random loss is judged wireless and sent again, and the rate is not far below the 0.9 Mbit/s that the
    /// equation leaves at 5 %.
    fn is_right(&self) -> bool {
        self.again > 0.8 * self.loss * self.packets
            && self.packets > 300.0
            && (0.02..0.09).contains(&self.loss)
            && self.wireless > 5.0
            && self.mbps > 0.7
    }
}

#[test]
#[ignore = "meets the wall clock: runs alone"]
fn wallclock_a_stream_crosses_a_lossy_link() {
    if no_lab() {
        return;
    }
    let scratch = Scratch::new("streams");
    let (file, events) = (scratch.file("lossy.toml", LOSSY), scratch.path("events.jsonl"));
    let came = patiently("a stream over a lossy link", || -> Result<Came, Late> {
        let receiver =
            ["--in", "b", "--", PROGRAM, "receive", "--once", "--receipt-times", "--nack", "300ms"];
        let sender =
            ["--in", "a", "--", PROGRAM, "stream", "{b}", "--control", CONTROL, "--start", "500 kbit/s"];
        let more = ["--max", "3 Mbit/s", "--seconds", "4", "--retransmit", "300ms", "--events", &events];
        let ended = lastmile(&[&["lab", &file][..], &receiver, &sender, &more].concat());
        if let Some(late) = lateness(&ended) {
            return Err(late);
        }
        assert_eq!(ended.code, Some(0), "{ended:?}");
        Ok(Came::read(&events))
    });
    let Some(came) = came else { return };
    eprintln!("lab: scored: a stream over a lossy link: {came:?}");
    assert!(came.is_right(), "{came:?}");
}

/// The twin of the test above.
#[test]
fn a_stream_crosses_the_same_link_in_the_simulator() {
    let scratch = Scratch::new("streams-twin");
    let stream = format!(
        "[[stream]]\nfrom = \"a\"\nto = \"b\"\ncontrol = \"{CONTROL}\"\nstart_rate = \"500 kbit/s\"\nmax_rate = \"3 Mbit/s\"\n\
         stop = \"4 s\"\nretransmit = \"300 ms\"\n"
    );
    let (file, events) =
        (scratch.file("lossy.toml", [LOSSY, &stream].concat()), scratch.path("events.jsonl"));
    let ended = lastmile(&["sim", &file, "--events", &events]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let came = Came::read(&events);
    assert!(came.is_right(), "{came:?}");
}
