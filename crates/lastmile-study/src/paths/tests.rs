//! Paths as they are drawn, and numbers as they are judged.

use lastmile::estimate::{Base, IntervalMethod, TruthOver, Warning, WarningCode};
use lastmile_sim::scenario::Scenario;

use super::features::TAGS;
use super::judge::judge;
use super::*;

fn request(seed: u64) -> Request {
    Request { runs: 1_000, cells: 100, seed, ..Request::default() }
}

#[test]
fn every_path_is_a_scenario_with_and_without_each_feature() {
    let request = request(1);
    let is_scenario = |request: &Request, number: usize| {
        let text = request.scenario(number);
        assert_eq!(text, request.scenario(number));
        if let Err(error) = Scenario::parse("path", &text) {
            panic!("path {number} without {:?}: {error}\n{text}", request.without);
        }
    };
    (0..1_100).for_each(|number| is_scenario(&request, number));
    for &feature in Feature::ALL {
        let less = Request { without: vec![feature], ..request.clone() };
        for number in (0..1_100).filter(|&n| request.path(n) != less.path(n)).step_by(10) {
            assert_eq!(less.path(number).without(feature), less.path(number), "{feature:?} of path {number}");
            is_scenario(&less, number);
        }
    }
}

/// Forward and back, with two numbers of WBest each: 100 numbers take 25 paths, and some are refused.
#[test]
fn rows_have_numbers_enough() {
    let request = request(2);
    let paths: Vec<_> = (0..1_000).map(|number| request.path(number)).collect();
    for tag in TAGS.iter().filter(|tag| !tag.starts_with("802.11n") && **tag != "no hop") {
        let ways = paths.iter().flat_map(|path| [path.tags(0), path.tags(1)]);
        let count = ways.filter(|tags| tags.iter().any(|own| own == tag)).count();
        assert!(count >= 100, "{tag}: {count} of 2,000 directions");
    }
    let changes = paths.iter().filter(|path| path.hops.iter().any(|hop| hop.changes.is_some()));
    assert!(changes.count() >= 50);
    assert!(
        (1_000..1_100).all(|number| request.path(number).tags(0).iter().any(|tag| tag.contains("802.11n")))
    );
    assert!(Feature::ALL.iter().all(|&feature| paths.iter().any(|path| path.without(feature) != *path)));
}

/// A feature draws from a stream of its own: lines that are not about it are the same without it.
#[test]
fn without_a_feature_all_else_is_as_it_was() {
    let request = request(3);
    for (feature, own) in [
        (Feature::Loss, &["losses = "][..]),
        (Feature::Jitter, &["jitter = "]),
        (Feature::Reorder, &["jitter = "]),
        (Feature::Errors, &["  { name = "]),
        (Feature::Adaptation, &["  { name = "]),
        (Feature::FqCodel, &["discipline = ", "queue = ", "back = "]),
        (Feature::Shaper, &["shaper = ", "rate = ", "changes = ", "back = "]),
        (Feature::Changes, &["changes = ", "back = "]),
    ] {
        let less = Request { without: vec![feature], ..request.clone() };
        let has: Vec<usize> = (0..1_000).filter(|&n| request.path(n) != less.path(n)).collect();
        assert!(!has.is_empty(), "{feature:?}");
        for number in has {
            let others = |text: String| -> Vec<String> {
                let lines = text.lines().filter(|line| !own.iter().any(|own| line.starts_with(own)));
                lines.map(str::to_owned).collect()
            };
            assert_eq!(
                others(request.scenario(number)),
                others(less.scenario(number)),
                "{feature:?} {number}"
            );
        }
    }
    assert_eq!("fq-codel".parse(), Ok(Feature::FqCodel));
    assert!("fqcodel".parse::<Feature>().unwrap_err().contains("fq-codel, pie, shaper"));
}

fn mbps(rate: f64) -> Rate {
    Rate::ip((rate * 1e6) as u64)
}

/// A path of 10 Mbit/s, of which so much is left.
fn truth(left: f64) -> Option<Truth> {
    Some(Truth {
        capacity: mbps(10.0),
        shortest: None,
        sustained: mbps(10.0),
        window: Some(mbps(left)),
        mean: Some(mbps(9.9)),
        over: TruthOver::Window,
        next: None,
        next_missing: None,
        achievable_window: None,
        achievable_mean: None,
    })
}

fn estimate(
    quantity: Quantity,
    value: Value,
    interval: Option<(f64, f64)>,
    codes: &[WarningCode],
) -> Estimate {
    let interval = interval.map(|(low, high)| Interval {
        low: mbps(low),
        high: mbps(high),
        confidence: 0.9,
        method: IntervalMethod::StudentTrains,
    });
    let warnings = codes.iter().map(|&code| Warning { code, text: String::new() }).collect();
    let plain = Base::new(Conditions::default()).estimate(quantity, value, &[]);
    Estimate { interval, warnings, ..plain }
}

