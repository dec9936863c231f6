//! The sharp test of truth: a noiseless WBest on a perfect serialiser has no error at all against the spare
//! rate of its own window, and a known one against the long-run mean.
#![allow(clippy::print_stderr)] // the figures are worth a look: --nocapture

use crate::common::{Log, Recorder, Trains, read_probe};
use lastmile::estimate::{
    Base, Conditions, Estimate, Estimator, Outcome, Quantity, Step, StreamPlan, TruthKind, TruthOver, Value,
};
use lastmile::node::{Datagram, Input};
use lastmile::report::StreamRecord;
use lastmile::time::{Span, Time};
use lastmile::units::{Bytes, Rate};
use lastmile_sim::network::engine::{Engine, NodeId};
use lastmile_sim::roles::measure::Truth;
use lastmile_sim::roles::{Makers, Truths};
use lastmile_sim::runs::{Hooks, simulate};
use lastmile_sim::scenario::{Attach, Scenario, build, builtin_text};

const CAPACITY: f64 = 10e6;
const TRAINS: u16 = 2_000;
const LENGTH: u8 = 30;

struct Path {
    engine: Engine,
    link: NodeId,
    log: Log,
}

/// Trains of 30 packets of 1500 B at 10 Mbit/s, every 200 ms, and 4 Mbit/s of cross packets, into one queue; a drop would be
/// another error than the window's.
fn path(kind: &str, cross_size: u64) -> Path {
    let text = format!(
        "name = \"x\"\nduration = \"400400 ms\"\nhost = {{ a = {{}}, b = {{}} }}\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"10 Mbit/s\"\n\
         queue = \"600 kB\"\n[[traffic]]\nname = \"cross\"\nkind = \"{kind}\"\nfrom = \"a\"\nto = \"b\"\nrate = \"4 Mbit/s\"\n\
         size = \"{cross_size} B\"\n"
    );
    let scenario = Scenario::parse("truth.toml", &text).unwrap();
    let (recorder, log) = Recorder::new(vec![]);
    let ends = ["10.77.0.1:9", "10.77.0.2:9"].map(|end| end.parse().unwrap());
    let trains = Trains {
        every: Span::from_millis(200),
        gap: Span::from_micros(1200),
        length: LENGTH,
        trains: TRAINS,
        template: Datagram::udp(ends[0], ends[1], vec![0; 1472]),
        sent: 0,
    };
    let attached = vec![("a".into(), Attach::node(trains)), ("b".into(), Attach::node(*recorder))];
    let mut run = build(&scenario, 1, attached).unwrap();
    let flow = run.flow(0, 1).unwrap();
    run.meter(&scenario, (0, 1), flow, &[], read_probe).unwrap();
    run.engine.run_until(Time::ZERO + scenario.duration).unwrap();
    Path { link: run.links[0], engine: run.engine, log }
}

impl Path {
    /// WBest's fluid formula A = C (2 - C / R), with R from the arrivals of each train.
    fn estimates(&self) -> Vec<f64> {
        let (mut first, mut last) = (vec![None; TRAINS.into()], vec![None; TRAINS.into()]);
        for (now, input) in self.log.lock().unwrap().iter() {
            let Input::Datagram { datagram, .. } = input else { continue };
            let (stream, _) = read_probe(datagram.payload.udp().unwrap()).unwrap();
            first[stream as usize].get_or_insert(*now);
            last[stream as usize] = Some(*now);
        }
        let bits = f64::from(LENGTH - 1) * 1500.0 * 8.0;
        first
            .into_iter()
            .zip(last)
            .map(|(first, last)| {
                let rate = bits / (last.unwrap() - first.unwrap()).as_secs_f64();
                CAPACITY * (2.0 - CAPACITY / rate)
            })
            .collect()
    }

    fn truth(&self, stream: usize) -> f64 {
        let meter = self.engine.meter(self.link, 0).unwrap();
        meter.spare(stream as u32, Bytes(1500)).unwrap().bits_per_second() as f64
    }

