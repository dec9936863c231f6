//! [`Iperf3`]: measures the way down from an iperf3 server as it is, by trains that it sends back to back.
//!
//! A server that sends with a burst of 30 sends 30 datagrams back to back, each with a counter and its time, so that a test
//! of iperf3 is a few of the trains that [`Trains`] reads. The way up cannot be measured so: a server returns sums, and no times.
//!
//! Tests begin with one train, and have more as the path is better known. The first asks for a low rate, and each later one
//! for a quarter of the rate that trains have shown, so that a train is through before the next one comes. The server's own limit of
//! bytes bounds each test (`num`, see [`wire::iperf3`](crate::wire::iperf3)).
//!
//! Sans-IO with the two verbs of a [`Node`](crate::node::Node), over two sockets: one of TCP, of which it knows when to connect and
//! which bytes come, and one of UDP.

use std::collections::VecDeque;

use core::net::SocketAddr;

use super::measure::{Cost, Decision};
use crate::estimate::trains::Trains;
use crate::estimate::{Conditions, Estimator, Outcome, Refusal, Step};
use crate::node::Ecn;
use crate::report::{Direction, Fate, PacketReport, Pattern, StreamRecord};
use crate::time::{Span, Time};
use crate::units::{Bytes, IpVersion, Rate};
use crate::wire::iperf3::{
    COOKIE, HELLO, Message, Parameters, Reader, State, TestPacket, cookie, reason, results,
};

/// Name of the method in results.
pub const METHOD: &str = "trains";
/// Bytes that a measurement may cost by default.
pub const MAX_BYTES: Bytes = Bytes(300_000);
/// Time that it may take by default: more than six trains take at 100 kbit/s.
pub const MAX_TIME: Span = Span::from_secs(30);
/// Why the way up is not measured.
pub const NO_WAY_UP: &str = "an iperf3 server returns sums without times, so that the way up to it cannot be measured: run `lastmile serve` there";

/// Packets of a train, and trains in all.
const TRAIN: usize = 30;
const TRAINS: usize = 6;
/// Rate of the first test, and the least of later ones.
const LOW: Rate = Rate::ip(100_000);
/// The largest rate: a train every 0.4 ms.
const HIGH: Rate = Rate::ip(1_000_000_000);
/// Later tests ask for one of so many parts of the rate that trains showed.
const SHARE: u64 = 4;
/// Bytes of a test's control connection and of its hello, headers included: some 1,700 with iperf 3.12.
const CONTROL: Bytes = Bytes(2_500);
/// TCP and IP headers of a piece of the control connection.
const TCP: u64 = 52;
/// The server is waited for so long in each state.
const PATIENCE: Span = Span::from_secs(5);
/// A connection attempt is given up after this time.
const CONNECT: Span = Span::from_secs(3);
/// Between two hellos.
const HELLO_AGAIN: Span = Span::from_secs(1);
/// A test is over so long after its last packet.
const QUIET: Span = Span::from_millis(1_500);
/// And so long after the packet with the last number.
const LAST: Span = Span::from_millis(200);
/// Between tests: a server before 3.13 closes its port for a moment.
const PAUSE: Span = Span::from_millis(100);
/// Attempts at a further test that a server refuses, because others were faster or its port is closed still.
const ATTEMPTS: u32 = 8;

/// Configuration of a measurement from an iperf3 server.
#[derive(Clone, Copy, Debug)]
pub struct Iperf3Config {
    /// The server.
    pub peer: SocketAddr,
    /// Makes cookies that no other client has.
    pub seed: [u8; 32],
    /// Bytes at the IP layer, both directions together, that may be spent.
    pub max_bytes: Bytes,
    /// Time that may be spent.
    pub max_time: Span,
    /// Size of a packet at the IP layer.
    pub packet_size: Bytes,
    /// DiffServ codepoint of the server's packets.
    pub dscp: u8,
    /// Errors of this host's stamps.
    pub conditions: Conditions,
}

