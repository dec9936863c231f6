//! `lastmile stream [SOURCE] HOST`: synthetic or real video to a receiver, at the rate of a controller.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use lastmile::control::{Composition, RateController};
use lastmile::endpoint::stream::source::{SOURCES, read_sizes};
use lastmile::endpoint::stream::{
    ControlConfig, Decision, Retransmission, SenderConfig, SenderRate, SourceConfig,
};
use lastmile::endpoint::{AnyEndpoint, Endpoints, Event};
use lastmile::options::Choice;
use lastmile::time::Span;
use lastmile::units::{Bytes, Rate};
use lastmile::wire::MAX_SCHEME_NAME;
use lastmile::wire::sdes::MasterKey;
use lastmile_net::recording::Header;

use crate::files::live::LiveArgs;
use crate::roles::stream::audio::{self, Audio};
use crate::roles::stream::secure::{Dropped, SecurityArgs, guard};
use crate::roles::stream::video::{Size, VideoName};
use crate::roles::stream::{self, sending::Sending};
use crate::shell::ecn::EcnArg;
use crate::shell::exit::Exit;
use crate::shell::network::{MEDIA_PORT, SocketArgs, any, random_numbers, resolve_at};
use crate::shell::options::{self, MAX_TRACE_FILE, read_file, seconds, share};
use crate::shell::screen::Screen;
use crate::shell::signals;

/// Default of --max: enough for a film in full HD, and a slip costs 12.5 MB in the usual 10 s.
const MAX: Rate = Rate::ip(10_000_000);

