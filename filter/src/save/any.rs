//! Loading a file of unknown kind.

use std::io::Read;
use std::path::Path;

use super::LoadError;
use super::file::load_whole;
use super::words::{EXPIRING, GROWING};
use crate::dyn_filter::DynCuckooFilter;
use crate::expiring::ExpiringCuckooFilter;
use crate::growing::GrowingCuckooFilter;
use crate::traits::Filter;

/// Loads a [saved](Filter::save) filter of unknown type, with the default hasher.
///
/// It is a [`DynCuckooFilter`] in one of the layouts that [`false_positive_rate`](crate::Builder::false_positive_rate)
/// chooses from, a [`GrowingCuckooFilter`], or an [`ExpiringCuckooFilter`] of the default layout. Calls that only one
/// type has, such as [`advance`](ExpiringCuckooFilter::advance), need that type: call its `load`.
///
/// ```
/// use filter::{Filter, GrowingCuckooFilter, load_any};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("seen.filter");
/// let seen = GrowingCuckooFilter::new();
/// seen.insert("key")?;
/// seen.save(&path)?;
/// assert!(load_any(&path)?.contains("key"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`LoadError`], such as [`LoadError::Layout`] for another layout and [`LoadError::Hasher`] for another hasher.
pub fn load_any(path: impl AsRef<Path>) -> Result<Box<dyn Filter>, LoadError> {
    load_by_kind(path.as_ref(), |kind, reader| {
        let filter: Box<dyn Filter> = match kind {
            SavedKind::Fixed => Box::new(DynCuckooFilter::read_from(reader)?),
            SavedKind::Growing => Box::new(GrowingCuckooFilter::read_from(reader)?),
            SavedKind::Expiring => Box::new(ExpiringCuckooFilter::read_from(reader)?),
        };
        Ok(filter)
    })
}

/// The kind that a file begins like.
#[derive(Clone, Copy, Debug)]
pub enum SavedKind {
    /// A filter of fixed size, or no filter at all.
    Fixed,
    /// A filter that grows.
    Growing,
    /// A filter that forgets.
    Expiring,
}

/// Loads a file by a function of its kind: for those who need more of a filter than [`load_any`] returns.
///
/// # Errors
/// [`LoadError`].
pub fn load_by_kind<F>(
    path: &Path,
    load: impl FnOnce(SavedKind, &mut dyn Read) -> Result<F, LoadError>,
) -> Result<F, LoadError> {
    load_whole(path, |file| {
        // Read once: it may be a pipe.
        let mut head = Vec::new();
        file.by_ref().take(8).read_to_end(&mut head)?;
        let kind = match &head[..] {
            head if *head == GROWING.magic => SavedKind::Growing,
            head if *head == EXPIRING.magic => SavedKind::Expiring,
            _ => SavedKind::Fixed,
        };
        load(kind, &mut head.chain(file))
    })
}
