//! The state machine, told of paths that are made up.

use super::*;
use crate::control::LostBy;
use crate::node::Ecn;

/// Feedback every 50 ms of packets that left evenly, with a round-trip time of 20 ms and the queue.
struct Told {
    controller: Lastmile,
    now: Time,
    id: u64,
    /// The round-trip time without the queue, and the receiver's clock before the sender's, in milliseconds.
    path: i64,
    clock: i64,
}

/// Fates of the packets that one message tells of.
#[derive(Clone, Copy)]
struct Fates {
    /// Queueing delay of all but the last, and of that, in milliseconds.
    queue: (i64, i64),
    ecn: Ecn,
    /// One behind the last is lost.
    loses: bool,
    /// Of one in the middle the arrival has no time.
    untimed: bool,
}

const SHORT: Fates = Fates { queue: (0, 0), ecn: Ecn::Ect1, loses: false, untimed: false };
const EVERY: Span = Span::from_millis(50);

impl Told {
    /// A flow over a path that brings 4 Mbit/s, after some seconds.
    fn tracking() -> Told {
        let setting =
            Setting { start: Some(Rate::ip(4_000_000)), max: Rate::ip(8_000_000), ..Setting::default() };
        let controller = Lastmile::new(LastmileConfig::default(), &setting);
        let mut told = Told { controller, now: Time::ZERO + Span::from_secs(1), id: 0, path: 20, clock: 0 };
        // A first queue ends the start.
        (0..4).for_each(|_| told.of(SHORT));
        told.of(Fates { queue: (25, 25), ..SHORT });
        (0..60).for_each(|_| told.of(SHORT));
        assert_eq!(told.phase(), "track");
        told
    }

    /// The same at that rate, in bytes a second, 5 s before its next dip.
    fn looking(rate: f64) -> Told {
        let mut told = Told::tracking();
        told.controller.rate = rate;
        told.controller.next_dip = told.controller.now() + 5.0;
        told
    }

    fn phase(&self) -> &'static str {
        self.controller.phase.name()
    }

    /// The next message.
    fn of(&mut self, fates: Fates) {
        const PACKETS: i64 = 20;
        let sent =
            |id, k| Sent { ecn: Ecn::Ect1, ..Sent::media(id, Bytes(1250), self.now + EVERY / PACKETS * k) };
        let mut reports = Vec::new();
        for k in 0..PACKETS {
            let sent = sent(self.id + k as u64, k);
            let queue = Span::from_millis(if k + 1 == PACKETS { fates.queue.1 } else { fates.queue.0 });
            let at = Some((sent.at + Span::from_millis(self.path / 2 + self.clock) + queue).as_receiver());
            let at = at.filter(|_| !(fates.untimed && k == PACKETS / 2));
            reports.push(Report { sent, fate: Fate::Arrived { at, ecn: fates.ecn } });
        }
        if fates.loses {
            let sent = sent(self.id + PACKETS as u64, PACKETS);
            reports.push(Report { sent, fate: Fate::lost(LostBy::Gap) });
        }
        self.id += reports.len() as u64;
        reports.iter().for_each(|report| self.controller.on_sent(report.sent.at, &report.sent));
        self.now += EVERY;
        let now = self.now + Span::from_millis(self.path + fates.queue.1);
        let told = now + Span::from_millis(self.clock - self.path / 2);
        self.controller.on_feedback(now, &mut Feedback::exact(&mut reports, Some(told.as_receiver())));
    }
}

/// A queue of 120 ms that overflows and is half as long a moment later, though this flow sends on: somebody else answered the loss.
#[test]
fn an_overflow_that_others_answer_is_company() {
    let mut told = Told::tracking();
    told.of(Fates { queue: (120, 120), loses: true, ..SHORT });
    told.of(Fates { queue: (60, 60), ..SHORT });
    assert_eq!(told.phase(), "drain", "a queue that stood for 50 ms before the loss was no company's");
    let mut told = Told::tracking();
    // Longer than the law drains at once: it grew within a message.
    told.controller.config.packets = 100.0;
    (0..4).for_each(|_| told.of(Fates { queue: (120, 120), ..SHORT }));
    assert_eq!(told.phase(), "track");
    told.of(Fates { queue: (125, 125), loses: true, ..SHORT });
    told.of(Fates { queue: (60, 60), ..SHORT });
    assert_eq!(told.phase(), "beside");
}

