use ahash::RandomState;
use filter::CuckooFilter;
#[test]
fn probe() {
    for n in [
        1usize, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 28, 32, 40, 50, 60, 70, 80, 100,
        150, 200, 300, 500, 1000, 2000, 5000, 10000, 50000, 200000,
    ] {
        let trials = (20_000_000 / n).min(100_000);
        let mut failed = 0;
        let mut slots = 0;
        for seed in 0..trials as u64 {
            let f = CuckooFilter::builder()
                .capacity(n)
                .hasher(RandomState::with_seeds(seed, 2, 3, 4))
                .build()
                .unwrap();
            slots = f.capacity();
            if (0..n as u64).any(|k| f.insert(&k).is_err()) {
                failed += 1;
            }
        }
        println!(
            "n {n} slots {slots} load {:.3} trials {trials} failed {failed}",
            n as f64 / slots as f64
        );
    }
}
