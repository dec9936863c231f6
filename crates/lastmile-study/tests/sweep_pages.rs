//! Pages of sweeps: drawings of rows, and files that have none.

use lastmile_study::sweep::page::{SweepResult, is_csv, is_sweep};

fn row(rate: &str, seed: u64, bps: f64) -> String {
    format!(
        "{{\"run\":{seed},\"seed\":{seed},\"link.0.rate\":\"{rate}\",\"method\":\"wbest\",\"direction\":\"forward\",\
         \"quantity\":\"<b>\",\"rate_bps\":{bps},\"error\":null}}\n"
    )
}

#[test]
fn numbers_are_drawn_where_they_belong_with_median_and_spread() {
    let mut file = String::new();
    for seed in 0..=10 {
        file += &row("10 Mbit/s", seed, 9e6 + seed as f64 * 1e5);
        file += &row("900 kbit/s", seed, 8e5);
    }
    assert!(is_sweep(file.lines().next().unwrap()));
    assert!(!is_sweep("{\"at\":1,\"node\":0,\"seq\":0}") && !is_sweep("x"));
    let drawn = SweepResult::read(file.as_bytes()).unwrap().page("a<b>.jsonl");
    assert!(
        drawn.contains(
            "link.0.rate = 10 Mbit/s: median 9.5000, 10 to 90 %: 9.1000 to 9.9000, 11 runs, 0 refused"
        ),
        "{drawn}"
    );
    assert!(drawn.contains("<h2>wbest forward &lt;b&gt;</h2>") && !drawn.contains("<b>.jsonl"));
    assert_eq!(drawn.matches("<figure").count(), 1, "no error was there to draw");
    assert_eq!(drawn.matches("<div").count(), drawn.matches("</div>").count());
}

#[test]
fn csv_is_drawn_as_json_lines_are() {
    let lines = row("10 Mbit/s", 1, 9e6) + &row("20 Mbit/s", 1, 8e6);
    let csv = "direction,error,link.0.rate,method,quantity,rate_bps,run,seed\n\
               forward,,10 Mbit/s,wbest,<b>,9000000,1,1\nforward,,20 Mbit/s,wbest,<b>,8000000,1,1\n";
    assert!(is_csv(csv.lines().next().unwrap()) && !is_csv("a,b") && !is_csv("{\"run\":1,\"seed\":1}"));
    let drawn = SweepResult::read_csv(csv.as_bytes()).unwrap().page("x");
    assert_eq!(drawn, SweepResult::read(lines.as_bytes()).unwrap().page("x"));
    assert!(SweepResult::read_csv(&b"run,seed\n1,2,3\n"[..]).is_err());
}

#[test]
fn names_and_nothing_are_drawn_too() {
    let file = "{\"run\":0,\"seed\":1,\"traffic.0.kind\":\"cbr\",\"flow\":\"x\",\"goodput_bps\":1e6}\n\
                {\"run\":1,\"seed\":1,\"traffic.0.kind\":\"poisson\",\"flow\":\"x\",\"goodput_bps\":2e6}\n";
    let drawn = SweepResult::read(file.as_bytes()).unwrap().page("x");
    assert!(
        drawn.contains(">cbr</text>") && drawn.contains(">poisson</text>") && !drawn.contains("NaN"),
        "{drawn}"
    );
    assert!(
        SweepResult::read(&b"{\"run\":0,\"seed\":1}\n"[..]).unwrap().page("x").contains("nothing to draw")
    );
    let error = SweepResult::read(&b"{\"run\":0,\"seed\":1}\n{\"run\""[..]).map(|_| ()).unwrap_err();
    assert!(error.to_string().starts_with("line 2: not a row of a sweep"), "{error}");
}

#[test]
fn a_second_parameter_makes_curves_and_a_third_charts() {
    let mut file = String::new();
    let mut run = 0;
    for rate in ["5", "10", "20"] {
        for loss in ["0", "0.01"] {
            for kind in ["fifo", "red"] {
                run += 1;
                let of = format!(
                    "{{\"run\":{run},\"seed\":1,\"link.0.loss\":\"{loss}\",\"link.0.queue\":\"{kind}\",\"link.0.rate\":\"{rate} Mbit/s\",\
                     \"method\":\"wbest\",\"direction\":\"forward\""
                );
                file += &format!("{of},\"quantity\":\"capacity\",\"rate_bps\":{rate}e6}}\n");
                if rate == "20" && kind == "red" {
                    file += &format!("{of},\"refused\":\"too many packets were lost\"}}\n");
                }
            }
        }
    }
    let drawn = SweepResult::read(file.as_bytes()).unwrap().page("x");
    assert_eq!(drawn.matches("<figure").count(), 2, "one for each kind of queue: {drawn}");
    for part in [
        "against link.0.rate; link.0.queue = fifo",
        "against link.0.rate; link.0.queue = red",
        "link.0.loss = 0.01</i>",
    ] {
        assert!(drawn.contains(part), "{part} is missing: {drawn}");
    }
    assert_eq!(drawn.matches(", 1 refused</title>").count(), 2 * 2, "a whisker and a dot of each curve");
    assert_eq!(drawn.matches("n = 1</i>").count(), 2);
}
