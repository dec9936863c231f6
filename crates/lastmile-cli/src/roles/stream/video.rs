//! Real video on the command line: its sources, its files, and the refusal of a build without it.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::anyhow;

use crate::shell::exit::Exit;

/// The refusal of both commands in a build without the feature.
#[cfg(not(feature = "video"))]
pub(crate) fn refused(what: &str) -> anyhow::Error {
    Exit::Usage.blame(anyhow!(
        "{what}: this build is without real video: build it with the feature `video` (cargo build --release -p lastmile-cli --features video)"
    ))
}

/// A source of real video.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum VideoName {
    /// The moving test pattern.
    TestPattern,
    /// A file in y4m, or a named pipe.
    File(PathBuf),
    /// The y4m on the standard input.
    Input,
}

impl From<&str> for VideoName {
    fn from(text: &str) -> VideoName {
        match text {
            "testsrc" => VideoName::TestPattern,
            "-" => VideoName::Input,
            file => VideoName::File(file.into()),
        }
    }
}

/// Pixels across and down: `640x480`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) width: usize,
    pub(crate) height: usize,
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let sides = text.split_once('x').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        let (width, height) = sides.ok_or_else(|| format!("a size such as 640x480, not {text:?}"))?;
        Ok(Size { width, height })
    }
}

#[cfg(feature = "video")]
pub(crate) use with_video::*;

#[cfg(feature = "video")]
mod with_video {
    use std::fs::File;
    use std::io::{BufWriter, IsTerminal, Write, stdin};
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileTypeExt;
    use std::path::Path;

    use lastmile::endpoint::stream::{SenderConfig, SenderRate};
    use lastmile::units::Rate;
    use lastmile::wire::sdp::Video;
    use lastmile_net::media::h264::{H264Decoder, H264Encoder};
    use lastmile_net::media::{
        Ladder, MediaError, Output, Pictures, Pipe, Reference, TestPattern, VideoSource, Viewer, Y4mReader,
        Y4mWriter,
    };

    use super::*;
    use crate::shell::replace::unwritable;

    /// Size and frame rate of the test pattern, unless others are asked for.
    const USUAL: (Size, f64) = (Size { width: 640, height: 480 }, 30.0);

    fn blame(error: MediaError, what: &Path) -> anyhow::Error {
        Exit::Usage.blame(anyhow!("{}: {error}", what.display()))
    }

    /// Pictures of a source, and the size in which they are sent.
    pub(crate) fn pictures(
        name: &VideoName,
        size: Option<Size>,
        frame_rate: Option<f64>,
    ) -> anyhow::Result<(Box<dyn Pictures>, Size)> {
        match name {
            VideoName::TestPattern => {
                let (size, rate) = (size.unwrap_or(USUAL.0), frame_rate.unwrap_or(USUAL.1));
                let pattern = TestPattern::new(size.width, size.height, rate);
                Ok((Box::new(pattern.map_err(|error| blame(error, Path::new("--size")))?), size))
            }
            VideoName::Input if stdin().is_terminal() => Err(Exit::Usage
                .blame(anyhow!("standard input is a terminal: pipe the y4m of another program into this"))),
            VideoName::File(_) | VideoName::Input => {
                let (opened, what) = match name {
                    VideoName::File(file) => (File::open(file), file.as_path()),
                    _ => (stdin().as_fd().try_clone_to_owned().map(File::from), Path::new("standard input")),
                };
                let pictures = opened.map_err(MediaError::from).and_then(lastmile_net::media::pictures);
                let pictures = pictures.map_err(|error| blame(error, what))?;
                let (width, height) = pictures.size();
                Ok((pictures, size.unwrap_or(Size { width, height })))
            }
        }
    }