/// A queue of 40 ms that falls by a fifth or is nearly gone for a moment each second, as CUBIC's is on a link of some jitter, is company after a few
/// seconds; one that falls by 80 ms or 30 in each second drains.
#[test]
fn a_queue_that_stays_but_for_small_falls_is_company() {
    let company = |queue: &dyn Fn(i64) -> i64| {
        let mut told = Told::tracking();
        (0..100).any(|message| {
            told.of(Fates { queue: (queue(message), queue(message)), ..SHORT });
            told.phase() == "beside"
        })
    };
    assert!(company(&|message| if message % 20 == 19 { 32 } else { 40 }));
    assert!(company(&|message| if message % 20 == 19 { 12 } else { 40 }));
    assert!(!company(&|message| (300 - 4 * message).max(0)));
    assert!(!company(&|message| 300 - message * 3 / 2));
    assert!(!company(&|message| if message % 20 == 19 { 2 } else { 40 }));
}

/// A hand-off: 500 kB/s come of a path that carried 4000, and the queue stands. By hand: it is halved each 150 ms, in three messages or four, while less
/// than half of it comes, and then it is what comes. Of it 60 % are cut.
#[test]
fn a_queue_behind_a_path_that_carries_far_less_drains_by_what_arrives() {
    let mut told = Told::tracking();
    let standing = Fates { queue: (200, 200), ..SHORT };
    told.of(standing);
    let drain = Phase::Drain(phases::Drain::of(told.controller.now(), 4_000e3));
    (told.controller.phase, told.controller.rate) = (drain, 1_000e3);
    let mut after = |messages: usize| {
        (0..messages).for_each(|_| told.of(standing));
        told.controller.rate / 1e3
    };
    assert_eq!([after(2), after(2), after(4)], [1_000.0, 800.0, 400.0]);
    let last = after(20);
    assert!((200.0..=204.0).contains(&last), "{last}");
}

/// A third of a rate is left, and a queue of the delay to keep, which grew by that: half of the rate for a second tells if the queue is others'.
#[test]
fn a_queue_that_the_delay_to_keep_hides_is_looked_into() {
    for (had, then, phases) in [
        (1500e3, 8, ["withdraw", "beside"]),
        // A flow of this kind took the room.
        (1500e3, 6, ["withdraw", "track"]),
        (1500e3, 2, ["withdraw", "track"]),
        // Half of the rate is left.
        (1000e3, 8, ["track", "track"]),
    ] {
        let mut told = Told::tracking();
        (told.controller.beside, told.controller.rate) =
            (Beside::default().that_had(told.controller.now(), had), 500e3);
        let mut after = |messages: usize, queue| {
            (0..messages).for_each(|_| told.of(Fates { queue: (queue, queue), ..SHORT }));
            told.phase()
        };
        assert_eq!([after(16, 8), after(24, then)], phases);
    }
}

