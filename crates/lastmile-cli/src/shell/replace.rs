//! Files that are whole or not there: written beside their place, and put into it at the end.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};

use crate::shell::exit::{Exit, one_line};

/// True if a path exists and is neither a file nor a directory.
pub(crate) fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|known| !known.is_file() && !known.is_dir())
}

/// The error of a file that cannot be written. A name under which there can be no file is the user's to mend; a full disk is not.
pub(crate) fn unwritable(path: &Path, error: &io::Error) -> anyhow::Error {
    use io::ErrorKind::{
        InvalidFilename, IsADirectory, NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem,
    };
    let exit = match error.kind() {
        InvalidFilename | IsADirectory | NotADirectory | NotFound | PermissionDenied | ReadOnlyFilesystem => {
            Exit::Usage
        }
        _ => Exit::Machine,
    };
    exit.blame(anyhow!("cannot write {}: {error}", path.display()))
}

/// The error of a file that was begun.
pub(crate) fn incomplete(file: &Path, error: &anyhow::Error) -> anyhow::Error {
    let (file, why) = (file.display(), one_line(error));
    Exit::Machine.blame(anyhow!("cannot write {file}, which is not complete: {why}"))
}

/// The path of a file, by which it is told from others: of one that exists behind all links.
pub(crate) fn place(file: &Path) -> Option<PathBuf> {
    fs::canonicalize(file).or_else(|_| std::path::absolute(file)).ok()
}

/// Refuses files of which two are the same. Terminals, /dev/null and the like may be given more than once.
pub(crate) fn apart(files: &[(&str, Option<&Path>)]) -> anyhow::Result<()> {
    let files: Vec<_> = files
        .iter()
        .filter_map(|(what, file)| Some((what, place((*file)?)?)))
        .filter(|(_, file)| file.is_file() || !file.exists())
        .collect();
    for (index, (what, file)) in files.iter().enumerate() {
        if let Some((other, _)) = files[..index].iter().find(|(_, before)| before == file) {
            return Err(Exit::Usage.blame(anyhow!("{what}: {} is {other}'s", file.display())));
        }
    }
    Ok(())
}

/// Path of a file until it is whole and put in its place.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    PathBuf::from(name)
}

/// Creates a file. One of that name is of a program that was killed, whose number this one has: in a container each has the first.
fn created(options: &OpenOptions, beside: &Path) -> io::Result<File> {
    match options.open(beside) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(beside)?;
            options.open(beside)
        }
        opened => opened,
    }
}

/// Refuses a place to which [`replace`] could not write, before there is anything to write.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    #[cfg(feature = "study")]
    if lastmile_study::fleet::is_shard(path) {
        let shown = path.display();
        return Err(Exit::Usage.blame(anyhow!("{shown} holds a shard of a study: name another output")));
    }
    let beside = beside(path);
    let tried = match () {
        // Opening a pipe would wait for its reader.
        () if is_special(path) => Ok(()),
        // The system refuses to write to a directory.
        () if path.is_dir() => File::create(path).map(drop),
        () => created(File::options().write(true).create_new(true), &beside)
            .and_then(|_| fs::remove_file(&beside)),
    };
    tried.map_err(|error| unwritable(path, &error))
}

/// Writes a file beside `path` and puts it in its place once it is whole; a special file is written directly.
pub(crate) fn replace(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    replace_as(path, 0o666, write)
}

/// The same with a file that only its owner may read.
#[cfg(feature = "video")]
pub(crate) fn replace_secret(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    replace_as(path, 0o600, write)
}

fn replace_as(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut BufWriter<File>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    let special = is_special(path);
    let beside = if special { path.to_owned() } else { beside(path) };
    let mut options = File::options();
    options.write(true).create(special).create_new(!special).truncate(special).mode(mode);
    let mut file = BufWriter::new(created(&options, &beside).with_context(cannot)?);
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
    done.with_context(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in a container, where each program has the number of the one before.
    #[test]
    fn a_file_that_was_left_behind_is_in_nobodys_way() {
        let path = std::env::temp_dir().join(format!("lastmile-replace-{}", std::process::id()));
        fs::write(beside(&path), "half of it").unwrap();
        check(&path).unwrap();
        fs::write(beside(&path), "half of it").unwrap();
        replace(&path, |file| Ok(file.write_all(b"all")?)).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), beside(&path).exists()), ("all", false));
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn two_outputs_are_two_files() {
        let file = Path::new("/nowhere/./a");
        assert!(
            apart(&[("--record", Some(file)), ("--events", Some(Path::new("/nowhere/b"))), ("--html", None)])
                .is_ok()
        );
        assert!(apart(&[("--record", Some(file)), ("--events", Some(Path::new("/nowhere/a")))]).is_err());
        let null = Some(Path::new("/dev/null"));
        assert!(apart(&[("--record", null), ("--events", null)]).is_ok());
    }
}
