//! A filter of any kind, for languages that have one type for all of them.

use std::error::Error;
use std::fmt;
#[cfg(not(shared_words))]
use std::io;
use std::path::{Path, PathBuf};

use filter::growing::GrowingBuilder;
#[cfg(shared_words)]
use filter::internals::lookups_of;
use filter::internals::{SavedKind, load_by_kind};
#[cfg(shared_words)]
use filter::shared::{OpenError, SharedCuckooFilter, SharedLookup};
use filter::{
    BuildError, CuckooFilter, DynCuckooFilter, ExpiringCuckooFilter, Filter, GrowingCuckooFilter,
    LoadError,
};

/// The result of a call that some kinds refuse.
pub type Answer<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// A filter of any kind, with the default hasher. (`filter::load_any` would hide the type: only one kind can advance, and
/// one is loaded with `reserved_bytes`.)
pub enum AnyFilter {
    /// It keeps keys until they are removed.
    Lasting(Box<dyn Filter>),
    /// It forgets them.
    Expiring(Box<ExpiringCuckooFilter>),
    /// Processes share it, in a file of this absolute path.
    #[cfg(shared_words)]
    Shared(Box<SharedCuckooFilter>, PathBuf),
    /// The same, for lookups alone.
    #[cfg(shared_words)]
    Lookup(Box<SharedLookup>, PathBuf),
}

/// Why a filter of this kind refuses a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Only a filter that forgets can do this.
    NotExpiring,
    /// Only a filter in a file can do this.
    NotShared,
    /// The file was opened for lookups alone.
    ReadOnly,
}

/// The languages have their own texts ([`Language`](crate::texts::Language)).
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::NotExpiring => "this filter does not forget",
            Refusal::NotShared => "this filter is not in a file",
            Refusal::ReadOnly => "the filter was opened for lookups alone",
        })
    }
}

impl Error for Refusal {}

/// A file that cannot be opened as a filter that processes share.
#[derive(Debug)]
pub struct NotOpened {
    path: PathBuf,
    source: Box<dyn Error + Send + Sync>,
}

impl fmt::Display for NotOpened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        write!(f, "the shared filter {path} cannot be opened")
    }
}

impl Error for NotOpened {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

fn growing(reserved_bytes: Option<usize>) -> GrowingBuilder {
    let builder = GrowingCuckooFilter::builder();
    match reserved_bytes {
        Some(bytes) => builder.reserved_bytes(bytes),
        None => builder,
    }
}

/// Opens a file by its absolute path.
#[cfg(shared_words)]
fn open<F>(
    path: &Path,
    open: impl FnOnce(&Path) -> Result<F, OpenError>,
) -> Result<(Box<F>, PathBuf), NotOpened> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match open(&path) {
        Ok(filter) => Ok((Box::new(filter), path)),
        Err(error) => Err(NotOpened {
            path,
            source: error.into(),
        }),
    }
}

/// Making and loading.
impl AnyFilter {
    fn lasting(filter: impl Filter + 'static) -> Self {
        Self::Lasting(Box::new(filter))
    }

    /// Makes one of fixed size with a false positive rate of at most `rate`.
    pub fn fixed(capacity: usize, rate: f64) -> Result<Self, BuildError> {
        let builder = CuckooFilter::builder().capacity(capacity);
        Ok(Self::lasting(builder.false_positive_rate(rate).build()?))
    }

    /// Makes one that grows: from 0.37 to 1.2 times `capacity` on, or some 1,900 keys. `reserved_bytes` is set in its
    /// builder.
    pub fn growing(capacity: usize, reserved_bytes: Option<usize>) -> Result<Self, BuildError> {
        let builder = growing(reserved_bytes).capacity(capacity);
        Ok(Self::lasting(builder.build()?))
    }

    /// Makes one that forgets, with room for `capacity` keys in a window of three periods.
    pub fn expiring(capacity: usize) -> Result<Self, BuildError> {
        let builder = ExpiringCuckooFilter::builder().capacity(capacity);
        Ok(Self::Expiring(Box::new(builder.build()?)))
    }

    /// Opens the filter in a file that processes share, or makes the file with room for `capacity` keys, unless that is `None`.
    #[cfg(shared_words)]
    pub fn open_shared(path: &Path, capacity: Option<usize>) -> Result<Self, NotOpened> {
        let builder = CuckooFilter::builder();
        let opened = match capacity {
            Some(keys) => open(path, |path| {
                builder.capacity(keys).open_or_create_shared(path)
            }),
            None => open(path, |path| builder.open_shared(path)),
        };
        opened.map(|(filter, path)| Self::Shared(filter, path))
    }

    /// Opens the filter in a file that processes share, for lookups alone.
    #[cfg(shared_words)]
    pub fn open_lookup(path: &Path) -> Result<Self, NotOpened> {
        let builder = CuckooFilter::builder();
        let opened = open(path, |path| builder.open_shared_to_read(path));
        opened.map(|(filter, path)| Self::Lookup(filter, path))
    }

