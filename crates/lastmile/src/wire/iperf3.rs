//! iperf3's protocol, as a client that receives sees it: the control connection (TCP) and the datagrams of a test (UDP).
//!
//! It has no specification. Read in the sources of iperf 3.0.12, 3.12 and 3.21 (`iperf_api.h`, `iperf_api.c`,
//! `iperf_client_api.c`, `iperf_server_api.c`, `iperf_udp.c`):
//!
//! ```text
//! client                                        server (TCP and UDP port 5201)
//!   cookie, 37 bytes ----------------------->   or ACCESS_DENIED: a test is running
//!          <----------------------- PARAM_EXCHANGE
//!   length (4 bytes), parameters in JSON --->   or SERVER_ERROR, two numbers of 4 bytes
//!          <----------------------- CREATE_STREAMS
//!   hello, a datagram of 4 bytes ===========>
//!          <======================= a datagram of 4 bytes
//!          <----------- TEST_START, TEST_RUNNING
//!          <======================= datagrams: seconds, microseconds, counter (4 or 8 bytes), filling
//!   TEST_END ------------------------------->
//!          <--------------------- EXCHANGE_RESULTS
//!   length, results in JSON ---------------->
//!          <------------------ length, results in JSON; DISPLAY_RESULTS
//!   IPERF_DONE ----------------------------->
//! ```
//!
//! States are one byte each, numbers have network order. A server that sends (`reverse`) with a `burst` of n sends n datagrams at
//! a time back to back, and the next n when its mean rate since the start is below `bandwidth`. It sends no
//! more than `num` bytes of payload, since every burst ends there: a limit that holds whatever the client does.

use crate::units::{Bytes, Rate};

/// Port of servers, of both the control connection and the datagrams.
pub const PORT: u16 = 5201;
/// Bytes of a cookie with the zero at its end.
pub const COOKIE: usize = 37;
/// Datagram by which a client tells its address. Servers read no more than its source.
pub const HELLO: [u8; 4] = *b"9876";
/// Longest JSON that a server's results may have: some 400 bytes for one stream.
pub const MOST_JSON: u32 = 64 * 1024;

/// State of a test, as either side tells the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// Streams are set up, and the test begins.
    TestStart,
    /// The server sends.
    TestRunning,
    /// The client has enough.
    TestEnd,
    /// The server waits for parameters.
    ParamExchange,
    /// The server waits for the client's streams.
    CreateStreams,
    /// The server is ended.
    ServerTerminate,
    /// The server waits for results, and sends its own.
    ExchangeResults,
    /// The server has sent all.
    DisplayResults,
    /// The client has all.
    Done,
    /// Another test is running.
    AccessDenied,
    /// Two numbers follow: iperf3's error, and the system's.
    ServerError,
}

const STATES: [(State, u8); 11] = [
    (State::TestStart, 1),
    (State::TestRunning, 2),
    (State::TestEnd, 4),
    (State::ParamExchange, 9),
    (State::CreateStreams, 10),
    (State::ServerTerminate, 11),
    (State::ExchangeResults, 13),
    (State::DisplayResults, 14),
    (State::Done, 16),
    (State::AccessDenied, 0xFF),
    (State::ServerError, 0xFE),
];

impl State {
    /// The state of a byte.
    ///
    /// ```
    /// use lastmile::wire::iperf3::State;
    /// assert_eq!((State::of(9), State::of(255), State::of(3)), (Some(State::ParamExchange), Some(State::AccessDenied), None));
    /// ```
    pub fn of(byte: u8) -> Option<State> {
        STATES.iter().find(|(_, known)| *known == byte).map(|(state, _)| *state)
    }

    /// The byte of a state.
    pub fn byte(self) -> u8 {
        STATES.iter().find(|(state, _)| *state == self).map_or(0, |(_, byte)| *byte)
    }
}

/// A cookie from random bytes, as iperf3 makes it: letters and digits of base 32, and a zero.
///
/// ```
/// use lastmile::wire::iperf3::cookie;
/// assert!(cookie(&[7; 36]).starts_with(b"hhhh") && cookie(&[255; 36])[36] == 0);
/// ```
pub fn cookie(random: &[u8; COOKIE - 1]) -> [u8; COOKIE] {
    let mut cookie = [0; COOKIE];
    for (out, byte) in cookie.iter_mut().zip(random) {
        *out = b"abcdefghijklmnopqrstuvwxyz234567"[usize::from(byte % 32)];
    }
    cookie
}

/// Test that a client asks for: the server sends datagrams in bursts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// UDP payload of a datagram, in bytes.
    pub length: u16,
    /// Datagrams of a burst.
    pub burst: u16,
    /// Bursts in all: the server sends no more.
    pub bursts: u16,
    /// Mean rate of payload from one burst to the next.
    pub rate: Rate,
    /// Seconds after which servers from 3.6 on end by themselves, some 40 later.
    pub seconds: u32,
    /// DiffServ codepoint of the datagrams.
    pub dscp: u8,
}

