//! Description of one H.264 video over RTP for players, and from them: the lines of SDP (RFC 4566) that such a stream needs, with the
//! format's parameters (RFC 6184, section 8.2).
//!
//! Other lines and other media are skipped.

use core::fmt;
use core::net::IpAddr;

use super::base64;
use super::h264::{PICTURE_PARAMETERS, SEQUENCE_PARAMETERS, nal_type, nal_units};
use super::sdes::{MasterKey, crypto_line, read_crypto};

/// Largest text that is read.
const MAX_TEXT: usize = 64 << 10;
/// Parameter sets that are read at most.
const MAX_SETS: usize = 32;

/// Place and format of a video stream.
///
/// ```
/// use lastmile::wire::sdp::Video;
/// let mut video = Video::new("192.0.2.1".parse().unwrap(), 5004, 96);
/// video.learn(&[0, 0, 0, 1, 0x67, 0x42, 0xc0, 0x1e, 0, 0, 0, 1, 0x68, 0xce]);
/// let text = video.to_string();
/// assert!(text.contains("a=fmtp:96 packetization-mode=1;profile-level-id=42c01e;sprop-parameter-sets=Z0LAHg==,aM4=\r\n"));
/// assert_eq!(text.parse(), Ok(video));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Video {
    /// Address to which packets go.
    pub address: IpAddr,
    /// UDP port to which they go.
    pub port: u16,
    /// Payload type of media packets.
    pub payload_type: u8,
    /// Packetization mode: 0, 1 or 2.
    pub mode: u8,
    /// Profile, its constraints and level, as in a sequence parameter set.
    pub profile_level: Option<[u8; 3]>,
    /// Parameter sets known beforehand.
    pub parameter_sets: Vec<Vec<u8>>,
    /// True if RTP and RTCP share the port (RFC 5761).
    pub rtcp_mux: bool,
    /// Key of SRTP (RFC 4568); `None` for plain RTP.
    pub key: Option<MasterKey>,
}

/// Why a description cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SdpError {
    /// It does not begin as SDP does.
    #[error("this is no session description: it must begin with v=0")]
    NotSdp,
    /// No medium is H.264 over RTP.
    #[error("the session description has no video with a=rtpmap:N H264/90000")]
    NoVideo,
    /// The video has no address that could be used.
    #[error("the video has no c= line with an address: names are not resolved")]
    NoAddress,
    /// The video is SRTP, and none of its keys can be used.
    #[error(
        "the video is SRTP without an a=crypto line that can be used: AES_CM_128_HMAC_SHA1_80 or AEAD_AES_128_GCM, without a key index"
    )]
    NoKey,
    /// A line cannot be read.
    #[error("line {line} of the session description cannot be read")]
    Line {
        /// Its number, from 1 on.
        line: usize,
    },
    /// It is too long to be one.
    #[error("a session description may have {MAX_TEXT} bytes, this one has {have}")]
    TooLong {
        /// Bytes that it has.
        have: usize,
    },
}

impl Video {
    /// A video in packetization mode 1, with RTCP on the same port.
    pub fn new(address: IpAddr, port: u16, payload_type: u8) -> Video {
        Video {
            address,
            port,
            payload_type,
            mode: 1,
            profile_level: None,
            parameter_sets: Vec::new(),
            rtcp_mux: true,
            key: None,
        }
    }

    /// Takes the parameter sets of an access unit, such as the first.
    pub fn learn(&mut self, access_unit: &[u8]) {
        let is = |unit: &[u8], kind| unit.first().is_some_and(|first| nal_type(*first) == kind);
        let sets = nal_units(access_unit)
            .filter(|unit| is(unit, SEQUENCE_PARAMETERS) || is(unit, PICTURE_PARAMETERS));
        self.parameter_sets = sets.take(MAX_SETS).map(<[u8]>::to_vec).collect();
        let first = self.parameter_sets.iter().find(|unit| is(unit, SEQUENCE_PARAMETERS));
        self.profile_level = first.and_then(|unit| unit.get(1..4)).and_then(|bytes| bytes.try_into().ok());
    }

    /// The parameter sets as a byte stream, for a decoder.
    pub fn stream(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.parameter_sets.iter().for_each(|unit| super::h264::write_nal_unit(&mut out, unit));
        out
    }

    fn format(&mut self, parameters: &str) -> Option<()> {
        for parameter in parameters.split(';').map(str::trim) {
            let Some((name, value)) = parameter.split_once('=') else { continue };
            if name.eq_ignore_ascii_case("packetization-mode") {
                self.mode = value.parse().ok().filter(|mode| *mode <= 2)?;
            } else if name.eq_ignore_ascii_case("profile-level-id") {
                let bytes = u32::from_str_radix(value, 16).ok().filter(|_| value.len() == 6)?.to_be_bytes();
                self.profile_level = Some([bytes[1], bytes[2], bytes[3]]);
            } else if name.eq_ignore_ascii_case("sprop-parameter-sets") {
                let sets = value.split(',').filter(|set| !set.is_empty()).take(MAX_SETS);
                self.parameter_sets = sets.map(base64::read).collect::<Option<_>>()?;
            }
        }
        Some(())
    }
}