    /// A source of frames for a stream, and its description for players, without a key.
    pub(crate) fn source(
        pictures: Box<dyn Pictures>,
        size: Size,
        config: &SenderConfig,
    ) -> anyhow::Result<(VideoSource, Video)> {
        let most = match &config.rate {
            SenderRate::Fixed(rate) => *rate,
            SenderRate::Controlled(control) => control.max,
        };
        let setting = config.source_setting();
        let payload = setting.packet_size.0.saturating_sub(setting.headers.0) as usize;
        let made = H264Encoder::new(most, setting.frame_rate, payload).and_then(|encoder| {
            VideoSource::new(pictures, Box::new(encoder), (size.width, size.height), most, &setting)
        });
        let (source, first) = made.map_err(|error| Exit::Usage.blame(error))?;
        let mut video = Video::new(config.peer.ip(), config.peer.port(), lastmile::endpoint::stream::MEDIA);
        video.learn(&first);
        Ok((source, video))
    }

    /// The ladder of these steps, or the usual one.
    pub(crate) fn ladder(steps: &[Rate]) -> anyhow::Result<Ladder> {
        let steps = if steps.is_empty() { Ladder::USUAL.to_vec() } else { steps.to_vec() };
        let why = "--ladder: 1 to 32 rates above zero, such as 500kbit/s,2Mbit/s";
        Ladder::new(steps).ok_or_else(|| Exit::Usage.blame(anyhow!(why)))
    }

    /// A viewer that writes to a file or a pipe and compares with a source.
    pub(crate) fn viewer(
        output: Option<&Path>,
        reference: Option<&VideoName>,
        frame_rate: Option<f64>,
    ) -> anyhow::Result<Viewer> {
        let (reference, rate) = match reference {
            None => (None, frame_rate.unwrap_or(USUAL.1)),
            Some(VideoName::TestPattern) => {
                (Some(Reference::TestPattern(None)), frame_rate.unwrap_or(USUAL.1))
            }
            Some(VideoName::Input) => return Err(not_compared(Path::new("-"))),
            Some(VideoName::File(file)) => {
                if file.metadata().is_ok_and(|about| !about.is_file()) {
                    return Err(not_compared(file));
                }
                let pictures = Y4mReader::open(file).map_err(|error| blame(error, file))?;
                let rate = frame_rate.unwrap_or(pictures.frame_rate());
                (Some(Reference::Pictures(Box::new(pictures))), rate)
            }
        };
        let output = output.map(|file| created(file, rate)).transpose()?;
        let decoder = H264Decoder::new().map_err(|error| Exit::Machine.blame(error))?;
        Ok(Viewer::new(Box::new(decoder), output, reference, rate))
    }

    fn not_compared(reference: &Path) -> anyhow::Error {
        let why = "pictures are compared with those of a file, not of a pipe";
        Exit::Usage.blame(anyhow!("--reference {}: {why}", reference.display()))
    }

    fn created(file: &Path, frame_rate: f64) -> anyhow::Result<Output> {
        let out = || {
            if file.metadata().is_ok_and(|about| about.file_type().is_fifo()) {
                crate::shell::note(&format!("{}: a pipe, which needs a reader first", file.display()));
            }
            let opened = File::create(file).and_then(|out| {
                let whole = out.metadata()?.is_file();
                let out: Box<dyn Write + Send> =
                    if whole { Box::new(BufWriter::new(out)) } else { Box::new(Pipe::new(out)?) };
                Ok(out)
            });
            opened.map_err(|error| unwritable(file, &error))
        };
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("y4m") => Ok(Output::Y4m(Y4mWriter::new(out()?, frame_rate))),
            Some("h264" | "264") => Ok(Output::H264(out()?)),
            Some("csv") => {
                let mut times = out()?;
                writeln!(times, "rtp_timestamp,shown_s").map_err(|error| unwritable(file, &error))?;
                Ok(Output::Times(times))
            }
            _ => Err(Exit::Usage.blame(anyhow!(
                "--output {}: its name must end in .y4m (pictures), .h264 (as they came) or .csv (times)",
                file.display()
            ))),
        }
    }
}
