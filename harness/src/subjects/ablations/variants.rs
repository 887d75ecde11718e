//! The variants that are measured side by side: the control, and one for each alternative choice.
//!
//! Each states what it guarantees. `harness check --threads 8`, built with the feature `steps`, ran
//! for 20 seconds on each variant that claims to be linearizable and found no violation in 0.3 to
//! 2.1 million calls (one run).

use filter::internals::length::Length;
use kcas::WordArray;
use subject::Operations;

use super::{
    Ablation, BreadthFirst, HelpingReaders, HopByHop, OneRound, OwnersByDcss, RandomWalk,
    Timestamps, TwoPhase, Uncounted, Variant, WholeChain,
};

/// All decisions as in our filter.
pub type AblationControl = Ablation<Control>;
/// The published lookup, with eviction paths carried out atomically.
pub type AblationTwoPhaseLookup = Ablation<TwoPhaseLookup>;
/// A lookup that reads both buckets once, and is wrong now and then.
pub type AblationOneRound = Ablation<OneRoundLookup>;
/// Eviction paths carried out one hop at a time, as published.
pub type AblationHopByHop = Ablation<Hops>;
/// Eviction paths found by random walks.
pub type AblationRandomWalk = Ablation<Walks>;
/// Descriptors on the heap.
pub type AblationEpoch = Ablation<Epoch>;
/// Readers that help.
pub type AblationHelpingReaders = Ablation<Helping>;
/// K-CAS as published by Harris, Fraser and Pratt.
pub type AblationDcss = Ablation<Dcss>;
/// No count of the keys.
pub type AblationUncounted = Ablation<NotCounting>;

/// The control's guarantees.
const AS_THE_CONTROL: &str = "linearizable; lock-free inserts and removes; lookups never write";

/// See [`AblationControl`].
#[derive(Debug)]
pub struct Control;

impl Variant for Control {
    const NAME: &'static str = "ablation-control";
    const DESCRIPTION: &'static str =
        "our filter, made of the parts that the ablations change one at a time";
    const GUARANTEES: &'static str = AS_THE_CONTROL;
    type Lookup = Timestamps;
    type Commit = WholeChain;
    type Search = BreadthFirst;
    type Words = WordArray;
    type Length = Length;
}

/// See [`AblationTwoPhaseLookup`]. It misses keys as `two-phase` does: a check found it within 10
/// seconds, after 0.8 million calls (one run).
#[derive(Debug)]
pub struct TwoPhaseLookup;

impl Variant for TwoPhaseLookup {
    const NAME: &'static str = "ablation-two-phase-lookup";
    const DESCRIPTION: &'static str =
        "the control with the published lookup: two rounds, and counters of relocations";
    const GUARANTEES: &'static str = "lock-free, but not linearizable: a lookup may miss a key that is present throughout, when \
         others insert and remove keys of its class";
    type Lookup = TwoPhase;
    type Commit = WholeChain;
    type Search = BreadthFirst;
    type Words = WordArray;
    type Length = Length;
}

/// See [`AblationOneRound`]. Not measured where keys are removed, as the harness does not accept
/// wrong answers, and therefore not checked either; `harness/tests/counterexample.rs` misleads it.
#[derive(Debug)]
pub struct OneRoundLookup;

impl Variant for OneRoundLookup {
    const NAME: &'static str = "ablation-one-round-lookup";
    const DESCRIPTION: &'static str =
        "the control with lookups that read both buckets once: a lower bound of their cost";
    const GUARANTEES: &'static str =
        "none for lookups, which miss keys that are moved meanwhile; inserts are lock-free";
    const OPERATIONS: Operations = Operations::INSERT;
    type Lookup = OneRound;
    type Commit = WholeChain;
    type Search = BreadthFirst;
    type Words = WordArray;
    type Length = Length;
}

/// See [`AblationHopByHop`].
#[derive(Debug)]
pub struct Hops;

impl Variant for Hops {
    const NAME: &'static str = "ablation-hop-by-hop";
    const DESCRIPTION: &'static str =
        "the control with chains shifted one hop at a time, each a K-CAS of two words";
    const GUARANTEES: &'static str = "linearizable; each hop is lock-free, but two inserts may take each other's room for ever; \
         lookups never write";
    type Lookup = Timestamps;
    type Commit = HopByHop;
    type Search = BreadthFirst;
    type Words = WordArray;
    type Length = Length;
}

/// See [`AblationRandomWalk`].
#[derive(Debug)]
pub struct Walks;

impl Variant for Walks {
    const NAME: &'static str = "ablation-random-walk";
    const DESCRIPTION: &'static str =
        "the control with chains found by random walks instead of the shortest";
    const GUARANTEES: &'static str = AS_THE_CONTROL;
    type Lookup = Timestamps;
    type Commit = WholeChain;
    type Search = RandomWalk;
    type Words = WordArray;
    type Length = Length;
}

/// See [`AblationEpoch`].
#[derive(Debug)]
pub struct Epoch;

impl Variant for Epoch {
    const NAME: &'static str = "ablation-epoch";
    const DESCRIPTION: &'static str =
        "the control with K-CAS descriptors on the heap, reclaimed by epochs";
    const GUARANTEES: &'static str = "linearizable; lock-free but for the allocator; lookups write their epoch at most; memory \
         unbounded while a thread stops inside an operation";
    type Lookup = Timestamps;
    type Commit = WholeChain;
    type Search = BreadthFirst;
    type Words = kcas_epoch::WordArray;
    type Length = Length;
}

/// See [`AblationHelpingReaders`].
#[derive(Debug)]
pub struct Helping;

impl Variant for Helping {
    const NAME: &'static str = "ablation-helping-readers";
    const DESCRIPTION: &'static str =
        "the control with readers that help an operation under way to its end before they read";
    const GUARANTEES: &'static str =
        "linearizable; lock-free; lookups write where they meet an operation";
    type Lookup = Timestamps;
    type Commit = WholeChain;
    type Search = BreadthFirst;
    type Words = HelpingReaders;
    type Length = Length;
}

/// See [`AblationDcss`].
#[derive(Debug)]
pub struct Dcss;

impl Variant for Dcss {
    const NAME: &'static str = "ablation-dcss";
    const DESCRIPTION: &'static str =
        "the control with K-CAS in 3k + 1 exchanges: its owner installs by DCSS, as helpers do";
    const GUARANTEES: &'static str = AS_THE_CONTROL;
    type Lookup = Timestamps;
    type Commit = WholeChain;
    type Search = BreadthFirst;
    type Words = OwnersByDcss;
    type Length = Length;
}

/// See [`AblationUncounted`].
#[derive(Debug)]
pub struct NotCounting;

impl Variant for NotCounting {
    const NAME: &'static str = "ablation-uncounted";
    const DESCRIPTION: &'static str = "the control without knowing how many keys there are, which each thread counts in the others";
    const GUARANTEES: &'static str = AS_THE_CONTROL;
    type Lookup = Timestamps;
    type Commit = WholeChain;
    type Search = BreadthFirst;
    type Words = WordArray;
    type Length = Uncounted;
}
