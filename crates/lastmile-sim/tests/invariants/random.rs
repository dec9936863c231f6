//! Random scenarios, as the text of their files.

use std::fmt::Write;

use lastmile::control::window::LawConfig;
use lastmile_sim::scenario::Scenario;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Seconds that they last.
const SECONDS: u32 = 3;

fn duration() -> impl Strategy<Value = String> {
    (0_u32..SECONDS * 1000).prop_map(|ms| format!("\"{ms} ms\""))
}

/// From 20 kbit/s to 20 Mbit/s, every size equally likely.
fn rate() -> impl Strategy<Value = String> {
    (0.0_f64..3.0).prop_map(|e| format!("\"{} bit/s\"", (20e3 * libm::pow(10.0, e)) as u64))
}

fn queue() -> impl Strategy<Value = String> {
    prop_oneof![
        (1_u32..80).prop_map(|n| format!("queue = \"{n} packets\"")),
        (2_000_u32..80_000).prop_map(|n| format!("queue = \"{n} B\"")),
        Just(String::new()),
    ]
}

/// A discipline, and the queue that it needs where not every one will do.
fn discipline() -> impl Strategy<Value = (Option<String>, String)> {
    let red = (0.001_f64..0.5, 1_u32..20, 1_u32..40, 0_u32..40, 0.01_f64..1.0, any::<[bool; 5]>()).prop_map(
        |(weight, min, more, room, p, [gentle, wait, ecn, beyond, bytes])| {
            let unit = |n: u32| if bytes { format!("{} B", 1000 * n) } else { format!("{n} packets") };
            let queue = format!("queue = \"{}\"", unit(min + more + room + 1));
            let red = format!(
                "kind = \"red\", weight = {weight}, min_threshold = \"{}\", max_threshold = \"{}\", max_probability = {p}, \
                 gentle = {gentle}, wait = {wait}, ecn = {ecn}, chance_beyond_max = {beyond}",
                unit(min),
                unit(min + more)
            );
            (Some(queue), red)
        },
    );
    let tc_red = (1_u32..20, 1_u32..40, 1_u32..60, 0.01_f64..1.0, any::<[bool; 4]>()).prop_map(
        |(min, more, room, p, [ecn, hard, nodrop, adaptive])| {
            let red = format!(
                "kind = \"tc-red\", min = \"{} B\", max = \"{} B\", limit = \"{} B\", avpkt = \"1000 B\", burst = {}, \
                 probability = {p}, ecn = {ecn}, harddrop = {hard}, nodrop = {nodrop}, adaptive = {adaptive}",
                min * 1000,
                (min + more) * 1000,
                (min + more + room) * 1000,
                min + more / 3 + 1
            );
            (Some(String::new()), red)
        },
    );
    let codel = (1_u32..20, any::<bool>()).prop_map(|(ms, ecn)| {
        let interval = 20 * ms;
        let codel =
            format!("kind = \"codel\", target = \"{ms} ms\", interval = \"{interval} ms\", ecn = {ecn}");
        (None, codel)
    });
    let step = (0_u32..20, 1_u32..40, any::<[bool; 2]>()).prop_map(|(n, room, [time, classic])| {
        let threshold =
            if time { format!("sojourn = \"{n} ms\"") } else { format!("occupancy = \"{n} packets\"") };
        let queue = format!("queue = \"{} packets\"", n + room);
        (Some(queue), format!("kind = \"step\", threshold = {{ {threshold} }}, classic = {classic}"))
    });
    let named = prop_oneof![Just((None, "kind = \"drop-tail\"".to_owned())), red, tc_red, codel, step];
    let of = |(queue, keys)| (queue, format!("discipline = {{ {keys} }}"));
    prop_oneof![2 => Just((None, String::new())), 3 => named.prop_map(of)]
}

