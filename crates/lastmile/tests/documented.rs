//! `docs/methods.md` is what the tables of methods, classifiers and rate controllers say.

use std::fmt::Write;

use lastmile::classify::CLASSIFIERS;
use lastmile::control::CONTROLLERS;
use lastmile::estimate::METHODS;
use lastmile::options::Opt;

const HEAD: &str = "# Methods, classifiers and rate controllers

What each can be told, as `lastmile methods NAME` and `lastmile classifiers NAME` print it; this page is made of the tables in
their files. An option is written

- on the command line as `--train-length 20`;
- in a scenario file as a key of `[[measure]]`: `train_length = 20`, and so in `--set measure.0.train_length=20` and in sweeps;
- behind a name wherever one is taken: `wbest(train_length=20)`, `--classifier 'spike(start=0.4)'`.

What their numbers mean, behind token buckets too, and where they err: [quantities.md](quantities.md).
";

const CONTROL: &str = "
# Rate controllers

A name may have a loss classifier in front: `tfrc+zbs`, `tfrc(preset=ns-2)+spike(start=0.4)`; `tfrc-wireless` is `tfrc+spike`. What
each needs and does is in [rate-control.md](rate-control.md).
";

const BATCHES: &str = "
# Where packets arrive in batches

Wi-Fi that aggregates (802.11n's A-MPDU and its like) hands over many packets at once, and the two of a pair have one stamp. `wbest` and
`capprobe` then send bursts of 84 packets, which a queue of 100 holds, and measure between the ends of the batches in which these
arrive; `wbest` goes on with two trains of 62 packets. Bytes and times are the only inputs. `estimate/batched.rs` says how.

In the ready scenarios (`n`: idle; `n-down`: 8 Mbit/s to another station; `n-up`: two uplinks of 2.3 Mbit/s contending; `n-both`), seeds 0 to
199 of each, no run refused, errors in shares of the truth: the capacity of 60.9 Mbit/s, and the long-run spare rate.

| cell | spare, Mbit/s | `wbest`: capacity, median and P90 | left, median and P90 | 90 % interval of the capacity held (95 % of it) | median cost | `capprobe`: median and P90 |
|---|---|---|---|---|---|---|
| `n` | 60.9 | 0.6 %, 1.1 % | 1.4 %, 2.5 % | 94.5 % (90 to 97) | 399 kB, 0.44 s | 0.7 %, 1.2 % |
| `n-down` | 52.4 | 0.7 %, 1.2 % | 4.3 %, 10 % | 92.5 % (88 to 96) | 399 kB, 0.45 s | 0.6 %, 1.2 % |
| `n-up` | 47.6 | 1.1 %, 7.6 % | 9.6 %, 18 % | 86.5 % (81 to 91) | 399 kB, 0.45 s | 0.9 %, 5.2 % |
| `n-both` | 39.6 | 1.1 %, 6.9 % | 12 %, 29 % | 94.5 % (90 to 97) | 399 kB, 0.46 s | 0.9 %, 2.7 % |

What is left is uncertain under contention because a collision costs a whole aggregate, 5 of the 30 ms that two trains see; `trains = 8`
sees more. Runs whose two best batches differ by more than 12 % send another burst (125 kB).

- A receiver that coalesces interrupts or merges packets makes batches too. Those that end no further apart than five times the
  `coalescing` that is allowed for (250 us) may be the host's own, and give a bound, proved by the burst.
- Behind an Ethernet an access point sends a pair's first packet before the second has come. Each pays its own access then, and
  pairs show the rate of single frames (31 Mbit/s in `n`), as they rightly do in 802.11b and g. Such pairs do not agree with one another:
  backoffs spread them. So where fewer than three tenths of them lie within 2 % of their median dispersion (or four times the stamps'
  noise), one burst of 8 packets (12 kB) is sent, and where it comes at more than 1.25 times the pairs' rate, the bursts and trains above
  follow (`estimate/aggregation.rs`, a rule of our own).
- With stamps uncertain by 20 us or more backoffs are not seen, and such an access point is measured by single frames. So is one whose
  pairs come closer than 1.25 times `coalescing`: a burst of 40 packets then gives a bound.

The same cells behind an Ethernet of 1 Gbit/s, 200 seeds each. One of 800 runs was not found out and said 29 Mbit/s; of `capprobe`'s, 20
seeds each, none.

| cell | capacity, median and P90 | left, median and P90 | 90 % interval of the capacity held | median cost | `capprobe`: median and P90 |
|---|---|---|---|---|---|
| `n` | 0.7 %, 1.2 % | 1.0 %, 2.1 % | 84 % | 411 kB, 0.50 s | 0.9 %, 1.4 % |
| `n-down` | 0.8 %, 1.6 % | 4.0 %, 10 % | 81 % | 411 kB, 0.50 s | 1.1 %, 1.3 % |
| `n-up` | 0.9 %, 1.8 % | 9.6 %, 20 % | 76 % | 411 kB, 0.50 s | 0.8 %, 1.9 % |
| `n-both` | 0.8 %, 4.5 % | 14 %, 28 % | 92 % | 411 kB, 0.51 s | 1.0 %, 2.1 % |

Elsewhere the burst of 8 packets is sent in nearly all runs over 802.11b and g, which pay 12 kB for nothing, and on wires in 63 of 1,717
simulated runs (n = 20 each; idle, CBR, Poisson and on/off traffic, 20 to 90 % of the path): never where the narrow link is the busy one
or stands behind it; in 54 of 60 where a link of 100 Mbit/s behind one of 10 is taken to 60 % or more by Poisson traffic, and in 9 of
140 where one of 20 is, to 60 % or more.

# Where others come between pairs

Beside TCP in a cell of 802.11g most pairs of `wbest` have another station's frames between their packets. Where that is so of more than a
third, the capacity is that of the pairs that met none (`estimate/contention.rs`, a rule of our own), with the warning `contended` and
without an interval, or the run is refused. A busy link behind the narrow one of a wired path spreads pairs too, and there the median of
all pairs stands.
What is left comes out near zero in such cells.
";

fn table(out: &mut String, options: &[Opt]) {
    if options.is_empty() {
        return out.push_str("It has no options.\n");
    }
    out.push_str("| option | kind | default | possible | what it does | from |\n|---|---|---|---|---|---|\n");
    for opt in options {
        let default = opt.default().map_or_else(String::new, |default| default.to_string());
        let Opt { name, kind, help, source, .. } = opt;
        writeln!(out, "| `{name}` | {kind} | {default} | {} | {help} | {source} |", opt.possible()).unwrap();
    }
}

#[test]
fn the_page_of_methods_is_what_the_tables_say() {
    let mut page = HEAD.to_owned();
    for method in METHODS {
        writeln!(page, "\n## `{}`\n\n{} ({}).\n", method.name, method.about, method.paper).unwrap();
        table(&mut page, method.options);
    }
    page.push_str("\n# Loss classifiers\n");
    for lda in CLASSIFIERS {
        writeln!(page, "\n## `{}`\n\n{} ({}).\n", lda.name, lda.about, lda.paper).unwrap();
        writeln!(page, "Stamps of arrival: {}.\n", lda.resolution).unwrap();
        table(&mut page, lda.options);
    }
    page.push_str(CONTROL);
    for scheme in CONTROLLERS {
        writeln!(page, "\n## `{}`\n\n{} ({}).\n", scheme.name, scheme.about, scheme.paper).unwrap();
        writeln!(page, "Needs {}; where its host knows less: {}.\n", scheme.needs, scheme.below).unwrap();
        table(&mut page, scheme.options);
    }
    page.push_str(BATCHES);
    // UPDATE=1 writes the file anew; read the difference before committing it.
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/methods.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(file, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(file).unwrap(), page);
}
