//! `docs/methods.md` is what the tables of methods, classifiers, rate controllers and sources say, with and without features; `docs/probegap.md` is of the
//! method behind the feature of its name.

mod documents;
#[path = "documents/options.rs"]
mod options;

use std::fmt::Write;

use lastmile::classify::CLASSIFIERS;
use lastmile::control::window::LawConfig;
use lastmile::control::{CONTROLLERS, WRAPPERS};
use lastmile::endpoint::stream::source::SOURCES;
use lastmile::estimate::{AllConfig, METHODS, Method};
use lastmile::options::Options;
use options::table;

const HEAD: &str = "# Methods, classifiers, rate controllers and sources

Options of each, as `lastmile methods NAME`, `classifiers NAME`, `controllers NAME` and `sources NAME` print it; this page is made of the tables
in their files. An option is written

- on the command line behind the name: `--method 'wbest(train_length=20)'`; `--trains`, `--train-length` and `--packet-size` are flags too;
- in a scenario file as a key of `[[measure]]`: `train_length = 20`, and so in `--set measure.0.train_length=20` and in sweeps;
- behind a name wherever one is taken: `wbest(train_length=20)`, `wbest(classifier=spike(start=0.4))`, `--set 'stream.0.control=tfrc(preset=ns-2)'`.

Meaning and errors of their numbers, behind token buckets and where Wi-Fi aggregates too: [quantities.md](quantities.md). One method more,
[`probegap`](probegap.md), is in programs that are built with the feature of that name alone, because of a patent.
";

const ALL_OF_THEM: &str = "
## `all`

Every method that asks for no fact but the path (not `enough`), in the order of this page, the directions of one in a row, within one budget: each
has what those before it left, and a method whose next stream would go beyond it ends there. One that could send nothing has the row `not run`. Other
options than these go to the methods that have them.

```
lastmile measure host-b --method all
lastmile measure host-b --direction forward --max-bytes 10MB \\
  --method 'all(max_time=60 s, packet_size=1000 B)'
```

