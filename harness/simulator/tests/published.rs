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

struct Machine {
    name: &'static str,
    /// Median latency of a compare-and-swap from core to core (nviennot/core-to-core-latency).
    hand_over: f64,
    /// A fetch-add and an increment by compare-and-swap on one thread, from the same measurements as
    /// the rows.
    alone: [f64; 2],
    /// Some 16 cycles.
    mispredicted: f64,
}

fn predicted(machine: &Machine, counter: Counter, threads: usize) -> f64 {
    let mut model = Model::named_or_read("ice-lake-8375c").unwrap();
    let [exchange, loop_] = machine.alone;
    (model.hand_over.group, model.hand_over.socket) = (machine.hand_over, machine.hand_over);
    (model.exchange, model.mispredicted) = (exchange, machine.mispredicted);
    let mut options = options(20_000);
    let report = match counter {
        Counter::FetchAdd => repeat(&model, threads, 1, &options, |words, _, _| {
            words[0].fetch_sub(1, Relaxed);
        }),
        Counter::CasLoop => {
            // What the loop adds to the exchange.
            options.compute = loop_ - exchange;
            repeat(&model, threads, 1, &options, |words, _, _| {
                let mut seen = words[0].load(Relaxed);
                while let Err(now) = words[0].compare_exchange(seen, seen + 1, Relaxed, Relaxed) {
                    seen = now;
                }
            })
        }
    };
    million_per_second(&report)
}

#[test]
fn published() {
    use Counter::{CasLoop, FetchAdd};
    let skylake = Machine {
        name: "Skylake",
        hand_over: 20.0,
        alone: [7.0, 12.0],
        mispredicted: 6.0,
    };
    let ice_lake = Machine {
        name: "Ice Lake",
        hand_over: 27.0,
        alone: [6.1, 11.0],
        mispredicted: 4.5,
    };
    let graviton = Machine {
        name: "Graviton 2",
        hand_over: 47.0,
        alone: [5.3, 8.0],
        mispredicted: 4.5,
    };
    for (machine, counter, rows) in [
        (&skylake, FetchAdd, &[(2, 45.0), (4, 41.0)][..]),
        (&ice_lake, FetchAdd, &[(2, 61.0), (4, 58.0)]),
        (&graviton, FetchAdd, &[(2, 118.0), (8, 105.0), (16, 106.0)]),
        (&skylake, CasLoop, &[(2, 18.0), (4, 12.0)]),
        (&ice_lake, CasLoop, &[(2, 19.0), (4, 15.0)]),
        (&graviton, CasLoop, &[(2, 38.0), (8, 25.0), (16, 25.0)]),
    ] {
        for &(threads, measured) in rows {
            let predicted = predicted(machine, counter, threads);
            let (name, ratio) = (machine.name, predicted / measured);
            println!("{name:11} {counter:?} {threads:2}: {predicted:6.1} {measured:6.1} {ratio:.2}");
        }
    }
}