#[test]
fn numbers_are_judged_by_the_truth_of_their_window() {
    use Quantity::{AvailableBandwidth, Capacity};
    use Verdict::{Held, Refused, Right, Silent, Warned};
    let contended = &[WarningCode::Contended][..];
    let bound = &[WarningCode::LowerBound][..];
    let is = |rate| Value::Is(mbps(rate));
    for (quantity, value, interval, codes, left, verdict, kept) in [
        (Capacity, is(10.9), None, &[][..], 5.0, Right, false),
        (Capacity, is(9.1), Some((9.0, 10.9)), &[], 5.0, Right, true),
        (Capacity, is(9.1), Some((8.9, 11.0)), &[], 5.0, Right, false),
        (Capacity, is(9.1), Some((9.0, 10.9)), contended, 5.0, Right, false),
        (Capacity, is(11.1), None, &[], 5.0, Silent, false),
        (Capacity, is(11.1), Some((9.9, 12.0)), contended, 5.0, Held, false),
        (Capacity, is(11.1), Some((10.1, 12.0)), contended, 5.0, Warned, false),
        // A tenth of what is left, or half a megabit.
        (AvailableBandwidth, is(7.6), None, &[], 7.0, Right, false),
        (AvailableBandwidth, is(7.8), None, &[], 7.0, Silent, false),
        (AvailableBandwidth, is(1.4), None, &[], 1.0, Right, false),
        (AvailableBandwidth, is(1.6), Some((1.2, 2.0)), &[], 1.0, Silent, false),
        (Capacity, Value::MoreThan(mbps(9.0)), None, bound, 5.0, Refused, false),
        (Capacity, Value::MoreThan(mbps(11.5)), None, bound, 5.0, Silent, false),
    ] {
        let estimate = estimate(quantity, value, interval, codes);
        let judged = judge(&estimate, truth(left)).unwrap();
        assert_eq!((judged.verdict, judged.kept), (verdict, kept), "{estimate:?} where {left} is left");
    }
    assert!(judge(&estimate(Capacity, Value::Unknown, None, &[]), truth(5.0)).is_none());
    let without = judge(&estimate(Capacity, is(9.0), None, &[]), None).unwrap();
    assert_eq!(without.verdict, Verdict::Unjudged);
    let scored = judge(&estimate(AvailableBandwidth, is(6.0), Some((5.5, 6.5)), &[]), truth(5.0)).unwrap();
    // A tenth of the capacity wide, and 20 times a twentieth of it away.
    assert!((scored.score.unwrap() - 1.1).abs() < 1e-6 && scored.holds == Some(false), "{:?}", scored.score);
}

fn answer(path: usize, refusal: Option<&'static str>) -> Answer {
    Answer {
        path,
        method: "wbest".to_owned(),
        direction: Direction::Forward,
        bytes: 135_000,
        seconds: 0.4,
        refusal: refusal.map(Into::into),
        loaded: false,
        changes: false,
        tags: vec!["idle".into(), "fifo".into()],
    }
}

/// Three paths: wrong and right; silent alone; refused. The second's available bandwidth is as good as refused.
fn three() -> Measured {
    let mut measured = Measured::default();
    for (path, values) in [(0, &[11.5, 5.0][..]), (1, &[11.5]), (2, &[])] {
        let answer = answer(path, values.is_empty().then_some("congested"));
        let quantities = [Quantity::Capacity, Quantity::AvailableBandwidth];
        for (&value, quantity) in values.iter().zip(quantities) {
            let codes: &[_] = if path == 0 { &[WarningCode::Contended] } else { &[] };
            let found = estimate(quantity, Value::Is(mbps(value)), None, codes);
            measured.numbers.extend(answer.judged(&found, truth(5.0), false));
        }
        measured.answers.push(answer);
    }
    measured.refuse();
    measured
}

#[test]
fn rows_count_what_came_of_questions() {
    let table = table(&three());
    let row = |name: &str| table.rows.iter().find(|row| row.row == name).unwrap();
    let all = row("all");
    assert_eq!((all.n, all.right, all.held, all.warned, all.silent, all.refused), (3, 1, 0, 1, 1, 3));
    assert_eq!((row("capacity").refused, row("available bandwidth").refused, row("idle").n), (1, 2, 3));
    let code =
        |code: &str| table.codes.iter().find(|known| known.code == code).map(|c| (c.n, c.wrong, c.refusal));
    assert_eq!(code("contended"), Some((2, 1, false)));
    assert_eq!((code("congested"), code("unknown")), (Some((2, 0, true)), Some((1, 0, true))));
    assert_eq!((table.costs[0].n, table.costs[0].bytes), (2, Some(135_000.0)));
    assert!(text(&table).to_string().contains("fifo"));
}

#[test]
fn a_rate_that_changes_has_a_row_of_its_own() {
    let found = estimate(Quantity::Capacity, Value::Is(mbps(15.0)), None, &[]);
    let answer = answer(0, None);
    let mut measured = Measured::default();
    measured.numbers.extend(answer.judged(&found, truth(5.0), true));
    measured.answers.push(answer);
    let table = table(&measured);
    let rows: Vec<_> = table.rows.iter().map(|row| (&*row.row, row.silent)).collect();
    assert_eq!(rows, [("rates change under way", 1)]);
}
