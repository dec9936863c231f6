//! `lastmile receive`: the receiving end of streams on this host.

use anyhow::anyhow;
use lastmile::endpoint::stream::{Decision, FeedbackInterval, ReceiverConfig};
use lastmile::time::Span;

use super::stream::of_use;
use crate::files::live::LiveArgs;
use crate::roles::{self, stream, stream::receiving::Receiving};
use crate::shell::exit::Exit;
use crate::shell::network::{MEDIA_PORT, SocketArgs, random_numbers};
use crate::shell::options::KERNEL_NOISE;
use crate::shell::signals;

/// Receive RTP streams and answer them with the feedback that sets their rate (RFC 8888)
///
/// Answers begin when two packets of a source came in sequence, and never have more bytes than the source sent. The receiver counts and
/// judges the losses of a sender with `tfrc(form=receiver)+zbs` or the like. It runs until Ctrl-C, with one stream after another or
/// several at once; with --once to the end of the first.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// UDP port for media and RTCP (RFC 5761)
    #[arg(long, default_value_t = MEDIA_PORT)]
    port: u16,
    /// Time between feedback packets: 1 ms to 5 s, or `rtt` for once in a round-trip time (needs `stream --timed`)
    #[arg(long, value_name = "TIME", default_value_t = FeedbackInterval::default())]
    feedback: FeedbackInterval,
    /// Report times of arrival to 11 us too (RFC 3611); classifiers other than Spike need them on fast links
    #[arg(long)]
    receipt_times: bool,
    /// Ask for lost packets again (RFC 4585, `stream --retransmit`), up to this age
    #[arg(long, value_name = "TIME")]
    nack: Option<Span>,
    /// End when the first stream ends
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    socket: SocketArgs,
    #[command(flatten)]
    live: LiveArgs,
    /// Print decisions as JSON lines
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    if let Some(within) = args.nack {
        of_use("--nack", within)?;
    }
    let sockets = args.socket.listen(args.port)?;
    let addresses: Vec<_> = sockets.iter().map(|socket| socket.local_addr().to_string()).collect();
    let mut driver = args.socket.driver(sockets)?;
    let (ssrc, _) = random_numbers()?;
    let config = ReceiverConfig {
        feedback: args.feedback,
        epoch: driver.epoch(),
        receipt_times: args.receipt_times,
        nack: args.nack,
        resolution: KERNEL_NOISE,
        ..ReceiverConfig::new(ssrc)
    };
    let (header, endpoint) = stream::receiver(config)?;
    let live = args.live.open(header, endpoint)?;
    if !args.json {
        crate::shell::log(&format!(
            "receiving on {}; stream to it with: lastmile stream HOST",
            addresses.join(" and ")
        ));
    }
    let mut receiving = Receiving::default();
    let looked_at = crate::shell::is_looked_at(args.json);
    let written = live.run(&mut driver, None, |event| {
        let line = receiving.take(event);
        let says = matches!(
            event.what.of(),
            Some(
                Decision::SourceFound { .. }
                    | Decision::SourceTurnedAway { .. }
                    | Decision::SchemeNamed { .. }
                    | Decision::SourceLeft { .. }
            )
        );
        match (line, args.json) {
            (_, true) => crate::shell::say(&serde_json::to_string(event).unwrap_or_default()),
            (Some(line), _) if looked_at => crate::shell::look(&line),
            _ if says => crate::shell::log_event(&roles::told(&event.what).text),
            _ => {}
        }
        args.once && receiving.streams() > 0
    })?;
    if !args.json && receiving.streams() > 0 {
        crate::shell::say_text(&receiving.lines(), false);
    }
    written?;
    // A signal is the normal end of a server, but interrupts a wait for one stream (`--once`).
    if args.once && signals::stopped() {
        return Ok(Some(Exit::Interrupted));
    }
    match receiving.silent().filter(|_| args.once) {
        Some(peer) => {
            Err(Exit::Peer
                .blame(anyhow!("{peer} is silent without a goodbye: it is gone, or the path is cut")))
        }
        None => Ok(None),
    }
}
