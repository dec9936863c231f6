//! `lastmile enough RATE HOST`: the answer if a rate fits on the path to a reflector.

use lastmile::options::Choice;
use lastmile::units::Rate;

use super::measure::{PathArgs, measure};
use crate::roles::measure::enough::{answer, exit};
use crate::shell::exit::Exit;
use crate::shell::options::share;
use crate::shell::time_of_day;

/// Ask if RATE is enough for the path to HOST: yes or no, for as few bytes as that needs
///
/// Yes means that a stream of RATE for the next 10 s loses less than 1 % of its packets, waits at most 50 ms longer, and takes no
/// more than 5 % from others. If 0.9 to 1.1 of RATE is left, either answer may come. Exit codes: 0 yes, 5 no, 6 only at once, behind a token bucket; 1 cannot tell. Of both
/// directions 5 is before 1, and 1 before 6. HOST runs `lastmile serve`; for `--direction round-trip` any STAMP or TWAMP Light reflector
/// will do.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Rate of IP packets, such as 5M or '2.5 Mbit/s'
    #[arg(value_parser = rate)]
    rate: Rate,
    #[command(flatten)]
    path: PathArgs,
    /// Probability that the answer is right, 0.5 to 0.9999
    #[arg(long, value_name = "SHARE", default_value_t = 0.95, value_parser = confidence)]
    confidence: f64,
}

/// A rate that trains can be sent at.
fn rate(text: &str) -> Result<Rate, String> {
    match text.parse::<Rate>() {
        Ok(rate) if rate.bits_per_second() >= 10_000 => Ok(rate),
        Ok(rate) => Err(format!("{rate} is too slow for trains of 1488 B: at least 10 kbit/s")),
        Err(error) => Err(error.to_string()),
    }
}

fn confidence(text: &str) -> Result<f64, String> {
    let share = share(text)?;
    if (0.5..=0.9999).contains(&share) { Ok(share) } else { Err("it must be 0.5 to 0.9999".to_owned()) }
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    let method = Choice::named("enough")
        .with("rate", &format!("{} bit/s", args.rate.bits_per_second()))
        .with("confidence", &args.confidence.to_string());
    let time = time_of_day();
    let mut session = args.path.begun(&time, measure(&args.path, &method, None))?;
    let failed = matches!(session.round.exit, Some(Exit::Interrupted | Exit::Peer));
    if !failed {
        session.round.exit = exit(&session.round.rows);
    }
    if !session.is_said(&args.path, &time)? {
        crate::shell::say(
            answer(&session.round.rows, args.rate, args.confidence, &args.path.host).trim_end(),
        );
        session.round.warnings.iter().for_each(|(text, _)| crate::shell::say_in_lines(text));
    }
    session.end()
}
