//! The words of a contest: how many there are, and which of them a thread changes.

use std::ops::Range;

/// Which words the threads change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Each thread has its own words: the cost of an operation that meets no other.
    Disjoint,
    /// All threads share the same few words.
    Contended,
}

impl Workload {
    /// Both workloads.
    pub const ALL: [Workload; 2] = [Workload::Disjoint, Workload::Contended];

    /// Returns the name used in CSV files and figures.
    pub fn label(self) -> &'static str {
        match self {
            Workload::Disjoint => "disjoint",
            Workload::Contended => "contended",
        }
    }

    /// Returns the workload that has this label.
    pub(crate) fn labelled(label: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|of| of.label() == label);
        found.ok_or_else(|| format!("no workload is called {label:?}"))
    }

    /// Returns the number of words.
    pub(super) fn len(self, threads: usize) -> usize {
        match self {
            Workload::Disjoint => threads * (OWN_WORDS + GAP),
            Workload::Contended => SHARED_WORDS,
        }
    }

    /// Returns the words that a thread chooses from.
    pub(super) fn words_of(self, thread: usize) -> Range<usize> {
        match self {
            Workload::Disjoint => {
                let first = thread * (OWN_WORDS + GAP);
                first..first + OWN_WORDS
            }
            Workload::Contended => 0..SHARED_WORDS,
        }
    }
}

/// Words of each thread where they are disjoint: 512 bytes.
pub const OWN_WORDS: usize = 64;
/// Unused words between those of one thread and the next, so that they share no cache line, nor a
/// pair of lines.
const GAP: usize = 16;
/// Words of all threads where they are contended: two cache lines.
pub const SHARED_WORDS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_threads_are_disjoint_or_shared() {
        let [first, second] = [0, 1].map(|thread| Workload::Disjoint.words_of(thread));
        assert!(first.end + GAP <= second.start);
        assert_eq!(second.end + GAP, Workload::Disjoint.len(2));
        assert_eq!(
            Workload::Contended.words_of(3),
            0..Workload::Contended.len(4)
        );
    }
}
