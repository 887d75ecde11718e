//! Published throughput of one contended line, against what the model makes of published hand-over
//! latencies. `--nocapture` prints the table.

mod common;

use std::sync::atomic::Ordering::Relaxed;

use common::{million_per_second, options, repeat};
use simulator::Model;

/// A counter that all threads add to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Counter {
    FetchAdd,
    CasLoop,
}

fn predicted(hand_over: f64, counter: Counter, threads: usize) -> f64 {
    let mut model = Model::named_or_read("ice-lake-8375c").unwrap();
    (model.hand_over.group, model.hand_over.socket) = (hand_over, hand_over);
    let options = options(20_000);
    let report = match counter {
        Counter::FetchAdd => repeat(&model, threads, 1, &options, |words, _, _| {
            words[0].fetch_sub(1, Relaxed);
        }),
        Counter::CasLoop => repeat(&model, threads, 1, &options, |words, _, _| {
            let mut seen = words[0].load(Relaxed);
            while let Err(now) = words[0].compare_exchange(seen, seen + 1, Relaxed, Relaxed) {
                seen = now;
            }
        }),
    };
    million_per_second(&report)
}

#[test]
fn published() {
    use Counter::{CasLoop, FetchAdd};
    for (machine, hand_over, counter, rows) in [
        ("Skylake", 48.0, FetchAdd, &[(2, 45.0), (4, 41.0)][..]),
        ("Ice Lake", 51.0, FetchAdd, &[(2, 61.0), (4, 58.0)]),
        ("Graviton 2", 47.0, FetchAdd, &[(2, 118.0), (8, 105.0), (16, 106.0)]),
        ("Skylake", 48.0, CasLoop, &[(2, 18.0), (4, 12.0)]),
        ("Ice Lake", 51.0, CasLoop, &[(2, 19.0), (4, 15.0)]),
        ("Graviton 2", 47.0, CasLoop, &[(2, 38.0), (8, 25.0), (16, 25.0)]),
    ] {
        for &(threads, measured) in rows {
            let predicted = predicted(hand_over, counter, threads);
            let ratio = predicted / measured;
            println!("{machine:11} {counter:?} {threads:2}: {predicted:6.1} {measured:6.1} {ratio:.2}");
        }
    }
}
