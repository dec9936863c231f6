//! `lastmile man`: manual pages.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap_mangen::Man;

use crate::shell::exit::Exit;

/// Print the manual page, or write the pages of all commands into a directory
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Directory for lastmile.1, lastmile-serve.1 and so on; created if missing
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    match args.dir {
        Some(dir) => {
            let written =
                fs::create_dir_all(&dir).and_then(|()| clap_mangen::generate_to(crate::program(), &dir));
            let written = written.with_context(|| format!("cannot write manual pages to {}", dir.display()));
            written.map_err(|error| Exit::Usage.blame(error))?;
        }
        None => crate::shell::say(page()?.trim_end()),
    }
    Ok(None)
}

fn page() -> anyhow::Result<String> {
    let mut page = Vec::new();
    Man::new(crate::program()).render(&mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_name_commands_and_exit_codes() {
        let page = page().unwrap();
        assert!(page.contains("serve") && page.contains("Exit codes"), "{page}");

        let dir = std::env::temp_dir().join(format!("lastmile-man-{}", std::process::id()));
        run(Args { dir: Some(dir.clone()) }).unwrap();
        let serve = fs::read_to_string(dir.join("lastmile-serve.1")).unwrap();
        fs::remove_dir_all(&dir).unwrap();
        assert!(serve.contains("per\\-source\\-rate"), "{serve}");
    }
}
