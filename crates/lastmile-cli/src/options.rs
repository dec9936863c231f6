//! The options of methods on the command line: every option that a registered method declares is one here.

use anyhow::anyhow;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command};
use lastmile::estimate::{Conditions, Estimator, METHODS};
use lastmile::options::{self, Choice, ChoiceError, Kind, Opt, Scalar};
use lastmile::time::Span;
use lastmile::units::Bytes;

use crate::exit::Exit;

/// The method's state machine; `noise` is the uncertainty of stamps beyond their resolution.
pub(crate) fn estimator(choice: &Choice, noise: Span, seed: u64) -> Result<Box<dyn Estimator>, ChoiceError> {
    let conditions = match noise {
        // Where stamps are exact nobody coalesces interrupts.
        Span::ZERO => Conditions::exact(seed),
        _ => Conditions { timing_noise: noise, seed, ..Conditions::default() },
    };
    METHODS.find(&choice.name)?.build(&choice.options, &conditions)
}

/// What is wrong with a choice, in the words of the command line.
pub(crate) fn refused(error: &ChoiceError) -> anyhow::Error {
    let flag = |name: &str| format!("--{}", name.replace('_', "-"));
    Exit::Usage.blame(match error {
        ChoiceError::Option(error) => anyhow!(error.spelled(flag)),
        other => anyhow!("{other}"),
    })
}

/// All options of a method as they were in force.
pub(crate) fn used(choice: &Choice) -> options::Given {
    let method = METHODS.iter().find(|method| method.name == choice.name);
    method.map_or_else(|| choice.options.clone(), |method| options::used(method.options, &choice.options))
}

/// One method and the options given to it.
#[derive(Clone, Debug)]
pub(crate) struct MethodArgs(pub(crate) Choice);

/// Several methods, each with every combination of the values given to its options.
#[derive(Clone, Debug)]
pub(crate) struct MethodLists(pub(crate) Vec<Choice>);

/// The options of all methods, each name once, with the methods that have it.
fn union() -> Vec<(&'static Opt, Vec<(&'static str, &'static Opt)>)> {
    let mut all: Vec<(&Opt, Vec<(&str, &Opt)>)> = Vec::new();
    for method in METHODS.iter() {
        for opt in method.options {
            match all.iter_mut().find(|(first, _)| first.name == opt.name) {
                Some((_, owners)) => owners.push((method.name, opt)),
                None => all.push((opt, vec![(method.name, opt)])),
            }
        }
    }
    all
}

/// What an option does, with the methods that have it and their defaults; by method where it differs.
fn help(owners: &[(&str, &Opt)]) -> String {
    let mut said: Vec<(&str, Vec<String>)> = Vec::new();
    for &(method, opt) in owners {
        let default = opt.default().filter(|_| opt.kind != Kind::Flag);
        let whose = default.map_or_else(|| method.to_owned(), |default| format!("{method}: {default}"));
        match said.iter_mut().find(|(help, _)| *help == opt.help) {
            Some((_, methods)) => methods.push(whose),
            None => said.push((opt.help, vec![whose])),
        }
    }
    let parts = said.iter().map(|(help, methods)| format!("{help} [{}]", methods.join(", ")));
    parts.collect::<Vec<_>>().join("; ")
}

const METHOD_HELP: &str =
    "How to measure; `lastmile methods` lists the names, `lastmile methods NAME` the options of one";

/// Adds `--method` and every method's options; `several` takes lists with commas.
fn augment(command: Command, group: &'static str, several: bool) -> Command {
    let some = |help: &str| if several { format!("{help}; several with commas") } else { help.to_owned() };
    let heading = "Method";
    let method = Arg::new("method").long("method").value_name("NAME").default_value("wbest");
    let mut args = vec![method.help(some(METHOD_HELP)).help_heading(heading)];
    for (opt, owners) in union() {
        let arg = Arg::new(opt.name).long(opt.flag()).help_heading(heading).help(help(&owners));
        args.push(match opt.kind {
            Kind::Flag => arg.action(ArgAction::SetTrue),
            kind => arg.value_name(kind.to_string().to_uppercase()),
        });
    }
    let ids: Vec<_> = args.iter().map(|arg| arg.get_id().clone()).collect();
    command.args(args).group(ArgGroup::new(group).args(ids).multiple(true))
}

/// The options that were given, as they were written.
fn given(matches: &ArgMatches) -> Vec<(&'static Opt, String)> {
    let text = |opt: &Opt| match opt.kind {
        Kind::Flag => matches.get_flag(opt.name).then(|| "true".to_owned()),
        _ => matches.get_one::<String>(opt.name).cloned(),
    };
    union().into_iter().filter_map(|(opt, _)| Some((opt, text(opt)?))).collect()
}