fn model() -> impl Strategy<Value = String> {
    let span = || (1_u32..500).prop_map(|ms| format!("\"{ms} ms\""));
    let covers = || select(vec!["instant", "whole"]);
    prop_oneof![
        (0.0_f64..=1.0).prop_map(|p| format!("kind = \"bernoulli\", rate = {p:?}")),
        (span(), span(), covers()).prop_map(|(good, bad, c)| format!(
            "kind = \"markov-time\", good = {good}, bad = {bad}, covers = \"{c}\""
        )),
        (1.0_f64..200.0, 1.0_f64..20.0)
            .prop_map(|(good, bad)| format!("kind = \"markov-packets\", good = {good:?}, bad = {bad:?}")),
        (0.01_f64..1.0, 0.01_f64..1.0, 0.0_f64..1.0, 0.0_f64..1.0).prop_map(|(p, r, k, h)| format!(
            "kind = \"gilbert-elliott\", p = {p}, r = {r}, k = {k}, h = {h}"
        )),
        (2_u64..50, any::<Index>(), prop::option::of(1_u32..50), any::<bool>()).prop_map(
            |(period, lost, slot, random)| {
                let slot = slot.map_or(String::new(), |ms| format!(", slot = \"{ms} ms\""));
                format!(
                    "kind = \"pattern\", period = {period}, lost = [{}], random_start = {random}{slot}",
                    lost.index(period as usize)
                )
            }
        ),
        covers().prop_map(|c| format!("kind = \"jakes\", covers = \"{c}\"")),
    ]
}

/// A channel for one flow.
const FIRST_FLOW: &str = ", flows = [\"f0\"]";

fn losses() -> impl Strategy<Value = String> {
    let one = (model(), any::<[bool; 2]>()).prop_map(|(model, [before, some])| {
        let place = if before { "before" } else { "after" };
        let flows = if some { FIRST_FLOW } else { "" };
        format!("{{ model = {{ {model} }}, place = \"{place}\"{flows} }}")
    });
    let none = Just("losses = []".to_owned());
    prop_oneof![2 => none, 1 => prop::collection::vec(one, 1..3).prop_map(|all| format!("losses = [{}]", all.join(", ")))]
}

/// Changes of rate, outages among them, and of delay; the last brings the rate back.
fn changes(limited: bool) -> impl Strategy<Value = String> {
    let one = (
        0_u32..SECONDS * 1000,
        prop::option::of(prop_oneof![4 => rate(), 1 => Just("\"0 bit/s\"".to_owned())]),
        prop::option::of(0_u32..60),
    );
    prop_oneof![2 => Just(vec![]), 1 => prop::collection::vec(one, 1..5)].prop_map(move |mut all| {
        if !limited || all.is_empty() {
            all.iter_mut().for_each(|change| change.1 = None);
        } else {
            all.push((SECONDS * 1000, Some("\"1 Mbit/s\"".to_owned()), None));
        }
        all.retain(|change| change.1.is_some() || change.2.is_some());
        all.sort_by_key(|change| change.0);
        all.dedup_by_key(|change| change.0);
        let change = |(at, rate, delay): &(u32, Option<String>, Option<u32>)| {
            let rate = rate.as_ref().map_or(String::new(), |rate| format!(", rate = {rate}"));
            let delay = delay.map_or(String::new(), |ms| format!(", delay = \"{ms} ms\""));
            format!("{{ at = \"{at} ms\"{rate}{delay} }}")
        };
        format!("changes = [{}]", all.iter().map(change).collect::<Vec<_>>().join(", "))
    })
}

fn shaper() -> impl Strategy<Value = String> {
    let some = (rate(), 1_600_u32..20_000)
        .prop_map(|(rate, burst)| format!("shaper = {{ rate = {rate}, burst = \"{burst} B\" }}"));
    prop_oneof![4 => Just(String::new()), 1 => some]
}

/// The keys of one direction.
fn direction() -> impl Strategy<Value = Vec<String>> {
    let delay = || (0_u32..50).prop_map(|delay| format!("delay = \"{delay} ms\""));
    let waits = (rate(), 0_u32..40)
        .prop_map(|(rate, overhead)| [format!("rate = {rate}"), format!("overhead = \"{overhead} B\"")]);
    let limited = (delay(), waits, queue(), discipline(), shaper(), changes(true), losses()).prop_map(
        |(delay, [rate, overhead], queue, (own, discipline), shaper, changes, losses)| {
            vec![delay, overhead, rate, own.unwrap_or(queue), discipline, shaper, changes, losses]
        },
    );
    let open =
        (delay(), changes(false), losses()).prop_map(|(delay, changes, losses)| vec![delay, changes, losses]);
    prop_oneof![4 => limited, 1 => open]
        .prop_map(|keys| keys.into_iter().filter(|key| !key.is_empty()).collect())
}

