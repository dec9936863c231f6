//! The program `lastmile`; all of it is in the library beside, so that a program of your own can add methods, controllers and classifiers to it.

fn main() -> std::process::ExitCode {
    lastmile_cli::run(lastmile_cli::Own::default())
}