/// The delay to keep of 1.2 Mbit/s is 18 ms, which a download may fill as well. A look into that queue goes before a dip.
#[test]
fn a_queue_as_long_as_a_low_rate_keeps_is_looked_into() {
    for (rate, queue, then, phases) in [
        (150e3, 18, 18, ["track", "withdraw", "beside"]),
        (150e3, 18, 10, ["track", "withdraw", "dip"]),
        // Longer than is kept: a drain that does not help finds out.
        (150e3, 40, 40, ["drain", "drain", "beside"]),
        // A delay to keep that is too short to hide a queue.
        (500e3, 8, 8, ["track", "track", "track"]),
    ] {
        let mut told = Told::looking(rate);
        told.controller.next_dip += 1.5;
        let mut after = |messages: usize, queue| {
            (0..messages).for_each(|_| told.of(Fates { queue: (queue, queue), ..SHORT }));
            told.phase()
        };
        // Until 5 s before the dip, then half a second of that queue.
        let seen = [after(30, queue), after(16, queue), after(if phases[2] == "dip" { 2 } else { 24 }, then)];
        assert_eq!(seen, phases, "{rate} {queue} {then}");
        assert_eq!(told.controller.beside.left(), 0.0);
    }
}

/// A queue that grew slowly beyond what is kept is no hidden one; nor does a look begin at the user's limit, or where the sources make less.
#[test]
fn a_look_has_its_reasons() {
    type Change = fn(&mut Told);
    let cases: [(Change, i64, &str); 4] = [
        (|_| (), 18, "withdraw"),
        (|_| (), 30, "track"),
        (|told| told.controller.limited = 1.0, 18, "track"),
        (
            |told| {
                told.controller.flow = Flow::new(&Setting { max: Rate::ip(1_200_000), ..Setting::default() })
            },
            18,
            "track",
        ),
    ];
    for (number, (change, queue, phase)) in cases.into_iter().enumerate() {
        let mut told = Told::looking(150e3);
        for queue in [10, 18, 26].into_iter().chain([30; 14]).map(|grown| queue.min(grown)) {
            change(&mut told);
            told.controller.rate = 150e3;
            told.of(Fates { queue: (queue, queue), ..SHORT });
            if told.phase() != "track" {
                break;
            }
        }
        assert_eq!(told.phase(), phase, "{number}");
    }
}

/// A queue of half a second was this flow's own, and its window had it.
#[test]
fn a_test_that_finds_nobody_leaves_no_more_than_arrived() {
    let mut told = Told::tracking();
    let since = told.controller.now();
    told.controller.phase =
        Phase::Withdraw(phases::Withdrawal { since, most: 650e3, gone: 0.2, is_look: false });
    told.controller.beside = Beside::default().with_window(260e3);
    // It was halved again, since feedback was late.
    told.controller.rate = 100e3;
    told.of(SHORT);
    // 500 kB/s arrived: 1.3 times that, less a tenth.
    let rate = told.controller.rate;
    assert!(told.phase() == "track" && (rate - 585e3).abs() < 1.0, "{rate}");
    assert!((told.controller.beside.left() - 650e3).abs() < 1.0);
}

/// Packets that come after an outage had waited for its end, and are no company.
#[test]
fn a_look_that_falls_silent_goes_on_as_before() {
    let mut told = Told::tracking();
    let since = told.controller.now();
    told.controller.phase =
        Phase::Withdraw(phases::Withdrawal { since, most: 650e3, gone: 0.01, is_look: true });
    told.controller.beside = Beside::default().with_window(10e3);
    told.controller.rate = 250e3;
    let due = told.controller.poll_timeout().unwrap();
    told.controller.on_timeout(due);
    // A window of 10 kB in a round trip.
    let before = 10e3 / told.controller.rtt.unwrap();
    assert_eq!(told.controller.phase, Phase::Silent { before });
}

/// A satellite in place of a cable. Half of what is in flight on the longer path fits the window of the shorter at first.
#[test]
fn a_path_that_became_longer_has_a_window_of_its_own() {
    let mut told = Told::tracking();
    told.path = 600;
    (0..1_200).for_each(|_| told.of(SHORT));
    let (window, rate) = (told.controller.output().window.unwrap().0 as f64, told.controller.rate);
    assert!(window > 0.6 * rate, "{window} of {rate}");
}

#[test]
fn a_receivers_clock_that_is_set_forward_is_no_queue() {
    let mut told = Told::tracking();
    told.clock = 5_000;
    for _ in 0..60 {
        told.of(SHORT);
        assert!(["track", "dip"].contains(&told.phase()), "{}", told.phase());
    }
}