`--max-seconds` and `--max-bytes` stand for the options of that kind. The exit code is 0 if any method says how much is left. Below the numbers stands the load of each method on the path, here in
the simulator beside a TCP connection, with what that lost against the same run without measurements ([figures of all](validation.md#load-of-the-tools-on-others)):

```
             seconds     bytes  Mbit/s    loss    delay  TCP during  TCP after
wbest           0.76    253 kB    2.68   0.0 %  12.9 ms         6 %        0 %
pathload       23.54   2406 kB    0.82   0.1 %   7.5 ms         2 %        0 %
```

- seconds: from its beginning to its result, without the pause before it.
- bytes: of its probes in the direction measured, at the IP layer, without requests and what pays for a reverse stream; Mbit/s: bytes * 8 / seconds.
- loss, delay: of its own packets; 95 of 100 waited no longer than that beyond the least wait of them. Between two hosts the drift of their clocks meanwhile is in it.
- TCP: of all connections of a scenario together; after it until the next method begins, for 10 s at most, so a longer `pause` shows more.

In the lab, sessions of `all` are judged by the lateness of their packets, as programs are, for a method that its budget cut off cannot be replayed alone.

";

const TABLE_I: &str = "
# Table I

Methods and TCP's laws in one framework (ECNProbe, section III and Table I): in each round a window of W(t) packets leaves at a rate of
x(t), and comes back as a congestion signal p(t), by which a search goes on to the turning point at which the path is just full. A method's window and rate are
those of its streams, and TCP's are its own: the laws of `control/window/`, as [scenarios.md](scenarios.md) names them.

| method or law | probe pattern | congestion signal | turning point |
|---|---|---|---|
";

const SOURCES_HEAD: &str = "
# Sources

Sources make a stream's frames (`source` of `[[stream]]`); each is described in [streams.md](streams.md#sources).
";

const CONTROL: &str = "
# Rate controllers

A name may have a loss classifier in front: `tfrc+zbs`, `tfrc(preset=ns-2)+spike(start=0.4)`; `tfrc-wireless` is `tfrc+spike`. What
each needs and does is in [rate-control.md](rate-control.md).
";

/// The method with a page of its own.
const BEHIND_A_FEATURE: &str = "probegap";

fn section(page: &mut String, method: &Method) {
    writeln!(page, "\n## `{}`\n\n{} ({}).\n", method.name, method.about, method.paper).unwrap();
    writeln!(page, "Not good {}.\n", method.weak).unwrap();
    table(page, method.options);
}

fn row(page: &mut String, method: &Method) {
    writeln!(page, "| `{}` | {} |", method.name, method.row().join(" | ")).unwrap();
}

#[test]
fn the_page_of_methods_is_what_the_tables_say() {
    let mut page = HEAD.to_owned();
    let methods = || METHODS.iter().filter(|method| method.name != BEHIND_A_FEATURE);
    methods().for_each(|method| section(&mut page, method));
    page.push_str(ALL_OF_THEM);
    table(&mut page, AllConfig::OPTIONS);
    page.push_str(TABLE_I);
    methods().for_each(|method| row(&mut page, method));
    for name in LawConfig::names() {
        let law: LawConfig = name.parse().unwrap();
        writeln!(page, "| TCP, `{name}` | window | {} |", law.row().join(" | ")).unwrap();
    }
    page.push_str("\n# Loss classifiers\n");
    for lda in CLASSIFIERS.iter() {
        writeln!(page, "\n## `{}`\n\n{} ({}).\n", lda.name, lda.about, lda.paper).unwrap();
        writeln!(page, "Stamps of arrival: {}.\n", lda.resolution).unwrap();
        table(&mut page, lda.options);
    }
    page.push_str(CONTROL);
    for scheme in CONTROLLERS.iter() {
        writeln!(page, "\n## `{}`\n\n{} ({}).\n", scheme.name, scheme.about, scheme.paper).unwrap();
        writeln!(page, "Needs {}; where its host knows less: {}.\n", scheme.needs, scheme.below).unwrap();
        if let Some(name) = scheme.classifier {
            writeln!(page, "In front of it, unless another is named: `{name}`.\n").unwrap();
        }
        table(&mut page, scheme.options);
    }
    page.push_str("\n# Around a rate controller\n\n`tfrc+probe`, `tfrc+probe+zbs`.\n");
    for wrapper in WRAPPERS.iter() {
        writeln!(page, "\n## `{}`\n\n{} ({}).\n", wrapper.name, wrapper.about, wrapper.paper).unwrap();
        table(&mut page, wrapper.options);
    }
    page.push_str(SOURCES_HEAD);
    for source in SOURCES.iter() {
        writeln!(page, "\n## `{}`\n\n{} ({}).\n", source.name, source.about, source.paper).unwrap();
        table(&mut page, source.options);
    }
    documents::hold(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/methods.md"), &page);
}

#[cfg(feature = "probegap")]
const PROBEGAP: &str = "# ProbeGap

The method `probegap` is behind the cargo feature of that name, which is off: the knee of a distribution of one-way delays, which it needs, is patented in the USA (US 7,675,856,
until June 2028). `cargo build --release -p lastmile-cli --features probegap` builds a program that has it; whether you may use that is yours to find out. It is tested as all others are.

On the link of [validation.md](validation.md#estimation-tools) (10 Mbit/s, 60 kB of queue), 30 runs of each row, seeds 101 to 130; CapProbe finds the capacity. Medians of what is left in Mbit/s with
their intervals of 95 % (order statistics):

| others | n | median (95 %) | range | s |
|---|---|---|---|---|
| idle | 30 | 10.00 (9.95 to 10.00) | 9.90 to 10.00 | 11.0 |
| CBR, 4 Mbit/s | 30 | 6.03 (5.85 to 6.15) | 5.15 to 6.50 | 11.1 |
| Poisson, 4 Mbit/s | 30 | 6.00 (5.90 to 6.25) | 5.35 to 6.65 | 11.1 |

A share of 200 packets has a standard error of 3.5 % of the capacity there. `crates/lastmile-sim/tests/scenario/probegap.rs` holds the rows.
";

#[cfg(feature = "probegap")]
#[test]
fn the_page_of_probegap_is_what_its_table_says() {
    let method = METHODS.find(BEHIND_A_FEATURE).unwrap();
    let mut page = PROBEGAP.to_owned();
    section(&mut page, method);
    page.push_str("\n## Its row of Table I\n\n| method | probe pattern | congestion signal | turning point |\n|---|---|---|---|\n");
    row(&mut page, method);
    documents::hold(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/probegap.md"), &page);
}
