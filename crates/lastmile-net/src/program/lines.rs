//! The lines of the protocol, version 1 (`docs/program.md`): events as JSON, and answers read strictly.

use std::collections::VecDeque;

use lastmile::control::{
    Action, Fate, Feedback, LostBy, Output, PacketClass, Report, RouteChange, Sent, Setting, Signal, Source,
};
use lastmile::node::Ecn;
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use serde_json::{Map, Value, json};

/// Version of the protocol.
pub(super) const VERSION: u64 = 1;
/// Events that a program may ask for; it gets all of them if it names none.
const EVENTS: [&str; 4] = ["sent", "feedback", "timer", "signal"];
/// A timer does not come sooner: else one that is always over would stop a simulation's clock.
const SOONEST: Span = Span::from_millis(1);
/// Rates, in bit/s, and sizes, in bytes, are at most this.
const MOST: f64 = 1e12;
/// Actions that wait for the host.
const WAITING: usize = 16;

fn seconds(span: Span) -> f64 {
    span.as_secs_f64()
}

fn event(name: &str, now: Time) -> Map<String, Value> {
    let mut event = Map::new();
    event.insert("event".into(), name.into());
    event.insert("now_s".into(), now.as_secs_f64().into());
    event
}

fn with(mut event: Map<String, Value>, more: Value) -> Map<String, Value> {
    if let Value::Object(more) = more {
        event.extend(more);
    }
    event
}

pub(super) fn start(setting: &Setting) -> Map<String, Value> {
    let bps = Rate::bits_per_second;
    with(
        event("start", Time::ZERO),
        json!({
            "lastmile": VERSION, "min_bps": bps(setting.min), "start_bps": setting.start.map(bps), "max_bps": bps(setting.max),
            "packet_bytes": setting.packet_size.0,
        }),
    )
}

pub(super) fn timer(now: Time) -> Map<String, Value> {
    event("timer", now)
}

pub(super) fn sent(now: Time, sent: &Sent) -> Map<String, Value> {
    with(
        event("sent", now),
        json!({
            "id": sent.id, "at_s": sent.at.as_secs_f64(), "bytes": sent.size.0, "stream": sent.stream, "class": class(sent.class),
            "in_flight_bytes": sent.in_flight.0, "app_limited": sent.app_limited, "ecn": ecn(sent.ecn),
        }),
    )
}

pub(super) fn feedback(now: Time, feedback: &Feedback<'_>) -> Map<String, Value> {
    let receiver = feedback.receiver.map(|of| {
        json!({ "bytes": of.received.0, "over_s": seconds(of.over), "loss_event_rate": of.loss_event_rate })
    });
    with(
        event("feedback", now),
        json!({
            "reports": feedback.reports.iter().map(report).collect::<Vec<_>>(), "arrival_order": feedback.arrival_order,
            "rtt_s": feedback.rtt(now).map(seconds), "resolution_s": feedback.resolution.map(seconds),
            "remote_sent_s": feedback.remote_sent.map(Time::as_secs_f64), "hold_s": seconds(feedback.hold),
            "source": source(feedback.source), "receiver": receiver,
        }),
    )
}

fn report(report: &Report) -> Value {
    let Sent { id, size, at, .. } = report.sent;
    let mut of = json!({ "id": id, "bytes": size.0, "sent_s": at.as_secs_f64() });
    let (fate, arrived) = match report.fate {
        Fate::Arrived { at, ecn: mark } => {
            of["ecn"] = ecn(mark).into();
            ("arrived", at)
        }
        Fate::Late { at } => ("late", at),
        Fate::Lost { by, class } => {
            of["by"] = if by == LostBy::Gap { "gap" } else { "timeout" }.into();
            of["cause"] = class.to_string().into();
            ("lost", None)
        }
    };
    of["fate"] = fate.into();
    if let Some(at) = arrived {
        of["arrived_s"] = at.as_secs_f64().into();
    }
    of
}

pub(super) fn signal(now: Time, signal: Signal) -> Map<String, Value> {
    let bps = Rate::bits_per_second;
    let told = match signal {
        Signal::Demand { min, desired, max } => {
            json!({ "signal": "demand", "min_bps": bps(min), "desired_bps": bps(desired), "max_bps": bps(max) })
        }
        Signal::Rtt { sample } => json!({ "signal": "rtt", "rtt_s": seconds(sample) }),
        Signal::Route { why } => json!({ "signal": "route", "why": match why {
            RouteChange::Handover => "handover",
            RouteChange::Path => "path",
            RouteChange::MoreCapacity => "more-capacity",
            RouteChange::LessCapacity => "less-capacity",
        }}),
        Signal::Remb { rate } => json!({ "signal": "remb", "max_bps": bps(rate) }),
        Signal::PersistentCongestion => json!({ "signal": "persistent-congestion" }),
        Signal::Excess { loss, trips } => json!({ "signal": "excess", "loss": loss, "trips": trips }),
        Signal::Mtu { size } => json!({ "signal": "mtu", "bytes": size.0 }),
        Signal::Idle => json!({ "signal": "idle" }),
        Signal::Resume => json!({ "signal": "resume" }),
        Signal::Backlog { bytes } => json!({ "signal": "backlog", "bytes": bytes.0 }),
    };
    with(event("signal", now), told)
}