    fn errors(&self, truth: impl Fn(usize) -> f64) -> (f64, f64) {
        let estimates = self.estimates();
        let mut errors: Vec<f64> =
            estimates.iter().enumerate().map(|(n, a)| (a.max(0.0) / truth(n) - 1.0).abs()).collect();
        errors.sort_by(f64::total_cmp);
        (errors[errors.len() / 2], errors[errors.len() * 9 / 10])
    }

    fn long_run(&self) -> f64 {
        let meter = self.engine.meter(self.link, 0).unwrap();
        let mean = meter.spare_between(Time::ZERO, self.engine.now(), Bytes(1500)).unwrap();
        mean.bits_per_second() as f64
    }
}

#[test]
fn with_packets_of_one_size_a_noiseless_wbest_equals_the_truth_of_its_window() {
    for name in ["poisson", "cbr"] {
        let path = path(name, 1500);
        for (stream, estimate) in path.estimates().into_iter().enumerate() {
            let truth = path.truth(stream);
            assert!((estimate - truth).abs() <= 1e-6 * CAPACITY, "{name} {stream}: {estimate} {truth}");
        }
        let mean = path.long_run();
        assert!((mean / 6e6 - 1.0).abs() < 0.02, "{mean}");
        let (median, p90) = path.errors(|_| mean);
        eprintln!(
            "{name}: window 0.0 %, long run {:.1} / {:.1} % (median / P90)",
            median * 100.0,
            p90 * 100.0
        );
        if name == "poisson" {
            // Known of a noiseless WBest: 14.4 / 31.9 %. The errors are multiples of 10/29/6 = 5.7 %.
            assert!((0.12..0.17).contains(&median) && (0.28..0.36).contains(&p90), "{median} {p90}");
        } else {
            assert!(p90 < 0.06, "{p90}");
        }
    }
}

#[test]
fn smaller_cross_packets_leave_the_window_exact_and_the_long_run_closer() {
    // Trains at the capacity keep the queue busy from the first probe to the last, so whatever arrives between
    // them, of any size, is what spreads them. Known: 8 % against the long-run mean.
    let path = path("poisson", 500);
    for (stream, estimate) in path.estimates().into_iter().enumerate() {
        let truth = path.truth(stream);
        assert!((estimate - truth).abs() <= 1e-6 * CAPACITY, "{stream}: {estimate} {truth}");
    }
    let mean = path.long_run();
    let (median, p90) = path.errors(|_| mean);
    eprintln!("500 B: long run {:.1} / {:.1} %", median * 100.0, p90 * 100.0);
    assert!((0.06..0.1).contains(&median) && p90 < 0.2, "{median} {p90}");
}

/// A burst, and behind it a train where it is to have one; all that it finds is made of all of these.
struct Burst {
    plans: Vec<StreamPlan>,
    streams: Vec<u32>,
    found: Value,
}

impl Estimator for Burst {
    fn step(&mut self) -> Step {
        if let Some(plan) = self.plans.pop() {
            return Step::Send(plan);
        }
        let base = Base::new(Conditions::exact(0));
        let found = base.estimate(Quantity::AvailableBandwidth, self.found, &self.streams);
        Step::Done(Outcome::Found(vec![Estimate { burst: Some(Bytes(15_000)), ..found }]))
    }

    fn on_stream(&mut self, record: &StreamRecord) {
        self.streams.push(record.stream);
    }
}

/// By a tool that sends these streams, on a path of 10 Mbit/s that others take 4 of, or all.
fn beside(cross: &str, plans: &[StreamPlan]) -> (Truth, lastmile::endpoint::measure::Row) {
    let text = format!(
        "name = \"x\"\nduration = \"2 s\"\nhost = {{ a = {{}}, b = {{}} }}\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"10 Mbit/s\"\n\
         [[traffic]]\nkind = \"cbr\"\nfrom = \"a\"\nto = \"b\"\nrate = \"{cross}\"\nsize = \"1250 B\"\n\
         [[measure]]\nfrom = \"a\"\nto = \"b\"\nmethod = \"wbest\"\ndirection = \"forward\"\nstart = \"500 ms\"\n"
    );
    let scenario = Scenario::parse("burst.toml", &text).unwrap();
    let plans = plans.to_vec();
    let make = Makers::measuring(move |_| {
        let found = Value::Is(Rate::ip(3_000_000));
        Ok(Box::new(Burst { plans: plans.clone(), streams: Vec::new(), found }))
    });
    let found = simulate(&scenario, 1, &make, Hooks::default()).unwrap().found.measure;
    (found.outcomes[0].truth.unwrap(), found.rows().remove(0))
}

