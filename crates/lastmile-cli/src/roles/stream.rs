//! Media streams: a row each, and how their two ends are recorded and built again.

use std::any::Any;

use lastmile::endpoint::measure::Key;
use lastmile::endpoint::stream::{Receiver, ReceiverConfig, Sender, SenderConfig};
use lastmile::endpoint::{AnyEndpoint, any};
use lastmile::node::Ecn;
use lastmile::report::Direction;
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile_net::recording::{Header, SharedRecorder, World};
use lastmile_sim::roles::Found;
use lastmile_sim::runs::flows::as_rate;
use lastmile_sim::scenario::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::loopback::{Buffer, Driven, loopback};
use super::{Case, HeaderOf, Recorded, Role, Shown};
use crate::table::Table;

/// Its place in the list.
pub(super) const ROLE: Role = Role { name: NAME, shown, header, endpoint, cases };

const NAME: &str = "stream";

/// All that determines one end of a stream beside its inputs.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum End {
    Sender(SenderConfig),
    Receiver(ReceiverConfig),
}

impl End {
    fn of(config: &dyn Any) -> Option<End> {
        let sender = config.downcast_ref().cloned().map(End::Sender);
        sender.or_else(|| config.downcast_ref().cloned().map(End::Receiver))
    }

    fn header(&self, world: World) -> anyhow::Result<Header> {
        let epoch = match self {
            End::Sender(config) => config.epoch,
            End::Receiver(config) => config.epoch,
        };
        let config = serde_json::to_value(self)?;
        Ok(Header { world, role: NAME.to_owned(), seed: [0; 32], epoch, config })
    }

    fn endpoint(self) -> AnyEndpoint {
        match self {
            End::Sender(config) => any(Sender::new(config)),
            End::Receiver(config) => any(Receiver::new(config)),
        }
    }
}

fn header(_: &Scenario, what: Recorded) -> HeaderOf {
    Box::new(move |config| Some(End::of(config)?.header(what.world)))
}

fn endpoint(header: &Header, _: Option<Key>) -> anyhow::Result<AnyEndpoint> {
    Ok(super::recorded::<End>(header)?.endpoint())
}

/// What `conformance` sends; 2 Mbit/s is what its path has left in both directions.
const RATE: Rate = Rate::ip(2_000_000);
const SECONDS: i64 = 1;

/// Both ends of one stream.
fn cases(_full: bool) -> Vec<Case> {
    let case = |which, name| Case {
        kind: NAME,
        name,
        direction: Direction::Forward,
        table: format!(
            "[[stream]]\nfrom = \"sender\"\nto = \"receiver\"\nrate = \"{} bit/s\"\necn = \"ect1\"\n\
             start = \"100 ms\"\nstop = \"{} ms\"\n",
            RATE.bits_per_second(),
            1_000 * SECONDS + 100,
        ),
        which,
        over_loopback: Box::new(move || over_loopback(which)),
    };
    vec![case(0, "rtp-sender"), case(1, "rtp-receiver")]
}

fn over_loopback(which: usize) -> anyhow::Result<Buffer> {
    let buffer = Buffer::default();
    let driven = |end: End, recorded: bool| {
        let header = end.header(World::Real)?;
        let recorder = recorded.then(|| SharedRecorder::new(buffer.clone(), &header)).transpose()?;
        Ok(Driven { endpoint: end.endpoint(), recorder })
    };
    let receiver = |epoch| {
        let config = ReceiverConfig { ssrc: 2, feedback: Span::from_millis(50), epoch };
        driven(End::Receiver(config), which == 1)
    };
    let sender = |peer, epoch| {
        let config = SenderConfig {
            peer,
            ssrc: 1,
            rate: RATE,
            frame_rate: 30.0,
            packet_size: Bytes(1_200),
            ecn: Ecn::Ect1,
            start: Time::ZERO,
            stop: Time::ZERO + Span::from_secs(SECONDS),
            epoch,
        };
        driven(End::Sender(config), which == 0)
    };
    loopback(receiver, sender)?;
    Ok(buffer)
}

fn shown(_: &Scenario, found: &Found) -> Shown {
    let found = &found.stream;
    let mut table = Table::new(&[
        "stream",
        "from",
        "to",
        ">goodput (IP)",
        ">sent",
        ">received",
        "lost",
        ">delay",
        ">longest",
        ">jitter",
        ">marked",
        ">feedback",
    ]);
    let milliseconds =
        |seconds: Option<f64>| seconds.map_or_else(|| "-".to_owned(), |s| format!("{:.2} ms", s * 1e3));
    for stream in &found.outcomes {
        let lost: Vec<_> = stream.lost.iter().map(|(cause, packets)| format!("{packets} {cause}")).collect();
        table.row([
            stream.stream.clone(),
            stream.from.clone(),
            stream.to.clone(),
            stream.goodput_bps.map_or_else(|| "-".to_owned(), |bps| as_rate(bps).to_string()),
            stream.sent.to_string(),
            stream.received.to_string(),
            if lost.is_empty() { "-".to_owned() } else { lost.join(", ") },
            milliseconds(stream.delay_mean_s),
            milliseconds(stream.delay_max_s),
            milliseconds(stream.jitter_s),
            stream.ecn_marked.to_string(),
            Bytes(stream.feedback_bytes).to_string(),
        ]);
    }
    let table = (!found.outcomes.is_empty()).then(|| table.text());
    Shown { key: "streams", rows: json!(found.outcomes), table, exit: None }
}