fn class(class: PacketClass) -> &'static str {
    match class {
        PacketClass::Media => "media",
        PacketClass::Rtx => "rtx",
        PacketClass::Fec => "fec",
        PacketClass::Padding => "padding",
        PacketClass::Probe { .. } => "probe",
    }
}

fn ecn(ecn: Ecn) -> &'static str {
    match ecn {
        Ecn::NotEct => "not-ect",
        Ecn::Ect0 => "ect0",
        Ecn::Ect1 => "ect1",
        Ecn::Ce => "ce",
    }
}

fn source(source: Source) -> &'static str {
    match source {
        Source::Sim => "sim",
        Source::Native => "native",
        Source::Rfc8888 => "rfc8888",
        Source::Twcc => "twcc",
        Source::Quic => "quic",
        Source::ReceiverReport => "receiver-report",
    }
}

/// A program's wishes: those of its answers so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Wishes {
    /// In bit/s; zero before the first answer.
    rate: f64,
    pacing: Option<f64>,
    window: Option<f64>,
    padding: f64,
    keep_probing: bool,
    pub(super) timer: Option<Time>,
    pub(super) actions: VecDeque<Action>,
    /// Events that it asked for; none for all.
    events: Option<Vec<String>>,
}

impl Wishes {
    /// True if the program wants to be told of that kind of event.
    pub(super) fn wants(&self, event: &str) -> bool {
        self.events.as_ref().is_none_or(|events| events.iter().any(|wanted| wanted == event))
    }

    /// Reads the first answer.
    pub(super) fn began(&mut self, line: &[u8]) -> Result<(), String> {
        let mut answer = object(line)?;
        match answer.remove("lastmile") {
            Some(version) if version == VERSION => {}
            Some(other) => return Err(format!("speaks version {other} of the protocol, not {VERSION}")),
            None => return Err(format!("did not answer `start` with \"lastmile\": {VERSION}")),
        }
        if let Some(events) = answer.remove("events") {
            let names = events.as_array().map(|all| all.iter().map(|name| name.as_str().map(str::to_owned)));
            let names: Option<Vec<String>> = names.and_then(Iterator::collect);
            let known = |names: &Vec<String>| names.iter().all(|name| EVENTS.contains(&name.as_str()));
            let names = names.filter(known);
            self.events =
                Some(names.ok_or_else(|| format!("asks for events {events}; there are {EVENTS:?}"))?);
        }
        self.take(Time::ZERO, &answer)?;
        if self.rate > 0.0 { Ok(()) } else { Err("did not answer `start` with a rate_bps".to_owned()) }
    }

    /// Reads a later answer: keys that it leaves out stay as they were.
    pub(super) fn answered(&mut self, now: Time, line: &[u8]) -> Result<(), String> {
        self.take(now, &object(line)?)
    }

    fn take(&mut self, now: Time, answer: &Map<String, Value>) -> Result<(), String> {
        for (key, value) in answer {
            let number =
                |value: &Value, least: f64, most: f64| match value.as_f64().filter(|it| it.is_finite()) {
                    Some(it) if (least..=most).contains(&it) => Ok(it),
                    _ => Err(format!("asks for {key} {value}, which is not {least} to {most:e}")),
                };
            let some =
                |least, most| if value.is_null() { Ok(None) } else { number(value, least, most).map(Some) };
            let flag = || value.as_bool().ok_or_else(|| format!("asks for {key} {value}, not true or false"));
            match key.as_str() {
                "rate_bps" => self.rate = number(value, 1.0, MOST)?,
                "pacing_bps" => self.pacing = some(1.0, MOST)?,
                "window_bytes" => self.window = some(1.0, MOST)?,
                "padding_bps" => self.padding = some(0.0, MOST)?.unwrap_or(0.0),
                "keep_probing" => self.keep_probing = flag()?,
                "timer_s" => {
                    let at = some(0.0, 1e9)?.map(|at| Time::ZERO + Span::from_secs_f64(at));
                    self.timer = at.map(|at| at.max(now + SOONEST));
                }
                "feedback_every_s" => {
                    self.act(Action::FeedbackEvery(Span::from_secs_f64(number(value, 1e-3, 10.0)?)));
                }
                "key_frame" => {
                    if flag()? {
                        self.act(Action::KeyFrame);
                    }
                }
                "probe" => {
                    let of = |name: &str, least, most| {
                        number(value.get(name).unwrap_or(&Value::Null), least, most)
                    };
                    let (packets, size) = (of("packets", 2.0, 1e3)?, of("bytes", 40.0, 65_535.0)?);
                    let given = value.get("gap_s").filter(|gap| !gap.is_null());
                    let gap = given.map(|gap| number(gap, 0.0, 0.05)).transpose()?.map(Span::from_secs_f64);
                    self.act(Action::Probe { packets: packets as u16, size: Bytes(size as u64), gap });
                }
                _ => return Err(format!("answered with a key that there is not: {key:?}")),
            }
        }
        Ok(())
    }

