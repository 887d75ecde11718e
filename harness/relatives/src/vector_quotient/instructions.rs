//! The instructions that searches in a block are made of: portable ones, and those of x86-64
//! processors, found at run time. All unsafe code is here.
//!
//! - **Select.** `pdep` and a count of trailing zeros find a bucket in the runs (Pandey, Bender,
//!   Johnson, *A Fast x86 Implementation of Select*, 2017).
//! - **Compare.** Two instructions compare all tags of a block (AVX2), while the bucket is being
//!   found. Rust has no atomic load of a vector, so these are written in assembly.
//!
//! Processors of AMD before Zen 3 have `pdep` in microcode: there, the portable code is faster.

use std::sync::atomic::Ordering::Relaxed;

use subject::sync::AtomicU64;

use super::mini_filter::{self, Run};

/// A cache line: words of tags first.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Line(pub(super) [AtomicU64; 8]);

/// Instructions for searches. A value is proof that this processor has them.
pub(super) trait Instructions: Copy {
    /// Calls `work`, which is compiled for these instructions if it is inlined.
    fn run<R>(self, work: impl FnOnce() -> R) -> R;

    /// Finds the slots of a bucket.
    fn run_of(self, bucket: usize, runs: u128) -> Run;

    /// Finds the first slot of the run that holds the tag. The answer is arbitrary if the run is not
    /// one of the line's, or the line changes.
    fn find_tag(self, line: &Line, run: Run, tag: u8) -> Option<usize>;
}

/// The instructions that every processor has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Portable;

impl Instructions for Portable {
    #[inline(always)]
    fn run<R>(self, work: impl FnOnce() -> R) -> R {
        work()
    }

    #[inline(always)]
    fn run_of(self, bucket: usize, runs: u128) -> Run {
        mini_filter::run_of(bucket, runs)
    }

    #[inline(always)]
    fn find_tag(self, line: &Line, run: Run, tag: u8) -> Option<usize> {
        mini_filter::find_tag(run, tag, |word| line.0[word].load(Relaxed))
    }
}

/// The best instructions of this processor.
#[derive(Clone, Copy, Debug)]
pub(super) enum Processor {
    Portable(Portable),
    #[cfg(target_arch = "x86_64")]
    Avx2(x86::Avx2),
}

/// Evaluates an expression with the instructions of a [`Processor`].
macro_rules! with_instructions {
    ($processor:expr, $with:ident => $work:expr) => {
        match $processor {
            Processor::Portable($with) => $work,
            #[cfg(target_arch = "x86_64")]
            Processor::Avx2($with) => $work,
        }
    };
}
pub(super) use with_instructions;

impl Processor {
    /// Returns what this processor has, the best last.
    pub(super) fn available() -> impl Iterator<Item = Self> {
        let portable = std::iter::once(Self::Portable(Portable));
        #[cfg(target_arch = "x86_64")]
        let all = portable.chain(x86::Avx2::found().map(Self::Avx2));
        #[cfg(not(target_arch = "x86_64"))]
        let all = portable;
        all
    }

