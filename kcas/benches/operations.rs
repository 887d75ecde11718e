//! Single operations on words that no other thread touches, each in a cache line of its own: the
//! cost of K-CAS without contention. The harness measures contention.
//!
//! ```sh
//! cargo bench -p lfcf-kcas                      # all of them, a minute
//! cargo bench -p lfcf-kcas -- kcas/2            # one of them
//! cargo bench -p lfcf-kcas -- --test            # each once, without timing it
//! ```

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use kcas::{Entry, WordArray};

/// Words per cache line.
const LINE: usize = 8;

fn words() -> WordArray {
    WordArray::new(LINE * WordArray::MAX_ENTRIES)
}

fn load(criterion: &mut Criterion) {
    let words = words();
    criterion.bench_function("load", |bencher| {
        bencher.iter(|| words.load(black_box(LINE)));
    });
}

fn compare_exchange(criterion: &mut Criterion) {
    let words = words();
    let mut value = 0;
    criterion.bench_function("compare_exchange", |bencher| {
        bencher.iter(|| {
            let done = words.compare_exchange(black_box(LINE), value, value + 1);
            value += 1;
            done.expect("nobody else writes")
        });
    });
}

/// Each entry replaces the value left by the operation before it.
fn kcas(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("kcas");
    for count in [1, 2, 3, 4, 8] {
        let words = words();
        let mut value = 0;
        group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
            bencher.iter(|| {
                let mut entries = [Entry::new(0, value, value + 1); WordArray::MAX_ENTRIES];
                (entries.iter_mut().enumerate())
                    .for_each(|(number, entry)| entry.index = LINE * number);
                value += 1;
                let done = words.kcas(black_box(&entries[..count]));
                done.expect("nobody else writes");
            });
        });
    }
}

criterion_group!(operations, load, compare_exchange, kcas);
criterion_main!(operations);
