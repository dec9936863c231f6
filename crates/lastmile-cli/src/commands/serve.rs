//! `lastmile serve`: a reflector on this host.

use lastmile::endpoint::measure::{Decision, Limits, Reflector, ReflectorConfig};
use lastmile::event::Event;
use lastmile::time::Span;
use lastmile::units::Rate;

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
    let mut show = |event: &Event<Decision>| {
        let line = match (&event.what, args.json) {
            (_, true) => serde_json::to_string(event).unwrap_or_default(),
            (Decision::SessionOpened { peer }, _) => format!("{} session from {peer}", event.at),
            (Decision::SessionClosed { peer, received, sent }, _) => {
                format!("{} end of {peer}: {received} received, {sent} sent", event.at)
            }
            (Decision::TurnedAway { peer, no_session, no_room, over_budget, unpaid }, _) => format!(
                "{} turned away since last told, {peer} last: {}",
                event.at,
                turned_away(*no_session, *no_room, *over_budget, *unpaid)
            ),
            (Decision::TooSmall { peer, octets }, _) => format!(
                "{} {peer} sends packets of {octets} octets and gets nothing: a reply would be larger; --answer-small answers it",
                event.at
            ),
            (Decision::ClockStepped { by }, _) => format!("{} the wall clock was stepped by {by}", event.at),
            _ => return,
        };
        match args.json {
            true => crate::shell::say(&line),
            false => crate::shell::log(&line),
        }
    };
    driver.run(&mut reflector, &mut show, signals::stop(), |_| false)?;
    let counted = reflector.counters();
    if args.json {
        let mut line = serde_json::to_value(counted)?;
        line["event"] = "counters".into();
        line["schema"] = lastmile_report::json::SCHEMA.into();
        crate::shell::say(&line.to_string());
    } else {
        crate::shell::log(&format!(
            "{} reflected, {} logged, {} streamed, {} malformed, {} too small, {} without the key, {} without proof of their address, \
             {} repeated, {} looped; turned away: {}",
            counted.reflected,
            counted.logged,
            counted.streamed,
            counted.malformed,
            counted.too_small,
            counted.unauthenticated,
            counted.unproven,
            counted.repeated,
            counted.looped,
            turned_away(counted.no_session, counted.no_room, counted.over_budget, counted.unpaid)
        ));
    }
    Ok(None)
}

/// Packets turned away, by limit, in words.
fn turned_away(no_session: u64, no_room: u64, over_budget: u64, unpaid: u64) -> String {
    format!(
        "{no_session} for want of sessions, {no_room} for want of room for reports, {over_budget} over the rate, \
         {unpaid} for streams not paid"
    )
}
