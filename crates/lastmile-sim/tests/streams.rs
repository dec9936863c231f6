//! `[[stream]]` on simulated links: loss channels for single streams, marks, copies.

use lastmile::endpoint::stream::{Decision, Sent};
use lastmile_sim::roles::stream::StreamOutcome;
use lastmile_sim::runs::{Hooks, SimulatedRun, simulate};
use lastmile_sim::scenario::Scenario;

/// Two hosts and a link between them, with what the link and the scenario have beside.
fn scenario(link: &str, rest: &str) -> Result<Scenario, String> {
    let text = format!(
        "name = \"x\"\nduration = \"22 s\"\n[host.a]\n[host.b]\n[[link]]\nfrom = \"a\"\nto = \"b\"\n\
         rate = \"10 Mbit/s\"\ndelay = \"5 ms\"\nqueue = \"100 kB\"\n{link}\n{rest}"
    );
    Scenario::parse("x.toml", &text).map_err(|error| error.to_string())
}

fn stream(name: &str, rest: &str) -> String {
    format!(
        "[[stream]]\nname = \"{name}\"\nfrom = \"a\"\nto = \"b\"\nrate = \"3 Mbit/s\"\nstop = \"20 s\"\n{rest}\n"
    )
}

fn run(scenario: &Scenario) -> SimulatedRun {
    simulate(scenario, 1, &|_| Err("nothing is measured".into()), Hooks::default()).unwrap()
}

fn of<'a>(run: &'a SimulatedRun, name: &str) -> &'a StreamOutcome {
    run.found.stream.outcomes.iter().find(|stream| stream.stream == name).unwrap()
}

/// What the senders say at their ends.
fn sent(run: &SimulatedRun) -> Vec<Sent> {
    let ended = run.events.iter().filter_map(|event| match event.what.of()? {
        Decision::MediaEnded { sent, .. } => Some(*sent),
        _ => None,
    });
    ended.collect()
}

#[test]
fn a_channel_for_one_stream_loses_its_packets_alone() {
    let loses = "losses = [{ model = { kind = \"bernoulli\", rate = 0.1 }, flows = [\"one\"] }]\nback = { losses = [] }";
    let run = run(&scenario(loses, &(stream("one", "") + &stream("two", ""))).unwrap());
    let (one, two) = (of(&run, "one"), of(&run, "two"));
    // 6,600 packets: 0.1 within four standard deviations of 0.0037.
    assert!(one.loss.is_some_and(|loss| (0.085..0.115).contains(&loss)), "{one:?}");
    // Its sender's reports are of the same flow, one each second.
    let channel = one.lost["channel"];
    assert!((one.sent - one.received..=one.sent - one.received + 21).contains(&channel), "{one:?}");
    assert_eq!((two.sent - two.received, two.lost.len()), (0, 0), "{two:?}");
    // The sender is told of every packet that came, and of no other.
    assert_eq!((one.acknowledged, two.acknowledged), (one.received, two.received));
}

#[test]
fn a_pattern_loses_the_packets_that_it_names() {
    // Of eight packets the second and the seventh.
    let loses = "losses = [{ model = { kind = \"pattern\", period = 8, lost = [1, 6] }, flows = [\"one\"] }]\nback = { losses = [] }";
    let run = run(&scenario(loses, &stream("one", "")).unwrap());
    let one = of(&run, "one");
    assert!(one.loss.is_some_and(|loss| (loss - 0.25).abs() < 0.002), "{one:?}");
}

#[test]
fn marks_of_the_link_are_marks_in_feedback() {
    for discipline in [
        "{ kind = \"step\", threshold = { sojourn = \"1 ms\" }, classic = true }",
        "{ kind = \"red\", min_threshold = \"5 packets\", max_threshold = \"50 packets\", max_probability = 0.1, gentle = true, ecn = true }",
    ] {
        let cross = "[[traffic]]\nname = \"cross\"\nkind = \"poisson\"\nfrom = \"a\"\nto = \"b\"\nrate = \"4 Mbit/s\"\nsize = \"1500 B\"\n";
        let streams = stream("one", "ecn = \"ect0\"") + &stream("two", "ecn = \"not-ect\"");
        let link = format!("discipline = {discipline}\nback = {{ discipline = {{ kind = \"drop-tail\" }} }}");
        let run = run(&scenario(&link, &(streams + cross)).unwrap());
        let (one, two) = (of(&run, "one"), of(&run, "two"));
        let marked = run.network.links[0].marked;
        assert!(marked > 100, "{discipline}: {marked}");
        assert_eq!((one.ecn_marked, two.ecn_marked), (marked, 0), "{discipline}");
        // And the sender knows of each.
        let known: Vec<u64> = sent(&run).iter().map(|sent| sent.marked).collect();
        assert_eq!(known.iter().sum::<u64>(), marked, "{discipline}: {known:?}");
        assert_eq!(one.acknowledged, one.received, "{discipline}");
    }
}

#[test]
fn copies_of_a_stream_are_streams_of_their_own() {
    let loses = "losses = [{ model = { kind = \"bernoulli\", rate = 1.0 }, flows = [\"many\"] }]\nback = { losses = [] }";
    let copies = |link, rest: &str| {
        let many = stream("many", rest).replace("3 Mbit/s", "50 kbit/s");
        scenario(link, &(many + &stream("other", ""))).unwrap()
    };
    // Seed 004 has 128.
    let all = copies("", "count = 128");
    assert_eq!(all.conversations().len(), 129);
    let run = run(&all);
    assert_eq!(run.found.stream.outcomes.len(), 129);
    for copy in 1..=128 {
        let one = of(&run, &format!("many-{copy}"));
        assert!(one.goodput_bps.is_some_and(|rate| (rate / 50e3 - 1.0).abs() < 0.05), "{one:?}");
    }
    let lossy = copies(loses, "count = 3");
    assert_eq!(lossy.links[0].loss_flows, [["many-1", "many-2", "many-3"]]);
    let run = self::run(&lossy);
    assert_eq!((of(&run, "many-3").received, of(&run, "other").loss), (0, Some(0.0)));
}

#[test]
fn names_that_two_flows_would_have_are_refused() {
    let cross = "[[traffic]]\nname = \"stream0\"\nkind = \"cbr\"\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\nsize = \"100 B\"\n";
    let unnamed = stream("", "").replace("name = \"\"\n", "");
    let error = scenario("", &[cross, &unnamed].concat()).unwrap_err();
    assert!(error.contains("another flow is called \"stream0\""), "{error}");
    let loses = "back = { losses = [{ model = { kind = \"bernoulli\", rate = 0.1 }, flows = [\"one\"] }] }";
    let error = scenario(loses, &stream("one", "")).unwrap_err();
    assert!(error.contains("packets of \"one\" do not come by this link"), "{error}");
}