impl Iperf3Config {
    /// From `peer`, with packets of 1488 bytes, at most [`MAX_BYTES`] and [`MAX_TIME`].
    pub fn new(peer: SocketAddr, seed: [u8; 32]) -> Iperf3Config {
        let conditions = Conditions::default();
        Iperf3Config {
            peer,
            seed,
            max_bytes: MAX_BYTES,
            max_time: MAX_TIME,
            packet_size: Bytes(1488),
            dscp: 0,
            conditions,
        }
    }
}

/// Fate of the control connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// Nothing listens on that port.
    Refused,
    /// There is no way to the host.
    Unreachable,
    /// Nothing answered.
    Silent,
    /// The server closed it.
    ByServer,
}

/// Message of the driver to the client.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// The control connection stands.
    Connected,
    /// The server sent these bytes on it.
    Control(&'a [u8]),
    /// It could not be made, or ended.
    Closed(Closed),
    /// A datagram came from the server, stamped then.
    Datagram {
        /// Time of its arrival.
        at: Time,
        /// Its ECN codepoint.
        ecn: Ecn,
        /// Its payload.
        payload: &'a [u8],
    },
    /// The clock that stamps arrivals was stepped.
    ClockStepped,
    /// It is time, or this is the start.
    Wake,
    /// The user has enough.
    Interrupted,
}

/// Answer of the client, drained until [`Output::Wait`].
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Make a control connection, until then.
    Connect(Time),
    /// Send these bytes on it.
    Control(Vec<u8>),
    /// Close it.
    Disconnect,
    /// Send this datagram to the server.
    Datagram(Vec<u8>),
    /// A decision.
    Event(Box<Decision>),
    /// The packets of a train, for records.
    Stream(StreamRecord),
    /// Nothing until then, or until something comes.
    Wait(Option<Time>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Start,
    /// Connects at that time.
    Pausing(Time),
    /// Since that time.
    Connecting(Time),
    /// Waits until then for the server to reach that state.
    Setup(Time, State),
    /// Waits until the first time for the server to hear of the datagrams' address, and says it again at the second.
    Hello(Time, Time),
    Running,
    /// Waits until then for the server's results.
    Ending(Time),
    Finished,
}

/// A datagram of a test: the server's time in microseconds, its arrival and its mark.
type Heard = (u64, Time, Ecn);

/// One test.
#[derive(Clone, Debug)]
struct Test {
    asked: Parameters,
    heard: Vec<Option<Heard>>,
    count: usize,
    /// The highest number so far.
    highest: usize,
    /// When the server began to send, or the last packet came.
    last: Time,
    stepped: bool,
}

impl Test {
    fn of(asked: Parameters, now: Time) -> Test {
        let packets = usize::from(asked.burst) * usize::from(asked.bursts);
        Test { asked, heard: vec![None; packets], count: 0, highest: 0, last: now, stepped: false }
    }

    /// When to wait for no more packets.
    fn over(&self) -> Time {
        if self.count == self.heard.len() {
            return self.last;
        }
        if self.highest == self.heard.len() {
            return self.last + LAST;
        }
        let train = Bytes(u64::from(self.asked.length) * u64::from(self.asked.burst));
        self.last + QUIET + self.asked.rate.time_for(train) * 2
    }

    /// The trains' records, the first with that number, of packets with so many bytes of headers.
    fn records(&self, first: u32, overhead: Bytes) -> Vec<StreamRecord> {
        // The server's clock has its own zero.
        let zero = self.heard.iter().flatten().map(|heard| heard.0).min().unwrap_or(0);
        let mut sent = Time::ZERO.as_sender();
        let mut packet = |(k, heard): (usize, &Option<Heard>)| {
            if let Some((micros, ..)) = heard {
                sent = Time::from_nanos((micros - zero).saturating_mul(1_000));
            }
            PacketReport {
                seq: k as u64,
                size: Bytes(self.asked.length.into()) + overhead,
                sent,
                fate: heard.map_or(Fate::Lost, |(_, at, _)| Fate::Arrived(at.as_receiver())),
                ecn: heard.map_or(Ecn::NotEct, |(.., ecn)| ecn),
            }
        };
        let trains = self.heard.chunks(usize::from(self.asked.burst).max(1)).zip(first..);
        trains
            .map(|(train, stream)| StreamRecord {
                stream,
                direction: Direction::Reverse,
                pattern: Pattern::Burst,
                planned: vec![Span::ZERO; train.len()],
                packets: train.iter().enumerate().map(&mut packet).collect(),
                tx_resolution: Span::from_micros(1),
                rx_resolution: Span::from_nanos(1),
                clock_stepped: self.stepped,
            })
            .collect()
    }
}