    pub(super) fn best() -> Self {
        Self::available().last().unwrap_or(Self::Portable(Portable))
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::asm;
    use std::arch::x86_64::{__m256i, _mm256_set1_epi8, _pdep_u64};
    use std::hint::select_unpredictable;

    use kcas::steps::step;

    use super::super::mini_filter::Run;
    use super::{Instructions, Line};

    /// AVX2, with `pdep`.
    #[derive(Clone, Copy, Debug)]
    pub(in super::super) struct Avx2(());

    impl Avx2 {
        pub(super) fn found() -> Option<Self> {
            let found = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("popcnt");
            found.then_some(Self(()))
        }
    }

    impl Instructions for Avx2 {
        #[inline(always)]
        fn run<R>(self, work: impl FnOnce() -> R) -> R {
            // SAFETY: `found` alone makes `self`, and it has found these features.
            unsafe { run(work) }
        }

        #[inline(always)]
        fn run_of(self, bucket: usize, runs: u128) -> Run {
            // SAFETY: as above.
            unsafe { run_of(bucket, runs) }
        }

        #[inline(always)]
        fn find_tag(self, line: &Line, run: Run, tag: u8) -> Option<usize> {
            // SAFETY: as above.
            unsafe { first(equal(line, tag), run) }
        }
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn run<R>(work: impl FnOnce() -> R) -> R {
        work()
    }

    /// [`mini_filter::run_of`](super::mini_filter::run_of).
    #[target_feature(enable = "bmi1,bmi2,popcnt")]
    #[inline]
    fn run_of(bucket: usize, runs: u128) -> Run {
        let (low, high) = (runs as u64, (runs >> 64) as u64);
        let zeros = low.count_zeros() as usize;
        let is_low = bucket < zeros;
        let one = |number: usize| 1_u64.wrapping_shl(number as u32);
        // The word with the bucket's zero, that zero's number there, and the word after it. All
        // these are of 64 bits, as the compiler makes branches of narrower ones.
        let word = select_unpredictable(is_low, low, high);
        let number = select_unpredictable(is_low, one(bucket), one(bucket.wrapping_sub(zeros)));
        let next = select_unpredictable(is_low, high, 0);
        // If there are too few zeros, 64.
        let bit = _pdep_u64(number, !word).trailing_zeros();
        let following = word.wrapping_shr(bit) | (next << 1).wrapping_shl(!bit);
        let bit = (usize::from(!is_low) << 6) + bit as usize;
        Run::at(bit, bucket, following)
    }

    /// Returns the first slot of the run among the bytes of the line with a one.
    #[target_feature(enable = "bmi1,bmi2")]
    #[inline]
    fn first(bytes: u64, run: Run) -> Option<usize> {
        // From bit 1 on, as the ones of the run.
        let from = (bytes << 1).wrapping_shr(run.slot as u32);
        let slots = from & run.ones;
        let slot = run.slot.wrapping_add(slots.trailing_zeros() as usize);
        (slots != 0).then(|| slot.wrapping_sub(1))
    }

    /// Returns a one for each byte of the line that equals the tag.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn equal(line: &Line, tag: u8) -> u64 {
        step();
        let tags: __m256i = _mm256_set1_epi8(tag as i8);
        let (low, high): (u32, u32);
        // SAFETY: this reads the 64 bytes of the line, which is aligned, and writes no memory. Other
        // threads may write it meanwhile, by atomic stores. The result may then be any number: the
        // caller checks the version, and nothing unsafe depends on it.
        unsafe {
            asm!(
                "vpcmpeqb {half}, {tags}, ymmword ptr [{line}]",
                "vpmovmskb {low:e}, {half}",
                "vpcmpeqb {half}, {tags}, ymmword ptr [{line} + 32]",
                "vpmovmskb {high:e}, {half}",
                half = out(ymm_reg) _,
                tags = in(ymm_reg) tags,
                line = in(reg) line,
                low = out(reg) low,
                high = lateout(reg) high,
                options(readonly, nostack, preserves_flags),
            );
        }
        u64::from(low) | u64::from(high) << 32
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use subject::spin::Guard;

    use super::super::block::{Block, Query};
    use super::super::mini_filter::{BUCKETS, SLOTS};
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        /// Few buckets and tags, so that runs are long, and tags equal.
        #[test]
        fn all_instruction_sets_give_same_answers(
            tags in vec((0..BUCKETS, 0..4_u8), 0..=SLOTS), few in 1..=BUCKETS,
        ) {
            let block = Block::default();
            for (bucket, tag) in tags {
                let wanted = Query { bucket: bucket % few, tag };
                prop_assert!(Block::insert(&Guard::take(&block), Portable, wanted));
            }
            for processor in Processor::available() {
                for (bucket, tag) in (0..BUCKETS).flat_map(|bucket| (0..5).map(move |tag| (bucket, tag))) {
                    let wanted = Query { bucket, tag };
                    let found = with_instructions!(processor, with => block.find(with, wanted));
                    prop_assert_eq!(found, block.find(Portable, wanted), "{:?}", processor);
                }
            }
        }

        /// Contents that a lookup may see while another thread changes them.
        #[test]
        fn runs_of_no_block_are_no_danger(runs: u128, sparse: u128, tag: u8) {
            let line = Line::default();
            for runs in [runs, runs & sparse, runs | sparse, 0, u128::MAX, runs << 64, runs >> 64] {
                for (processor, bucket) in Processor::available().flat_map(|it| (0..BUCKETS).map(move |b| (it, b))) {
                    let run = with_instructions!(processor, with => with.run_of(bucket, runs));
                    if bucket < runs.count_zeros() as usize {
                        prop_assert_eq!(run, Portable.run_of(bucket, runs), "{:?}", processor);
                    }
                    // Whatever it finds.
                    let _ = with_instructions!(processor, with => with.find_tag(&line, run, tag));
                }
            }
        }
    }
}
