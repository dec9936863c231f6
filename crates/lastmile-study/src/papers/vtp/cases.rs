//! The runs of VTP: set-ups, schemes, errors, and traffic beside a flow.

use crate::papers::Case;

/// Rates under errors: figure 5's, and figure 9's.
pub(super) const ERRORS: [u32; 6] = [0, 1, 2, 3, 4, 5];
/// Those of figures 6 and 7.
pub(super) const FEW: [u32; 3] = [0, 2, 5];
/// Figure 5: best effort, and reliable transports.
pub(super) const FIVE: [&str; 5] = ["vtp", "tfrc", "tcp", "iiad", "sqrt"];
/// Figures 6 to 9.
pub(super) const WIRELESS: [&str; 3] = ["vtp", "tfrc-wireless", "multfrc"];
/// The same with RFC 5348's TFRC in the place of ns-2's, which the paper ran.
pub(super) const RFC: [&str; 3] = ["vtp", "tfrc+spike", "multfrc(preset=rfc)"];
/// The same with fractions of a connection, which its authors' later work has.
pub(super) const FRACTIONS: [&str; 3] =
    ["vtp", "tfrc-wireless", "multfrc(preset=ns-2,fractions=true,alpha=0.25,beta=0.25,window=2)"];
/// MULTFRC with other thresholds: a queue of half, of four fifths and of the whole of the least round-trip time. Its own 0.2 is
/// recalled from its authors' papers; the paper does not say it.
pub(super) const THRESHOLDS: [&str; 3] =
    ["multfrc(preset=ns-2,gamma=0.5)", "multfrc(preset=ns-2,gamma=0.8)", "multfrc(preset=ns-2,gamma=1)"];
/// Cross traffic changes at these times, in seconds [section 5.3].
pub(super) const STEPS: [f64; 4] = [60.0, 120.0, 180.0, 240.0];
/// Mean lengths of the bad state at 2 % of errors, in milliseconds [section 5.4].
pub(super) const BURSTS: [u32; 3] = [4, 20, 100];

/// A pipe without RTS and CTS, in packets, as `wlan.toml` computes it.
const PIPE_WITHOUT_RTS: u32 = 27;

/// Set-up of the flows' path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SetUp {
    /// Figure 4, RTS and CTS before every frame.
    Rts,
    /// Without RTS and CTS.
    NoRts,
    /// Figure 4 with errors on the air itself, so that frames are sent again.
    Retries,
    /// Figure 4 with the two states of errors on the air of both stations: frames and requests are sent again.
    Air,
    /// Figure 4 where each other segment of TCP is acknowledged.
    DelayedAcks,
    /// Earlier work's: errors on a wired link of 11 Mbit/s.
    Wired,
}

impl SetUp {
    pub(super) fn name(self) -> &'static str {
        match self {
            SetUp::Rts => "figure 4",
            SetUp::NoRts => "no RTS",
            SetUp::Retries => "errors on the air",
            SetUp::Air => "bursts on the air",
            SetUp::DelayedAcks => "delayed ACKs",
            SetUp::Wired => "wired",
        }
    }

    fn case(self) -> Case {
        let case = Case::new(if self == SetUp::Wired { "wired" } else { "wlan" });
        match self {
            SetUp::NoRts => {
                case.set("wlan.0.rts_threshold", "2304 B").set("wlan.0.station.base.queue", PIPE_WITHOUT_RTS)
            }
            SetUp::DelayedAcks => ["flow", "beside"]
                .into_iter()
                .fold(case, |case, flow| case.set(format!("traffic.{flow}.tcp.delayed_ack"), "100 ms")),
            _ => case,
        }
    }

    /// With that share of packets lost to errors, in percent: 1 s good on the mean, or as long as makes bursts so long.
    fn errors(self, case: Case, percent: u32, burst: Option<u32>) -> Case {
        let odds = f64::from(percent) / f64::from(100 - percent);
        match self {
            // All four transmissions of a frame that has RTS before it fail.
            SetUp::Retries => {
                let frame = format!("{:.3}", (f64::from(percent) / 100.0).powf(0.25));
                ["radio", "other-radio"].into_iter().fold(quiet(case, &[2, 3]), |case, station| {
                    case.set(format!("wlan.0.station.{station}.down_frame_error"), &frame)
                })
            }
            SetUp::Air if percent > 0 => {
                let bad = format!("{:.0} ms", 1_000.0 * odds);
                ["radio", "other-radio"].into_iter().fold(quiet(case, &[2, 3]), |case, station| {
                    let key = |key: &str| format!("wlan.0.station.{station}.markov.{key}");
                    case.set(key("good"), "1 s").set(key("bad"), &bad)
                })
            }
            _ => {
                let links: &[u32] = if self == SetUp::Wired { &[2] } else { &[2, 3] };
                if percent == 0 {
                    return quiet(case, links);
                }
                let (good, bad) = match burst {
                    None => (1_000.0, 1_000.0 * odds),
                    Some(bad) => (f64::from(bad) / odds, f64::from(bad)),
                };
                links.iter().fold(case, |case, link| {
                    let key = |key: &str| format!("link.{link}.losses.air.model.{key}");
                    case.set(key("good"), format!("{good:.0} ms"))
                        .set(key("bad"), format!("{bad:.0} ms"))
                        .set(key("loss_bad"), "1.0")
                })
            }
        }
    }
}