    /// There are no such filters on this system.
    #[cfg(not(shared_words))]
    pub fn open_shared(path: &Path, _capacity: Option<usize>) -> Result<Self, NotOpened> {
        Self::open_lookup(path)
    }

    /// There are no such filters on this system.
    #[cfg(not(shared_words))]
    pub fn open_lookup(path: &Path) -> Result<Self, NotOpened> {
        let why = "processes can share a filter only on 64-bit Linux";
        let source = io::Error::new(io::ErrorKind::Unsupported, why).into();
        let path = path.to_owned();
        Err(NotOpened { path, source })
    }

    /// Loads a file of whichever kind it is; one that grows, with `reserved_bytes` in its builder.
    pub fn load(path: &Path, reserved_bytes: Option<usize>) -> Result<Self, LoadError> {
        load_by_kind(path, |kind, reader| {
            Ok(match kind {
                SavedKind::Fixed => Self::lasting(DynCuckooFilter::read_from(reader)?),
                SavedKind::Growing => Self::lasting(growing(reserved_bytes).load_from(reader)?),
                SavedKind::Expiring => {
                    Self::Expiring(Box::new(ExpiringCuckooFilter::read_from(reader)?))
                }
            })
        })
    }

    /// Loads what a file of any kind contains.
    pub fn from_bytes(bytes: &[u8], reserved_bytes: Option<usize>) -> Result<Self, LoadError> {
        match DynCuckooFilter::from_bytes(bytes) {
            Err(LoadError::Kind { .. }) => {}
            loaded => return loaded.map(Self::lasting),
        }
        match growing(reserved_bytes).load_bytes(bytes) {
            Err(LoadError::Kind { .. }) => {}
            loaded => return loaded.map(Self::lasting),
        }
        let loaded = ExpiringCuckooFilter::from_bytes(bytes)?;
        Ok(Self::Expiring(Box::new(loaded)))
    }
}

/// What only some kinds can do.
impl AnyFilter {
    /// What all kinds can do, except one that was opened for lookups alone.
    pub fn filter(&self) -> Result<&dyn Filter, Refusal> {
        #[cfg(shared_words)]
        if matches!(self, Self::Lookup(..)) {
            return Err(Refusal::ReadOnly);
        }
        Ok(self.lookups())
    }

    /// The filter, for calls that change nothing.
    pub fn lookups(&self) -> &dyn Filter {
        match self {
            Self::Lasting(filter) => &**filter,
            Self::Expiring(filter) => &**filter,
            #[cfg(shared_words)]
            Self::Shared(filter, _) => &**filter,
            #[cfg(shared_words)]
            Self::Lookup(filter, _) => lookups_of(filter),
        }
    }

    /// A filter that forgets.
    pub fn that_expires(&self) -> Result<&ExpiringCuckooFilter, Refusal> {
        match self {
            Self::Expiring(filter) => Ok(filter),
            _ => Err(Refusal::NotExpiring),
        }
    }

    /// A filter that processes share.
    #[cfg(shared_words)]
    fn that_is_shared(&self) -> Result<&SharedCuckooFilter, Refusal> {
        match self {
            Self::Shared(filter, _) => Ok(filter),
            Self::Lookup(..) => Err(Refusal::ReadOnly),
            _ => Err(Refusal::NotShared),
        }
    }

    /// The absolute path of a filter that processes share.
    pub fn path(&self) -> Option<&Path> {
        match self {
            #[cfg(shared_words)]
            Self::Shared(_, path) | Self::Lookup(_, path) => Some(path),
            _ => None,
        }
    }

    /// Returns the number of copies, after correcting what killed processes have left of it.
    pub fn recount(&self) -> Answer<usize> {
        #[cfg(shared_words)]
        return Ok(self.that_is_shared()?.recount());
        #[cfg(not(shared_words))]
        Err(Refusal::NotShared.into())
    }

    /// Decides all calls of killed processes.
    pub fn take_over_all(&self) -> Answer<()> {
        #[cfg(shared_words)]
        return Ok(self.that_is_shared()?.take_over_all()?);
        #[cfg(not(shared_words))]
        Err(Refusal::NotShared.into())
    }

    /// Removes all keys of a filter that processes share.
    pub fn clear(&self) -> Answer<()> {
        #[cfg(shared_words)]
        return Ok(self.that_is_shared()?.remove_all()?);
        #[cfg(not(shared_words))]
        Err(Refusal::NotShared.into())
    }

    /// True if another process has damaged the file of a filter.
    pub fn is_damaged(&self) -> bool {
        match self {
            #[cfg(shared_words)]
            Self::Shared(filter, _) => filter.is_damaged(),
            #[cfg(shared_words)]
            Self::Lookup(filter, _) => filter.is_damaged(),
            _ => false,
        }
    }

    /// [`Filter::memory_bytes`], or those of the table in a file that is only read.
    pub fn memory_bytes(&self) -> usize {
        let table = self.lookups().slots() / 4 * size_of::<u64>();
        (self.filter()).map_or(table, |filter| filter.memory_bytes())
    }
}

impl fmt::Debug for AnyFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lookups().fmt(f)
    }
}