/// The client.
///
/// ```
/// use lastmile::endpoint::iperf3::{Input, Iperf3, Iperf3Config, Output};
/// use lastmile::time::{Span, Time};
/// let config = Iperf3Config::new("192.0.2.1:5201".parse()?, [7; 32]);
/// let mut client = Iperf3::new(config);
/// client.handle(Time::ZERO, Input::Wake);
/// assert_eq!(client.poll(), Output::Connect(Time::ZERO + Span::from_secs(3)));
/// client.handle(Time::ZERO, Input::Connected);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
pub struct Iperf3 {
    config: Iperf3Config,
    phase: Phase,
    reader: Reader,
    tools: Trains,
    test: Option<Test>,
    tests: u32,
    attempts: u32,
    /// Trains that were taken in.
    taken: usize,
    streams: u32,
    ready: bool,
    cost: Cost,
    started: Option<Time>,
    out: VecDeque<Output>,
}

impl Iperf3 {
    /// Ready to start.
    pub fn new(config: Iperf3Config) -> Iperf3 {
        Iperf3 {
            tools: Trains::new(TRAINS, TRAIN, config.packet_size, config.conditions),
            config,
            phase: Phase::Start,
            reader: Reader::default(),
            test: None,
            tests: 0,
            attempts: 0,
            taken: 0,
            streams: 0,
            ready: false,
            cost: Cost::default(),
            started: None,
            out: VecDeque::new(),
        }
    }

    /// True if all is done and said.
    pub fn is_finished(&self) -> bool {
        self.phase == Phase::Finished
    }

