//! Packet exchanges worked out by hand from the standards: what a sender sends in answer to which ACKs, and when.

use std::collections::BTreeMap;

use lastmile::control::window::{LawConfig, VegasConfig};
use lastmile::node::{Datagram, Ecn, Flow, Input, Node, Output, Payload, PortId, Transmit};
use lastmile::time::{Span, Time};
use lastmile::units::Bytes;

use super::packet::{Ack, Blocks, Segment};
use super::receiver::transmit;
use super::{App, Ends, FileSize, Recovery, Sender, TcpConfig};
use crate::rng::Stream;

/// A sender and what it has sent.
struct Exchange {
    sender: Sender,
    ends: Ends,
    now: u64,
    departed: BTreeMap<u64, u64>,
    last: Vec<(Segment, Ecn)>,
    wait: Option<Time>,
}

fn ms(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

impl Exchange {
    fn new(config: TcpConfig) -> Exchange {
        Exchange::of(config, App::Bulk)
    }

    fn of(config: TcpConfig, app: App) -> Exchange {
        let (sender, receiver) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:1".parse().unwrap());
        let ends = Ends { sender, receiver, data: Flow(0), acks: Flow(1) };
        let sender = Sender::new(&config, ends, app, Time::ZERO, Time::MAX, Stream::new(1, "tcp"));
        Exchange { sender, ends, now: 0, departed: BTreeMap::new(), last: vec![], wait: None }
    }

    /// What is sent at `at`, in ms, without an ACK.
    fn at(&mut self, at: u64) -> Vec<u64> {
        self.now = at;
        self.last.clear();
        loop {
            match self.sender.poll(ms(at)) {
                Output::Transmit(Transmit {
                    datagram: Datagram { payload: Payload::Model(model), ecn, .. },
                    ..
                }) => {
                    let segment = Segment::read(&model).unwrap();
                    self.departed.insert(segment.seq, segment.sent);
                    self.last.push((segment, ecn));
                }
                Output::Wait(wait) => {
                    self.wait = wait;
                    return self.last.iter().map(|(segment, _)| segment.seq).collect();
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// What an ACK of all below `next` brings forth, with blocks; `of` is the segment that caused it.
    fn answer(&mut self, at: u64, next: u64, of: u64, blocks: &[(u64, u64)], ece: bool) -> Vec<u64> {
        let mut all = Blocks::default();
        all[..blocks.len()].copy_from_slice(blocks);
        let ack = Ack { next, echo: self.departed[&of].max(1), ece, blocks: all };
        let datagram = transmit(
            ms(at),
            self.ends.receiver,
            self.ends.sender,
            self.ends.acks,
            Ecn::NotEct,
            ack.model(40),
        );
        let datagram = datagram.datagram;
        self.sender.handle(ms(at), Input::Datagram { port: PortId(0), at: ms(at), datagram });
        self.at(at)
    }

    fn ack(&mut self, at: u64, next: u64) -> Vec<u64> {
        self.answer(at, next, next - 1, &[], false)
    }

    fn dup(&mut self, at: u64, next: u64) -> Vec<u64> {
        self.answer(at, next, next, &[], false)
    }

    fn sack(&mut self, at: u64, next: u64, blocks: &[(u64, u64)]) -> Vec<u64> {
        self.answer(at, next, blocks[0].1 - 1, blocks, false)
    }

    /// When the timer expires, in ms.
    fn timer(&self) -> Option<u64> {
        self.wait.map(|wait| wait.as_nanos() / 1_000_000)
    }
}

const NOTHING: Vec<u64> = Vec::new();

fn config(recovery: Recovery, initial_window: u32) -> TcpConfig {
    TcpConfig {
        recovery,
        initial_window: Some(initial_window),
        limited_transmit: false,
        ..TcpConfig::default()
    }
}

/// RFC 5681, sections 3.1 and 3.2.
#[test]
fn reno_inflates_by_each_duplicate_ack_and_deflates_at_the_next_new_one() {
    let mut it = Exchange::new(config(Recovery::Reno, 8));
    assert_eq!(it.at(0), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!([it.dup(100, 0), it.dup(101, 0)], [NOTHING, NOTHING]);
    // ssthresh = 8 / 2, cwnd = 4 + 3: less than is under way.
    assert_eq!(it.dup(102, 0), [0]);
    assert_eq!(it.dup(103, 0), NOTHING); // 8
    assert_eq!([it.dup(104, 0), it.dup(105, 0), it.dup(106, 0)], [[8], [9], [10]]);
    // cwnd = ssthresh = 4, of which three are under way.
    assert_eq!(it.ack(200, 8), [11]);
    // One more a round trip: 4 + 1/4 + ...
    assert_eq!([it.ack(210, 9), it.ack(211, 10), it.ack(212, 11)], [[12], [13], [14]]);
    assert_eq!(it.ack(213, 12), [15, 16]);
}

/// RFC 3042: two segments, no more, and the window stays what it is; RFC 5681, section 3.2, step 2: they do not count
/// in what the threshold is half of.
#[test]
fn limited_transmit_sends_one_new_segment_for_each_of_two_duplicate_acks() {
    let mut it = Exchange::new(TcpConfig { limited_transmit: true, ..config(Recovery::NewReno, 4) });
    assert_eq!(it.at(0), [0, 1, 2, 3]);
    assert_eq!([it.dup(100, 0), it.dup(101, 0)], [[4], [5]]);
    assert_eq!(it.sender.cwnd(), 4.0);
    assert_eq!(it.dup(102, 0), [0]);
    assert_eq!(it.sender.cwnd(), 2.0);
    // 2 + 3 + 1, then one more: 0 to 5 are under way.
    assert_eq!([it.dup(200, 0), it.dup(201, 0)], [NOTHING, vec![6]]);
}

/// RFC 6582, section 3.2, steps 2, 3 and 4.
#[test]
fn newreno_resends_at_each_partial_ack_and_restarts_the_timer_at_the_first() {
    let mut it = Exchange::new(config(Recovery::NewReno, 10));
    assert_eq!(it.at(0).len(), 10);
    // 0, 3 and 6 are lost: seven duplicate ACKs.
    assert_eq!([it.dup(100, 0), it.dup(100, 0), it.dup(100, 0)], [vec![], vec![], vec![0]]);
    // 5 + 3 + 4 = 12: two new.
    let sent: Vec<u64> = (0..4).flat_map(|_| it.dup(110, 0)).collect();
    assert_eq!(sent, [10, 11]);
    // 3 acknowledged: the window loses 3 and gains 1: 5 + 7 - 3 + 1 = 10, to 12.
    assert_eq!(it.ack(200, 3), [3, 12]);
    assert_eq!(it.timer(), Some(1200));
    // The duplicate ACKs of 10 and 11.
    assert_eq!([it.dup(210, 3), it.dup(211, 3)], [[13], [14]]);
    assert_eq!(it.ack(300, 6), [6, 15]);
    assert_eq!(it.timer(), Some(1200), "only the first partial ACK restarts it");
    // All of what was under way when it began: cwnd = ssthresh, of which 10 to 15 are under way.
    assert_eq!(it.ack(400, 10), NOTHING);
    assert_eq!(it.sender.cwnd(), 5.2);
}

/// RFC 6582, section 3.2, step 2 and section 4.1: duplicate ACKs of what was sent twice begin nothing.
#[test]
fn duplicate_acks_after_a_timeout_begin_no_recovery_until_recover_is_passed() {
    for recovery in [Recovery::Reno, Recovery::NewReno, Recovery::Sack, Recovery::Sack1] {
        let mut it = Exchange::new(config(recovery, 6));
        assert_eq!(it.at(0).len(), 6);
        assert_eq!(it.at(1000), [0], "{recovery:?}");
        assert_eq!(it.sender.cwnd(), 1.0);
        assert_eq!(it.ack(1100, 1), [1, 2]);
        for at in 1101..1105 {
            assert_eq!(it.dup(at, 1), NOTHING, "{recovery:?}");
        }
        assert_eq!(it.sender.counters().fast_retransmits, 0, "{recovery:?}");
    }
}

/// RFC 6675, section 5: `IsLost` begins recovery before a third duplicate ACK; `Update`, `SetPipe` and `NextSeg`.
#[test]
fn sack_sends_what_the_pipe_lacks_lost_segments_first() {
    let mut it = Exchange::new(config(Recovery::Sack, 10));
    assert_eq!(it.at(0).len(), 10);
    // 0, 1 and 4 are lost, and so are two of the ACKs. Three are sacked beyond 0 and 1, none beyond 4: the pipe has
    // 4, 6, 7, 8, 9, so that only the retransmission of step 4.3 goes. cwnd = 5.
    assert_eq!(it.sack(100, 0, &[(5, 6), (2, 4)]), [0]);
    assert_eq!((it.sender.counters().fast_retransmits, it.sender.cwnd()), (1, 5.0));
    // Pipe 4, 7, 8, 9, 0.
    assert_eq!(it.sack(101, 0, &[(5, 7), (2, 4)]), NOTHING);
    // 4 is lost: 8, 9, 0 and two more.
    assert_eq!(it.sack(102, 0, &[(5, 8), (2, 4)]), [1, 4]);
    // Nothing else is lost: new segments (rule 2).
    assert_eq!(it.sack(103, 0, &[(5, 9), (2, 4)]), [10]);
    assert_eq!(it.sack(104, 0, &[(5, 10), (2, 4)]), [11]);
    assert_eq!(it.answer(200, 1, 0, &[(5, 10), (2, 4)], false), [12]);
    assert_eq!(it.answer(202, 4, 1, &[(5, 10)], false), [13]);
    // Recovery ends when all that was under way has been acknowledged; no growth by that ACK.
    assert_eq!(it.answer(203, 10, 4, &[], false), [14]);
    assert_eq!(it.sender.cwnd(), 5.0);
    assert_eq!(it.ack(204, 11), [15]);
    assert_eq!(it.sender.cwnd(), 5.2);
}

/// RFC 6675, section 5.1: a new recovery may begin once all of the last one is acknowledged, not before.
#[test]
fn sack_begins_anew_where_the_last_recovery_ended() {
    let mut it = Exchange::new(config(Recovery::Sack, 8));
    assert_eq!(it.at(0).len(), 8);
    // The pipe: 4 to 7 and 0, then one less with each ACK; cwnd = 4.
    assert_eq!(it.sack(100, 0, &[(1, 4)]), [0]);
    assert_eq!(it.sack(101, 0, &[(1, 5)]), NOTHING);
    assert_eq!([it.sack(102, 0, &[(1, 6)]), it.sack(103, 0, &[(1, 7)])], [[8], [9]]);
    assert_eq!(it.sack(104, 0, &[(1, 8)]), [10]);
    // 8 is lost; 9 and 10 arrive before 0 does.
    assert_eq!(it.sack(201, 0, &[(9, 10), (1, 8)]), [11]);
    assert_eq!(it.sack(202, 0, &[(9, 11), (1, 8)]), [12]);
    assert_eq!(it.answer(203, 8, 0, &[(9, 11)], false), NOTHING);
    assert_eq!(it.sender.cwnd(), 4.0);
    assert_eq!(it.sack(204, 8, &[(9, 12)]), [8]);
    assert_eq!((it.sender.counters().fast_retransmits, it.sender.cwnd()), (2, 2.0));
}

/// Fall and Floyd, section 3.4: each ACK takes one from the pipe, each segment adds one, a partial ACK takes two; a
/// hole is lost as soon as something beyond it has arrived.
#[test]
fn sack1_counts_its_pipe_by_acks() {
    let mut it = Exchange::new(config(Recovery::Sack1, 10));
    assert_eq!(it.at(0).len(), 10);
    // 0 and 4 are lost. Blocks alone do not begin recovery, three duplicate ACKs do.
    assert_eq!(it.sack(100, 0, &[(5, 6), (1, 4)]), NOTHING);
    assert_eq!(it.sack(101, 0, &[(5, 7), (1, 4)]), NOTHING);
    assert_eq!(it.sack(102, 0, &[(5, 8), (1, 4)]), [0]);
    // The pipe is 10 - 3 = 7; cwnd = 5: two more ACKs are needed before a third lets 4 go.
    assert_eq!(it.sack(103, 0, &[(5, 9), (1, 4)]), NOTHING);
    assert_eq!(it.sack(104, 0, &[(5, 10), (1, 4)]), NOTHING);
    // 0 has arrived: 5 - 2 = 3, two may go.
    assert_eq!(it.answer(200, 4, 0, &[(5, 10)], false), [4, 10]);
    assert_eq!(it.answer(300, 10, 4, &[], false), [11, 12, 13, 14]);
    assert_eq!(it.sender.cwnd(), 5.0);
}

/// RFC 8985, section 6.2, step 5, and RFC 5681, section 4.3; without the option the timer has to find it.
#[test]
fn a_lost_retransmission_is_found_by_what_left_after_it() {
    for rack_retransmissions in [false, true] {
        let mut it = Exchange::new(TcpConfig { rack_retransmissions, ..config(Recovery::Sack, 8) });
        assert_eq!(it.at(0).len(), 8);
        assert_eq!(it.sack(100, 0, &[(1, 4)]), [0]);
        let sent: Vec<u64> = (5..9).flat_map(|end| it.sack(97 + end, 0, &[(1, end)])).collect();
        assert_eq!(sent, [8, 9, 10]);
        // 8, which left after 0 did for the second time, has arrived.
        let again = it.sack(202, 0, &[(1, 9)]);
        if rack_retransmissions {
            // The window is 2: as much as 9 and 10.
            assert_eq!((again, it.sender.cwnd()), (NOTHING, 2.0));
            assert_eq!([it.sack(203, 0, &[(1, 10)]), it.sack(204, 0, &[(1, 11)])], [[0], [11]]);
            assert_eq!(it.answer(300, 11, 0, &[], false), [12]);
            assert_eq!(it.sender.counters().timeouts, 0);
        } else {
            assert_eq!((again, it.sender.cwnd()), (vec![11], 4.0));
            assert_eq!(it.timer(), Some(1100));
        }
    }
}

/// RFC 6298, section 5, rules 5.1 to 5.6.
#[test]
fn the_timer_runs_from_the_last_new_ack_and_doubles() {
    let mut it = Exchange::new(config(Recovery::NewReno, 2));
    it.at(0);
    assert_eq!(it.timer(), Some(1000));
    it.ack(200, 1);
    // SRTT 200, RTTVAR 100: 600, rounded up to a second.
    assert_eq!(it.timer(), Some(1200));
    assert_eq!(it.at(1200), [1]);
    assert_eq!(it.timer(), Some(3200));
    assert_eq!(it.at(3200), [1]);
    assert_eq!(it.timer(), Some(7200));
    // Karn: the ACK of what was sent twice gives no time, and the timer stays doubled.
    assert_eq!(it.ack(3400, 4), [4, 5]);
    assert_eq!(it.timer(), Some(7400));
    it.ack(3700, 5);
    assert_eq!(it.timer(), Some(4700));
}

/// RFC 6298, section 3: a segment that recovery itself sent first, and sent again, is not timed.
#[test]
fn karns_rule_holds_within_sack_recovery() {
    let mut it = Exchange::new(TcpConfig { min_rto: Span::from_millis(1), ..config(Recovery::Sack, 8) });
    it.at(0);
    it.sack(100, 0, &[(1, 4)]);
    let sent: Vec<u64> = (5..9).flat_map(|end| it.sack(97 + end, 0, &[(1, end)])).collect();
    assert_eq!(sent, [8, 9, 10]); // 8 is timed
    // 8 is lost and sent again while 0 is still awaited.
    let sent: Vec<u64> = (10..13).flat_map(|end| it.sack(192 + end, 0, &[(9, end), (1, 8)])).collect();
    assert_eq!(sent, [11, 12, 8, 13]);
    // No round-trip time has been taken: the timeout is the initial one.
    it.answer(900, 12, 8, &[], false);
    assert_eq!(it.timer(), Some(1900));
}

/// RFC 3168, sections 6.1.2 and 6.1.5: once for a window, told by CWR on new data, and what is sent again is not
/// ECN-capable.
#[test]
fn ecn_echoes_reduce_once_for_each_window_and_cwr_goes_with_new_data() {
    let mut it = Exchange::new(TcpConfig { ecn: true, ..config(Recovery::NewReno, 8) });
    it.at(0);
    assert!(it.last.iter().all(|(segment, ecn)| *ecn == Ecn::Ect0 && !segment.cwr));
    assert_eq!(it.answer(100, 1, 0, &[], true), NOTHING);
    assert_eq!(it.sender.cwnd(), 4.0);
    for next in 2..5 {
        assert_eq!(it.answer(101, next, next - 1, &[], true), NOTHING);
    }
    assert_eq!(it.answer(102, 5, 4, &[], true), [8]);
    assert!(it.last[0].0.cwr && it.sender.cwnd() == 4.0);
    assert_eq!(it.answer(103, 6, 5, &[], false), [9]);
    assert!(!it.last[0].0.cwr);
    // A timeout: 6 goes again without the mark of a capable one, and CWR waits for new data.
    assert_eq!(it.at(it.timer().unwrap()), [6]);
    assert!(it.last[0].1 == Ecn::NotEct && !it.last[0].0.cwr);
}

/// RFC 7323, section 4: with timestamps, what was sent twice can be timed.
#[test]
fn timestamps_time_what_was_sent_twice() {
    let timeouts = [false, true].map(|timestamps| {
        let mut it = Exchange::new(TcpConfig { timestamps, ..config(Recovery::NewReno, 1) });
        it.at(0);
        assert_eq!(it.at(1000), [0]);
        it.ack(1400, 1);
        it.timer().unwrap() - 1400
    });
    // Doubled from 1 s, and 400 + 4 * 200.
    assert_eq!(timeouts, [2000, 1200]);
}

/// An ACK that was lost is made good by the next: what it told of was not lost again.
#[test]
fn a_retransmission_whose_ack_was_lost_is_not_lost() {
    let mut it = Exchange::new(TcpConfig { rack_retransmissions: true, ..config(Recovery::Sack, 12) });
    assert_eq!(it.at(0).len(), 12);
    // 0 and 1 are lost.
    assert_eq!(it.sack(100, 0, &[(2, 5)]), [0]);
    let sent: Vec<u64> = (6..13).flat_map(|end| it.sack(95 + end, 0, &[(2, end)])).collect();
    assert_eq!(sent, [1, 12, 13, 14, 15]);
    // Only the ACK of 1 comes, which left after 0.
    assert_eq!(it.answer(200, 12, 1, &[], false), [16, 17]);
    assert_eq!((it.sender.counters().resent, it.sender.cwnd()), (2, 6.0));
}

/// Brakmo and Peterson, section 3.1: the first duplicate ACK of an overdue segment sends it again, and the first two
/// new ACKs after that send what else is overdue; a quarter of the window goes once.
#[test]
fn vegas_sends_again_what_is_overdue_at_the_first_duplicate_ack() {
    let vegas = VegasConfig::default();
    let config = TcpConfig { law: LawConfig::Vegas(vegas), fine_timeouts: true, ..config(Recovery::Reno, 4) };
    let mut it = Exchange::new(config);
    assert_eq!(it.at(0).len(), 4);
    // 100 ms, deviation 25: 150 ms and a sixteenth, 159 ms.
    let mut sent = it.ack(100, 1);
    sent.extend([it.ack(101, 2), it.ack(102, 3), it.ack(103, 4)].concat());
    let window = it.sender.cwnd();
    assert!(sent.len() >= 4 && sent[0] == 4, "{sent:?}");
    // 4 and 5 are lost; 6 is held up.
    assert_eq!(it.dup(200, 4), NOTHING, "not overdue yet");
    assert_eq!(it.dup(270, 4)[..1], [4]);
    assert_eq!((it.sender.cwnd(), it.sender.counters().fast_retransmits), (0.75 * window, 1));
    assert_eq!(it.answer(370, 5, 4, &[], false)[..1], [5], "the first new ACK looks");
    assert_eq!(it.sender.counters().timeouts, 0);
}

/// RFC 5681, equation 4: the threshold, to which the window falls, is at least two segments.
#[test]
fn the_window_falls_to_two_segments_at_the_least() {
    for (min_loss_window, window) in [(2, 2.0), (1, 1.5)] {
        let options = TcpConfig { min_loss_window, limited_transmit: true, ..config(Recovery::Reno, 3) };
        let mut it = Exchange::new(options);
        assert_eq!(it.at(0).len(), 3);
        let sent: Vec<u64> = (0..3).flat_map(|at| it.dup(100 + at, 0)).collect();
        assert_eq!((sent, it.sender.cwnd()), (vec![3, 4, 0], window));
    }
}

/// RFC 3168, section 6.1.2: at a window of one segment a mark lets the next go only when the timer expires.
#[test]
fn a_mark_at_a_window_of_one_segment_waits_for_the_timer() {
    let mut it = Exchange::new(TcpConfig { ecn: true, ..config(Recovery::NewReno, 1) });
    assert_eq!(it.at(0), [0]);
    assert_eq!(it.answer(100, 1, 0, &[], true), NOTHING);
    assert_eq!(it.timer(), Some(1100));
    assert_eq!(it.at(1100), [1]);
    assert!(it.last[0].0.cwr && it.last[0].1 == Ecn::Ect0);
    assert_eq!(it.sender.counters().timeouts, 0);
    assert_eq!(it.answer(1200, 2, 1, &[], false), [2, 3]);
}

/// RFC 6675, section 4, NextSeg, rule 4: with nothing new to send the last segment is tried once, so that a loss at a
/// file's end need not wait for the timer.
#[test]
fn a_recovery_without_new_data_tries_the_last_segment_once() {
    let file = App::File { size: Bytes(1460 * 10) };
    let mut it = Exchange::of(config(Recovery::Sack, 10), file);
    assert_eq!(it.at(0).len(), 10);
    // 2, 8 and 9 are lost. The window is 5.5; 6, 7, 8, 9 and 2 are the pipe.
    assert_eq!(it.ack(100, 2), NOTHING);
    assert_eq!(it.sack(101, 2, &[(3, 6)]), [2]);
    assert_eq!([it.sack(102, 2, &[(3, 7)]), it.sack(103, 2, &[(3, 8)])], [vec![9], NOTHING]);
    // A partial ACK says that 8 is lost as well.
    assert_eq!(it.answer(201, 8, 2, &[], false), [8]);
    assert_eq!(it.answer(202, 8, 9, &[(9, 10)], false), NOTHING);
    assert_eq!((it.ack(300, 10), it.sender.counters().timeouts), (NOTHING, 0));
}

/// RFC 6582, section 3.2, step 3: a partial ACK takes all that it acknowledges out of the window, even where lost
/// duplicate ACKs had not put as much in; what was under way does not leave as a burst. Step 3's full ACK ends that.
#[test]
fn a_partial_ack_after_lost_duplicates_deflates_the_window_itself() {
    for (deflation_stays, after) in [(false, vec![10, 11, 12, 13, 14]), (true, vec![10, 11])] {
        let mut it = Exchange::new(TcpConfig { deflation_stays, ..config(Recovery::NewReno, 10) });
        assert_eq!(it.at(0).len(), 10);
        // 0 and 8 are lost, and so are all duplicate ACKs but three.
        assert_eq!([it.dup(100, 0), it.dup(101, 0), it.dup(102, 0)], [vec![], vec![], vec![0]]);
        // 5 + 3 - 8 + 1 = 1.
        assert_eq!(it.ack(200, 8), [8]);
        // The threshold, or one segment and slow start.
        assert_eq!(it.ack(300, 10), after);
    }
}

/// RFC 3168, section 6.1.2: the timer that is waited for runs only while something is under way.
#[test]
fn a_mark_that_comes_when_all_is_acknowledged_does_not_hold_the_next_file() {
    let size = FileSize { min: Bytes(1460), max: Bytes(1460) };
    let app = App::Files { size, pause: Span::from_millis(10) };
    let ecn = TcpConfig { ecn: true, max_window: 1, ..config(Recovery::Reno, 1) };
    let mut it = Exchange::of(ecn, app);
    assert_eq!(it.at(0), NOTHING);
    assert_eq!(it.at(1_000), [0]);
    assert_eq!(it.ack(1_100, 1), NOTHING);
    assert_eq!(it.answer(1_100, 1, 0, &[], true), NOTHING);
    assert_eq!(it.at(10_000), [1]);
}
