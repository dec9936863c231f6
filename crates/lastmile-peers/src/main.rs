//! The program `lastmile` with rate controllers of others beside its own.

fn main() -> std::process::ExitCode {
    let controllers = lastmile_peers::controllers();
    lastmile_cli::run(lastmile_cli::Own { controllers: &controllers, ..lastmile_cli::Own::default() })
}