#[test]
fn packets_that_come_in_one_moment_have_no_window_of_their_own() {
    let (burst, train) =
        (StreamPlan::burst(10, Bytes(1500)), StreamPlan::train(100, Bytes(1500), Rate::ip(6_000_000)));
    let (truth, _) = beside("4 Mbit/s", std::slice::from_ref(&burst));
    let long_run = Some(Rate::ip(6_000_000));
    assert_eq!((truth.window, truth.over), (None, TruthOver::Run));
    assert!(truth.mean.unwrap().bits_per_second().abs_diff(6_000_000) < 10_000, "{truth:?}");
    // The train's window is what there is of both, whichever came first.
    for plans in [[burst.clone(), train.clone()], [train, burst]] {
        let (truth, _) = beside("4 Mbit/s", &plans);
        assert_eq!(truth.over, TruthOver::Window);
        let off = truth.window.zip(long_run).map(|(own, long)| own.ratio(long).unwrap() - 1.0);
        assert!(off.is_some_and(|off| off.abs() < 0.03), "{truth:?}");
    }
}

#[test]
fn a_number_beside_a_truth_of_zero_is_off_by_a_rate() {
    let train = StreamPlan::train(10, Bytes(1500), Rate::ip(1_000_000));
    let error = |cross| {
        let row = beside(cross, std::slice::from_ref(&train)).1.truth.unwrap();
        (row.truth_window_bps, row.error, row.error_bps)
    };
    assert_eq!(error("10 Mbit/s"), (Some(0), None, Some(3_000_000)));
    let (window, relative, bps) = error("4 Mbit/s");
    let off = 3e6 - window.unwrap() as f64;
    assert!(bps.unwrap() as f64 == off && (relative.unwrap() - off / (3e6 - off)).abs() < 1e-9 && off < 0.0);
}

/// WBest answers, and `pathrate` does not within 10 s.
#[test]
fn judged_truths_are_those_of_all_that_estimates_are_held_against() {
    let text = builtin_text("ap").unwrap().to_owned();
    let text = text + "\n[[measure]]\nfrom = \"server\"\nto = \"A\"\nmethod = \"pathrate\"\n";
    let scenario = Scenario::parse("ap.toml", &text).unwrap();
    let outcomes = |truths| {
        let hooks = Hooks { truths, ..Hooks::default() };
        simulate(&scenario, 1, &Makers::default(), hooks).unwrap().found.measure.outcomes
    };
    let (all, judged) = (outcomes(Truths::All), outcomes(Truths::Judged));
    assert_eq!(all.len(), judged.len());
    let (mut numbers, mut others) = (0, 0);
    for (all, judged) in all.iter().zip(&judged) {
        let full = all.truth.unwrap();
        assert!(full.achievable_mean.is_some(), "{full:?}");
        let number = |e: &&Estimate| matches!(e.value, Value::Is(_) | Value::MoreThan(_));
        let Some(estimate) = all.estimate.as_ref().filter(number) else {
            others += 1;
            assert_eq!(judged.truth, None);
            continue;
        };
        numbers += 1;
        let saturates = estimate.truth_kind == TruthKind::Saturation;
        let truth = judged.truth.unwrap();
        assert_eq!((truth.of(estimate), truth.next), (full.of(estimate), full.next), "{estimate:?}");
        assert_eq!((truth.capacity, truth.sustained), (full.capacity, full.sustained), "{estimate:?}");
        assert!(!saturates || truth.achievable_mean == full.achievable_mean, "{estimate:?}");
    }
    assert!(numbers >= 2 && others >= 1, "{numbers} {others}");
    assert!(outcomes(Truths::None).iter().all(|outcome| outcome.truth.is_none()));
}
