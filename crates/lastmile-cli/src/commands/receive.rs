//! `lastmile receive`: the receiving end of streams on this host.

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;

use anyhow::anyhow;
use lastmile::endpoint::AnyEndpoint;
use lastmile::endpoint::stream::{Decision, FeedbackInterval, MEDIA, ReceiverConfig, Viewed as Frames};
use lastmile::time::Span;
use lastmile_net::recording::Header;

use super::stream::of_use;
use crate::files::live::{LiveArgs, Section};
use crate::roles::{
    self, stream,
    stream::receiving::{Quality, Receiving},
};
use crate::shell::exit::Exit;
use crate::shell::network::{MEDIA_PORT, SocketArgs, random_numbers};
use crate::shell::options::KERNEL_NOISE;
use crate::shell::signals;

/// Receive RTP streams and answer them with the feedback that sets their rate (RFC 8888)
///
/// Answers begin when two packets of a source came in sequence, and never have more bytes than the source sent. The receiver counts and
/// judges the losses of a sender with `tfrc(form=receiver)+zbs` or the like. It runs until Ctrl-C, with one stream after another or
/// several at once; with --once to the end of the first. Real video is decoded with --output or --reference.
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
    /// Decode H.264 and write it to FILE: pictures (.y4m), or the byte stream as it came (.h264)
    #[arg(long, value_name = "FILE", help_heading = "Real video")]
    output: Option<PathBuf>,
    /// Compare pictures with the sender's source (PSNR, SSIM): `testsrc` or FILE.y4m; the page of --html has SSIM over time, and stills
    #[arg(long, value_name = "SOURCE", help_heading = "Real video")]
    reference: Option<String>,
    /// Frames per second of the sender [default: 30, or those of the reference]
    #[arg(long, value_name = "NUMBER", help_heading = "Real video")]
    frame_rate: Option<f64>,
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

impl Args {
    /// True if video is decoded.
    fn is_viewed(&self) -> bool {
        self.output.is_some() || self.reference.is_some()
    }

    fn check(&self) -> anyhow::Result<()> {
        let wrong = |text: String| Err(Exit::Usage.blame(anyhow!(text)));
        if let Some(within) = self.nack {
            of_use("--nack", within)?;
        }
        match self.frame_rate {
            Some(_) if !self.is_viewed() => wrong("--frame-rate is for --output and --reference".to_owned()),
            Some(rate) if !(0.1..=1_000.0).contains(&rate) => {
                wrong(format!("--frame-rate must be 0.1 to 1000, not {rate}"))
            }
            _ => Ok(()),
        }
    }
}

/// The words of a viewer: the quality of its pictures, and the fault of its files.
struct Viewed {
    quality: Option<Quality>,
    fault: Box<dyn Fn() -> Option<anyhow::Error>>,
    /// Makes its section of the page, of the last counts of frames.
    section: Option<Box<dyn FnOnce(Frames) -> String>>,
}

/// The receiver, with its header and what its viewer tells.
fn endpoint(args: &Args, config: ReceiverConfig) -> anyhow::Result<(Header, AnyEndpoint, Viewed)> {
    if !args.is_viewed() {
        let (header, endpoint) = stream::receiver(config)?;
        return Ok((header, endpoint, Viewed { quality: None, fault: Box::new(|| None), section: None }));
    }
    #[cfg(not(feature = "video"))]
    {
        let option = if args.output.is_some() { "--output" } else { "--reference" };
        Err(stream::video::refused(option))
    }
    #[cfg(feature = "video")]
    {
        let reference = args.reference.as_deref().map(stream::video::VideoName::from);
        let viewer = stream::video::viewer(args.output.as_deref(), reference.as_ref(), args.frame_rate)?;
        let (seen, told) = (viewer.seen(), viewer.seen());
        #[cfg(feature = "pages")]
        let drawn = viewer.seen();
        let (header, endpoint) = stream::viewing_receiver(config, Box::new(viewer))?;
        #[cfg(feature = "pages")]
        let section: Option<Box<dyn FnOnce(Frames) -> String>> =
            Some(Box::new(move |frames| stream::film::section(&drawn.lock(), frames)));
        let quality = move || stream::receiving::in_words(&told.lock());
        let file =
            args.output.clone().or_else(|| args.reference.clone().map(PathBuf::from)).unwrap_or_default();
        let fault = move || {
            let error = seen.lock().error.take()?;
            Some(crate::shell::replace::incomplete(&file, &error.into()))
        };
        #[cfg(not(feature = "pages"))]
        let section = None;
        Ok((header, endpoint, Viewed { quality: Some(Box::new(quality)), fault: Box::new(fault), section }))
    }
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    args.check()?;
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
        video: args.is_viewed().then_some(MEDIA),
        ..ReceiverConfig::new(ssrc)
    };
    let (header, endpoint, viewed) = endpoint(&args, config)?;
    let frames = Rc::new(Cell::new(Frames::default()));
    let last = Rc::clone(&frames);
    let section = viewed.section.map(|section| Box::new(move || section(last.get())) as Section);
    let live = args.live.open(header, endpoint)?.with_section(section);
    if !args.json {
        crate::shell::log(&format!(
            "receiving on {}; stream to it with: lastmile stream HOST",
            addresses.join(" and ")
        ));
    }
    let mut receiving = Receiving::default();
    receiving.quality = viewed.quality;
    let looked_at = crate::shell::is_looked_at(args.json);
    let written = live.run(&mut driver, None, |event| {
        if let Some(Decision::FramesViewed { viewed, .. }) = event.what.of() {
            frames.set(*viewed);
        }
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
    if let Some(error) = (viewed.fault)() {
        return Err(error);
    }
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