/// Send video to HOST, at the rate that a controller finds
///
/// HOST runs `lastmile receive`, or another program that answers RTP with RTCP. The receiver's congestion control feedback (RFC 8888) sets
/// the rate. Without any feedback the stream backs off, and ends after 15 s. SOURCE is real video, coded as H.264 (RFC 6184): `testsrc` (a
/// moving test pattern), FILE.y4m (repeated) or `-` (the y4m of another program as it comes, such as a camera's by ffmpeg); it is sent as SRTP
/// (RFC 3711), with the key that `receive` prints. Without SOURCE frames have sizes and no content, and are plain RTP (RFC
/// 3550).
#[derive(clap::Args)]
#[command(override_usage = "lastmile stream [OPTIONS] [SOURCE] <HOST>")]
pub(crate) struct Args {
    /// Real video, if it is to be sent: `testsrc`, FILE.y4m or `-`; then host name or address, with or without a port
    #[arg(value_name = "[SOURCE] HOST", num_args = 1..=2, required = true)]
    places: Vec<String>,
    /// UDP port of `receive` on HOST [default: 5004]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Controller of the rate, such as `lastmile` or `tfrc`. After a +: `probe` measures the path's capacity by packet pairs, a loss classifier tells wireless
    /// losses from congestion (`tfrc+zbs`, `tfrc+probe+zbs`). `lastmile controllers` and `lastmile classifiers` list the names
    #[arg(long, value_name = "NAME", default_value = "lastmile", help_heading = "Rate")]
    control: Composition,
    /// Send at this fixed rate of IP packets; feedback does not change it
    #[arg(long, value_name = "RATE", conflicts_with_all = ["control", "min", "start", "max"], help_heading = "Rate")]
    rate: Option<Rate>,
    /// Lowest rate
    #[arg(long, value_name = "RATE", help_heading = "Rate")]
    min: Option<Rate>,
    /// Rate at the start [default: the controller's own]
    #[arg(long, value_name = "RATE", help_heading = "Rate")]
    start: Option<Rate>,
    /// Highest rate
    #[arg(long, value_name = "RATE", default_value_t = MAX, help_heading = "Rate")]
    max: Rate,
    /// Put times of sending and the round-trip time into packets, for `receive --feedback rtt`
    #[arg(long, conflicts_with = "rate", help_heading = "Rate")]
    timed: bool,
    /// Duration: seconds, or a time such as 2min
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    seconds: f64,
    /// End after so many bytes, media and reports together
    #[arg(long, value_name = "BYTES", conflicts_with = "audio")]
    max_bytes: Option<Bytes>,
    /// End after this time
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    max_seconds: Option<f64>,
    /// Size of the largest packets, IP headers included
    #[arg(long, value_name = "BYTES", default_value = "1200 B")]
    packet_size: Bytes,
    /// Frames per second [default: 30, or those of the file]
    #[arg(long, value_name = "NUMBER", value_parser = options::frame_rate)]
    frame_rate: Option<f64>,
    /// Size in which real video is sent [default: 640x480, or that of the file]
    #[arg(long, value_name = "WIDTHxHEIGHT", help_heading = "Real video")]
    size: Option<Size>,
    /// Send real video at one of these rates, separated by commas, or at the target where that is less: another step is taken once all targets
    /// of a second are clear of it [default of RATES: 0.7, 1.2, 2.5 and 5 Mbit/s]
    #[arg(long, value_name = "RATES", num_args = 0..=1, require_equals = true, value_delimiter = ',', help_heading = "Real video")]
    ladder: Option<Vec<Rate>>,
    /// Write the stream's description for players such as ffplay (SDP) to FILE, with the key; one is made if none is given
    #[arg(long, value_name = "FILE", help_heading = "Real video")]
    sdp: Option<PathBuf>,
    /// Send audio too, a stand-in without content: 20 ms in a packet or several, at this rate of IP packets. It shares the controller and --max with the
    /// frames, has its rate first, and ends with them [default of RATE: 80 kbit/s]
    #[arg(long, value_name = "RATE", num_args = 0..=1, require_equals = true, default_missing_value = audio::USUAL)]
    audio: Option<Rate>,
    /// Source of the frames, with its options: `cbr`, `on-demand`, `codec` (RFC 8593), `trace`, `screen`, `audio-first` or `layers` [default: `cbr` at
    /// a fixed rate, `on-demand` under control]
    #[arg(long, value_name = "NAME")]
    source: Option<Choice>,
    /// File of frame sizes in bytes, one a line, for --source trace
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Send lost packets again on request (RFC 4588, `receive --nack`), up to this age
    #[arg(long, value_name = "TIME")]
    retransmit: Option<Span>,
    /// Limit of bytes sent again, as a share of the media's
    #[arg(long, value_name = "SHARE", default_value_t = Retransmission::SHARE, value_parser = share, requires = "retransmit")]
    retransmit_share: f64,
    /// Go on when the circuit breaker (RFC 8083) would end the stream
    #[arg(long)]
    no_circuit_breakers: bool,
    /// ECN codepoint of media packets
    #[arg(long, value_enum, default_value_t = EcnArg::NotEct)]
    ecn: EcnArg,
    #[command(flatten)]
    security: SecurityArgs,
    #[command(flatten)]
    socket: SocketArgs,
    #[command(flatten)]
    live: LiveArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Number of the audio's sender in events; that of the frames is 0.
const AUDIO_NODE: u32 = 1;
/// The least packet: headers of IPv6, UDP and RTP, and a byte.
const SMALLEST: u64 = 61;
/// The same of real video: fragments of slices in it have headers of their own.
const SMALLEST_VIDEO: u64 = 150;

impl Args {
    /// The source of real video, if it is to be sent.
    fn film(&self) -> Option<&str> {
        self.places.first().filter(|_| self.places.len() == 2).map(String::as_str)
    }

    /// The fixed rate or the controller; the error names the wrong option.
    fn rate(&self) -> anyhow::Result<SenderRate> {
        if let Some(rate) = self.rate {
            return Ok(SenderRate::Fixed(rate));
        }
        let mut config = ControlConfig {
            max: self.max,
            start: self.start,
            timed: self.timed,
            ..ControlConfig::new(self.control.clone())
        };
        config.min = self.min.unwrap_or(config.min);
        let flag = |name: &str| format!("--{}", name.replace('_', "-"));
        let checked = config.setting(self.packet_size).check();
        checked.map_err(|error| Exit::Usage.blame(anyhow!(error.spelled(flag))))?;
        config.build(self.packet_size).map_err(|error| Exit::Usage.blame(anyhow!("--control: {error}")))?;
        if config.control.at_receiver() && config.control.to_string().len() > MAX_SCHEME_NAME {
            let most = format!("a receiver is told of {MAX_SCHEME_NAME} bytes at most");
            return Err(Exit::Usage.blame(anyhow!("--control: {} is too long: {most}", config.control)));
        }
        Ok(SenderRate::Controlled(config))
    }