    /// Takes in a message of the driver.
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        if self.is_finished() {
            return;
        }
        self.started.get_or_insert(now);
        match input {
            Input::Interrupted => self.abort(now, Refusal::Interrupted),
            Input::ClockStepped => self.test.iter_mut().for_each(|test| test.stepped = true),
            Input::Connected => self.connected(now),
            Input::Control(mut bytes) => {
                self.cost.bytes_received += Bytes(bytes.len() as u64 + TCP);
                while let Some(word) = self.reader.next(&mut bytes).filter(|_| !self.is_finished()) {
                    self.word(now, word);
                }
            }
            Input::Closed(why) => self.closed(now, why),
            Input::Datagram { at, ecn, payload } => self.datagram(at, ecn, payload),
            Input::Wake => {}
        }
        self.due(now);
    }

    /// The next answer.
    pub fn poll(&mut self) -> Output {
        self.out.pop_front().unwrap_or_else(|| Output::Wait(self.next()))
    }

    /// When something is due.
    fn next(&self) -> Option<Time> {
        let limit = self.started.map(|at| at + self.config.max_time);
        let phase = match self.phase {
            Phase::Pausing(at) | Phase::Setup(at, _) | Phase::Ending(at) => Some(at),
            Phase::Connecting(since) => Some(since + CONNECT),
            Phase::Hello(until, again) => Some(until.min(again)),
            Phase::Running => self.test.as_ref().map(Test::over),
            Phase::Start | Phase::Finished => return None,
        };
        limit.into_iter().chain(phase).min()
    }

    fn due(&mut self, now: Time) {
        let spent = self.spent();
        if spent > self.config.max_bytes {
            return self.abort(now, Refusal::ByteLimit { limit: self.config.max_bytes });
        }
        let limit = self.config.max_time;
        if self.started.is_some_and(|at| now - at >= limit) {
            return self.abort(now, Refusal::TimeLimit { limit });
        }
        match self.phase {
            Phase::Start => self.begin(now),
            Phase::Pausing(at) if now >= at => self.connect(now),
            Phase::Connecting(since) if now >= since + CONNECT => self.closed(now, Closed::Silent),
            Phase::Setup(until, _) if now >= until => {
                self.fail(now, "the iperf3 server accepts the connection and does not answer".to_owned());
            }
            Phase::Hello(until, _) if now >= until => {
                let port = self.config.peer.port();
                self.fail(now, format!("the iperf3 server does not hear of this host's UDP port: does a firewall close UDP port {port}?"));
            }
            Phase::Hello(until, again) if now >= again => {
                self.phase = Phase::Hello(until, now + HELLO_AGAIN);
                self.hello();
            }
            Phase::Running if self.test.as_ref().is_none_or(|test| now >= test.over()) => self.end_test(now),
            Phase::Ending(until) if now >= until => self.close_test(now),
            _ => {}
        }
    }

    fn spent(&self) -> Bytes {
        self.cost.bytes() + self.cost.bytes_received
    }

    /// Bytes of headers of a datagram.
    fn overhead(&self) -> Bytes {
        IpVersion::of(self.config.peer).udp_overhead()
    }

    // ---- from one test to the next ----------------------------------------------------------------------------

    /// Begins the next test, as long as the limit of bytes allows.
    fn begin(&mut self, now: Time) {
        let train = self.config.packet_size * TRAIN as u64;
        let left = Bytes(self.config.max_bytes.0.saturating_sub((self.spent() + CONTROL).0));
        let bursts =
            (TRAINS - self.taken).min(self.tests as usize + 1).min((left.0 / train.0.max(1)) as usize);
        if bursts == 0 {
            let refusal = Refusal::ByteLimit { limit: self.config.max_bytes };
            if self.taken == 0 {
                return self.abort(now, refusal);
            }
            return self.finish(now, &refusal.to_string());
        }
        let shown = self.tools.rate().map_or(LOW, |rate| Rate::ip(rate.bits_per_second() / SHARE));
        let rate = if shown < LOW {
            LOW
        } else if shown > HIGH {
            HIGH
        } else {
            shown
        };
        let seconds = (rate.time_for(train) * (bursts as i64 + 2) + PATIENCE).as_secs_f64();
        let asked = Parameters {
            length: u16::try_from(self.config.packet_size.0.saturating_sub(self.overhead().0))
                .unwrap_or(u16::MAX),
            burst: TRAIN as u16,
            bursts: bursts as u16,
            rate,
            seconds: libm::ceil(seconds) as u32,
            dscp: self.config.dscp,
        };
        self.test = Some(Test::of(asked, now));
        self.connect(now);
    }

    fn connect(&mut self, now: Time) {
        self.reader = Reader::default();
        self.phase = Phase::Connecting(now);
        let until = self.next().unwrap_or(now + CONNECT);
        self.out.push_back(Output::Connect(until));
    }

    fn connected(&mut self, now: Time) {
        let Phase::Connecting(since) = self.phase else { return };
        if !core::mem::replace(&mut self.ready, true) {
            let peer = self.config.peer;
            self.event(Decision::PeerReady { peer, lastmile: false, rtt: now - since });
        }
        // A cookie of each connection: base 32 of the seed, its bytes moved on by their number.
        let mut random = [0; COOKIE - 1];
        let number = self.tests.wrapping_mul(31).wrapping_add(self.attempts) as u8;
        random
            .iter_mut()
            .zip(self.config.seed.iter().cycle())
            .for_each(|(out, byte)| *out = byte.wrapping_add(number));
        self.send(cookie(&random).to_vec());
        self.phase = Phase::Setup(now + PATIENCE, State::ParamExchange);
    }

    fn send(&mut self, bytes: Vec<u8>) {
        self.cost.control_bytes += Bytes(bytes.len() as u64 + TCP);
        self.out.push_back(Output::Control(bytes));
    }

    fn hello(&mut self) {
        self.cost.control_bytes += Bytes(HELLO.len() as u64) + self.overhead();
        self.out.push_back(Output::Datagram(HELLO.to_vec()));
    }

    fn event(&mut self, what: Decision) {
        self.out.push_back(Output::Event(Box::new(what)));
    }

    // ---- from the server --------------------------------------------------------------------------------------

    fn word(&mut self, now: Time, word: Message) {
        let state = match word {
            Message::State(state) => state,
            Message::Results => return,
            Message::Error(code) => {
                return self.fail(now, format!("the iperf3 server refuses: {}", reason(code)));
            }
            Message::Unknown => {
                let peer = self.config.peer;
                return self.fail(
                    now,
                    format!("the program that listens on {peer} does not speak iperf3's protocol"),
                );
            }
        };
        match (state, self.phase) {
            (State::ParamExchange, Phase::Setup(_, State::ParamExchange)) => {
                let asked = self.test.as_ref().map(|test| test.asked.encode());
                asked.into_iter().for_each(|asked| self.send(asked));
                self.phase = Phase::Setup(now + PATIENCE, State::CreateStreams);
            }
            (State::CreateStreams, Phase::Setup(_, State::CreateStreams)) => {
                self.phase = Phase::Hello(now + PATIENCE, now + HELLO_AGAIN);
                self.hello();
            }
            // Its answer to the hello may be lost.
            (State::TestStart, Phase::Hello(..)) => {
                self.phase = Phase::Setup(now + PATIENCE, State::TestRunning)
            }
            (State::TestRunning, Phase::Setup(_, State::TestRunning)) => {
                self.test.iter_mut().for_each(|test| test.last = now);
                self.phase = Phase::Running;
            }
            (State::ExchangeResults, Phase::Ending(_)) => {
                let heard = self.test.as_ref().map(|test| (test.count as u64, test.asked.length.into()));
                let (packets, length) = heard.unwrap_or((0, 0));
                let seconds = (now - self.started.unwrap_or(now)).as_secs_f64();
                self.send(results(Bytes(packets * length), packets, seconds));
            }
            (State::DisplayResults, Phase::Ending(_)) => {
                self.send(vec![State::Done.byte()]);
                self.close_test(now);
            }
            (State::AccessDenied, Phase::Setup(_, State::ParamExchange)) => {
                self.again(
                    now,
                    "the iperf3 server is busy with another test: try again when that has ended".to_owned(),
                );
            }
            (State::ServerTerminate, _) => self.fail(now, "the iperf3 server was stopped".to_owned()),
            _ => self.fail(now, "the iperf3 server does not keep to its protocol".to_owned()),
        }
    }

    fn closed(&mut self, now: Time, why: Closed) {
        let peer = self.config.peer;
        match (why, self.phase) {
            (_, Phase::Start | Phase::Pausing(_)) => {}
            // It has what it wants.
            (_, Phase::Ending(_)) => self.close_test(now),
            (Closed::Refused, Phase::Connecting(_)) => {
                self.again(now, format!("no iperf3 server listens on TCP port {} of {}: start `iperf3 -s` there, or name its port", peer.port(), peer.ip()));
            }
            (Closed::Unreachable, Phase::Connecting(_)) => self.fail(now, format!("there is no way to {}", peer.ip())),
            (_, Phase::Connecting(_)) => {
                self.fail(now, format!("nothing answers on TCP port {} of {}: does a firewall close it?", peer.port(), peer.ip()));
            }
            (_, Phase::Running) => self.fail(now, "the iperf3 server closed the connection in the middle of a test".to_owned()),
            _ => self.fail(now, "the iperf3 server closed the connection before the test began: it may limit the rate of tests, or want a user name".to_owned()),
        }
    }

    fn datagram(&mut self, at: Time, ecn: Ecn, payload: &[u8]) {
        self.cost.bytes_received += Bytes(payload.len() as u64) + self.overhead();
        let Some(test) = &mut self.test else { return };
        if payload.len() != usize::from(test.asked.length)
            || matches!(self.phase, Phase::Start | Phase::Pausing(_) | Phase::Connecting(_) | Phase::Finished)
        {
            return;
        }
        let Some(packet) = TestPacket::parse(payload) else { return };
        let number = usize::try_from(packet.counter).unwrap_or(usize::MAX);
        if let Some(slot @ None) = number.checked_sub(1).and_then(|k| test.heard.get_mut(k)) {
            *slot = Some((packet.sent_micros, at, ecn));
            test.count += 1;
            (test.highest, test.last) = (test.highest.max(number), test.last.max(at));
        }
    }

    // ---- ends -------------------------------------------------------------------------------------------------

    fn end_test(&mut self, now: Time) {
        self.phase = Phase::Ending(now + PATIENCE);
        self.send(vec![State::TestEnd.byte()]);
    }

    /// Ends the control connection, and gives the trains to the tool.
    fn close_test(&mut self, now: Time) {
        self.out.push_back(Output::Disconnect);
        self.tests += 1;
        self.attempts = 0;
        if self.test.as_ref().is_some_and(|test| test.count == 0) {
            let size = self.config.packet_size;
            return self.fail(now, format!("the iperf3 server sends, and none of its packets comes: a firewall or NAT drops UDP, or packets of {size} do not pass (--packet-size)"));
        }
        self.take();
        if self.taken >= TRAINS || matches!(self.tools.step(), Step::Done(_)) {
            return self.finish(now, "trains came back that tell nothing");
        }
        self.phase = Phase::Start;
        self.test = None;
        self.pause(now);
    }

    /// Plans the next test, and connects after a pause.
    fn pause(&mut self, now: Time) {
        self.begin(now);
        if matches!(self.phase, Phase::Connecting(_)) {
            self.out.pop_back();
            self.phase = Phase::Pausing(now + PAUSE);
        }
    }

    fn take(&mut self) {
        let Some(test) = self.test.take().filter(|test| test.count > 0) else { return };
        for record in test.records(self.streams + 1, self.overhead()) {
            self.streams += 1;
            self.taken += 1;
            let judged = self.cost.judge(&record);
            self.event(judged);
            self.tools.on_stream(&record);
            self.out.push_back(Output::Stream(record));
        }
    }

    /// Tries a further test again, or ends for this reason.
    fn again(&mut self, now: Time, why: String) {
        self.attempts += 1;
        if self.tests == 0 || self.attempts >= ATTEMPTS {
            return self.fail(now, why);
        }
        self.out.push_back(Output::Disconnect);
        self.phase = Phase::Pausing(now + PAUSE * i64::from(self.attempts));
    }

    /// Ends for a reason that is the server's, with what there is.
    fn fail(&mut self, now: Time, why: String) {
        if self.is_finished() {
            return;
        }
        self.out.push_back(Output::Disconnect);
        self.take();
        self.finish(now, &why);
    }

    /// Ends with the tool's result, or because of `why` if it has none yet.
    fn finish(&mut self, now: Time, why: &str) {
        match self.tools.end(why) {
            Outcome::Found(estimates) => estimates.into_iter().for_each(|estimate| self.found(now, estimate)),
            Outcome::Refused(refusal) => self.refused(now, refusal),
        }
        self.finished(now);
    }

    /// Ends for a reason of this side, with the numbers that hold so far.
    fn abort(&mut self, now: Time, refusal: Refusal) {
        self.out.push_back(Output::Disconnect);
        self.take();
        if let Step::Done(_) = self.tools.step() {
            return self.finish(now, &refusal.to_string());
        }
        self.tools.so_far().into_iter().for_each(|estimate| self.found(now, estimate));
        self.refused(now, refusal);
        self.finished(now);
    }

    fn found(&mut self, now: Time, estimate: crate::estimate::Estimate) {
        let cost = self.cost_until(now);
        self.event(Decision::Estimated {
            method: METHOD.to_owned(),
            direction: Direction::Reverse,
            estimate,
            cost,
        });
    }

    fn refused(&mut self, now: Time, refusal: Refusal) {
        let cost = self.cost_until(now);
        self.event(Decision::Refused {
            method: METHOD.to_owned(),
            direction: Direction::Reverse,
            refusal,
            cost,
        });
    }

    fn finished(&mut self, now: Time) {
        let cost = self.cost_until(now);
        self.event(Decision::Finished { cost });
        self.phase = Phase::Finished;
    }

    fn cost_until(&self, now: Time) -> Cost {
        Cost { elapsed: now - self.started.unwrap_or(now), ..self.cost }
    }
}

#[cfg(test)]
mod tests;
