//! The paper's claims, decided by medians over the runs, and other set-ups in which they hold. It has no tables, and only the
//! words on its figures were at hand.

use super::cases::{ERRORS, FEW, SetUp, WIRELESS, steps};
use super::judge::{bursty, delays, efficient, friendly, on_wires, smoothest, takes_most, throughputs};
use super::section_4;
use super::testbed;
use super::variants::otherwise;
use crate::papers::{Bar, Claim, Parts, Stated, each};

pub(super) fn claims() -> Vec<Claim> {
    let mut all = of_the_paper();
    all.extend(otherwise(&all));
    all
}

fn of_the_paper() -> Vec<Claim> {
    let beside_traffic = Stated::numbers(
        "section 6.2, figure 12",
        "CBR of 30 kbit/s from 15 to 32 s: the target rate \"briefly dips but quickly bounces back\"; of 80 kbit/s: it falls \
         gradually, 15 to 20 frames/s, about half of the packets lost or late",
    );
    vec![
        Claim::new(
            "v1",
            "figure 5: at zero errors all five schemes are within 10 % of each other; at 5 % errors VTP keeps at least 85 % of its own, each of the others loses more",
            Stated::words(
                "section 5.2, figure 5",
                "without errors \"all five protocols are able to utilize the bandwidth efficiently\"; as errors grow \"VTP is able \
         to stay at high throughput, while others start to drop their efficiency\"",
                "without errors within 10 % of the best; at 5 % of errors VTP keeps 85 % of its own, each other less than VTP",
            ),
            &["figure-5"],
            |results| throughputs(results, SetUp::Rts),
        )
        .cause("Cause: TCP's ACKs are sent on the same air, each with its RTS and CTS. Where they go by a wire, x1, all five fill the \
             link, and the rest holds as well"),
        Claim::new(
            "v2",
            "figure 6: VTP has the smallest coefficient of variation of the sending rate at 0, 2, 5 % errors",
            Stated::words(
                "section 5.3, figure 6",
                "VTP \"consistently performs better than TFRC extensions in terms of efficiency, smoothness and adaptivity, under \
         various error rates\"",
                "the least variation of the sending rate at 0, 2 and 5 % of errors",
            ),
            &["figure-6"],
            |results| smoothest(results, SetUp::Rts, &WIRELESS, "variation"),
        )
        .cause("By arithmetic, which no run shows: without errors VTP adds a packet a round, 2.7 % of 2.9 Mbit/s at 100 ms, until the queue \
             that the cut to the achieved rate left full drops one; TFRC adds at most 0.14 packets (0.4 %). It is the smoothest where \
             there are errors; beside RFC 5348's TFRC, x12, it is not"),
        Claim::new(
            "v3",
            "figure 6: VTP's mean rate is the highest or within 5 % of it; MULTFRC's is above TFRC Wireless",
            Stated::words(
                "section 5.3, figure 6, and footnote 5",
                "VTP performs better \"in terms of efficiency\", and yet MULTFRC \"usually has a slightly higher instantaneous \
         sending rate than VTP and TFRC Wireless\"",
                "VTP's mean rate 95 % of the others' at least, MULTFRC's above TFRC Wireless'",
            ),
            &["figure-6"],
            |results| efficient(results, SetUp::Rts, &WIRELESS),
        )
        .cause(GIVES_UP),
        Claim::new(
            "v4",
            "figure 6: after each cross traffic step VTP settles within 10 s",
            Stated::words(
                "section 5.3, figure 6",
                "VTP \"consistently performs better ... in terms of ... adaptivity\"",
                "after each step of the cross traffic VTP has settled within 10 s",
            ),
            &["figure-6"],
            |results| {
                Parts::each("s", FEW, |percent| {
                    let took = results.median(&steps(SetUp::Rts, "vtp", percent), "settles");
                    (format!("the slowest of four at {percent} % errors"), took, Bar::or_less(10.0))
                })
            },
        ),
        Claim::new(
            "v5",
            "figure 7: VTP has the lowest median delay at zero errors; at 2 and 5 % the others are no longer higher",
            Stated::words(
                "section 5.3, figure 7",
                "\"In the zero error case, VTP incurs the lowest delay\"; at 2 and 5 % \"in general TFRC Wireless and MULTFRC \
         actually have shorter delays\"",
                "the least median delay without errors; at 2 and 5 % the others' no longer than VTP's",
            ),
            &["figure-7"],
            |results| delays(results, SetUp::Rts, &WIRELESS),
        )
        .cause("Cause: the cut to the achieved rate leaves a full queue full; with `cut=window`, x6, VTP's delay without errors is \
             below TFRC Wireless', and below that of a MULTFRC that carries as much, x23. With errors both carry nearly as much \
             as VTP here, and so wait as long"),
        Claim::new(
            "v6",
            "inter-packet jitter is mostly below 5 ms",
            Stated::numbers("section 5.3", "jitter \"mostly within 5 msec between consecutive packets\""),
            &["figure-7"],
            |results| {
                Parts::each("%", each(&FEW, &WIRELESS), |(percent, scheme)| {
                    let share = results.median(&steps(SetUp::Rts, scheme, percent), "jitter_below_5_ms");
                    (format!("{scheme} at {percent} % errors: of jitter below 5 ms"), share, Bar::above(50.0))
                })
            },
        ),
        Claim::new(
            "v7",
            "figure 8: bursts of 100 ms raise the variation of VTP and TFRC Wireless against 4 ms, not MULTFRC's",
            Stated::words(
                "section 5.4, figure 8",
                "burstiness has \"a negative impact on VTP and TFRC Wireless\" and is \"neutral or even positive on MULTFRC\"",
                "bursts of 100 ms raise the variation against 4 ms for these two, and not for MULTFRC",
            ),
            &["figure-8"],
            |results| bursty(results, 100),
        )
        .cause("Cause: at one share of losses MULTFRC's variation is least in bursts of 20 ms, and more in those of 4 and of 100 ms: a burst of \
             100 ms is longer than a round trip and loses all of its packets. With bursts of 20 ms, which the section has too, it \
             holds: x24"),
        Claim::new(
            "v8",
            "figure 9: beside each scheme a TCP flow gets at least 90 % of what it gets beside another TCP flow (wireless errors 0 to 5 %)",
            Stated::words(
                "section 5.5, figure 9",
                "\"none of the streaming protocols impair the performance of the coexisting TCP connection\"",
                "TCP has 90 % of what it has beside TCP at least",
            ),
            &["figure-9"],
            |results| friendly(results, SetUp::Rts, &ERRORS, &WIRELESS),
        )
        .cause("Presumed: two flows of TCP with their ACKs fill the air, so that there is nothing to be taken but from each other; VTP and \
             TFRC Wireless leave out half of the errors. No run shows that two of TCP fill it at 4 and 5 % of errors"),
        Claim::new(
            "v9",
            "figure 9: MULTFRC's own throughput is above VTP's and TFRC Wireless's",
            Stated::words(
                "section 5.5, figure 9",
                "\"MULTFRC achieves a noticeably higher throughput than VTP and TFRC Wireless in all cases\"",
                "more than 100 % of theirs",
            ),
            &["figure-9"],
            |results| takes_most(results, "multfrc", &ERRORS),
        )
        .cause(GIVES_UP),
        Claim::new(
            "v10",
            "wired, no errors: VTP, TFRC and TFRC Wireless carry more than MULTFRC, VTP varies least; two VTP flows share within 10 %",
            Stated::words(
                "section 5.1, of earlier work",
                "\"VTP, TFRC and TFRC Wireless all perform better than MULTFRC, with VTP demonstrating the best smoothness in the rate\"",
                "more throughput than MULTFRC, the least variation, and two flows of VTP within 10 % of each other",
            ),
            &["wired"],
            on_wires,
        )
        .cause("By arithmetic, which no run shows: VTP adds a packet a round, 0.9 % of 11 Mbit/s at 80 ms, and TFRC at most 0.14 packets \
             (0.13 %), so that its saw's teeth are smaller where no loss comes by chance. Throughput and sharing hold"),
        Claim::new(
            "v11",
            "figure 11: target rate during 2 and 5 % errors stays within 10 % of before (lab, real video)",
            Stated::numbers(
                "section 6.2, figure 11",
                "errors of 2 or 5 % from 15 to 28 s leave \"the target encoding rate and smoothed achieved rate ... unaffected\"",
            ),
            &["figure-11"],
            testbed::unaffected,
        )
        .lab(),
        Claim::new(
            "v12",
            "figure 12: with cross traffic just below the spare rate a brief dip, just above it a steady decrease (lab, real video)",
            Stated::words(
                "section 6.2, figure 12",
                "beside the lighter traffic the target rate \"briefly dips but quickly bounces back\", beside the heavier VTP \"gradually \
                 decreases its encoding rate\"",
                "over the last 5 of 17 s the target is 90 % of before or more beside the lighter traffic, and less beside the heavier",
            ),
            &["figure-12"],
            testbed::around_the_spare,
        )
        .lab(),
        Claim::new(
            "v13",
            "figure 12 with the paper's literal 30 and 80 kbit/s on 2 Mbit/s behaves as printed",
            beside_traffic,
            &["figure-12"],
            testbed::as_printed,
        )
        .lab()
        .cause("By arithmetic: 802.11b at 2 Mbit/s carries 1456 kbit/s in packets of 1000 B with RTS and CTS, of which the video takes 500 at \
             most. The paper does not say what else filled the authors' cell"),
        Claim::new(
            "v14",
            "section 4: a VTP and a TCP flow that start at windows of 4:1 and 1:4 come within 10 % of equal in at most 1.2 times the rounds that two TCP flows need, at buffers of half, one and two pipes; figures 1 to 3 drawn from runs",
            Stated::words(
                "sections 4.1 and 4.2, figures 1 to 3",
                "\"VTP converges to its fair share as friendly and fast as TCP\"",
                "at most 1.2 times the rounds that two flows of TCP need until they are within 10 % of each other",
            ),
            &["convergence", "figure-1", "figure-2", "figure-3"],
            |results| section_4::converges(results, 1),
        )
        .cause("Cause: the cut to the achieved rate gives nothing up while the queue is full, so that TCP gains a packet a round at \
             best. With `cut=window` (x9) VTP that is ahead is as fast as TCP at every buffer, with `hold=rounds` (x10) VTP that \
             is behind is at one pipe and two; no reading is both"),
    ]
}

/// Of v3 and v9.
const GIVES_UP: &str = "Cause: MULTFRC gives up a connection wherever the round trip is a fifth above its least, which a queue of one pipe is \
     in any flow that fills the link, and beside TCP nearly always: one connection is left there, plain TFRC. The fifth is \
     recalled; with four fifths v3 (x20) and v9 (x21) hold, and TCP loses more (x22). VTP's part of v3 holds";
