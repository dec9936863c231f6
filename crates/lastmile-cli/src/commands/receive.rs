//! `lastmile receive`: the receiving end of streams on this host.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::anyhow;
use lastmile::endpoint::AnyEndpoint;
use lastmile::endpoint::stream::{
    AUDIO, Decision, FeedbackInterval, MEDIA, PADDING, ReceiverConfig, Viewed as Frames,
};
use lastmile::time::Span;
use lastmile::wire::sdes::MasterKey;
use lastmile::wire::sdp::Video;
use lastmile_net::recording::Header;

use crate::files::live::{LiveArgs, Section};
use crate::roles::{
    self, stream,
    stream::receiving::{Quality, Receiving},
    stream::secure::{SecurityArgs, VARIABLE, guard},
};
use crate::shell::Log;
use crate::shell::exit::Exit;
use crate::shell::network::{MEDIA_PORT, SocketArgs, random_numbers};
use crate::shell::options::{KERNEL_NOISE, frame_rate, read_file};
use crate::shell::screen::Screen;
use crate::shell::signals;

/// Longest description of a stream, in bytes.
const MAX_DESCRIPTION: u64 = 64_000;

/// Receive RTP streams and answer them with the feedback that sets their rate (RFC 8888)
///
/// Answers begin when two packets of a source came in sequence, and never have more bytes than the source sent. The receiver counts and
/// judges the losses of a sender with `tfrc(form=receiver)+zbs` or the like. It runs until Ctrl-C, with one stream after another or
/// several at once; with --once to the end of the first. Real video is decoded with --output or --reference, and comes as SRTP (RFC 3711):
/// without a key this end makes one, and prints the sender's line with it.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// UDP port for media and RTCP (RFC 5761)
    #[arg(long, default_value_t = MEDIA_PORT)]
    port: u16,
    /// Take port, payload type, parameter sets and key from FILE, the description of another sender's stream (SDP)
    #[arg(long, value_name = "FILE", conflicts_with = "port", help_heading = "Real video")]
    sdp: Option<PathBuf>,
    /// Time between feedback packets: 1 ms to 5 s, or `rtt` for once in a round-trip time (needs `stream --timed`)
    #[arg(long, value_name = "TIME", default_value_t = FeedbackInterval::default())]
    feedback: FeedbackInterval,
    /// Report times of arrival to 11 us too (RFC 3611); classifiers other than Spike need them on fast links
    #[arg(long)]
    receipt_times: bool,
    /// Ask for lost packets again (RFC 4585, `stream --retransmit`), up to this age
    #[arg(long, value_name = "TIME")]
    nack: Option<Span>,
    /// Decode H.264 and write it to FILE: pictures (.y4m), the byte stream as it came (.h264), or the times of the pictures shown (.csv)
    #[arg(long, value_name = "FILE", help_heading = "Real video")]
    output: Option<PathBuf>,
    /// Compare pictures with the source of `lastmile stream` (PSNR, SSIM): `testsrc` or FILE.y4m; the page of --html has SSIM over time, and stills
    #[arg(long, value_name = "SOURCE", help_heading = "Real video")]
    reference: Option<String>,
    /// Frames per second of the sender [default: 30, or those of the reference]
    #[arg(long, value_name = "NUMBER", value_parser = frame_rate, help_heading = "Real video")]
    frame_rate: Option<f64>,
    /// End with the first stream, and with others of its host that are under way, such as its audio
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    security: SecurityArgs,
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

    /// The stream that another sender's description tells of.
    fn described(&self) -> anyhow::Result<Option<Video>> {
        let Some(file) = &self.sdp else { return Ok(None) };
        let wrong = |why: String| Exit::Usage.blame(anyhow!("--sdp {}: {why}", file.display()));
        let text = read_file("--sdp", file, MAX_DESCRIPTION)?;
        let parsed = text.parse();
        let video: Video = parsed.map_err(|error: lastmile::wire::sdp::SdpError| wrong(error.to_string()))?;
        if video.mode > 1 {
            return Err(wrong(
                "its packets are interleaved (packetization-mode=2), which is not supported".to_owned(),
            ));
        }
        if video.address.is_multicast() {
            return Err(wrong(format!(
                "{} is a group of hosts: streams are received from one sender",
                video.address
            )));
        }
        Ok(Some(video))
    }

    /// The key of SRTP, and true if it was made here: for video that is to be decoded, unless plain RTP is asked for. A description goes before
    /// the variable, which may be there for other streams.
    fn key(&self, described: Option<&Video>) -> anyhow::Result<(Option<MasterKey>, bool)> {
        let given = match described {
            Some(_) if !self.security.has_file() => None,
            _ => self.security.key()?,
        };
        match described {
            _ if given.is_some() || self.security.is_plain() => Ok((given, false)),
            Some(video) => Ok((video.key.clone(), false)),
            None if self.is_viewed() || self.security.makes() => Ok((Some(self.security.made()?), true)),
            None => Ok((None, false)),
        }
    }

    /// The line with which a sender is to be started.
    fn line(&self, port: u16, made: Option<&MasterKey>) -> String {
        let key = made.map_or_else(String::new, |key| format!("{VARIABLE}={} ", key.to_text()));
        let source = match &self.reference {
            Some(source) => format!("{source} "),
            None if self.is_viewed() => "SOURCE ".to_owned(),
            None => String::new(),
        };
        let host = match self.socket.bind {
            Some(ip) if port == MEDIA_PORT => ip.to_string(),
            Some(ip) => std::net::SocketAddr::new(ip, port).to_string(),
            None if port == MEDIA_PORT => "HOST".to_owned(),
            None => format!("HOST:{port}"),
        };
        format!("{key}lastmile stream {source}{host}")
    }

    fn check(&self) -> anyhow::Result<()> {
        let wrong = |text: String| Err(Exit::Usage.blame(anyhow!(text)));
        if let Some(within) = self.nack {
            stream::of_use("--nack", within)?;
        }
        if self.sdp.is_some() && self.security.makes() {
            return wrong("--gcm makes a key, and --sdp tells one: leave out one of them".to_owned());
        }
        if self.sdp.is_some() && self.reference.is_some() {
            return wrong(
                "--reference finds a picture's original by its timestamp, which begins at 0 with a sender of lastmile alone, and --sdp is \
                 for others: compare the file of --output, by ffmpeg's psnr and ssim for instance"
                    .to_owned(),
            );
        }
        self.live.apart(&[
            ("--sdp", self.sdp.as_deref()),
            ("--reference", self.reference.as_ref().map(Path::new).filter(|source| source.is_file())),
            ("--output", self.output.as_deref()),
        ])?;
        if self.frame_rate.is_some() && !self.is_viewed() {
            return wrong("--frame-rate is for --output and --reference".to_owned());
        }
        Ok(())
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
fn endpoint(
    args: &Args,
    config: ReceiverConfig,
    described: Option<&Video>,
) -> anyhow::Result<(Header, AnyEndpoint, Viewed)> {
    if !args.is_viewed() {
        let (header, endpoint) = stream::receiver(config)?;
        return Ok((header, endpoint, Viewed { quality: None, fault: Box::new(|| None), section: None }));
    }
    #[cfg(not(feature = "video"))]
    {
        let _ = described;
        let option = if args.output.is_some() { "--output" } else { "--reference" };
        Err(stream::video::refused(option))
    }
    #[cfg(feature = "video")]
    {
        let reference = args.reference.as_deref().map(stream::video::VideoName::from);
        let mut viewer = stream::video::viewer(args.output.as_deref(), reference.as_ref(), args.frame_rate)?;
        described.iter().for_each(|video| viewer.learn(&video.stream()));
        let (seen, told) = (viewer.seen(), viewer.seen());
        #[cfg(feature = "pages")]
        let drawn = viewer.seen();
        let (header, endpoint) = stream::viewing_receiver(config, Box::new(viewer))?;
        #[cfg(feature = "pages")]
        let section: Option<Box<dyn FnOnce(Frames) -> String>> =
            Some(Box::new(move |frames| stream::film::section(&drawn.lock(), frames)));
        let quality = move || {
            let seen = told.lock();
            stream::receiving::Seen {
                psnr: seen.psnr(),
                ssim: seen.ssim(),
                pictures: seen.pictures,
                undecodable: seen.undecodable,
                left_out: seen.left_out,
            }
        };
        let (output, reference) = (args.output.clone().unwrap_or_default(), args.reference.clone());
        let fault = move || {
            let (written, compared) = {
                let mut seen = seen.lock();
                (seen.error.take(), seen.reference_error.take())
            };
            if let Some(error) = compared {
                crate::shell::note(&format!(
                    "{}: {error}: nothing more is compared",
                    reference.as_deref().unwrap_or("-")
                ));
            }
            let error = written?;
            if output.extension().is_some_and(|extension| extension == "y4m") {
                // Whole pictures stay.
                let _ = lastmile_net::media::trim(&output);
            }
            Some(crate::shell::replace::incomplete(&output, &error.into()))
        };
        #[cfg(not(feature = "pages"))]
        let section = None;
        Ok((header, endpoint, Viewed { quality: Some(Box::new(quality)), fault: Box::new(fault), section }))
    }
}

/// True for what changes a screen.
fn is_progress(what: &Decision) -> bool {
    matches!(
        what,
        Decision::SourceProgress { .. } | Decision::FramesViewed { .. } | Decision::SourceLeft { .. }
    )
}

/// A note, above the screen if there is one.
fn aside(screen: &mut Option<Screen>, text: &str) {
    match screen {
        Some(screen) => screen.above(|| crate::shell::note(text)),
        None => crate::shell::note(text),
    }
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    args.check()?;
    let described = args.described()?;
    let (key, made) = args.key(described.as_ref())?;
    let sockets = args.socket.listen(described.as_ref().map_or(args.port, |video| video.port))?;
    let addresses: Vec<_> = sockets.iter().map(|socket| socket.local_addr()).collect();
    let mut driver = args.socket.driver(sockets)?;
    let (ssrc, _) = random_numbers()?;
    let video = args.is_viewed().then(|| described.as_ref().map_or(MEDIA, |video| video.payload_type));
    let config = ReceiverConfig {
        feedback: args.feedback,
        epoch: driver.epoch(),
        receipt_times: args.receipt_times,
        nack: args.nack,
        resolution: KERNEL_NOISE,
        video,
        expansion: key.as_ref().map(|key| key.suite().expansion()).unwrap_or_default(),
        ..ReceiverConfig::new(ssrc)
    };
    let (header, endpoint, viewed) = endpoint(&args, config, described.as_ref())?;
    let frames = Rc::new(Cell::new(Frames::default()));
    let last = Rc::clone(&frames);
    let section = viewed.section.map(|section| Box::new(move || section(last.get())) as Section);
    let live = args.live.open(header)?.with_section(section);
    let line = args.line(addresses[0].port(), key.as_ref().filter(|_| made));
    let dropped = key.as_ref().map(|key| guard(&mut driver, key.clone(), "packets")).transpose()?;
    if !args.json {
        let places = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
        let form = key.map_or_else(|| "RTP".to_owned(), |key| format!("SRTP ({})", key.suite().name()));
        match described {
            Some(_) => crate::shell::log(&format!("receiving {form} on {places}")),
            None => {
                crate::shell::log(&format!("receiving {form} on {places}; stream to it with:"));
                // One line, to be copied.
                crate::shell::say(&line);
            }
        }
    } else if made {
        crate::shell::note(&format!("stream to it with: {line}"));
    }
    let mut receiving = Receiving::default();
    receiving.quality = viewed.quality;
    let (mut screen, mut logged) = (Screen::new(args.json), Log::new());
    let mut fault = None;
    let written = live.run(&mut driver, endpoint, None, |event| {
        if let Some(Decision::FramesViewed { viewed, .. }) = event.what.of() {
            frames.set(*viewed);
        }
        receiving.take(event);
        if let (Some(Decision::SourceFound { peer, ssrc, payload_type }), Some(own)) = (event.what.of(), video)
            && ![own, PADDING, AUDIO].contains(payload_type)
        {
            aside(
                &mut screen,
                &format!(
                    "stream {ssrc:08x} from {peer} has payload type {payload_type}, and video is expected with {own}: it is not decoded; \
                     the sender's description (--sdp FILE) has the type"
                ),
            );
        }
        if let Some(error) = (viewed.fault)() {
            // Told at once: what comes from then on is lost.
            aside(&mut screen, &error.to_string());
            fault.get_or_insert(error);
        }
        let says = matches!(
            event.what.of(),
            Some(
                Decision::SourceFound { .. }
                    | Decision::SourceTurnedAway { .. }
                    | Decision::SchemeNamed { .. }
                    | Decision::SourceLeft { .. }
            )
        );
        let mut log = || logged.event(&roles::told(&event.what).text);
        match &mut screen {
            _ if args.json => receiving.json_line(event),
            Some(screen) => {
                if says {
                    screen.above(log);
                }
                // Counts come each second.
                if event.what.of().is_some_and(is_progress) {
                    screen.show(&receiving.screen());
                }
            }
            None if says => log(),
            None => {}
        }
        args.once && receiving.is_over()
    })?;
    drop(screen);
    if !args.json && receiving.has_streams() {
        crate::shell::say_text(&receiving.lines(), false);
    }
    if let Some((unauthentic, replayed)) = dropped.map(|dropped| dropped()).filter(|counts| *counts != (0, 0))
    {
        crate::shell::note(&format!(
            "SRTP dropped {unauthentic} packets without the key and {replayed} that had come before"
        ));
    }
    written?;
    if let Some(error) = fault.or_else(&viewed.fault) {
        return Err(error);
    }
    let is_empty = |file: &&PathBuf| file.metadata().is_ok_and(|about| about.is_file() && about.len() == 0);
    if let Some(file) = args.output.as_ref().filter(is_empty) {
        crate::shell::note(&format!("{} is empty: no picture came", file.display()));
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