/// As a file for `ffplay`, `vlc` and the like.
impl fmt::Display for Video {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Video { address, port, payload_type, .. } = self;
        let family = if address.is_ipv4() { "IP4" } else { "IP6" };
        // The session's number and version (section 5.2): there is one session of one version.
        write!(f, "v=0\r\no=- 1 1 IN {family} {address}\r\ns=lastmile\r\n")?;
        let profile = if self.key.is_some() { "SAVPF" } else { "AVP" };
        write!(f, "c=IN {family} {address}\r\nt=0 0\r\nm=video {port} RTP/{profile} {payload_type}\r\n")?;
        if let Some(key) = &self.key {
            write!(f, "{}\r\n", crypto_line(key))?;
        }
        write!(f, "a=rtpmap:{payload_type} H264/90000\r\n")?;
        write!(f, "a=fmtp:{payload_type} packetization-mode={}", self.mode)?;
        if let Some([profile, constraints, level]) = self.profile_level {
            write!(f, ";profile-level-id={profile:02x}{constraints:02x}{level:02x}")?;
        }
        for (index, set) in self.parameter_sets.iter().enumerate() {
            f.write_str(if index == 0 { ";sprop-parameter-sets=" } else { "," })?;
            f.write_str(&base64::write(set))?;
        }
        f.write_str("\r\n")?;
        if self.rtcp_mux { f.write_str("a=rtcp-mux\r\n") } else { Ok(()) }
    }
}

impl core::str::FromStr for Video {
    type Err = SdpError;

