//! A rate controller as a program of its own (`docs/program.md`): one line of JSON in for each event, one line out. Additive increase,
//! multiplicative decrease; the page has the same in Python.

use std::io::{self, BufRead, Write};

use serde_json::{Value, json};

/// 50 kbit/s more in a second, and seven tenths at a loss, at most once in a round trip.
const MORE_BPS: f64 = 50_000.0;
const LESS: f64 = 0.7;
/// Without feedback for so long, half.
const SILENCE_S: f64 = 0.5;

fn main() -> io::Result<()> {
    let (mut rate, mut low, mut high) = (0.0_f64, 0.0, 0.0);
    let (mut before, mut cut, mut rtt): (Option<f64>, _, _) = (None, f64::NEG_INFINITY, 0.1);
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let event: Value = serde_json::from_str(&line?)?;
        let number = |key: &str| event[key].as_f64();
        let now = number("now_s").unwrap_or(0.0);
        let mut answer = json!({});
        match event["event"].as_str() {
            Some("start") => {
                (low, high) = (number("min_bps").unwrap_or(0.0), number("max_bps").unwrap_or(0.0));
                rate = number("start_bps").unwrap_or(300_000.0);
                answer = json!({ "lastmile": 1, "events": ["feedback", "timer"] });
            }
            Some("feedback") => {
                rtt = number("rtt_s").unwrap_or(rtt);
                rate += MORE_BPS * (now - before.unwrap_or(now));
                before = Some(now);
                let mut reports = event["reports"].as_array().into_iter().flatten();
                // `--classifier` takes losses for a radio link's.
                let congested = |report: &Value| report["fate"] == "lost" && report["cause"] != "wireless";
                if reports.any(congested) && now - cut > rtt {
                    (rate, cut) = (LESS * rate, now);
                }
            }
            _ => rate /= 2.0,
        }
        rate = rate.clamp(low, high);
        (answer["rate_bps"], answer["timer_s"]) = (rate.into(), (now + SILENCE_S).into());
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}