    /// The source of the frames, from `--source` and `--trace`.
    fn source(&self) -> anyhow::Result<SourceConfig> {
        let reads =
            |source: &Choice| SOURCES.iter().any(|entry| entry.name == source.name && entry.needs_sizes);
        if let Some(source) = self.source.as_ref().filter(|source| self.trace.is_none() && reads(source)) {
            return Err(
                Exit::Usage.blame(anyhow!("--source {source} needs the sizes of its frames: --trace FILE"))
            );
        }
        let Some(file) = &self.trace else {
            return Ok(SourceConfig { source: self.source.clone(), ..SourceConfig::default() });
        };
        let cannot =
            |error: anyhow::Error| Exit::Usage.blame(error.context(format!("--trace {}", file.display())));
        let text = read_file("--trace", file, MAX_TRACE_FILE)?;
        let sizes = read_sizes(&text).map_err(|error| cannot(error.into()))?;
        let source = self.source.clone().unwrap_or_else(|| Choice::named("trace"));
        Ok(SourceConfig { source: Some(source), sizes, ..SourceConfig::default() })
    }

    /// The source of real video, if it is to be sent, and the host.
    fn places(&self) -> anyhow::Result<(Option<VideoName>, &str)> {
        let wrong = |text: String| Err(Exit::Usage.blame(anyhow!(text)));
        let is_rate = |place: &&String| self.audio.is_some() && place.parse::<Rate>().is_ok();
        if let Some(rate) = self.places.iter().find(is_rate) {
            return wrong(format!(
                "{rate} is no host: a rate of audio stands behind =, as in --audio={rate}"
            ));
        }
        match &self.places[..] {
            [source, host] => {
                if self.source.is_some() || self.trace.is_some() {
                    return wrong(format!(
                        "{source} is the source of the frames: leave out --source and --trace"
                    ));
                }
                if self.packet_size.0 < SMALLEST_VIDEO {
                    let size = self.packet_size.0;
                    return wrong(format!(
                        "--packet-size must be {SMALLEST_VIDEO} at least for real video, not {size}"
                    ));
                }
                let video = VideoName::from(source.as_str());
                if let VideoName::File(path) = &video {
                    path.metadata().map_err(|error| Exit::Usage.blame(anyhow!("{source}: {error}")))?;
                }
                Ok((Some(video), host))
            }
            [host] => {
                let is_name = !matches!(VideoName::from(host.as_str()), VideoName::File(_));
                if is_name || host.ends_with(".y4m") {
                    return wrong(format!("{host} is a source of real video: name the host behind it"));
                }
                let given = [
                    ("--size", self.size.is_some()),
                    ("--sdp", self.sdp.is_some()),
                    ("--ladder", self.ladder.is_some()),
                ];
                if let Some((option, _)) = given.into_iter().find(|(_, given)| *given) {
                    return wrong(format!("{option} is for real video: name its source before {host}"));
                }
                Ok((None, host))
            }
            _ => wrong("name one source at most, and a host".to_owned()),
        }
    }

    /// Refuses values out of range.
    fn check(&self) -> anyhow::Result<()> {
        let wrong = |text: String| Err(Exit::Usage.blame(anyhow!(text)));
        if let Some(within) = self.retransmit {
            stream::of_use("--retransmit", within)?;
        }
        if self.audio.is_some() && self.live.records() {
            return wrong(
                "--record is not for --audio: a recording has one stream. Record at the receiver".to_owned(),
            );
        }
        let film = self.film().map(Path::new);
        self.live.apart(&[
            ("SOURCE", film.filter(|film| film.is_file())),
            ("--trace", self.trace.as_deref()),
            ("--sdp", self.sdp.as_deref()),
        ])?;
        if let Some(most) = self.max_bytes.filter(|most| *most < self.packet_size) {
            let first = self.packet_size;
            return wrong(format!("--max-bytes must allow the first packet, {first}, not {most}"));
        }
        self.check_size(None)
    }