fn choice(text: &str) -> Result<Choice, clap::Error> {
    text.parse().map_err(|error| {
        clap::Error::raw(clap::error::ErrorKind::ValueValidation, format!("--method {text}: {error}\n"))
    })
}

impl MethodArgs {
    /// The state machine, or what is wrong with an option.
    pub(crate) fn build(&self, noise: Span, seed: u64) -> anyhow::Result<Box<dyn Estimator>> {
        estimator(&self.0, noise, seed).map_err(|error| refused(&error))
    }

    fn read(method: &str, given: &[(&'static Opt, String)]) -> Result<MethodArgs, clap::Error> {
        let chosen = choice(method)?;
        Ok(MethodArgs(given.iter().fold(chosen, |choice, (opt, value)| choice.with(opt.name, value))))
    }
}

impl MethodLists {
    fn read(methods: &str, given: &[(&'static Opt, String)]) -> Result<MethodLists, clap::Error> {
        let mut all = Vec::new();
        for method in options::split_outside(methods, ',') {
            let mut choices = vec![choice(method)?];
            for (opt, values) in given {
                let with = |choice: &Choice| -> Vec<Choice> {
                    options::split_outside(values, ',')
                        .map(|value| choice.clone().with(opt.name, value))
                        .collect()
                };
                choices = choices.iter().flat_map(with).collect();
            }
            all.extend(choices);
        }
        Ok(MethodLists(all))
    }
}

/// What clap's derive would say of a struct with a field for each option.
macro_rules! as_arguments {
    ($Args:ident, several: $several:literal) => {
        impl clap::FromArgMatches for $Args {
            fn from_arg_matches(matches: &ArgMatches) -> Result<$Args, clap::Error> {
                let method = matches.get_one::<String>("method").map_or("wbest", |method| method);
                $Args::read(method, &given(matches))
            }
            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                *self = $Args::from_arg_matches(matches)?;
                Ok(())
            }
        }

        impl clap::Args for $Args {
            fn augment_args(command: Command) -> Command {
                augment(command, stringify!($Args), $several)
            }
            fn augment_args_for_update(command: Command) -> Command {
                $Args::augment_args(command)
            }
            fn group_id() -> Option<clap::Id> {
                Some(clap::Id::from(stringify!($Args)))
            }
        }
    };
}
as_arguments!(MethodArgs, several: false);
as_arguments!(MethodLists, several: true);

/// The size of a method's packets, where one was asked for.
pub(crate) fn packet_size(choice: &Choice) -> Option<Bytes> {
    match choice.options.get("packet_size")? {
        Scalar::Count(size) => Some(Bytes(*size)),
        size => size.to_string().parse().ok(),
    }
}

/// Bytes with a unit, or a bare number.
pub(crate) fn bytes(text: &str) -> Result<Bytes, String> {
    match text.parse::<u64>() {
        Ok(n) => Ok(Bytes(n)),
        Err(_) => text.parse::<Bytes>().map_err(|e| e.to_string()),
    }
}

/// What kernels add to the resolution of their stamps.
pub(crate) const KERNEL_NOISE: Span = Span::from_micros(2);

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

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
    fn options_come_from_the_tables_of_the_methods() {
        let one = |line: &str| One::try_parse_from(line.split_whitespace()).unwrap().method.0.to_string();
        assert_eq!(one("x"), "wbest");
        assert_eq!(one("x --trains 4 --faithful"), "wbest(faithful=true, trains=4)");
        assert_eq!(one("x --method wbest(pairs=9) --train-length 20"), "wbest(pairs=9, train_length=20)");
        let several = |line: &str| -> Vec<String> {
            let lists = Several::try_parse_from(line.split_whitespace()).unwrap().methods.0;
            lists.iter().map(Choice::to_string).collect()
        };
        assert_eq!(several("x --trains 1,4"), ["wbest(trains=1)", "wbest(trains=4)"]);
        assert_eq!(
            several("x --method wbest(pairs=9,trains=2),capprobe"),
            ["wbest(pairs=9, trains=2)", "capprobe"]
        );
        assert!(One::try_parse_from(["x", "--method", "wbest(trains"]).is_err());
    }

    #[test]
    fn every_option_of_every_method_is_on_the_command_line_with_its_help() {
        // In a debug build clap refuses a name that stands twice: that of a command's own option, for example.
        crate::Cli::command().debug_assert();
        for name in ["measure", "replay", "accuracy"] {
            let command = crate::Cli::command();
            let command = command.find_subcommand(name).unwrap();
            for opt in METHODS.iter().flat_map(|method| method.options) {
                let arg = command.get_arguments().find(|arg| arg.get_long() == Some(opt.flag().as_str()));
                let help = arg.and_then(Arg::get_help).map(ToString::to_string).unwrap_or_default();
                assert!(help.contains(opt.help), "--{} of {name}: {help}", opt.flag());
            }
        }
    }
}
