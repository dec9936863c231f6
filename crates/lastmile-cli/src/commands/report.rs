//! `lastmile report`: a run redrawn as a page.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use lastmile_net::recording::Reader;
use lastmile_report::series::{SeriesResult, is_series};
use serde_json::{Map, Value};

use crate::files::page::{of_events, of_recording};
use crate::shell::exit::Exit;
use crate::shell::replace::{place, replace, unwritable};

/// By its first line a file's kind is told; one longer than this is that of no kind that has lines.
const MAX_FIRST_LINE: u64 = 4 << 20;
/// A document is read whole.
const MAX_DOCUMENT: u64 = 64 << 20;
/// The first block of a capture: draft-ietf-opsawg-pcapng, section 4.1.
const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// Draw a result as one HTML page without network or scripts
///
/// Takes recordings (--record), event files (sim --events), series (sim --series), results of sweeps as JSON lines or CSV,
/// and the --json output of sim, lab, measure, enough, accuracy, paths, bench-sim, conformance, reproduce and evaluate.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A recording, an event file, a series, a sweep's results, or a command's JSON
    file: PathBuf,
    /// File of the page, or - for standard output [default: FILE with the ending .html]
    #[arg(short, long, value_name = "OUT.html")]
    output: Option<PathBuf>,
    /// Write each figure as an SVG file into this folder too; made if need be
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Option<Exit>> {
    let output = args.output.unwrap_or_else(|| args.file.with_extension("html"));
    if place(&output) == place(&args.file) {
        return Err(
            Exit::Usage.blame(anyhow!("{} would be overwritten: name the page with -o", output.display()))
        );
    }
    let page = draw(&args.file).map_err(|error| Exit::Usage.blame(error))?;
    if let Some(folder) = &args.svg {
        figures(folder, &page)?;
    }
    if output == Path::new("-") {
        crate::shell::say(page.trim_end());
        return Ok(None);
    }
    replace(&output, |file| Ok(file.write_all(page.as_bytes())?))?;
    crate::shell::say(&format!("wrote {} ({} kB)", output.display(), page.len().div_ceil(1000)));
    Ok(None)
}

/// Writes each figure of a page into a folder.
fn figures(folder: &Path, page: &str) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    for (name, svg) in lastmile_report::svg::figures(page) {
        replace(&folder.join(name), |file| Ok(file.write_all(svg.as_bytes())?))?;
    }
    Ok(())
}

/// Kinds of files that can be drawn, for error messages.
#[cfg(feature = "study")]
const KINDS: &str = "it draws recordings (--record), event files (sim --events), series (sim --series), results of sweeps (JSON lines or CSV), \
    and the JSON of sim, lab, measure, enough, accuracy, paths, bench-sim, conformance, reproduce and evaluate (--json)";

#[cfg(not(feature = "study"))]
const KINDS: &str = "it draws recordings (--record), event files (sim --events) and series (sim --series); a program with the feature \
    `study` draws more";

/// The page of a file; the file's beginning tells its kind.
fn draw(file: &Path) -> anyhow::Result<String> {
    let shown = file.display();
    let cannot = || format!("cannot read {shown}");
    let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
    let mut reader = BufReader::new(File::open(file).with_context(cannot)?);
    match reader.fill_buf().with_context(cannot)? {
        [] => bail!("{shown} is empty: there is nothing to draw"),
        start if start.starts_with(&PCAPNG) => {
            bail!("{shown} is a capture: open it with Wireshark; {KINDS}")
        }
        _ => {}
    }
    let mut first = Vec::new();
    Read::by_ref(&mut reader).take(MAX_FIRST_LINE).read_until(b'\n', &mut first).with_context(cannot)?;
    let line = String::from_utf8_lossy(&first).into_owned();
    let object = serde_json::from_str::<Map<String, Value>>(&line).ok();
    let has = |key: &str| object.as_ref().is_some_and(|object| object.contains_key(key));
    if has("lastmile") && has("shard") {
        bail!(
            "{shown} is an unfinished sweep or a shard: call the sweep again to finish it, or `lastmile merge`, and draw the output"
        );
    }
    let whole = Cursor::new(first).chain(reader);
    #[cfg(feature = "study")]
    {
        use lastmile_study::sweep::page::{SweepResult, is_csv, is_sweep};
        if is_sweep(&line) {
            return Ok(SweepResult::read(whole).with_context(cannot)?.page(&name));
        }
        if is_csv(&line) {
            return Ok(SweepResult::read_csv(whole).with_context(cannot)?.page(&name));
        }
    }
    if is_series(&line) {
        return Ok(SeriesResult::read(whole).with_context(cannot)?.page(&name));
    }
    if has("lastmile") {
        return Ok(of_recording(&name, Reader::new(&name, whole)?)?);
    }
    if has("event") && has("at") {
        return of_events(&name, whole);
    }
    let mut text = Vec::new();
    whole.take(MAX_DOCUMENT + 1).read_to_end(&mut text).with_context(cannot)?;
    if text.len() as u64 > MAX_DOCUMENT {
        bail!(
            "{shown} is larger than {} MB and none of what lastmile writes line by line; {KINDS}",
            MAX_DOCUMENT >> 20
        );
    }
    let parsed: Value = serde_json::from_slice(&text).map_err(|error| {
        let (line, what) =
            (error.line().max(1), "neither a recording nor an event nor another result of lastmile");
        anyhow!("{shown}:{line}: {what} ({error}); {KINDS}")
    })?;
    #[cfg(feature = "study")]
    let drawn = lastmile_study::pages::draw(&name, &parsed);
    #[cfg(not(feature = "study"))]
    let drawn = None.filter(|_: &String| parsed.is_object());
    drawn.ok_or_else(|| anyhow!("{shown}: JSON of a kind that lastmile report cannot draw; {KINDS}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_broken_file_leaves_no_page() {
        let dir = std::env::temp_dir().join(format!("lastmile-report-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let (file, page) = (dir.join("run.jsonl"), dir.join("run.html"));
        fs::write(
            &file,
            "{\"at\":1,\"node\":0,\"seq\":0,\"event\":\"warned\",\"code\":\"other\",\"text\":\"a\"}\n{\"at\":1,\"no\n",
        )
        .unwrap();
        let args = |output: Option<PathBuf>| Args { file: file.clone(), output, svg: None };
        let error = run(args(None)).unwrap_err().to_string();
        assert!(error.contains("run.jsonl:2: neither a decision nor a record"), "{error}");
        assert!(!page.exists());

        let whole =
            "{\"at\":1,\"node\":0,\"seq\":0,\"event\":\"warned\",\"code\":\"other\",\"text\":\"a\"}\n";
        fs::write(&file, format!("{whole}{{\"at\":1,\"no")).unwrap();
        run(args(None)).unwrap();
        assert!(fs::read_to_string(&page).unwrap().contains("cut at line 2"));
        fs::write(&file, whole).unwrap();
        assert!(run(args(Some(file.clone()))).unwrap_err().to_string().contains("would be overwritten"));
        run(Args { svg: Some(dir.join("figures")), ..args(None) }).unwrap();
        assert!(fs::read_to_string(&page).unwrap().contains("warning: a"));
        let figures: Vec<_> =
            fs::read_dir(dir.join("figures")).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert_eq!(figures, ["01-timeline.svg"]);
        fs::remove_dir_all(&dir).unwrap();
    }
}