impl Parameters {
    /// Payload of the whole test.
    pub fn bytes(&self) -> Bytes {
        Bytes(u64::from(self.length) * u64::from(self.burst) * u64::from(self.bursts))
    }

    /// Bytes to send once the server says [`State::ParamExchange`].
    ///
    /// ```
    /// use lastmile::{units::Rate, wire::iperf3::Parameters};
    /// let asked = Parameters { length: 1460, burst: 30, bursts: 2, rate: Rate::ip(1_000_000), seconds: 9, dscp: 46 };
    /// let bytes = asked.encode();
    /// assert_eq!(usize::from(bytes[3]) + 4, bytes.len());
    /// assert!(bytes.ends_with(br#""bandwidth":1000000,"burst":30,"TOS":184,"udp_counters_64bit":1,"dont_fragment":1}"#));
    /// ```
    pub fn encode(&self) -> Vec<u8> {
        let (length, burst, seconds) = (self.length, self.burst, self.seconds);
        let (num, rate, tos) = (self.bytes().0, self.rate.bits_per_second(), self.dscp << 2);
        frame(&format!(
            "{{\"udp\":true,\"omit\":0,\"time\":{seconds},\"num\":{num},\"blockcount\":0,\"parallel\":1,\"reverse\":true,\"len\":{length},\"bandwidth\":{rate},\"burst\":{burst},\"TOS\":{tos},\"udp_counters_64bit\":1,\"dont_fragment\":1}}"
        ))
    }
}

/// Results of a client that received so much, with the fields that servers insist on.
///
/// ```
/// use lastmile::{units::Bytes, wire::iperf3::results};
/// assert!(results(Bytes(43_800), 30, 2.0).ends_with(br#""packets":30,"start_time":0,"end_time":2}]}"#));
/// ```
pub fn results(payload: Bytes, packets: u64, seconds: f64) -> Vec<u8> {
    frame(&format!(
        "{{\"cpu_util_total\":0,\"cpu_util_user\":0,\"cpu_util_system\":0,\"sender_has_retransmits\":-1,\"streams\":[{{\"id\":1,\"bytes\":{},\"retransmits\":-1,\"jitter\":0,\"errors\":0,\"packets\":{packets},\"start_time\":0,\"end_time\":{seconds}}}]}}",
        payload.0
    ))
}

/// Text behind its length.
fn frame(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

/// A server's word on the control connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// The test has this state.
    State(State),
    /// The server's results, which are sums and are skipped.
    Results,
    /// The server refused, with iperf3's number for the reason.
    Error(u32),
    /// Bytes that iperf3 never sends.
    Unknown,
}

/// Reader of a server's control connection, in pieces as they come. It keeps at most eight bytes.
///
/// ```
/// use lastmile::wire::iperf3::{Message, Reader, State};
/// let mut reader = Reader::default();
/// let mut bytes: &[u8] = &[9, 13, 0, 0, 0, 2, b'{'];
/// assert_eq!(reader.next(&mut bytes), Some(Message::State(State::ParamExchange)));
/// assert_eq!(reader.next(&mut bytes), Some(Message::State(State::ExchangeResults)));
/// assert_eq!(reader.next(&mut bytes), None); // half of the results
/// bytes = &[b'}', 14];
/// assert_eq!(reader.next(&mut bytes), Some(Message::Results));
/// assert_eq!(reader.next(&mut bytes), Some(Message::State(State::DisplayResults)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Reader {
    expects: Expects,
    kept: [u8; 8],
    len: usize,
}

#[derive(Clone, Copy, Debug, Default)]
enum Expects {
    #[default]
    State,
    Length,
    /// So many bytes of JSON more.
    Json(u32),
    Error,
    /// Nothing that would mean anything.
    Nothing,
}

