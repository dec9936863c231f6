//! Files that are whole or not there: written beside their place, and put into it at the end.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Whether a path is there and neither a file nor a directory.
pub(crate) fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|known| !known.is_file() && !known.is_dir())
}

/// Writes a file beside `path` and puts it in its place once it is whole; what is no ordinary file is written as it is.
pub(crate) fn replace(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let special = is_special(path);
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside = if special { path.to_owned() } else { PathBuf::from(name) };
    let opened = if special { File::create(&beside) } else { File::create_new(&beside) };
    let mut file = BufWriter::new(opened?);
    let done = write(&mut file).and_then(|()| {
        file.flush()?;
        if !special {
            fs::rename(&beside, path)?;
        }
        Ok(())
    });
    if done.is_err() && !special {
        let _ = fs::remove_file(&beside);
    }
    done
}
