//! Saving and loading files.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

use super::{LoadError, SaveError};

/// Replaces a file at one moment by what `write` writes.
pub(crate) fn save_as(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<(), SaveError>,
) -> Result<(), SaveError> {
    replace(path, write, |folder| File::open(folder), File::sync_all)
}

/// [`save_as`], with these functions to open the folder and to sync a file.
fn replace(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<(), SaveError>,
    open: impl Fn(&Path) -> io::Result<File>,
    sync: impl Fn(&File) -> io::Result<()>,
) -> Result<(), SaveError> {
    let failed = |source| SaveError::File {
        path: path.to_owned(),
        source,
    };
    check_replaceable(path).map_err(failed)?;
    // Opened first, since nothing may fail for lack of it once the file is replaced. Only Unix can open a folder.
    let folder = path
        .parent()
        .filter(|folder| cfg!(unix) && !folder.as_os_str().is_empty());
    let folder = folder.or(cfg!(unix).then_some(Path::new(".")));
    let folder = folder.map(open).transpose().map_err(failed)?;
    let (mut partial, mut file) = create_beside(path).map_err(failed)?;
    let saved = write(&mut file).and_then(|()| {
        sync(&file)?;
        fs::rename(&partial.0, path)?;
        partial.0.clear();
        Ok(())
    });
    saved.map_err(|error| match error {
        SaveError::Io { source } => failed(source),
        other => other,
    })?;
    // The new name must also outlive a power cut.
    let synced = folder.map_or(Ok(()), |folder| sync(&folder));
    synced.map_err(|source| SaveError::NotSynced {
        path: path.to_owned(),
        source,
    })
}

/// Loads a filter from a file, which must contain nothing else.
pub(crate) fn load_whole<F>(
    path: &Path,
    read: impl FnOnce(&mut File) -> Result<F, LoadError>,
) -> Result<F, LoadError> {
    let failed = |source| LoadError::File {
        path: path.to_owned(),
        source,
    };
    let mut file = File::open(path).map_err(failed)?;
    let filter = read(&mut file)?;
    let mut excess = || -> io::Result<u64> {
        let more = (&mut file).take(1).read_to_end(&mut Vec::new())? as u64;
        // (A pipe has no position, and no length.)
        let position = file.stream_position().unwrap_or(u64::MAX);
        Ok(more + file.metadata()?.len().saturating_sub(position))
    };
    match excess()? {
        0 => Ok(filter),
        excess => Err(LoadError::TooLong { excess }),
    }
}

/// Checks that a path leads to a file or nowhere. A rename would also replace a device, or a link to one.
fn check_replaceable(path: &Path) -> io::Result<()> {
    let refused = |why| Err(io::Error::new(ErrorKind::InvalidInput, why));
    if path.as_os_str().is_empty() {
        return refused("the name is empty");
    }
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            // Fails with the system's own error.
            File::options().write(true).open(path)?;
            refused("it is a directory")
        }
        Ok(found) if !found.is_file() => refused("it is a device, a pipe or a socket"),
        // Whatever an error here says, there is nothing or a link that leads nowhere.
        _ => Ok(()),
    }
}

/// The name of a file that is removed in the end, also by a panic, unless it has got another name.
struct Partial(PathBuf);

impl Drop for Partial {
    fn drop(&mut self) {
        // If it cannot be removed, the error that left it here says more.
        let _ = fs::remove_file(&self.0);
    }
}

/// Creates a file in the folder of another one, under a short name that no other file has.
fn create_beside(path: &Path) -> io::Result<(Partial, File)> {
    let names = (0..).map(|number| path.with_file_name(format!("cuckoo.partial{number}")));
    for name in names.filter(|name| name != path) {
        match File::create_new(&name) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            created => {
                let file = created?;
                return Ok((Partial(name), file));
            }
        }
    }
    unreachable!("there are not so many files")
}

#[cfg(all(test, unix, not(kcas_loom)))]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// The folder is opened, and the file synced, before it is replaced; then the folder is synced. Whatever fails,
    /// nothing else is left there.
    #[test]
    fn file_is_replaced_between_two_syncs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seen.filter");
        let found = || fs::read_to_string(&path).unwrap();
        for failing in 0..4 {
            fs::write(&path, "old").unwrap();
            let steps = RefCell::new(Vec::new());
            let step = |file: &File| {
                let mut steps = steps.borrow_mut();
                steps.push((file.metadata()?.is_dir(), found()));
                let goes_on = (steps.len() <= failing).then_some(());
                goes_on.ok_or(ErrorKind::Other.into())
            };
            let write = |writer: &mut dyn Write| Ok(writer.write_all(b"new")?);
            let open = |folder: &Path| {
                let folder = File::open(folder)?;
                step(&folder).map(|()| folder)
            };
            let saved = replace(&path, write, open, step);
            let is_so = match failing {
                0 | 1 => matches!(saved, Err(SaveError::File { .. })),
                2 => matches!(saved, Err(SaveError::NotSynced { .. })),
                _ => saved.is_ok(),
            };
            assert!(is_so, "step {failing} fails: {saved:?}");
            let all = [(true, "old"), (false, "old"), (true, "new")];
            let made = all.map(|(is_folder, found)| (is_folder, found.to_owned()));
            assert_eq!(steps.take(), made[..made.len().min(failing + 1)]);
            assert_eq!(found(), if failing < 2 { "old" } else { "new" });
            assert_eq!(folder.path().read_dir().unwrap().count(), 1);
        }
    }

    /// One save begins and ends within another, which began with older contents: these stay, and both succeed.
    #[test]
    fn last_of_overlapping_saves_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seen.filter");
        let saved = save_as(&path, |writer| {
            save_as(&path, |writer| Ok(writer.write_all(b"new")?))?;
            assert_eq!(fs::read(&path).unwrap(), b"new");
            Ok(writer.write_all(b"old")?)
        });
        saved.unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    }

    /// Not even then is there an unfinished file under the filter's name.
    #[test]
    fn save_under_name_of_partial_is_atomic() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cuckoo.partial0");
        let saved = save_as(&path, |writer| {
            assert!(!path.exists());
            Ok(writer.write_all(b"new")?)
        });
        saved.unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    /// Panics, as a hasher may.
    #[test]
    fn panic_leaves_no_unfinished_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seen.filter");
        let save = || save_as(&path, |_| panic!("expected"));
        assert!(std::panic::catch_unwind(save).is_err());
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }
}