    fn act(&mut self, action: Action) {
        if self.actions.len() < WAITING {
            self.actions.push_back(action);
        }
    }

    /// The controller's answer to a host, within the user's limits.
    pub(super) fn output(&self, setting: &Setting) -> Output {
        let (min, max) = (setting.min.bits_per_second(), setting.max.bits_per_second());
        let target = Rate::ip((self.rate as u64).clamp(min, max));
        let pacing = self.pacing.map_or(target, |pacing| Rate::ip((pacing as u64).max(min)));
        Output {
            pacing,
            window: self.window.map(|window| Bytes(window as u64)),
            padding: Rate::ip((self.padding as u64).min(max)),
            keep_probing: self.keep_probing,
            ..Output::rate(target)
        }
    }
}

fn object(line: &[u8]) -> Result<Map<String, Value>, String> {
    let shown = || String::from_utf8_lossy(&line[..line.len().min(60)]).trim_end().to_owned();
    serde_json::from_slice(line).map_err(|error| format!("answered no object of JSON ({error}): {}", shown()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn began() -> Wishes {
        let mut wishes = Wishes::default();
        wishes.began(br#"{"lastmile": 1, "rate_bps": 300000, "events": ["feedback"]}"#).unwrap();
        wishes
    }

    #[test]
    fn keys_that_are_left_out_stay() {
        let mut wishes = began();
        let setting = Setting { max: Rate::ip(1_000_000), ..Setting::default() };
        let now = Time::ZERO + Span::from_secs(1);
        wishes
            .answered(now, br#"{"pacing_bps": 4e5, "window_bytes": 9000, "timer_s": 0.5, "key_frame": true}"#)
            .unwrap();
        wishes.answered(now, b"{}").unwrap();
        let output = wishes.output(&setting);
        assert_eq!((output.target, output.pacing), (Rate::ip(300_000), Rate::ip(400_000)));
        assert_eq!((output.window, wishes.timer), (Some(Bytes(9000)), Some(now + SOONEST)));
        assert_eq!(wishes.actions.pop_front(), Some(Action::KeyFrame));
        for (asked, gap) in [("0.01", Some(Span::from_millis(10))), ("null", None)] {
            let line = format!(r#"{{"probe": {{"packets": 5, "bytes": 500, "gap_s": {asked}}}}}"#);
            wishes.answered(now, line.as_bytes()).unwrap();
            let probe = Action::Probe { packets: 5, size: Bytes(500), gap };
            assert_eq!(wishes.actions.pop_front(), Some(probe));
        }
        wishes
            .answered(now, br#"{"rate_bps": 5e6, "pacing_bps": null, "window_bytes": null, "timer_s": null}"#)
            .unwrap();
        assert_eq!((wishes.output(&setting), wishes.timer), (Output::rate(setting.max), None));
        assert!(wishes.wants("feedback") && !wishes.wants("sent"));
    }

    #[test]
    fn wrong_answers_are_named() {
        for (line, said) in [
            ("nonsense", "answered no object of JSON (expected ident at line 1 column 2): nonsense"),
            (r#"{"rate_bps": NaN}"#, "answered no object of JSON (expected value"),
            (r#"{"rate_bps": 1e999}"#, "answered no object of JSON (number out of range"),
            (r#"{"rate_bps": -5}"#, "asks for rate_bps -5, which is not 1 to 1e12"),
            (r#"{"rate_bps": 0}"#, "asks for rate_bps 0,"),
            (r#"{"rate_bps": "fast"}"#, "asks for rate_bps \"fast\","),
            (r#"{"rate_bps": null}"#, "asks for rate_bps null,"),
            (r#"{"window_bytes": 0}"#, "asks for window_bytes 0,"),
            (r#"{"keep_probing": 1}"#, "asks for keep_probing 1, not true or false"),
            (r#"{"probe": {"packets": 5}}"#, "asks for probe null,"),
            (r#"{"probe": {"packets": 5, "bytes": 500, "gap_s": 2}}"#, "asks for probe 2,"),
            (r#"{"rates": 1}"#, "answered with a key that there is not: \"rates\""),
            ("[]", "answered no object of JSON"),
        ] {
            let error = began().answered(Time::ZERO, line.as_bytes()).unwrap_err();
            assert!(error.starts_with(said), "{error}");
        }
        for (line, said) in [
            (r#"{"rate_bps": 5}"#, "did not answer `start` with \"lastmile\": 1"),
            (r#"{"lastmile": 2, "rate_bps": 5}"#, "speaks version 2 of the protocol, not 1"),
            (r#"{"lastmile": 1}"#, "did not answer `start` with a rate_bps"),
            (r#"{"lastmile": 1, "rate_bps": 5, "events": ["all"]}"#, "asks for events [\"all\"]; there are"),
        ] {
            let error = Wishes::default().began(line.as_bytes()).unwrap_err();
            assert!(error.starts_with(said), "{error}");
        }
    }
}
