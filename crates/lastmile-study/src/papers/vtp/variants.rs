//! VTP's claims in other set-ups.

use super::cases::{ERRORS, FEW, FRACTIONS, RFC, SetUp, THRESHOLDS, WIRELESS};
use super::judge::{bursty, delays, efficient, friendly, smoothest, takes_most, throughputs};
use super::section_4;
use super::testbed;
use crate::papers::results::Results;
use crate::papers::{Claim, Parts};

/// The one of MULTFRC's thresholds with which it carries what the paper says of it.
const HIGHER: &str = THRESHOLDS[1];

/// Figure 6's schemes, with a window that is cut in the place of VTP's rate.
const CUT: [&str; 3] = ["vtp(cut=window)", WIRELESS[1], WIRELESS[2]];

/// Claims of the paper in other set-ups.
#[rustfmt::skip]
pub(super) fn otherwise(claims: &[Claim]) -> Vec<Claim> {
    let again =
        |id, claim, items, decide: fn(&Results) -> Parts| Claim::again(claims, id, claim, items, decide);
    vec![
        again("x1", "v1 on the wired link, where no ACK meets the data", &["throughputs"],
            |results| throughputs(results, SetUp::Wired)),
        again("x2", "v1 where each other segment of TCP is acknowledged", &["throughputs"],
            |results| throughputs(results, SetUp::DelayedAcks)),
        again("x3", "v2 where VTP cuts its window: vtp(cut=window)", &["readings", "figure-6"],
            |results| smoothest(results, SetUp::Rts, &CUT, "variation")),
        again("x4", "v2 without RTS and CTS", &["no-rts"], |results| smoothest(results, SetUp::NoRts, &WIRELESS, "variation")),
        again("x5", "v2 where errors strike frames on the air, which are sent again", &["retries"],
            |results| smoothest(results, SetUp::Retries, &WIRELESS, "variation")),
        again("x6", "v5 where VTP cuts its window: vtp(cut=window)", &["readings", "figure-7"],
            |results| delays(results, SetUp::Rts, &CUT)),
        again("x7", "v8 without RTS and CTS, at 0, 2 and 5 % of errors", &["friendliness"],
            |results| friendly(results, SetUp::NoRts, &FEW, &WIRELESS)),
        again("x8", "v8 where each other segment of TCP is acknowledged, at 0, 2 and 5 % of errors", &["friendliness"],
            |results| friendly(results, SetUp::DelayedAcks, &FEW, &WIRELESS)),
        again("x9", "v14 where VTP cuts its window: vtp(cut=window)", &["convergence"],
            |results| section_4::converges(results, 2)),
        again("x10", "v14 with figure 3's hold: vtp(hold=rounds)", &["convergence"], |results| section_4::converges(results, 3)),
        again("x11", "v14 with both, as section 4 has it: vtp(hold=rounds,cut=window)", &["convergence"],
            |results| section_4::converges(results, 4)),
        again("x12", "v2 with RFC 5348's TFRC in the place of ns-2's", &["rfc"],
            |results| smoothest(results, SetUp::Rts, &RFC, "variation")),
        again("x13", "v3 with RFC 5348's TFRC in the place of ns-2's", &["rfc"], |results| efficient(results, SetUp::Rts, &RFC)),
        again("x14", "v2 on the wired link of 11 Mbit/s with the same errors", &["wired-steps"],
            |results| smoothest(results, SetUp::Wired, &WIRELESS, "variation")),
        again("x15", "v3 on the wired link of 11 Mbit/s with the same errors", &["wired-steps"],
            |results| efficient(results, SetUp::Wired, &WIRELESS)),
        again("x16", "v5 on the wired link of 11 Mbit/s with the same errors", &["wired-steps"],
            |results| delays(results, SetUp::Wired, &WIRELESS)),
        again("x17", "v2 over the whole run, in which the steps of the cross traffic count", &["figure-6"],
            |results| smoothest(results, SetUp::Rts, &WIRELESS, "variation_of_all")),
        again("x18", "v8 on the wired link of 11 Mbit/s with the same errors", &["friendliness"],
            |results| friendly(results, SetUp::Wired, &FEW, &WIRELESS)),
        again("x19", "v3 where MULTFRC counts fractions of connections", &["fractions"],
            |results| efficient(results, SetUp::Rts, &FRACTIONS)),
        again("x20", "v3 where MULTFRC closes a connection at a queue of four fifths of the least round-trip time: gamma=0.8", &["thresholds", "figure-6"],
            |results| efficient(results, SetUp::Rts, &[WIRELESS[0], WIRELESS[1], HIGHER])),
        again("x21", "v9 with that MULTFRC, at 0, 2 and 5 % of errors", &["thresholds", "figure-9"],
            |results| takes_most(results, HIGHER, &FEW)),
        again("x22", "v8 beside that MULTFRC, at 0, 2 and 5 % of errors", &["thresholds", "figure-9"],
            |results| friendly(results, SetUp::Rts, &FEW, &[HIGHER]))
        .cause("Presumed: two flows fill the air, so that what MULTFRC has more of TCP has less of, and v8 and v9 cannot both hold here"),
        again("x23", "v5 where VTP cuts its window, with that MULTFRC", &["readings", "thresholds", "figure-7"],
            |results| delays(results, SetUp::Rts, &[CUT[0], WIRELESS[1], HIGHER]))
        .cause(
            "Cause: with errors TFRC Wireless and MULTFRC carry nearly as much as VTP, and so wait as long; without errors VTP's \
             delay is the lowest",
        ),
        again("x24", "v7 with bursts of 20 ms in the place of 100", &["figure-8"], |results| bursty(results, 20)),
        again("x25", "v2 with two states of errors in time on the air, which hit requests too", &["air"],
            |results| smoothest(results, SetUp::Air, &WIRELESS, "variation")),
        again("x27", "v11 in the simulator", &["figure-11"], testbed::unaffected),
        again("x28", "v12 in the simulator", &["figure-12"], testbed::around_the_spare),
        again("x29", "v13 in the simulator", &["figure-12"], testbed::as_printed),
        again("x26", "v8 with these", &["air-friendliness"],
            |results| friendly(results, SetUp::Air, &ERRORS, &WIRELESS)),
    ]
}
