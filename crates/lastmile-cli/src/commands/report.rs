//! `lastmile report`: a run redrawn as a page.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use lastmile_net::recording::{Reader, RecordingError};

use crate::exit::Exit;
use crate::report::Run;
use crate::report::sweep::{self, SweepResult};

/// By its first line a sweep is told from a recording; one longer than this is neither.
const MAX_FIRST_LINE: u64 = 1_000_000;

/// Redraw a run from its event file or recording, or a sweep from its results, as one HTML page that needs nothing else
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A recording (--record), a file of events (--events), or a sweep's JSON lines
    file: PathBuf,
    /// Where to write the page; FILE with the ending .html unless named, - for standard output
    #[arg(short, long, value_name = "OUT.html")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    let output = args.output.unwrap_or_else(|| args.file.with_extension("html"));
    if output == args.file {
        return Err(
            Exit::Usage.blame(anyhow!("{} would be overwritten: name the page with -o", output.display()))
        );
    }
    let page = match draw_sweep(&args.file)? {
        Some(page) => page,
        None => draw(&args.file).map_err(|error| Exit::Usage.blame(error))?,
    };
    if output == Path::new("-") {
        crate::say(page.trim_end());
        return Ok(None);
    }
    fs::write(&output, &page)
        .with_context(|| format!("cannot write {}", output.display()))
        .map_err(|error| Exit::Usage.blame(error))?;
    crate::say(&format!("wrote {} ({} kB)", output.display(), page.len().div_ceil(1000)));
    Ok(None)
}

/// The page of a sweep; nothing where the file is none, or cannot be read, which the other reader explains.
fn draw_sweep(file: &Path) -> anyhow::Result<Option<String>> {
    let Ok(open) = File::open(file) else { return Ok(None) };
    let mut reader = BufReader::new(open);
    let mut first = String::new();
    let read = Read::by_ref(&mut reader).take(MAX_FIRST_LINE).read_line(&mut first);
    if read.is_err() || !sweep::is_sweep(&first) {
        return Ok(None);
    }
    let result = SweepResult::read(Cursor::new(first).chain(reader))
        .with_context(|| format!("cannot read {}", file.display()))
        .map_err(|error| Exit::Usage.blame(error))?;
    let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
    Ok(Some(result.page(&name)))
}

fn draw(file: &Path) -> Result<String, RecordingError> {
    let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
    Ok(Run::read(&name, Reader::open(file)?)?.page())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_file_leaves_no_page() {
        let dir = std::env::temp_dir().join(format!("lastmile-report-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let (file, page) = (dir.join("run.jsonl"), dir.join("run.html"));
        fs::write(
            &file,
            "{\"at\":1,\"node\":0,\"seq\":0,\"event\":\"warned\",\"text\":\"a\"}\n{\"at\":1,\"no",
        )
        .unwrap();
        let args = |output: Option<PathBuf>| Args { file: file.clone(), output };
        let error = run(args(None)).unwrap_err().to_string();
        assert!(error.contains("run.jsonl:2: ") && error.contains("truncated recording"), "{error}");
        assert!(!page.exists());

        fs::write(&file, "{\"at\":1,\"node\":0,\"seq\":0,\"event\":\"warned\",\"text\":\"a\"}\n").unwrap();
        assert!(run(args(Some(file.clone()))).unwrap_err().to_string().contains("would be overwritten"));
        run(args(None)).unwrap();
        assert!(fs::read_to_string(&page).unwrap().contains("warning: a"));
        fs::remove_dir_all(&dir).unwrap();
    }
}
