//! `lastmile serve`: a reflector on this host.

use lastmile::endpoint::measure::{Counters, Decision, Limits, Reflector, ReflectorConfig};
use lastmile::event::Event;
use lastmile::time::Span;
use lastmile::units::Rate;

use crate::shell::Log;
use crate::shell::exit::Exit;
use crate::shell::network::{DEFAULT_PORT, KeyArgs, SocketArgs, random_seed};
use crate::shell::signals;

/// Answer measurements of other hosts (a STAMP reflector, RFC 8762, with lastmile's extensions)
///
/// Without a key it answers every host. A peer never gets more bytes than it sent (`--answer-small` aside), and rates are limited
/// by source and in total.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// UDP port; STAMP's own, 862, needs privilege
    #[arg(long, default_value_t = DEFAULT_PORT)]
    port: u16,
    #[command(flatten)]
    socket: SocketArgs,
    #[command(flatten)]
    key: KeyArgs,
    /// Average rate of answers to one source
    #[arg(long, value_name = "RATE", default_value_t = Limits::default().per_source_rate)]
    per_source_rate: Rate,
    /// Average rate of answers to all sources together
    #[arg(long, value_name = "RATE", default_value_t = Limits::default().total_rate)]
    total_rate: Rate,
    /// Most sessions at a time
    #[arg(long, value_name = "N", default_value_t = Limits::default().sessions)]
    sessions: usize,
    /// Silence of a peer after which its session ends
    #[arg(long, value_name = "TIME", default_value_t = ReflectorConfig::LEASE)]
    lease: Span,
    /// Answer TWAMP Light packets below 41 octets with 44 (RFC 8762, 4.6): a forged source address then gets more than was
    /// sent
    #[arg(long)]
    answer_small: bool,
    /// Print decisions as JSON lines
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    let key = args.key.key()?;
    let keyed = key.is_some();
    let sockets = args.socket.listen(args.port)?;
    let addresses: Vec<_> = sockets.iter().map(|s| s.local_addr().to_string()).collect();
    let mut driver = args.socket.driver(sockets)?;
    let limits = Limits {
        per_source_rate: args.per_source_rate,
        total_rate: args.total_rate,
        sessions: args.sessions,
        ..Limits::default()
    };
    let config = ReflectorConfig {
        key,
        epoch: driver.epoch(),
        limits,
        lease: args.lease,
        answer_small: args.answer_small,
        ..ReflectorConfig::new(random_seed()?)
    };
    let mut reflector = Reflector::new(config);
    if !args.json {
        let mode = if keyed { "with a key" } else { "without a key" };
        crate::shell::log(&format!(
            "serving on {} {mode}; measure with: lastmile measure HOST",
            addresses.join(" and ")
        ));
    }
    let mut log = Log::new();
    let mut show = |event: &Event<Decision>| {
        if args.json {
            return crate::shell::json_line(event);
        }
        let line = match &event.what {
            Decision::SessionOpened { peer } => format!("session from {peer}"),
            Decision::SessionClosed { peer, received, sent } => {
                format!("end of {peer}: {received} received, {sent} sent")
            }
            Decision::TurnedAway { peer, no_session, no_room, over_budget, unpaid } => format!(
                "turned away since last told, {peer} last: {}",
                packets(&turned_away([*no_session, *no_room, *over_budget, *unpaid]))
            ),
            Decision::TooSmall { peer, octets } => format!(
                "{peer} sends packets of {octets} octets and gets nothing: a reply would be larger; --answer-small answers it"
            ),
            Decision::ClockStepped { by } => format!("the wall clock was stepped by {by}"),
            _ => return,
        };
        log.event(&line);
    };
    driver.run(&mut reflector, &mut show, signals::stop(), |_| false)?;
    drop(log);
    let counted = reflector.counters();
    if args.json {
        let mut line = serde_json::to_value(counted)?;
        line["event"] = "counters".into();
        line["schema"] = lastmile_report::json::SCHEMA.into();
        crate::shell::say(&line.to_string());
    } else {
        crate::shell::log_event(&format!("ended: {}", all(counted)));
    }
    Ok(None)
}

/// A number of packets and their fate.
type Count = (u64, &'static str);

/// Packets turned away, by limit.
fn turned_away([no_session, no_room, over_budget, unpaid]: [u64; 4]) -> [Count; 4] {
    [
        (no_session, "for want of sessions"),
        (no_room, "for want of room for reports"),
        (over_budget, "over the rate"),
        (unpaid, "for streams that were not paid for"),
    ]
}

/// The counts above 0.
fn packets(counts: &[Count]) -> String {
    let some = counts.iter().filter(|(count, _)| *count > 0);
    some.map(|(count, fate)| format!("{count} {fate}")).collect::<Vec<_>>().join(", ")
}

/// All packets of a server's life.
fn all(counted: Counters) -> String {
    let came = packets(&[
        (counted.reflected, "answered"),
        (counted.logged, "received of streams"),
        (counted.streamed, "sent in streams"),
        (counted.malformed, "not of this protocol"),
        (counted.too_small, "too small to answer"),
        (counted.unauthenticated, "without the key"),
        (counted.unproven, "without proof of their address"),
        (counted.repeated, "repeated or for others"),
        (counted.looped, "from reflectors"),
    ]);
    let away =
        packets(&turned_away([counted.no_session, counted.no_room, counted.over_budget, counted.unpaid]));
    let parts = [("packets: ", came), ("turned away: ", away)];
    let said: Vec<String> = parts
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(what, text)| format!("{what}{text}"))
        .collect();
    if said.is_empty() { "no packets came".to_owned() } else { said.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_nothing_are_left_out() {
        assert_eq!(all(Counters::default()), "no packets came");
        let counted = Counters { reflected: 14, logged: 200, over_budget: 3, ..Counters::default() };
        assert_eq!(
            all(counted),
            "packets: 14 answered, 200 received of streams; turned away: 3 over the rate"
        );
        let away = Counters { no_session: 1, ..Counters::default() };
        assert_eq!(all(away), "turned away: 1 for want of sessions");
    }
}
