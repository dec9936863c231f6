//! `lastmile completions`: completion scripts for shells.

use clap_complete::Shell;

use crate::shell::exit::Exit;

/// Print the completion script of a shell
///
/// For bash: lastmile completions bash > ~/.local/share/bash-completion/completions/lastmile
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    crate::shell::say(script(args.shell).trim_end());
    Ok(None)
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut crate::program(), "lastmile", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_shell_learns_the_commands() {
        for shell in Shell::value_variants() {
            let script = script(*shell);
            assert!(script.contains("serve") && script.contains("max") | script.contains("port"), "{shell}");
        }
    }
}
