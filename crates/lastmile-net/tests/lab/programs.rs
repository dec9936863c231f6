//! Two programs that know nothing of the lab: they see the path that the engine models.

use std::process::Command;
use std::sync::atomic::AtomicBool;

use lastmile::node::{Datagram, Payload};
use lastmile::time::{Span, Time};
use lastmile_net::lab::programs::{Program, ProgramsConfig, run_programs};
use lastmile_sim::scenario::{Attach, Scenario, build};

use super::{Verdict, failed, late};

/// 1000 B of IP packet cross in 0.8 ms and 5 ms.
const PATH: &str = "name = \"programs\"\nduration = \"20 s\"\n[host.sender]\n[host.receiver]\n\
                    [[link]]\nfrom = \"sender\"\nto = \"receiver\"\nrate = \"10 Mbit/s\"\ndelay = \"5 ms\"\n";
const ROUND_TRIP: Span = Span::from_micros(2 * 5_800);
/// Longest round trip with an interpreter that answers, at its best of many times.
const SLOWEST: Span = Span::from_micros(2 * 5_800 + 2_500);

const SERVER: &str = r#"
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 4000))
while True:
    data, peer = s.recvfrom(4096)
    s.sendto(data, peer)
"#;

/// Ends with 0 if the fastest of 30 round trips took as long as it must; the server may still be starting.
const CLIENT: &str = r#"
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect((sys.argv[1], 4000))
low, high = float(sys.argv[2]), float(sys.argv[3])
trips, until = [], time.monotonic() + 8
while len(trips) < 30 and time.monotonic() < until:
    s.settimeout(0.1)
    begun = time.monotonic()
    try:
        s.send(len(trips).to_bytes(4, "big") + bytes(968))
        while s.recv(4096)[:4] != len(trips).to_bytes(4, "big"):
            pass
        trips.append(time.monotonic() - begun)
    except OSError:
        time.sleep(0.05)
if not trips:
    sys.exit(4)
sys.exit(0 if low <= min(trips) <= high else 3)
"#;

pub(super) fn two_programs() -> Verdict {
    if Command::new("python3").arg("--version").output().is_err() {
        return Verdict::Scored(Ok("skipped: there is no python3 to run".into()));
    }
    let program = |host: &str, script: &str, arguments: &[String]| Program {
        host: host.into(),
        command: [&["python3".into(), "-c".into(), script.into()], arguments].concat(),
    };
    let bounds = [ROUND_TRIP, SLOWEST].map(|s| s.as_secs_f64().to_string());
    let peer = "{receiver}".to_owned();
    let client = [vec![peer], bounds.to_vec()].concat();
    let programs = [program("receiver", SERVER, &[]), program("sender", CLIENT, &client)];
    let scenario = Scenario::parse("programs", PATH).expect("scenario");
    let config = ProgramsConfig { seed: 1, ..ProgramsConfig::default() };
    match run_programs(&scenario, &programs, config, &AtomicBool::new(false)) {
        Err(error) => failed(error),
        Ok((ends, run)) => late(&run.lateness).unwrap_or_else(|| {
            Verdict::Scored(match ends.last().map_or(0, |end| end.exit_code) {
                0 => Ok(format!("{} packets", run.lateness.packets)),
                3 => Err(format!("no round trip between {ROUND_TRIP} and {SLOWEST}")),
                code => Err(format!("the client ended with {code}")),
            })
        }),
    }
}

#[test]
fn two_programs_twin() {
    let scenario = Scenario::parse("programs", PATH).expect("scenario");
    let external = |host: &str| (host.to_owned(), Attach::External);
    let mut run = build(&scenario, 1, vec![external("sender"), external("receiver")]).expect("engine");
    let address = |host: usize| (scenario.hosts[host].v4, 4000).into();
    let (mut at, mut out) = (Time::ZERO, Vec::new());
    for (from, to) in [(0, 1), (1, 0)] {
        let packet = Datagram::udp(address(from), address(to), Vec::new());
        let packet = Datagram { payload: Payload::Ip(vec![0; 1000]), ..packet };
        run.engine.inject(run.hosts[from], at, packet).expect("host");
        run.engine.run_until(at + Span::from_millis(20)).expect("run");
        run.engine.take_egress(&mut out);
        let egress = out.pop().expect("it arrives");
        assert_eq!((usize::from(egress.host), out.len()), (to, 0));
        // The reply leaves when the engine's time has caught up, which is no part of the trip.
        at = run.engine.now();
        let trip = egress.at - (at - Span::from_millis(20));
        assert_eq!(trip, ROUND_TRIP / 2);
    }
}