/// RFC 8888 has a value for packets that came after the report's time.
#[test]
fn an_arrival_without_a_time_leaves_the_queue_as_it_is() {
    let mut told = Told::tracking();
    let untimed = Fates { queue: (10, 10), untimed: true, ..SHORT };
    (0..3).for_each(|_| told.of(untimed));
    let Seen { queue, slow, .. } = told.controller.seen;
    assert!((queue - 0.01).abs() < 1e-6 && (slow - 500e3).abs() < 10e3, "{queue} {slow}");
}

/// Growth that cannot show would let the encoder jump, and there is no queue to dip for.
#[test]
fn at_the_users_limit_nothing_grows() {
    let mut told = Told::tracking();
    told.controller.rate = 1_000e3;
    for _ in 0..400 {
        told.of(SHORT);
        assert_eq!((told.phase(), told.controller.growth), ("track", 0.0));
    }
}

/// The same, but that one packet alone waited for long.
#[test]
fn a_spike_before_a_loss_is_no_company() {
    let mut told = Told::tracking();
    told.of(Fates { queue: (0, 120), loses: true, ..SHORT });
    (0..40).for_each(|_| {
        told.of(SHORT);
        assert_ne!(told.phase(), "beside");
    });
}

/// By hand: 4 Mbit/s came, which is 500 kB/s, and 95 % of it are 475.
#[test]
fn marks_behind_an_overshoot_fall_back_to_what_came() {
    let marked = Fates { ecn: Ecn::Ce, ..SHORT };
    for (queue, phase) in [(0, "track"), (60, "drain")] {
        let mut told = Told::tracking();
        // A steady rate at first: of a round of two messages one is marked, and alpha, 0.5 / 16, takes off half of itself.
        told.controller.rate = 500e3;
        told.of(marked);
        assert_eq!(told.controller.rate, 500e3 * (1.0 - 1.0 / 64.0));
        (0..4).for_each(|_| told.of(SHORT));
        told.controller.rate = 750e3;
        // A round is two messages.
        (0..2).for_each(|_| told.of(Fates { queue: (queue, queue), ..marked }));
        let Lastmile { rate, marked_at, .. } = told.controller;
        assert_eq!(told.phase(), phase);
        assert!(marked_at < 520e3, "{marked_at}");
        assert!(rate < 500e3, "{rate}");
    }
}

/// Half of the packets left while the sources had no more: padding, and no growth without it.
#[test]
fn sources_of_half_the_rate_are_helped_by_padding() {
    let mut told = Told::tracking();
    for (limited, pads) in [(0.4, false), (0.6, true)] {
        told.controller.limited = limited;
        told.controller.seen.law_queue = 0.0;
        let seen = told.controller.seen;
        told.controller.pad(&seen);
        assert_eq!((told.controller.is_limited(), told.controller.padding_until > seen.now), (pads, pads));
    }
}

/// By hand: 500 kB/s pass of a rate of 750, so padding begins at 600, and 1.05 times 500 are the sources' while its queue drains.
#[test]
fn a_queue_of_padding_leaves_the_sources_what_passed_before() {
    let mut told = Told::tracking();
    let Lastmile { seen, .. } = told.controller;
    assert!((seen.slow - 500e3).abs() < 5e3, "{}", seen.slow);
    (told.controller.limited, told.controller.rate, told.controller.encoder) = (0.6, 750e3, 550e3);
    told.controller.pad(&Seen { law_queue: 0.0, ..seen });
    assert!((told.controller.rate - 1.2 * seen.slow).abs() < 1.0, "{}", told.controller.rate);
    told.controller.rate = 400e3;
    told.controller.encode();
    assert!(told.controller.encoder > 1.04 * seen.slow, "{}", told.controller.encoder);
    // The queue is gone: the encoder goes by the rate.
    let later = seen.now + 1.1;
    told.controller.limited = 0.0;
    told.controller.pad(&Seen { now: later, law_queue: 0.0, ..seen });
    told.controller.encode();
    assert_eq!(told.controller.encoder, 400e3);
}

