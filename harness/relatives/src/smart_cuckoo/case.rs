//! The cases that an insert may meet in the graph of buckets and keys.

/// The subgraph that a bucket is in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// Its id.
    pub(super) root: usize,
    /// The number of its buckets.
    pub(super) size: usize,
    /// Whether it has as many keys as buckets.
    pub(super) maximal: bool,
}

/// The cases of the paper, by the number of vertices that a new edge brings into the graph (v+2,
/// v+1, v+0). A bucket is new if it is a candidate of no key in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Case {
    /// v+2: both buckets are new, and become a tree of two.
    TwoNew,
    /// v+1: one bucket is new and takes the key; it joins the subgraph of the other. This also
    /// covers a new bucket that is both candidates, which becomes a cycle of one.
    OneNew,
    /// v+0: both are in the same tree, which becomes maximal.
    SameNonMaximal,
    /// v+0: both are in the same maximal subgraph. No room.
    SameMaximal,
    /// v+0: each is in its own tree, and the two trees become one.
    BothNonMaximal,
    /// v+0: one is in a tree, which joins the maximal subgraph of the other.
    OneMaximal,
    /// v+0: each is in its own maximal subgraph. No room.
    BothMaximal,
}

impl Case {
    /// All cases.
    pub const ALL: [Self; 7] = [
        Self::TwoNew,
        Self::OneNew,
        Self::SameNonMaximal,
        Self::SameMaximal,
        Self::BothNonMaximal,
        Self::OneMaximal,
        Self::BothMaximal,
    ];

    /// Returns the case of a key whose candidates are in these subgraphs.
    pub(super) fn of([first, second]: [Part; 2]) -> Self {
        let same = first.root == second.root;
        match (first.is_new(), second.is_new()) {
            (true, true) if !same => Self::TwoNew,
            (false, false) => match (same, first.maximal, second.maximal) {
                (true, true, _) => Self::SameMaximal,
                (true, false, _) => Self::SameNonMaximal,
                (false, true, true) => Self::BothMaximal,
                (false, false, false) => Self::BothNonMaximal,
                (false, ..) => Self::OneMaximal,
            },
            _ => Self::OneNew,
        }
    }

    /// Returns whether the key can be placed.
    pub fn has_room(self) -> bool {
        !matches!(self, Self::SameMaximal | Self::BothMaximal)
    }
}

impl Part {
    fn is_new(self) -> bool {
        self.size == 1 && !self.maximal
    }
}
