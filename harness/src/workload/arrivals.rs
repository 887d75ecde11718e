//! Open-loop arrivals: when operations are due that arrive at their own rate, whatever happens to
//! those before them.

use rand::RngExt;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, Exp1};

/// Arrival times of one thread, drawn before anything is timed: a Poisson process, which is what
/// many independent callers produce. Merged, the arrivals of several threads form one again, at the
/// sum of their rates.
#[derive(Debug, Clone)]
pub struct Arrivals {
    /// Nanoseconds between two arrivals, used cyclically.
    gaps: Vec<f32>,
    next: usize,
    due: f64,
}

impl Arrivals {
    /// Number of gaps drawn. Their mean is made exact.
    const GAPS: usize = 1 << 14;

    /// Creates arrivals at a rate in operations per second; at 0, none ever comes.
    pub fn new(per_second: f64, random: &mut SmallRng) -> Self {
        let mean = 1e9 / per_second;
        let drawn: Vec<f64> = Exp1.sample_iter(&mut *random).take(Self::GAPS).collect();
        let scale = mean * Self::GAPS as f64 / drawn.iter().sum::<f64>();
        Self {
            gaps: drawn.iter().map(|gap| (gap * scale) as f32).collect(),
            next: random.random_range(0..Self::GAPS),
            due: 0.0,
        }
    }

    /// Returns when the next operation is due, in nanoseconds since the start.
    #[inline]
    pub fn next_ns(&mut self) -> u64 {
        self.due += f64::from(self.gaps[self.next]);
        self.next = (self.next + 1) % self.gaps.len();
        self.due as u64
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn moments(per_second: f64, count: usize) -> Vec<u64> {
        let mut arrivals = Arrivals::new(per_second, &mut SmallRng::seed_from_u64(1));
        (0..count).map(|_| arrivals.next_ns()).collect()
    }

    #[test]
    fn the_rate_is_that_asked_for() {
        let last = *moments(2e6, Arrivals::GAPS).last().unwrap() as f64;
        let expected = Arrivals::GAPS as f64 / 2e6 * 1e9;
        assert!((last / expected - 1.0).abs() < 1e-3, "{last} {expected}");
    }

    /// Half of nothing is due where the closed loop did nothing.
    #[test]
    fn at_a_rate_of_zero_nothing_is_ever_due() {
        assert_eq!(moments(0.0, 3), [u64::MAX; 3]);
    }
}
