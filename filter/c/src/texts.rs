//! The texts of errors, which advise what the language has.

use std::error::Error;
use std::io;
use std::iter;

#[cfg(shared_words)]
use filter::shared::OpenError;
use filter::{BuildError, InsertError, LoadError};

use crate::any::Refusal;

/// What a language calls the functions that texts of errors advise.
#[derive(Debug)]
pub struct Language {
    /// Makes a filter of fixed size.
    pub new_fixed: &'static str,
    /// Makes a filter that forgets.
    pub new_expiring: &'static str,
    /// Opens a filter that processes share.
    pub open_shared: &'static str,
    /// Inserts a key unless it is there.
    pub insert_if_absent: &'static str,
}

/// The functions of `include/lfcf.h`.
pub const C: Language = Language {
    new_fixed: "lfcf_new_fixed",
    new_expiring: "lfcf_new_expiring",
    open_shared: "lfcf_open_shared",
    insert_if_absent: "lfcf_insert_if_absent",
};

impl Language {
    /// Returns the texts of an error and of its causes.
    pub fn text_of(&self, error: &(dyn Error + 'static)) -> String {
        let texts: Vec<_> = causes(error).map(|error| self.text_of_one(error)).collect();
        texts.join(": ")
    }

    /// Returns the text of an error: its own, unless that advises what only Rust has.
    fn text_of_one(&self, error: &(dyn Error + 'static)) -> String {
        let text = None
            .or_else(|| error.downcast_ref().and_then(|error| self.refusal(error)))
            .or_else(|| error.downcast_ref().and_then(|error| self.insert(error)))
            .or_else(|| error.downcast_ref().and_then(|error| self.build(error)))
            .or_else(|| error.downcast_ref().and_then(|error| self.load(error)));
        #[cfg(shared_words)]
        let text = text.or_else(|| error.downcast_ref().and_then(|error| self.open(error)));
        text.unwrap_or_else(|| error.to_string())
    }

    fn refusal(&self, refusal: &Refusal) -> Option<String> {
        let advice = match refusal {
            Refusal::NotExpiring => format!("make it with {}", self.new_expiring),
            Refusal::NotShared | Refusal::ReadOnly => format!("open it with {}", self.open_shared),
        };
        Some(format!("{refusal}: {advice}"))
    }

    fn insert(&self, error: &InsertError) -> Option<String> {
        let once = format!("insert each key once ({})", self.insert_if_absent);
        match error {
            InsertError::Full => Some(format!(
                "the filter is full: make it with a larger capacity, remove keys first, or {once} if keys repeat"
            )),
            InsertError::TooManyCopies { most, .. } => Some(format!(
                "the filter holds {most} copies of this key, or of keys that it cannot tell from it, and has room for no \
                 more: {once}, or remove copies"
            )),
            InsertError::Crowded => Some(format!(
                "there is no room for this key though the table is nearly empty, since many hashes have bits in common: \
                 {once}, and pass hashes that are good in all of their bits"
            )),
            _ => None,
        }
    }

    fn build(&self, error: &BuildError) -> Option<String> {
        match error {
            BuildError::OutOfMemory { buckets, .. } => Some(format!(
                "no memory for a table of {buckets} buckets, 8 bytes each: pass a smaller capacity, or a smaller \
                 reserved_bytes if it grows"
            )),
            BuildError::TooLarge { buckets, .. } => Some(format!(
                "{buckets} buckets are too many: at most 2^32 are possible. Pass a smaller capacity"
            )),
            _ => None,
        }
    }

    fn load(&self, error: &LoadError) -> Option<String> {
        match error {
            LoadError::Layout {
                slots, bits, ages, ..
            } if *ages > 0 => Some(format!(
                "the saved filter has {slots} slots of {bits} bits per bucket, and ages of {ages} bits, which only Rust can \
                 load: make one with {}, or load it in Rust",
                self.new_expiring
            )),
            LoadError::Layout { slots, bits, .. } => Some(format!(
                "the saved filter has {slots} slots of {bits} bits per bucket, a layout that only Rust can load: make \
                 one with {}, or in Rust by its error rate",
                self.new_fixed
            )),
            LoadError::Hasher => Some(
                "the filter was saved with another hasher than the default one of Rust, which is the only one here: \
                 load it in Rust, or build it again from the keys"
                    .to_owned(),
            ),
            _ => None,
        }
    }

    #[cfg(shared_words)]
    fn open(&self, error: &OpenError) -> Option<String> {
        let only = "Here are only filters of fixed size with the default layout and hasher of Rust";
        matches!(error, OpenError::OtherParameters { .. }).then(|| format!("{error}. {only}"))
    }
}

/// Returns an error and its causes.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    iter::successors(Some(error), |&error| error.source())
}

/// Returns the error of the system that caused an error, if one did.
pub fn system_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    causes(error).find_map(|error| {
        #[cfg(shared_words)]
        if let Some(OpenError::Io(error)) = error.downcast_ref() {
            return Some(error);
        }
        error.downcast_ref()
    })
}