/// The keys of a WLAN and of each of its clients.
fn wlan() -> impl Strategy<Value = (String, Vec<String>)> {
    let keys = (
        select(vec!["b", "g", "a", "n"]),
        select(vec!["difs", "exchange", "timeout", "eifs"]),
        prop::option::of(100_u32..2000),
        (1_u8..8, 1_u8..8),
        any::<bool>(),
        select(vec!["none", "cts-to-self", "rts-cts"]),
    )
        .prop_map(|(standard, after, rts, (short, long), ampdu, protection)| {
            let mut text = format!(
                "standard = \"{standard}\"\nafter_collision = \"{after}\"\nshort_retry = {short}\nlong_retry = {long}\n"
            );
            if let Some(rts) = rts {
                let _ = writeln!(text, "rts_threshold = \"{rts} B\"");
            }
            if standard == "n" && ampdu {
                text.push_str("ampdu = {}\n");
            }
            if standard == "g" {
                let _ = writeln!(text, "protection = \"{protection}\"");
            }
            text
        });
    let channel = prop_oneof![
        Just(String::new()),
        (0.0_f64..40.0).prop_map(|snr| format!(", channel = {{ snr_db = {snr:?} }}")),
        (1.0_f64..80.0, 0.0_f64..10.0)
            .prop_map(|(d, s)| format!(", channel = {{ distance_m = {d:?}, shadowing_db = {s:?} }}")),
    ];
    let client = (select(vec!["fixed", "arf", "aarf", "minstrel"]), 1_u32..120, 0.0_f64..1.0, channel)
        .prop_map(|(control, queue, error, channel)| {
            format!("rate_control = \"{control}\", queue = {queue}, frame_error = {error:?}{channel}")
        });
    (keys, prop::collection::vec(client, 1..5))
}

fn tcp() -> impl Strategy<Value = String> {
    (
        select(LawConfig::names().to_vec()),
        select(vec!["reno", "newreno", "sack", "sack1"]),
        (40_u32..1461, 1_u32..200, prop::option::of(1_u32..20), prop::option::of(1_u32..4)),
        (0_u32..500, 1_u32..2000, 0_u32..500),
        any::<[bool; 5]>(),
    )
        .prop_map(|(law, recovery, (segment, window, initial, counting), (delayed, rto, tick), flags)| {
            let mut text = format!(
                "law = \"{law}\", recovery = \"{recovery}\", segment = \"{segment} B\", max_window = {window}, delayed_ack = \"{delayed} ms\", \
                 min_rto = \"{rto} ms\", tick = \"{tick} ms\", limited_transmit = {}, timestamps = {}, ecn = {}, hold_ssthresh = {}, \
                 ack_gaps_at_once = {}",
                flags[0], flags[1], flags[2], flags[3], flags[4]
            );
            if let Some(initial) = initial {
                let _ = write!(text, ", initial_window = {}", initial.min(window));
            }
            if let Some(counting) = counting {
                let _ = write!(text, ", byte_counting = {counting}");
            }
            text
        })
}

/// The keys of a flow but for its ends.
fn traffic() -> impl Strategy<Value = String> {
    let rate =
        || (0.0_f64..2.3).prop_map(|e| format!("rate = \"{} bit/s\"", (10e3 * libm::pow(10.0, e)) as u64));
    let size = || (40_u32..1501).prop_map(|size| format!("size = \"{size} B\""));
    let plain =
        (select(vec!["cbr", "poisson"]), rate(), size(), duration()).prop_map(|(kind, rate, size, at)| {
            format!("kind = \"{kind}\"\n{rate}\n{size}\nchanges = [{{ at = {at}, rate = \"300 kbit/s\" }}]")
        });
    let bursts = (rate(), size(), 2_000_u32..4_000, 0_u32..900, prop::option::of(1.1_f64..3.0)).prop_map(
        |(rate, size, on, off, shape)| {
            let kind = shape
                .map_or("kind = \"onoff\"".to_owned(), |shape| format!("kind = \"pareto\"\nshape = {shape}"));
            format!("{kind}\n{rate}\n{size}\non = \"{on} ms\"\noff = \"{off} ms\"")
        },
    );
    let trace = prop::collection::vec((0_u32..3000, 28_u32..1501), 1..20).prop_map(|mut packets| {
        packets.sort_unstable();
        let lines: Vec<_> =
            packets.iter().map(|(ms, size)| format!("{} {size}", f64::from(*ms) / 1e3)).collect();
        format!("kind = \"trace\"\npackets = \"{}\"", lines.join("\\n"))
    });
    let app = prop_oneof![
        3 => Just("kind = \"ftp\"".to_owned()),
        1 => (1_u32..200_000).prop_map(|bytes| format!("kind = \"file\"\nbytes = \"{bytes} B\"")),
        1 => (1_u32..50_000, 1_u32..1000).prop_map(|(bytes, ms)| format!("kind = \"files\"\nbytes = \"{bytes} B\"\nbytes_max = \"{} B\"\npause = \"{ms} ms\"", 2 * bytes)),
    ];
    let tcp = (app, tcp()).prop_map(|(app, tcp)| format!("{app}\ntcp = {{ {tcp} }}"));
    (prop_oneof![2 => plain, 1 => bursts, 1 => trace, 4 => tcp], duration())
        .prop_map(|(keys, start)| format!("{keys}\nstart = {start}"))
}