    /// Refuses packets that hold nothing, or that no path takes.
    fn check_size(&self, key: Option<&MasterKey>) -> anyhow::Result<()> {
        let smallest = SMALLEST + key.map_or(0, |key| key.suite().expansion().rtp.0);
        if (smallest..=9_000).contains(&self.packet_size.0) {
            return Ok(());
        }
        Err(Exit::Usage
            .blame(anyhow!("--packet-size must be {smallest} to 9000, not {}", self.packet_size.0)))
    }
}

/// Pictures and the size in which they are sent.
#[cfg(feature = "video")]
type Prepared = (Box<dyn lastmile_net::media::Pictures>, Size);
#[cfg(not(feature = "video"))]
type Prepared = std::convert::Infallible;

/// Opens a source of real video.
#[cfg(feature = "video")]
fn prepare(args: &Args, video: &VideoName) -> anyhow::Result<Prepared> {
    if args.live.records() {
        let why = "its sender cannot be built again from a recording: record at the receiver";
        return Err(Exit::Usage.blame(anyhow!("--record is not for real video: {why}")));
    }
    stream::video::pictures(video, args.size, args.frame_rate)
}

#[cfg(not(feature = "video"))]
fn prepare(args: &Args, _: &VideoName) -> anyhow::Result<Prepared> {
    Err(stream::video::refused(args.film().unwrap_or_default()))
}

/// Frames in a second: those asked for, else those of the file, else 30.
fn frame_rate(args: &Args, video: Option<&Prepared>) -> f64 {
    #[cfg(feature = "video")]
    let own = video.map(|(pictures, _)| pictures.frame_rate());
    #[cfg(not(feature = "video"))]
    let own = video.map(|never| match *never {});
    args.frame_rate.or(own).unwrap_or(30.0)
}

/// The words of a source of real video.
#[derive(Default)]
struct Words {
    /// Its error, once it failed.
    failed: Option<Box<dyn Fn() -> Option<anyhow::Error>>>,
    /// A note at the end.
    told: Option<Box<dyn Fn() -> Option<String>>>,
}

/// The controller of a sender that shares one.
type Shared = Option<Box<dyn RateController>>;

/// A sender with its header, and its source's words.
type Made = (Header, AnyEndpoint, Words);

/// The sender of real video.
#[cfg(feature = "video")]
fn video_endpoint(
    args: &Args,
    (config, shared): (SenderConfig, Shared),
    (pictures, size): Prepared,
    key: Option<MasterKey>,
) -> anyhow::Result<Made> {
    let (mut source, description) = stream::video::source(pictures, size, &config)?;
    if let Some(steps) = &args.ladder {
        source = source.laddered(stream::video::ladder(steps)?);
    }
    if let Some(file) = &args.sdp {
        let text = lastmile::wire::sdp::Video { key, ..description }.to_string();
        crate::shell::replace::replace_secret(file, |out| {
            Ok(std::io::Write::write_all(out, text.as_bytes())?)
        })?;
    }
    let (error, coding, name) = (source.error(), source.coding(), args.film().unwrap_or_default().to_owned());
    let (header, endpoint) = stream::video_sender(config, shared, Box::new(source))?;
    let failed = move || error.take().map(|error| Exit::Usage.blame(anyhow!("{name}: {error}")));
    let told = move || {
        let lastmile_net::media::Coding { pictures, left_out, .. } = coding.get();
        let text =
            "pictures came too soon and were left out: ffmpeg's -re has those of a film come in their time";
        (left_out > pictures).then(|| format!("{left_out} of {} {text}", left_out + pictures))
    };
    Ok((header, endpoint, Words { failed: Some(Box::new(failed)), told: Some(Box::new(told)) }))
}

#[cfg(not(feature = "video"))]
fn video_endpoint(
    _: &Args,
    _: (SenderConfig, Shared),
    video: Prepared,
    _: Option<MasterKey>,
) -> anyhow::Result<Made> {
    match video {}
}

/// The sender.
fn endpoint(
    args: &Args,
    (config, shared): (SenderConfig, Shared),
    video: Option<Prepared>,
    key: Option<MasterKey>,
) -> anyhow::Result<Made> {
    if let Some(video) = video {
        return video_endpoint(args, (config, shared), video, key);
    }
    let (header, endpoint) = stream::sender(config, shared)?;
    Ok((header, endpoint, Words::default()))
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    args.check()?;
    let rate = args.rate()?;
    let (video, host) = args.places()?;
    let key = args.security.of_sender(video.is_some(), args.sdp.is_some())?;
    args.check_size(key.as_ref())?;
    let peer = resolve_at(host, args.port, MEDIA_PORT, args.socket.bind)?;
    // A pipe may take its time.
    let video = video.map(|video| prepare(&args, &video)).transpose()?;
    let streams = 1 + usize::from(args.audio.is_some());
    let sockets: anyhow::Result<_> = (0..streams).map(|_| args.socket.open(any(peer.ip()), 0)).collect();
    let mut driver = args.socket.driver(sockets?)?;
    let (ssrc, seed) = random_numbers()?;
    let seconds = args.max_seconds.map_or(args.seconds, |most| args.seconds.min(most));
    let mut config = SenderConfig {
        source: SourceConfig { seed, ..args.source()? },
        frame_rate: frame_rate(&args, video.as_ref()),
        packet_size: args.packet_size,
        ecn: args.ecn.into(),
        stop: driver.now() + Span::from_secs_f64(seconds),
        epoch: driver.epoch(),
        max_bytes: args.max_bytes,
        retransmission: args.retransmit.map(|within| Retransmission {
            ssrc: !ssrc,
            within,
            share: args.retransmit_share,
        }),
        circuit_breakers: !args.no_circuit_breakers,
        expansion: key.as_ref().map(|key| key.suite().expansion()).unwrap_or_default(),
        ..SenderConfig::new(peer, ssrc, rate)
    };
    let least = config.least_rate();
    if let Some(rate) = args.rate.filter(|rate| *rate < least) {
        let why = format!("a packet of a byte for each of {} frames/s takes more", config.frame_rate);
        return Err(Exit::Usage.blame(anyhow!("--rate must be {least} at least, not {rate}: {why}")));
    }
    if !config.is_possible() {
        return Err(Exit::Usage
            .blame(anyhow!("--rate: a frame has too many packets: lower it, or raise --frame-rate")));
    }
    if let SenderRate::Controlled(ControlConfig {
        control: Composition { wrapper: Some(probe), .. }, ..
    }) = &config.rate
    {
        crate::shell::note(&format!(
            "{probe} needs exact times of arrival on fast paths: lastmile receive --receipt-times"
        ));
    }
    let audio = match args.audio {
        Some(rate) => Some(Audio::beside(&mut config, rate, random_numbers()?.0)?),
        None => None,
    };
    let mut sending = Sending::new(&config);
    sending.srtp = key.as_ref().map(|key| key.suite().name());
    sending.audio = audio.as_ref().map(|audio| Box::new(Sending::new(&audio.config)));
    let (shared, audio) = match audio {
        Some(Audio { config, shares }) => {
            let (frames, own) = shares.map(|[frames, own]| (frames, own)).unzip();
            (frames, Some(stream::sender(config, own)?.1))
        }
        None => (None, None),
    };
    let (header, endpoint, words) = endpoint(&args, (config, shared), video, key.clone())?;
    let dropped = key.map(|key| guard(&mut driver, key, "answers")).transpose()?;
    let mut screen = Screen::new(args.json);
    let live = args.live.open(header)?;
    let (mut fault, has_audio) = (None, audio.is_some());
    let on_event = |event: &Event| {
        let line = sending.take(event);
        if let Some(screen) = &mut screen {
            if let Some(line) = line {
                screen.above(|| crate::shell::look(&line));
            }
            if matches!(event.what.of(), Some(Decision::MediaProgress { .. })) {
                screen.show(&sending.screen());
            }
        }
        fault = fault.take().or_else(|| words.failed.as_ref()?());
        // Audio ends with the frames.
        let ended = event.node == 0 && matches!(event.what.of(), Some(Decision::MediaEnded { .. }));
        fault.is_some() || has_audio && ended
    };
    let limit = args.max_seconds.map(Duration::from_secs_f64);
    let written = match audio {
        None => live.run(&mut driver, endpoint, limit, on_event),
        Some(audio) => {
            let both = Endpoints::new([(None, endpoint), (Some(AUDIO_NODE), audio)]);
            live.run(&mut driver, both, limit, on_event)
        }
    }?;
    drop(screen);
    let interrupted = signals::stopped();
    if fault.is_some() && !interrupted {
        sending.broke_off();
    }
    sending.dropped(dropped.as_ref().map(|dropped: &Dropped| dropped()));
    if args.json {
        crate::shell::json(&sending)?;
    } else if let Some(why) = sending.failed().filter(|_| fault.is_none()) {
        // One line says it.
        let exit = if interrupted { Exit::Interrupted } else { Exit::Peer };
        note_error(&written);
        return Err(exit.blame(anyhow!("{why}")));
    } else {
        crate::shell::say(sending.lines().trim_end());
        sending.refused().iter().for_each(|why| crate::shell::note(why));
        sending.miscounted().iter().chain(&sending.impossible()).for_each(|why| crate::shell::note(why));
    }
    words.told.and_then(|told| told()).iter().for_each(|text| crate::shell::note(text));
    if let Some(error) = fault {
        note_error(&written);
        return Err(error);
    }
    written?;
    Ok(sending.exit(interrupted))
}

/// Tells of files that could not be written, beside another fault.
fn note_error(written: &anyhow::Result<()>) {
    written.as_ref().err().iter().for_each(|error| crate::shell::note(&error.to_string()));
}