/// A test halved the rate and found nobody; within 20 s the rate falls to less than 0.4 of then, and the queue never is empty.
#[test]
fn a_rate_that_was_taken_after_a_test_is_claimed_back() {
    for (part, phase) in [(3.0, "beside"), (2.0, "track")] {
        let mut told = Told::tracking();
        told.controller.beside = Beside::default().after_a_test(told.controller.now(), part * 500e3);
        told.controller.rate = 500e3;
        // The standing queue is that of 80 ms.
        (0..3).for_each(|_| told.of(Fates { queue: (4, 4), ..SHORT }));
        assert_eq!(told.phase(), phase);
    }
}

/// Silence halves the rate down to a packet in 3 s. The first packets after it had waited for the path, and are no queue. After more than a second
/// the start rate is back.
#[test]
fn a_receiver_that_was_away_is_met_as_at_the_start() {
    let away = |silence| {
        let mut told = Told::tracking();
        told.now += Span::from_millis(silence);
        while let Some(at) = told.controller.poll_timeout().filter(|at| *at < told.now) {
            told.controller.on_timeout(at);
        }
        let silent = told.controller.rate;
        told.of(Fates { queue: (400, 400), ..SHORT });
        told.now += Span::from_millis(400);
        (silent, told)
    };
    let (silent, told) = away(450);
    assert_eq!((told.phase(), told.controller.rate), ("resume", silent));
    assert!(silent < 250e3 && told.controller.output().window.is_none(), "{silent}");
    let (silent, mut told) = away(12_000);
    assert!((silent * 3.0 - 1_250.0).abs() < 1e-6, "{silent}");
    assert_eq!((told.phase(), told.controller.rate), ("resume", 500e3));
    (0..8).for_each(|_| told.of(SHORT));
    assert!(told.phase() == "start" && told.controller.rate > 600e3, "{}", told.controller.rate);
}

/// A rate that was less than that of the start before comes back, and no more; feedback every 2 s is no silence.
#[test]
fn silence_is_no_way_to_a_higher_rate() {
    let mut told = Told::tracking();
    told.controller.rate = 40e3;
    let mut apart = |seconds| {
        told.now += Span::from_secs(seconds);
        while let Some(at) = told.controller.poll_timeout().filter(|at| *at < told.now) {
            told.controller.on_timeout(at);
        }
        told.of(Fates { queue: (400, 400), ..SHORT });
        (told.phase(), told.controller.rate)
    };
    assert_eq!(apart(12), ("resume", 40e3));
    let all: Vec<_> = (0..5).map(|_| apart(2)).collect();
    assert!(all[2..].iter().all(|(phase, _)| !["silent", "resume"].contains(phase)), "{all:?}");
    assert!(all.iter().all(|(_, rate)| *rate <= 40e3), "{all:?}");
}

/// A receiver that asks for less bounds the rate itself: when it asks for more again, the rate grows from there by what passes.
#[test]
fn a_receivers_limit_leaves_no_rate_that_was_not_shown() {
    let mut told = Told::tracking();
    let remb = |told: &mut Told, bps| {
        let signal = Signal::Remb { rate: Rate::ip(bps) };
        told.controller.on_signal(told.now, signal);
    };
    remb(&mut told, 500_000);
    assert!(told.controller.output().target <= Rate::ip(500_000));
    (0..100).for_each(|_| told.of(SHORT));
    assert!(told.controller.rate * 8.0 <= 500_000.0);
    remb(&mut told, 100_000_000);
    assert!(told.controller.output().target <= Rate::ip(500_000));
    told.of(SHORT);
    assert!(told.controller.rate * 8.0 <= 1.5 * 500_000.0, "{}", told.controller.rate * 8.0);
}