/// No errors on these links.
fn quiet(case: Case, links: &[u32]) -> Case {
    links.iter().fold(case, |case, link| case.set(format!("link.{link}.losses.air.model.loss_bad"), "0.0"))
}

/// The controller that the paper means by a name; anything else is one. Its TFRC is ns-2's, with the classifier at the receiver;
/// it does not say which: LDA's choice for a shared wireless link. The papers test no rate.
fn control(scheme: &str) -> String {
    match scheme {
        "tfrc" => "tfrc(form=receiver,preset=ns-2,header=0)".to_owned(),
        "tfrc-wireless" => "tfrc(form=receiver,preset=ns-2,header=0)+spike".to_owned(),
        "multfrc" => "multfrc(preset=ns-2)".to_owned(),
        classified if classified.contains('+') => format!("{classified}(rate_test=false)"),
        vtp if vtp.starts_with("vtp") => format!("{vtp}+spike-rtt(rate_test=false)"),
        other => other.to_owned(),
    }
}

/// One flow of a scheme.
fn of(case: Case, scheme: &str) -> Case {
    match scheme {
        "tcp" | "iiad" | "sqrt" => {
            let law = if scheme == "tcp" { "reno" } else { scheme };
            case.set("stream.flow.count", 0).set("traffic.flow.count", 1).set("traffic.flow.tcp.law", law)
        }
        _ => {
            let case = case.set("stream.flow.control", control(scheme));
            // ZBS goes by times between arrivals, which RFC 8888's stamps are too coarse for.
            if scheme.ends_with("+zbs") { case.set("stream.flow.receipt_times", true) } else { case }
        }
    }
}

/// A flow alone under errors [figure 5].
pub(super) fn alone(set_up: SetUp, scheme: &str, percent: u32) -> Case {
    of(set_up.errors(set_up.case(), percent, None), scheme)
}

/// A flow for 300 s beside cross traffic that changes [figure 6].
pub(super) fn steps(set_up: SetUp, scheme: &str, percent: u32) -> Case {
    let case = set_up.errors(set_up.case(), percent, None);
    of(case.set("duration", "300 s").set("traffic.cross.count", 1), scheme)
}

/// The same at 2 % of errors in bursts of that mean length, in milliseconds [figure 8].
pub(super) fn bursts(scheme: &str, burst: u32) -> Case {
    if burst == 20 {
        return steps(SetUp::Rts, scheme, 2);
    }
    let case = SetUp::Rts.errors(SetUp::Rts.case(), 2, Some(burst));
    of(case.set("duration", "300 s").set("traffic.cross.count", 1), scheme)
}

/// A flow beside one of TCP [figure 9].
pub(super) fn beside_tcp(set_up: SetUp, scheme: &str, percent: u32) -> Case {
    alone(set_up, scheme, percent).set("traffic.beside.count", 1)
}

/// Two flows of VTP on the wired link [section 5.1, of earlier work].
pub(super) fn two_of_vtp() -> Case {
    alone(SetUp::Wired, "vtp", 0).set("stream.beside.count", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_the_paper_s() {
        let key = |case: &Case, key: &str| {
            let found = case.set.iter().rev().find(|set| set.0 == format!("link.2.losses.air.model.{key}"));
            found.map(|set| set.1.clone()).unwrap_or_default()
        };
        let both = |case: Case| [key(&case, "good"), key(&case, "bad")];
        // 20 ms at 2 %; the same share in bursts of 4 and of 100 ms.
        assert_eq!(both(steps(SetUp::Rts, "vtp", 2)), ["1000 ms", "20 ms"]);
        assert_eq!(both(alone(SetUp::Wired, "vtp", 5)), ["1000 ms", "53 ms"]);
        assert_eq!(both(bursts("vtp", 4)), ["196 ms", "4 ms"]);
        assert_eq!(both(bursts("vtp", 100)), ["4900 ms", "100 ms"]);
    }
}