    fn from_str(text: &str) -> Result<Video, SdpError> {
        if text.len() > MAX_TEXT {
            return Err(SdpError::TooLong { have: text.len() });
        }
        let mut lines = (1..).zip(text.lines().map(str::trim_end));
        if lines.next().is_none_or(|(_, line)| line != "v=0") {
            return Err(SdpError::NotSdp);
        }
        // The session's address, which a medium's own one replaces; the payload types of the medium that is read, and what is known of it.
        let (mut session, mut own) = (None, None);
        let mut types: Option<Vec<u8>> = None;
        let mut video = Video { rtcp_mux: false, mode: 0, ..Video::new([0, 0, 0, 0].into(), 0, 0) };
        let (mut mapped, mut media, mut secure) = (None, false, false);
        let mut formats = Vec::new();
        for (line, text) in lines {
            let cannot = SdpError::Line { line };
            let Some((kind, value)) = text.split_once('=') else {
                if text.is_empty() { continue } else { return Err(cannot) }
            };
            match kind {
                "m" => {
                    if mapped.is_some() {
                        break;
                    }
                    (own, types, video.rtcp_mux, media) = (None, None, false, true);
                    video.key = None;
                    formats.clear();
                    let mut words = value.split_ascii_whitespace();
                    let (media, port, profile) = (words.next(), words.next(), words.next());
                    if media == Some("video") && profile.is_some_and(|profile| profile.starts_with("RTP/")) {
                        // A number of ports may follow the first one.
                        let port = port.and_then(|port| port.split('/').next()?.parse().ok());
                        secure = profile.is_some_and(|profile| profile.starts_with("RTP/SAVP"));
                        video.port = port.ok_or(cannot)?;
                        types = Some(words.map_while(|word| word.parse().ok()).collect());
                    }
                }
                "c" => {
                    let address = value.split_ascii_whitespace().nth(2);
                    // A group's address may carry how far it goes.
                    let address = address.and_then(|address| address.split('/').next()?.parse().ok());
                    *(if media { &mut own } else { &mut session }) = address;
                }
                "a" => {
                    let Some(types) = &types else { continue };
                    let (name, value) = value.split_once(':').unwrap_or((value, ""));
                    let (kind, rest) = value.split_once(' ').unwrap_or((value, ""));
                    let kind = kind.parse().ok().filter(|kind| types.contains(kind));
                    match name {
                        "rtcp-mux" => video.rtcp_mux = true,
                        // Others may stand beside, the one that is liked best first (RFC 4568, section 5.1). ffmpeg writes it with the
                        // profile RTP/AVP, and sends SRTP.
                        "crypto" => {
                            secure = true;
                            video.key = video.key.or_else(|| read_crypto(value));
                        }
                        "rtpmap" if rest.trim().eq_ignore_ascii_case("H264/90000") => {
                            mapped = mapped.or(kind)
                        }
                        "fmtp" => formats.extend(kind.map(|kind| (line, kind, rest))),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        video.payload_type = mapped.ok_or(SdpError::NoVideo)?;
        video.address = own.or(session).ok_or(SdpError::NoAddress)?;
        if secure && video.key.is_none() {
            return Err(SdpError::NoKey);
        }
        formats.retain(|(_, kind, _)| *kind == video.payload_type);
        for (line, _, parameters) in formats {
            video.format(parameters).ok_or(SdpError::Line { line })?;
        }
        Ok(video)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of ffmpeg 5.1 for `-f rtp` with H.264, an audio before it.
    const FFMPEG: &str = "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=No Name\r\nt=0 0\r\na=tool:libavformat 59.27.100\r\n\
        m=audio 6000 RTP/AVP 97\r\nc=IN IP4 127.0.0.9\r\na=rtpmap:97 OPUS/48000/2\r\n\
        m=video 5004 RTP/AVP 96\r\nc=IN IP4 127.0.0.1\r\na=rtpmap:96 H264/90000\r\n\
        a=fmtp:96 packetization-mode=1; sprop-parameter-sets=Z0LAHg==,aM4=; profile-level-id=42C01E\r\n";

    #[test]
    fn the_lines_of_a_player_are_read() {
        let video: Video = FFMPEG.parse().unwrap();
        assert_eq!((video.address, video.port, video.payload_type), ([127, 0, 0, 1].into(), 5004, 96));
        assert_eq!((video.mode, video.rtcp_mux, video.profile_level), (1, false, Some([0x42, 0xc0, 0x1e])));
        assert_eq!(video.parameter_sets, [vec![0x67, 0x42, 0xc0, 0x1e], vec![0x68, 0xce]]);
        assert_eq!(video.stream(), [0, 0, 0, 1, 0x67, 0x42, 0xc0, 0x1e, 0, 0, 0, 1, 0x68, 0xce]);
    }

    /// RFC 6184, section 8.3: several formats for one medium, with an address for the whole session.
    #[test]
    fn the_first_format_that_is_mapped_is_taken() {
        let text = "v=0\nc=IN IP6 2001:db8::1\nm=video 49170/2 RTP/AVP 100 99\n\
            a=fmtp:100 packetization-mode=2\na=fmtp:99 profile-level-id=42A01E; packetization-mode=1\n\
            a=rtpmap:99 H264/90000\na=rtpmap:100 H264/90000\na=rtcp-mux\nm=video 1 RTP/AVP 98\na=rtpmap:98 H264/90000";
        let video: Video = text.parse().unwrap();
        assert_eq!((video.address, video.port), ("2001:db8::1".parse().unwrap(), 49_170));
        assert_eq!((video.payload_type, video.mode, video.rtcp_mux), (99, 1, true));
    }

    #[test]
    fn a_description_that_is_of_no_use_says_why() {
        let said = |text: &str| text.parse::<Video>().unwrap_err().to_string();
        assert!(said("hello").contains("must begin with v=0"));
        assert!(said(&FFMPEG.replace("H264", "H265")).contains("no video"));
        assert!(
            said(&FFMPEG.replace("c=IN IP4 127.0.0.1", "c=IN IP4 a.host")).contains("names are not resolved")
        );
        assert!(said(&FFMPEG.replace("video 5004", "video x")).contains("line 9"));
        for wrong in ["packetization-mode=3", "profile-level-id=42C01", "sprop-parameter-sets=Z"] {
            let text = FFMPEG.replace("packetization-mode=1", wrong);
            assert!(said(&text).contains("line 12"), "{wrong}");
        }
        assert!(said(&format!("v=0\n{}", "a".repeat(MAX_TEXT))).contains("bytes"));
    }

    /// RFC 4568, section 9.1, with the suite of its second line unknown here.
    #[test]
    fn the_first_key_that_can_be_used_is_taken() {
        let line =
            "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz|2^20|1:4";
        let text = FFMPEG.replace("video 5004 RTP/AVP", "video 5004 RTP/SAVP");
        let with =
            |lines: &str| text.replace("a=rtpmap:96", &format!("{lines}\r\na=rtpmap:96")).parse::<Video>();
        assert_eq!(with(line), Err(SdpError::NoKey));
        let plain = line.replace("|1:4", "");
        let gcm = "a=crypto:2 AEAD_AES_128_GCM inline:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGw==";
        let video = with(&format!("{line}\r\n{plain} FEC_ORDER=FEC_SRTP\r\n{gcm}\r\n{plain}")).unwrap();
        assert_eq!(video.key.as_ref().unwrap().suite().name(), "AEAD_AES_128_GCM");
        assert_eq!(with(&plain).unwrap().key.unwrap().to_text(), "WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz");
        assert!(video.to_string().contains("RTP/SAVPF 96\r\na=crypto:1 AEAD_AES_128_GCM inline:AAEC"));
        assert_eq!(Video { mode: 1, ..video.to_string().parse().unwrap() }.key, video.key);
        // As ffmpeg 5.1 writes it for SRTP: the profile is that of plain RTP.
        let by_ffmpeg = |line: &str| FFMPEG.replace("a=fmtp", &format!("{line}\r\na=fmtp")).parse::<Video>();
        assert_eq!(by_ffmpeg(&plain).unwrap().key, with(&plain).unwrap().key);
        assert_eq!(by_ffmpeg(line), Err(SdpError::NoKey));
        assert_eq!(by_ffmpeg("").unwrap().key, None);
    }
}