/// A tree of two to five links, perhaps with a WLAN at one of its nodes, and traffic between its leaves.
pub fn scenario() -> impl Strategy<Value = String> {
    let link = (any::<Index>(), direction(), prop::option::of(direction()));
    let flow = (any::<Index>(), any::<Index>(), traffic());
    let air = prop::option::of((any::<Index>(), wlan()));
    (prop::collection::vec(link, 2..6), air, prop::collection::vec(flow, 1..6)).prop_map(
        |(links, air, flows)| {
            // Node k + 1 hangs on a node before it.
            let parents: Vec<usize> = links.iter().enumerate().map(|(k, link)| link.0.index(k + 1)).collect();
            let nodes = links.len() + 1;
            let ap = air.as_ref().map(|(at, _)| at.index(nodes));
            let degree = |node: usize| parents.iter().filter(|&&p| p == node).count() + usize::from(node > 0);
            let is_host = |node: usize| degree(node) == 1 && Some(node) != ap;
            let name = |node: usize| format!("{}{node}", if is_host(node) { "h" } else { "r" });
            let mut hosts: Vec<String> = (0..nodes).filter(|&node| is_host(node)).map(name).collect();
            let mut text = format!("name = \"random\"\nduration = \"{SECONDS} s\"\n");
            let mut rest = String::new();
            for (k, (_, forth, back)) in links.iter().enumerate() {
                let _ = write!(
                    rest,
                    "[[link]]\nfrom = \"{}\"\nto = \"{}\"\n{}\n",
                    name(parents[k]),
                    name(k + 1),
                    forth.join("\n")
                );
                // The way back may differ in what the way there has.
                if let Some(mut back) = back.clone() {
                    // Queues of the way back are not meant for the other way's discipline.
                    if !back.iter().any(|key| key.starts_with("discipline")) {
                        back.push("discipline = { kind = \"drop-tail\" }".to_owned());
                    }
                    let limited = |keys: &[String]| keys.iter().any(|key| key.starts_with("rate"));
                    if limited(forth) && limited(&back) {
                        let _ = writeln!(rest, "back = {{ {} }}", back.join(", "));
                    }
                }
            }
            if let (Some((_, (keys, clients))), Some(ap)) = (&air, ap) {
                let station = |(k, client): (usize, &String)| {
                    format!(", {{ name = \"c{k}\", ap = \"{}\", {client} }}", name(ap))
                };
                let stations: String = clients.iter().enumerate().map(station).collect();
                let _ = write!(rest, "[[wlan]]\n{keys}station = [{{ name = \"{}\" }}{stations}]\n", name(ap));
                hosts.extend((0..clients.len()).map(|k| format!("c{k}")));
            }
            for (k, (from, to, keys)) in flows.iter().enumerate() {
                let from = from.index(hosts.len());
                let to = (from + 1 + to.index(hosts.len() - 1)) % hosts.len();
                let (from, to) = (&hosts[from], &hosts[to]);
                let _ =
                    write!(rest, "[[traffic]]\nname = \"f{k}\"\nfrom = \"{from}\"\nto = \"{to}\"\n{keys}\n");
            }
            hosts.iter().for_each(|host| {
                let _ = writeln!(text, "[host.{host}]");
            });
            text += &rest;
            match Scenario::parse("random.toml", &text) {
                Err(error) if error.reason.contains("do not come by") => text.replace(FIRST_FLOW, ""),
                _ => text,
            }
        },
    )
}
