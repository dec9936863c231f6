//! A measurement on real sockets, recorded, and replayed in virtual time: the same decisions, byte for byte.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lastmile::endpoint::Endpoint;
use lastmile::endpoint::measure::{
    Decision, Each, Measurement, Prober, ProberConfig, Reflector, ReflectorConfig,
};
use lastmile::estimate::{Conditions, build};
use lastmile::event::Event;
use lastmile::node::{Node, Output, Recorded};
use lastmile::report::{Direction, StreamRecord};
use lastmile_net::driver::{Driver, DriverConfig};
use lastmile_net::recording::{Entry, Header, Reader, SharedRecorder, World};
use lastmile_net::udp::{UdpConfig, UdpSocket};

fn measurements() -> Vec<Measurement> {
    let one = |direction| {
        let estimator = build(&"wbest".parse().unwrap(), &Conditions::default()).unwrap();
        Measurement { method: "wbest".into(), direction, estimator }
    };
    [Direction::Forward, Direction::Reverse].map(one).into()
}

/// Measures this host's loopback and records it.
fn record(file: &Path) {
    let open = || UdpSocket::open(&UdpConfig::new("127.0.0.1:0".parse().unwrap())).unwrap();
    let (stop, far) = (Arc::new(AtomicBool::new(false)), open());
    let (peer, stopped) = (far.local_addr(), Arc::clone(&stop));
    let thread = std::thread::spawn(move || {
        let mut driver = Driver::new(vec![far], DriverConfig::default()).unwrap();
        let mut reflector =
            Reflector::new(ReflectorConfig { epoch: driver.epoch(), ..ReflectorConfig::new([7; 32]) });
        driver.run(&mut reflector, &mut |_: &Event<Decision>| {}, &stopped, |_| false).unwrap();
    });
    let mut driver = Driver::new(vec![open()], DriverConfig::default()).unwrap();
    let config = serde_json::json!({ "peer": peer });
    let header =
        Header { world: World::Real, role: "measure".into(), seed: [5; 32], epoch: driver.epoch(), config };
    let recorder = SharedRecorder::new(File::create(file).unwrap(), &header).unwrap();
    let config = ProberConfig { epoch: header.epoch, ..ProberConfig::new(peer, header.seed) };
    let prober =
        Prober::with_sink(config, measurements(), Each(|record: &StreamRecord| recorder.record(record)));
    let mut node = Recorded::new(prober, |now, input: &_| recorder.input(now, input));
    let mut on_event = |event: &Event<Decision>| recorder.event(event);
    driver.run(&mut node, &mut on_event, &AtomicBool::new(false), |node| node.node().is_finished()).unwrap();
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
    recorder.finish().unwrap();
}

#[test]
fn a_replay_decides_as_the_live_run_did() {
    let file = std::env::temp_dir().join(format!("lastmile-recording-{}.jsonl", std::process::id()));
    record(&file);
    let mut reader = Reader::open(&file).unwrap();
    let header = reader.header().unwrap().clone();
    let peer = header.config["peer"].as_str().unwrap().parse().unwrap();
    let config = ProberConfig { epoch: header.epoch, ..ProberConfig::new(peer, header.seed) };
    let mut prober = Prober::with_sink(config, measurements(), Vec::<StreamRecord>::new());

    let (mut live, mut streams, mut replayed) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(entry) = reader.next_entry().unwrap() {
        let (now, input) = match entry {
            Entry::Input { now, input } => (now, input),
            Entry::Event(event) => {
                live.push(event);
                continue;
            }
            Entry::Record(stream) => {
                streams.push(serde_json::from_value::<StreamRecord>(stream).unwrap());
                continue;
            }
        };
        prober.handle(now, input);
        loop {
            match prober.poll(now) {
                Output::Event(what) => {
                    replayed.push(Event { at: now, node: 0, seq: replayed.len() as u64, what });
                }
                Output::Transmit(_) => {}
                Output::Wait(_) => break,
            }
        }
    }
    let text = |event: &dyn Fn(usize) -> Option<String>| (0..).map_while(event).collect::<Vec<_>>();
    let replayed = text(&|at| Some(serde_json::to_string(replayed.get(at)?).unwrap()));
    assert_eq!(replayed, text(&|at| Some(serde_json::to_string(live.get(at)?).unwrap())));
    assert_eq!(prober.sink(), &streams);
    assert!(live.len() >= 4 && streams.len() >= 2, "{live:#?}");
    // Left behind where a check above failed, to be looked at.
    std::fs::remove_file(&file).unwrap();
}
