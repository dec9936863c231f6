//! Table I of the documents says of each tool what it sends.

mod fifo;

use fifo::{Cross, Path};
use lastmile::estimate::{Conditions, METHODS, Probes, Step, StreamPlan, build};
use lastmile::options::Choice;
use lastmile::report::Pattern;
use lastmile::units::Rate;

/// The path's capacity, and the rate from which pairs follow each other as a train's packets do, in bit/s.
const CAPACITY: f64 = 10e6;
const CLOSE: Rate = Rate::ip(5_000_000);

/// The shape of a stream by its packets.
fn shape(plan: &StreamPlan) -> Probes {
    let gaps: Vec<i64> =
        plan.packets.windows(2).map(|two| (two[1].offset - two[0].offset).as_nanos()).collect();
    let mean = plan.duration().as_nanos() / gaps.len().max(1) as i64;
    match plan.pattern {
        Pattern::Burst => Probes::Bursts,
        Pattern::Pairs if plan.rate() < Some(CLOSE) => Probes::Pairs,
        Pattern::Pairs | Pattern::Train => Probes::Trains,
        _ if gaps.is_sorted_by(|a, b| a > b) => Probes::Chirps,
        _ if gaps.iter().step_by(2).all(|gap| *gap == gaps[0]) => Probes::PoissonPairs,
        _ if gaps.iter().any(|gap| *gap > 2 * mean) => Probes::PoissonPackets,
        _ => Probes::Packets,
    }
}

#[test]
fn each_tool_sends_what_table_i_says() {
    for method in METHODS.iter() {
        let choice = match method.name {
            "enough" => Choice::named(method.name).with("rate", "5 Mbit/s"),
            // Where rates differ by less than a twentieth it sends no pairs.
            "pathrate" => Choice::named(method.name).with("variation", "0"),
            // Else CapProbe's pairs come first.
            name if method.options.iter().any(|opt| opt.name == "capacity") && name != "wbest" => {
                Choice::named(name).with("capacity", "10 Mbit/s")
            }
            name => Choice::named(name),
        };
        let mut tool = build(&choice, &Conditions::exact(1)).unwrap();
        let mut path = Path::new(CAPACITY, Cross::Poisson, 4e6, 1);
        path.jitter = 200_000.0;
        let mut sent: Vec<Probes> = Vec::new();
        let mut streams = 0;
        let outcome = loop {
            match tool.step() {
                Step::Send(plan) => {
                    let shape = shape(&plan);
                    // The guard's burst, and the checks of WBest and CapProbe, only look at the path.
                    let looks = shape == Probes::Bursts && !method.pattern.contains(&shape);
                    if !looks && !sent.contains(&shape) {
                        sent.push(shape);
                    }
                    streams += 1;
                    assert!(streams < 1_000, "{choice} does not end");
                    let record = path.send(&plan);
                    tool.on_stream(&record);
                }
                Step::Pause(_) => {}
                Step::Done(outcome) => break outcome,
            }
        };
        assert_eq!(sent, method.pattern, "{choice}: {outcome:?}");
    }
}
