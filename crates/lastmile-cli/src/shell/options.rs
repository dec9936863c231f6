//! Methods on the command line: a name with its options, and three options that have flags of their own.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::anyhow;
use lastmile::estimate::{ALL, AllConfig, Conditions, Estimator, Method, build};
use lastmile::options::{self, Choice, ChoiceError, Entry};
use lastmile::report::Direction;
use lastmile::time::Span;
use lastmile::units::{Bytes, ParseUnitError, Share};

use super::exit::Exit;

/// The method's state machine; `noise` is the uncertainty of stamps beyond their resolution.
pub(crate) fn estimator(choice: &Choice, noise: Span, seed: u64) -> Result<Box<dyn Estimator>, ChoiceError> {
    build(choice, &Conditions::of(noise, seed))
}

/// Error of a choice, in the words of the command line.
pub(crate) fn refused(error: &ChoiceError) -> anyhow::Error {
    let flag = |name: &str| match FLAGS.contains(&name) {
        true => format!("--{}", name.replace('_', "-")),
        false => name.to_owned(),
    };
    Exit::Usage.blame(match error {
        ChoiceError::Option(error) => anyhow!(error.spelled(flag)),
        ChoiceError::Unknown { what: Method::WHAT, name, .. } if name != ALL => {
            anyhow!("{error}, {ALL}")
        }
        other => anyhow!("{other}"),
    })
}

/// Options of methods that have flags of their own.
const FLAGS: [&str; 3] = ["trains", "train_length", "packet_size"];

/// The flags of [`FLAGS`].
#[derive(clap::Args, Clone, Debug, Default)]
struct Flags {
    /// Number of trains; `lastmile methods NAME` lists the default
    #[arg(long, value_name = "COUNT", help_heading = "Method")]
    trains: Option<String>,
    /// Packets per train
    #[arg(long, value_name = "COUNT", help_heading = "Method")]
    train_length: Option<String>,
    /// Size of the packets at the IP layer
    #[arg(long, value_name = "BYTES", help_heading = "Method")]
    packet_size: Option<String>,
}

impl Flags {
    /// The options that were given, as they were written.
    fn given(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [&self.trains, &self.train_length, &self.packet_size];
        FLAGS.into_iter().zip(all).filter_map(|(name, value)| Some((name, value.as_deref()?)))
    }
}

/// One method and the options given to it.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct MethodArgs {
    /// Method, such as wbest or 'wbest(trains=4)'; `lastmile methods` lists the names, `lastmile methods NAME` the
    /// options of one. `all` runs one after the other, within 6 minutes and 40 MB unless told otherwise, with 1 s between:
    /// 'all(max_time=60 s, max_bytes=10 MB, pause=2 s)'; those beyond the budget are not run
    #[arg(long, value_name = "NAME", default_value = MethodArgs::DEFAULT, help_heading = "Method")]
    method: Choice,
    #[command(flatten)]
    flags: Flags,
}

/// Several methods, each with every combination of the values given to the flags.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct MethodLists {
    /// Methods, such as wbest or 'wbest(trains=4)', separated by commas; `lastmile methods` lists the names, `lastmile
    /// methods NAME` the options of one. The flags below take several values with commas too
    #[arg(long, value_name = "NAMES", default_value = "wbest", help_heading = "Method")]
    method: String,
    #[command(flatten)]
    flags: Flags,
}

impl MethodArgs {
    /// The default method.
    pub(crate) const DEFAULT: &str = "wbest";

    /// The method with all options that were given.
    pub(crate) fn choice(&self) -> Choice {
        self.flags.given().fold(self.method.clone(), |choice, (name, value)| choice.with(name, value))
    }

    /// The state machine; the error names the wrong option.
    pub(crate) fn build(&self, noise: Span, seed: u64) -> anyhow::Result<Box<dyn Estimator>> {
        estimator(&self.choice(), noise, seed).map_err(|error| refused(&error))
    }
}