impl Reader {
    /// The next word, if it is whole; what was read is taken off `bytes`.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Option<Message> {
        loop {
            match self.expects {
                Expects::State => {
                    let (byte, rest) = bytes.split_first()?;
                    *bytes = rest;
                    let Some(state) = State::of(*byte) else {
                        self.expects = Expects::Nothing;
                        return Some(Message::Unknown);
                    };
                    self.expects = match state {
                        State::ExchangeResults => Expects::Length,
                        State::ServerError => Expects::Error,
                        _ => Expects::State,
                    };
                    if state != State::ServerError {
                        return Some(Message::State(state));
                    }
                }
                Expects::Length => {
                    let length = u32::from_be_bytes(*self.take(4, bytes)?.first_chunk()?);
                    let known = (1..=MOST_JSON).contains(&length);
                    self.expects = if known { Expects::Json(length) } else { Expects::Nothing };
                    if !known {
                        return Some(Message::Unknown);
                    }
                }
                Expects::Json(left) => {
                    let (_, rest) = bytes.split_at(bytes.len().min(left as usize));
                    let left = left - (bytes.len() - rest.len()) as u32;
                    *bytes = rest;
                    self.expects = if left == 0 { Expects::State } else { Expects::Json(left) };
                    return (left == 0).then_some(Message::Results);
                }
                Expects::Error => {
                    let code = u32::from_be_bytes(*self.take(8, bytes)?.first_chunk()?);
                    self.expects = Expects::State;
                    return Some(Message::Error(code));
                }
                Expects::Nothing => {
                    *bytes = &[];
                    return None;
                }
            }
        }
    }

    /// `n` bytes, eight at most, once they are all there.
    fn take(&mut self, n: usize, bytes: &mut &[u8]) -> Option<[u8; 8]> {
        while self.len < n {
            let (byte, rest) = bytes.split_first()?;
            (self.kept[self.len], *bytes) = (*byte, rest);
            self.len += 1;
        }
        self.len = 0;
        Some(self.kept)
    }
}

/// Beginning of a test's datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestPacket {
    /// When the server was about to send it, on a clock of its own, in microseconds.
    pub sent_micros: u64,
    /// Its number, from 1 on.
    pub counter: u64,
}

impl TestPacket {
    /// Reads a datagram. Counters begin at 1, so that four zeros in their place are the upper half of one of 64 bits.
    ///
    /// ```
    /// use lastmile::wire::iperf3::TestPacket;
    /// let narrow = [0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 30, 9, 9, 9, 9];
    /// let wide = [0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 30];
    /// assert_eq!(TestPacket::parse(&narrow), Some(TestPacket { sent_micros: 2_000_003, counter: 30 }));
    /// assert_eq!(TestPacket::parse(&narrow), TestPacket::parse(&wide));
    /// assert_eq!(TestPacket::parse(&narrow[..11]), None);
    /// ```
    pub fn parse(payload: &[u8]) -> Option<TestPacket> {
        let word = |at: usize| Some(u32::from_be_bytes(*payload.get(at..)?.first_chunk()?));
        let (seconds, micros) = (u64::from(word(0)?), u64::from(word(4)?));
        let counter = match word(8)? {
            0 => word(12)?,
            narrow => narrow,
        };
        (counter > 0 && micros < 1_000_000)
            .then_some(TestPacket { sent_micros: seconds * 1_000_000 + micros, counter: counter.into() })
    }
}

/// Reason of a server that refuses a test, by iperf3's number for it.
///
/// ```
/// assert!(lastmile::wire::iperf3::reason(142).contains("user name"));
/// ```
pub fn reason(code: u32) -> String {
    match code {
        27 => "it limits the rate of tests (--server-bitrate-limit) below what this one asks for".to_owned(),
        37 | 160 => {
            "it limits the time of tests (--server-max-duration) below what this one asks for".to_owned()
        }
        142 => {
            "it wants a user name and a password (--authorized-users-path), which this program does not send"
                .to_owned()
        }
        other => format!("iperf3's error {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of a connection whose bytes come in pieces of so many.
    fn words(bytes: &[u8], piece: usize) -> Vec<Message> {
        let (mut reader, mut words) = (Reader::default(), Vec::new());
        for mut piece in bytes.chunks(piece) {
            while let Some(word) = reader.next(&mut piece) {
                words.push(word);
            }
            assert!(piece.is_empty());
        }
        words
    }

    #[test]
    fn words_are_the_same_however_their_bytes_come() {
        let mut whole = vec![9, 10, 1, 2, 13];
        whole.extend(frame(&"x".repeat(1000)));
        whole.extend([14, 0xFE, 0, 0, 0, 142, 0, 0, 0, 1]);
        let all = words(&whole, whole.len());
        assert_eq!(all[5..], [Message::Results, Message::State(State::DisplayResults), Message::Error(142)]);
        for piece in 1..20 {
            assert_eq!(words(&whole, piece), all, "{piece}");
        }
    }

    #[test]
    fn other_bytes_are_said_once_and_take_no_memory() {
        assert_eq!(words(b"HTTP/1.1 400 Bad Request\r\n", 7), [Message::Unknown]);
        for length in [0, MOST_JSON + 1, u32::MAX] {
            let mut bytes = vec![13];
            bytes.extend(length.to_be_bytes());
            bytes.extend([14; 100]);
            assert_eq!(words(&bytes, 3), [Message::State(State::ExchangeResults), Message::Unknown]);
        }
    }

    #[test]
    fn every_state_has_its_byte() {
        STATES
            .iter()
            .for_each(|&(state, byte)| assert_eq!((State::of(byte), state.byte()), (Some(state), byte)));
        assert_eq!((0..=255).filter(|byte| State::of(*byte).is_some()).count(), STATES.len());
    }
}
