//! The variants that are measured side by side: the control, and one for each alternative choice.

use subject::Operations;

use super::{
    Ablation, BreadthFirst, HelpingReaders, HopByHop, OneRound, OwnersByDcss, RandomWalk, Reused,
    Timestamps, TwoRounds, Variant, WholeChain,
};

pub type AblationControl = Ablation;

impl Variant for AblationControl {
    const NAME: &'static str = "ablation-control";
    const DESCRIPTION: &'static str =
        "our filter without the fast path of updates, made of the parts that the ablations change";
}

/// The published lookup, with paths carried out atomically. It misses keys as `two-phase` does.
pub type AblationTwoPhaseLookup = Ablation<TwoRounds>;

impl Variant for AblationTwoPhaseLookup {
    const NAME: &'static str = "ablation-two-phase-lookup";
    const DESCRIPTION: &'static str =
        "the control with the published lookup: two rounds, and counters of relocations";
    const GUARANTEES: &'static str = "lock-free, but not linearizable: a lookup may miss a key that is present throughout, when \
         others insert and remove keys of its class";
}

/// A lookup that reads both buckets once, and is wrong now and then. Not measured where keys are
/// removed, as the harness does not accept wrong answers, and therefore not checked either;
/// `harness/tests/counterexample.rs` misleads it.
pub type AblationOneRound = Ablation<OneRound>;

impl Variant for AblationOneRound {
    const NAME: &'static str = "ablation-one-round-lookup";
    const DESCRIPTION: &'static str =
        "the control with lookups that read both buckets once: a lower bound of their cost";
    const GUARANTEES: &'static str =
        "none for lookups, which miss keys that are moved meanwhile; inserts are lock-free";
    const OPERATIONS: Operations = Operations::INSERT;
}

pub type AblationHopByHop = Ablation<Timestamps, HopByHop>;

impl Variant for AblationHopByHop {
    const NAME: &'static str = "ablation-hop-by-hop";
    const DESCRIPTION: &'static str =
        "the control with chains shifted one hop at a time, each a K-CAS of two words";
    const GUARANTEES: &'static str = "linearizable; each hop is lock-free, but two inserts may take each other's room forever; \
         lookups never write";
}

pub type AblationRandomWalk = Ablation<Timestamps, WholeChain, RandomWalk>;

impl Variant for AblationRandomWalk {
    const NAME: &'static str = "ablation-random-walk";
    const DESCRIPTION: &'static str = "the control with chains found by random walks, no longer than a K-CAS, instead of the shortest";
}

pub type AblationEpoch = Ablation<Timestamps, WholeChain, BreadthFirst, kcas_epoch::WordArray>;

impl Variant for AblationEpoch {
    const NAME: &'static str = "ablation-epoch";
    const DESCRIPTION: &'static str =
        "ablation-dcss with K-CAS descriptors on the heap, reclaimed by epochs";
    const GUARANTEES: &'static str = "linearizable; lock-free except for the allocator; lookups write their epoch at most; memory \
         unbounded while a thread stops inside an operation";
}

pub type AblationHelpingReaders = Ablation<Timestamps, WholeChain, BreadthFirst, HelpingReaders>;

impl Variant for AblationHelpingReaders {
    const NAME: &'static str = "ablation-helping-readers";
    const DESCRIPTION: &'static str =
        "the control with readers that help an operation under way to its end before they read";
    const GUARANTEES: &'static str =
        "linearizable; lock-free; lookups write where they meet an operation";
}

pub type AblationDcss = Ablation<Timestamps, WholeChain, BreadthFirst, OwnersByDcss>;

impl Variant for AblationDcss {
    const NAME: &'static str = "ablation-dcss";
    const DESCRIPTION: &'static str =
        "the control with K-CAS in 3k + 1 exchanges: its owner installs by DCSS, as helpers do";
}

pub type AblationUncounted = Ablation<Timestamps, WholeChain, BreadthFirst, Reused, false>;

impl Variant for AblationUncounted {
    const NAME: &'static str = "ablation-uncounted";
    const DESCRIPTION: &'static str =
        "the control without a count of its keys, which each thread keeps in the others";
}