impl MethodLists {
    /// Each method with every combination.
    pub(crate) fn choices(&self) -> anyhow::Result<Vec<Choice>> {
        let mut all = Vec::new();
        for method in options::split_outside(&self.method, ',') {
            let choice =
                method.parse().map_err(|error| Exit::Usage.blame(anyhow!("--method {method}: {error}")))?;
            let mut choices: Vec<Choice> = vec![choice];
            for (name, values) in self.flags.given() {
                let with = |choice: &Choice| -> Vec<Choice> {
                    options::split_outside(values, ',')
                        .map(|value| choice.clone().with(name, value))
                        .collect()
                };
                choices = choices.iter().flat_map(with).collect();
            }
            for choice in choices {
                let expanded =
                    AllConfig::expand(&choice, &[Direction::Forward]).map_err(|error| refused(&error))?;
                all.extend(expanded.measured.into_iter().map(|(_, choice)| choice));
            }
        }
        Ok(all)
    }
}

/// The size of a method's packets, where one was asked for.
pub(crate) fn packet_size(choice: &Choice) -> Option<Bytes> {
    choice.options.get("packet_size")?.to_string().parse().ok()
}

/// A time above zero, in seconds.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    let span = text.parse::<Span>().map_err(|e| e.to_string())?;
    if span > Span::ZERO { Ok(span.as_secs_f64()) } else { Err("it must be more than 0".to_owned()) }
}

/// A share of a whole: 0.01 or 1%.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let Share(share) = text.parse().map_err(|error: ParseUnitError| error.to_string())?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err("it must be 0 to 1, or 0% to 100%".to_owned()) }
}

/// Frames in a second.
pub(crate) fn frame_rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "it is not a number".to_owned())?;
    if (0.1..=1_000.0).contains(&rate) { Ok(rate) } else { Err("it must be 0.1 to 1000".to_owned()) }
}

/// Longest file of a trace, in bytes.
pub(crate) const MAX_TRACE_FILE: u64 = 64_000_000;

/// The text of a file of so many bytes at most that an option names, which is to blame.
pub(crate) fn read_file(option: &str, file: &Path, most: u64) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let opened = File::open(file).and_then(|opened| opened.take(most + 1).read_to_end(&mut bytes));
    let cannot = |why: String| Exit::Usage.blame(anyhow!("{option} {}: {why}", file.display()));
    match opened.map_err(|error| cannot(error.to_string()))? as u64 > most {
        true => Err(cannot(format!("longer than {}", Bytes(most)))),
        false => Ok(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// Uncertainty that kernels add to the resolution of their stamps.
pub(crate) const KERNEL_NOISE: Span = Span::from_micros(2);

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct One {
        #[command(flatten)]
        method: MethodArgs,
    }

    #[derive(Parser)]
    struct Several {
        #[command(flatten)]
        methods: MethodLists,
    }

    #[test]
    fn methods_are_read_with_their_options_and_flags() {
        let one =
            |line: &str| One::try_parse_from(line.split_whitespace()).unwrap().method.choice().to_string();
        assert_eq!(one("x"), "wbest");
        assert_eq!(one("x --trains 4 --method wbest(faithful=true)"), "wbest(faithful=true, trains=4)");
        assert_eq!(one("x --method wbest(pairs=9) --train-length 20"), "wbest(pairs=9, train_length=20)");
        let several = |line: &str| -> Vec<String> {
            let lists = Several::try_parse_from(line.split_whitespace()).unwrap().methods.choices().unwrap();
            lists.iter().map(Choice::to_string).collect()
        };
        assert_eq!(several("x --trains 1,4"), ["wbest(trains=1)", "wbest(trains=4)"]);
        assert_eq!(
            several("x --method wbest(pairs=9,trains=2),capprobe"),
            ["wbest(pairs=9, trains=2)", "capprobe"]
        );
        assert!(One::try_parse_from(["x", "--method", "wbest(trains"]).is_err());
    }
}
