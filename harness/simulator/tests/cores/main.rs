//! Tests with small programs for simulated cores.

mod limits;
mod published;

use std::rc::Rc;
use std::sync::atomic::Ordering;

use crossbeam_utils::CachePadded;
use kcas::sync::AtomicU64;
use simulator::{Body, Core, Model, Options, Report, run};

/// Words, each on a line of its own.
pub(crate) type Words = Rc<[CachePadded<AtomicU64>]>;

pub(crate) fn options(operations: u64) -> Options {
    Options {
        limits: vec![operations / 4, operations],
        seed: 1,
        ..Options::default()
    }
}

/// Runs `operation` (of words, core and its number) again and again on each core.
pub(crate) fn repeat(
    model: &Model,
    cores: usize,
    words: usize,
    options: &Options,
    operation: impl Fn(&[CachePadded<AtomicU64>], usize, u64) + Copy + 'static,
) -> Report {
    let ran = run(model, cores, options, || {
        let word = |_| CachePadded::new(AtomicU64::new(0));
        let words: Words = (0..words).map(word).collect();
        let body = |core| {
            let words = Rc::clone(&words);
            Box::new(move |handle: &Core| {
                let until_stopped = || {
                    let mut done = 0;
                    while !handle.stop.load(Ordering::Relaxed) {
                        operation(&words, core, done);
                        done += 1;
                        handle.operations.store(done, Ordering::Relaxed);
                    }
                };
                until_stopped();
                handle.begin_next_part();
                until_stopped();
            }) as Body
        };
        Ok(((), (0..cores).map(body).collect()))
    });
    ran.unwrap().1
}

pub(crate) fn million_per_second(report: &Report) -> f64 {
    report.operations as f64 / report.seconds / 1e6
}
