//! FQ-CoDel: with one queue it is CoDel, and a sparse flow does not wait for those that fill the link.

use lastmile::time::{Span, Time};
use lastmile_sim::network::link::QueueLimit;
use lastmile_sim::network::queue::{Codel, Discipline, FqCodel};
use lastmile_sim::runs::accounting::Watched;
use lastmile_sim::scenario::{Scenario, build};

use super::codel::{arrivals, signals};
use lastmile::node::Ecn;

#[test]
fn with_one_queue_it_is_codel_packet_for_packet() {
    let mut signalled = 0;
    for pattern in ["cbr", "burst", "light", "random"] {
        for (ecn, marks) in [(Ecn::NotEct, false), (Ecn::Ect0, true), (Ecn::Ect0, false)] {
            let codel = Codel { ecn: marks, ..Codel::default() };
            let limit = QueueLimit::Packets(100_000);
            let fq = FqCodel { flows: 1, ecn: marks, limit, ..FqCodel::default() };
            let arrivals = arrivals(pattern, 20_000);
            let [alone, one] =
                [Discipline::Codel(codel), Discipline::FqCodel(fq)].map(|it| signals(it, ecn, &arrivals));
            assert_eq!(alone, one, "{pattern}");
            signalled += one.0.len() + one.1.len();
        }
    }
    assert!(signalled > 1_000, "{signalled}");
}

/// The longest that a packet of 16 kbit/s waited beside four TCP flows over 10 Mbit/s, in seconds.
fn longest_wait(discipline: &str) -> f64 {
    let flow =
        |name: &str| format!("[[traffic]]\nname = \"{name}\"\nkind = \"ftp\"\nfrom = \"a\"\nto = \"b\"\n");
    let text = format!(
        "name = \"sparse\"\nduration = \"30 s\"\nwarm_up = \"1 s\"\n[host.a]\n[host.b]\n[[link]]\nfrom = \"a\"\nto = \"b\"\n\
         rate = \"10 Mbit/s\"\ndelay = \"20 ms\"\n{discipline}\n{}{}{}{}[[traffic]]\nname = \"sparse\"\nkind = \"cbr\"\n\
         from = \"a\"\nto = \"b\"\nrate = \"16 kbit/s\"\nsize = \"200 B\"\n",
        flow("1"),
        flow("2"),
        flow("3"),
        flow("4"),
    );
    let scenario = Scenario::parse("sparse", &text).unwrap();
    let mut run = Watched::new(&scenario, build(&scenario, 1, vec![]).unwrap());
    run.run_until(Time::ZERO + scenario.duration).unwrap();
    let outcome = run.outcome(&scenario);
    let tcp: f64 = outcome.flows[..4].iter().filter_map(|flow| flow.goodput_bps).sum();
    assert!(tcp > 9e6, "{tcp}");
    let sparse = &outcome.flows[4];
    assert!(sparse.sent >= 299, "{sparse:?}");
    assert!(sparse.lost.is_empty() || !discipline.contains("fq-codel"), "{sparse:?}");
    let unloaded = (Span::from_millis(20) + Span::from_micros(160)).as_secs_f64();
    sparse.delay_max_s.unwrap() - unloaded
}

#[test]
fn a_sparse_flow_waits_below_5_ms_beside_four_tcp_flows() {
    let fq = longest_wait("discipline = { kind = \"fq-codel\" }");
    let codel = longest_wait("discipline = { kind = \"codel\" }\nqueue = \"1000 packets\"");
    println!("longest wait: fq-codel {:.2} ms, codel {:.2} ms", fq * 1e3, codel * 1e3);
    assert!((0.0..0.005).contains(&fq), "{fq}");
    assert!(codel > 0.01, "{codel}: the flows do not fill the queue");
}
