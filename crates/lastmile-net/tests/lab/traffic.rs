//! A scenario's own traffic in the lab gets the same as in the simulator, to the last packet and bit, as long as nobody
//! from outside sends among it: the engine is the same, and lateness does not change its results. So these
//! need no machine that is on time, and gate everywhere.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lastmile::time::{Span, Time};
use lastmile_net::lab::programs::{Program, ProgramsConfig, run_programs};
use lastmile_net::lab::run::{LabConfig, LabRun, run as run_lab};
use lastmile_sim::monitor::flows::FlowOutcome;
use lastmile_sim::runs::{Hooks, simulate};
use lastmile_sim::scenario::{Override, Scenario, builtin_text};

use super::{Verdict, failed, makers};

/// So long of a scenario that comes with the program, without its measurements.
fn short(name: &str, duration: &str) -> Scenario {
    let overrides = [Override::new("duration", duration), Override::new("warm_up", "100 ms")];
    let text = builtin_text(name).expect("a ready scenario");
    let text = text.split("[[measure]]").next().expect("what is before");
    Scenario::parse_with(name, text, &overrides).expect("scenario")
}

fn in_lab(scenario: &Scenario, seed: u64, stop: &AtomicBool) -> LabRun {
    let config = LabConfig { seed, ..LabConfig::default() };
    run_lab(scenario, &makers(Span::ZERO), config, stop)
        .expect("no host, so nothing that a machine may not have")
}

#[test]
fn traffic_alone_gets_what_it_gets_in_the_simulator() {
    let mut found = Vec::new();
    for name in ["dumbbell-tcp", "wlan-g-busy", "path"] {
        let (scenario, began) = (short(name, "400 ms"), Instant::now());
        let run = in_lab(&scenario, 5, &AtomicBool::new(false));
        assert!(began.elapsed() >= Duration::from_millis(400), "{name}: the clock is the wall's");
        let twin = simulate(&scenario, 5, &makers(Span::ZERO), Hooks::default()).expect("run");
        assert_eq!(run.network, twin.network, "{name}");
        assert!(
            run.network.flows.iter().any(|flow| flow.received > 0 && flow.goodput_bps > Some(0.0)),
            "{name}"
        );
        assert_eq!(
            (run.end, run.found.measure.outcomes.len()),
            (Time::ZERO + scenario.duration, 0),
            "{name}"
        );
        // Each moment was counted, and no packet is claimed.
        assert!(run.lateness.events > 100 && run.lateness.packets == 0, "{name}: {:?}", run.lateness);
        found.push(run.network);
    }
    // Another seed is another run.
    let other = simulate(&short("path", "400 ms"), 6, &makers(Span::ZERO), Hooks::default()).expect("run");
    assert_ne!(found.pop(), Some(other.network));
}

/// A source of 1 Mbit/s, 125 packets a second.
fn steady(duration: &str, stop: &str) -> Scenario {
    let text = format!(
        "name = \"steady\"\nduration = \"{duration}\"\n[host.sender]\n[host.receiver]\n[[link]]\nfrom = \"sender\"\n\
         to = \"receiver\"\nrate = \"8 Mbit/s\"\n[[traffic]]\nkind = \"cbr\"\nfrom = \"sender\"\nto = \"receiver\"\n\
         rate = \"1 Mbit/s\"\nsize = \"1000 B\"\n{stop}"
    );
    Scenario::parse("steady", &text).expect("scenario")
}

/// True if the flow sent as 1 Mbit/s of 1000 B does in `seconds`, from a phase that was drawn.
fn sends_for(flow: &FlowOutcome, seconds: f64) -> bool {
    (flow.sent as f64 - seconds * 125.0).abs() <= 1.0
}

#[test]
fn a_run_of_a_month_ends_when_it_is_stopped() {
    let scenario = steady("2678400 s", "");
    let stop = AtomicBool::new(false);
    let (run, stopped) = std::thread::scope(|scope| {
        let lab = scope.spawn(|| in_lab(&scenario, 1, &stop));
        std::thread::sleep(Duration::from_millis(200));
        stop.store(true, Ordering::Relaxed);
        let stopped = Instant::now();
        (lab.join().expect("end"), stopped)
    });
    assert!(stopped.elapsed() < Duration::from_secs(2), "{:?}", stopped.elapsed());
    let seconds = (run.end - Time::ZERO).as_secs_f64();
    assert!((0.1..2.0).contains(&seconds), "{seconds} s");
    assert!(sends_for(&run.network.flows[0], seconds), "{seconds} s: {:?}", run.network);
}

/// Thirty million packets in a tenth of a second.
#[test]
fn a_scenario_that_is_too_much_for_the_clock_is_given_up() {
    let text = "name = \"flood\"\nduration = \"100 ms\"\n[host.a]\n[host.b]\n[[link]]\nfrom = \"a\"\nto = \"b\"\n\
                [[traffic]]\nkind = \"cbr\"\nfrom = \"a\"\nto = \"b\"\nrate = \"100 Gbit/s\"\nsize = \"40 B\"\n";
    let scenario = Scenario::parse("flood", text).expect("scenario");
    let run = run_lab(&scenario, &makers(Span::ZERO), LabConfig::default(), &AtomicBool::new(false));
    let error = run.expect_err("too slow").to_string();
    assert!(error.contains("too slow for the scenario in real time"), "{error}");
}

/// However long the lab took to start.
#[test]
fn on_an_idle_path_nothing_is_late() {
    let scenario = Scenario { traffic: Vec::new(), ..steady("100 ms", "") };
    let program = Program { host: "sender".into(), command: vec!["true".into()] };
    match run_programs(&scenario, &[program], ProgramsConfig::default(), &AtomicBool::new(false)) {
        Ok((ends, run)) if run.lateness.packets == 0 => {
            assert_eq!((ends[0].exit_code, run.lateness.events, run.lateness.refused), (0, 0, None));
        }
        // The kernel may have sent something of its own.
        Ok(_) => (),
        Err(error) => match failed(error) {
            Verdict::Impossible(why) => eprintln!("skipped: {why}"),
            Verdict::Scored(wrong) => panic!("{wrong:?}"),
            Verdict::Late(late) => panic!("{}", late.why),
        },
    }
}

#[test]
fn traffic_goes_on_while_programs_run_unless_it_has_a_stop() {
    for (stop, until) in [("", f64::MAX), ("stop = \"300 ms\"\n", 0.3)] {
        let scenario = steady("100 ms", stop);
        let command = ["sleep", "0.6"].map(String::from).to_vec();
        let program = Program { host: "receiver".into(), command };
        let config = ProgramsConfig { seed: 1, ..ProgramsConfig::default() };
        let (ends, run) = match run_programs(&scenario, &[program], config, &AtomicBool::new(false)) {
            Ok(ran) => ran,
            Err(error) => match failed(error) {
                Verdict::Impossible(why) => return eprintln!("skipped: {why}"),
                Verdict::Scored(wrong) => panic!("{wrong:?}"),
                Verdict::Late(late) => panic!("{}", late.why),
            },
        };
        let seconds = (run.end - Time::ZERO).as_secs_f64();
        assert!(ends[0].exit_code == 0 && seconds > 0.5, "{ends:?} after {seconds} s");
        let flow = &run.network.flows[0];
        assert!(sends_for(flow, seconds.min(until)), "{seconds} s: {flow:?}");
        assert!(flow.goodput_bps.is_some_and(|bps| (0.95e6..1.05e6).contains(&bps)), "{flow:?}");
    }
}
