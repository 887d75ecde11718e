//! Where the answer is known without a model, the model must give it.

use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use crossbeam_utils::CachePadded;
use kcas::sync::AtomicU64;
use simulator::{Body, Core, Model, Options, Pause, Report, park, pause, wake};

use crate::{Words, million_per_second, options, repeat};

fn model() -> Model {
    Model::named("ice-lake-8375c").unwrap()
}

/// All cores add to one word.
fn one_line(model: &Model, cores: usize) -> Report {
    shared_lines(model, cores, 1)
}

/// Each core adds to a word of its own.
fn own_lines(model: &Model, cores: usize) -> Report {
    shared_lines(model, cores, cores)
}

fn shared_lines(model: &Model, cores: usize, lines: usize) -> Report {
    let options = options(20_000);
    repeat(model, cores, lines, &options, move |words, core, _| {
        words[core % lines].fetch_sub(1, Relaxed);
    })
}

/// A mix of loads and exchanges of few words.
fn some_lines(model: &Model, cores: usize) -> Report {
    repeat(model, cores, 64, &options(20_000), |words, core, done| {
        let word = &words[(done as usize * 7 + core * 13) % 64];
        let seen = word.load(Relaxed);
        if done % 4 == 0 {
            let _ = word.compare_exchange(seen, seen + 1, Relaxed, Relaxed);
        }
    })
}

/// Free coherence: hand-overs take no time, nor does an exchange that fails because of others, and
/// what others have read is as near as the nearest cache.
fn free(mut model: Model) -> Model {
    (model.hand_over.group, model.hand_over.socket) = (0.0, 0.0);
    model.mispredicted = 0.0;
    model.llc.ns = model.l1.ns;
    model
}

#[track_caller]
fn assert_near(value: f64, expected: f64, share: f64) {
    let is_near = (value / expected - 1.0).abs() < share;
    assert!(is_near, "{value}, not about {expected}");
}

#[test]
fn free_coherence_and_disjoint_lines_scale() {
    let (model, free) = (model(), free(model()));
    for (program, model) in [
        (one_line as fn(&Model, usize) -> Report, &free),
        (own_lines, &free),
        (some_lines, &free),
        // Disjoint lines are never handed over.
        (own_lines, &model),
    ] {
        let one = million_per_second(&program(model, 1));
        for cores in [2, 8, 32] {
            let all = million_per_second(&program(model, cores));
            assert_near(all, one * cores as f64, 0.05);
        }
    }
}

#[test]
fn one_line_is_serial() {
    let model = model();
    let two = million_per_second(&one_line(&model, 2));
    for cores in [4, 16, 32] {
        let all = million_per_second(&one_line(&model, cores));
        assert_near(all, two, 0.1);
    }
    // Never more than one exchange at a time, and never less than one for each hand-over.
    assert!(two < 1e3 / model.exchange && two > 1e3 / model.hand_over.socket);
}

/// Nobody sleeps here, but all exchange.
#[test]
fn unused_number_changes_nothing() {
    let model = model();
    let expected = some_lines(&model, 8);
    type Change = fn(&mut Model);
    let with = |change: Change| {
        let mut changed = model.clone();
        change(&mut changed);
        some_lines(&changed, 8)
    };
    let unused: [Change; 3] = [
        |model| model.waiting.call *= 2.0,
        |model| model.waiting.wake *= 2.0,
        |model| model.waiting.awake *= 2.0,
    ];
    assert!(unused.into_iter().all(|change| with(change) == expected));
    let used: [Change; 3] = [
        |model| model.exchange *= 2.0,
        |model| model.kept *= 2.0,
        |model| model.unawaited *= 2.0,
    ];
    assert!((used.into_iter()).all(|change| with(change).seconds != expected.seconds));
}

/// Some critical sections of two threads end while the line is kept, and some later. If all took the same time, either
/// none would need another hand-over or each would, and a little more time would halve the throughput.
#[test]
fn threads_under_lock_stay_out_of_step() {
    let mut model = model();
    let mut options = options(5_000);
    options.compute = 3.0;
    let under_a_lock = |twentieths| {
        model.kept = f64::from(twentieths) / 20.0;
        million_per_second(&repeat(&model, 2, 2, &options, |words, _, _| {
            while words[0].swap(1, Relaxed) != 0 {
                while words[0].load(Relaxed) != 0 {
                    pause(Pause::Spin(1));
                }
            }
            for _ in 0..4 {
                words[1].load(Relaxed);
            }
            words[0].store(0, Relaxed);
        }))
    };
    let found: Vec<f64> = (1..20).map(under_a_lock).collect();
    for two in found.windows(2) {
        let ratio = (two[1] / two[0]).max(two[0] / two[1]);
        assert!(ratio < 1.5, "{found:?}");
    }
}

/// Two cores load any of a thousand words, and exchange half of them: every other one, or those that chance chooses.
fn every_other_one(model: &Model, by_chance: bool) -> Report {
    repeat(
        model,
        2,
        1_000,
        &options(20_000),
        move |words, core, done| {
            // Different bits of one product look like different draws.
            let drawn = (done * 2 + core as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let chosen = if by_chance { drawn >> 60 } else { done };
            let word = &words[(drawn >> 32) as usize % 1_000];
            let seen = word.load(Relaxed);
            if chosen % 2 == 0 {
                let _ = word.compare_exchange(seen, seen + 1, Relaxed, Relaxed);
            }
        },
    )
}

#[test]
fn unforeseen_access_waits_whole_hand_over() {
    let model = model();
    let [regular, by_chance] = [false, true].map(|chance| every_other_one(&model, chance));
    assert!(
        by_chance.seconds > 1.5 * regular.seconds,
        "{by_chance:?}, {regular:?}"
    );
}

/// Returns the time of an operation of one core on so many lines, in ns.
fn alone(
    model: &Model,
    lines: usize,
    options: &Options,
    operation: impl Fn(&AtomicU64) + Copy + 'static,
) -> f64 {
    let report = repeat(model, 1, lines, options, move |words, _, done| {
        operation(&words[done as usize % lines]);
    });
    report.seconds * 1e9 / report.operations as f64
}

/// One core goes round and round a table: it finds each line in the nearest level that holds them
/// all. After a pause it waits for the whole latency, as it could not ask for the line before.
#[test]
fn each_cache_level_has_its_price() {
    let mut model = model();
    (model.l1.kib, model.l2.kib, model.llc.kib) = (8, 128, 2_048);
    let prices = [model.l1.ns, model.l2.ns, model.llc.ns, model.memory];
    let load = |word: &AtomicU64| {
        word.load(Relaxed);
    };
    for (lines, price) in [16, 512, 8_192, 65_536].into_iter().zip(prices) {
        let found = alone(&model, lines, &options(300_000), load);
        assert_near(found, price / model.overlap.loads, 0.05);
    }
    let found = alone(&model, 8_192, &options(100_000), move |word| {
        pause(Pause::Spin(1));
        load(word);
    });
    assert_near(found, model.waiting.pause + model.llc.ns, 0.05);
}

/// Two cores go round a table larger than their own caches, half a round apart: each finds what the other one wrote in
/// the last level, if they share it; if each has its own, the line comes from the other's, and what its own has is out
/// of date.
#[test]
fn line_written_elsewhere_comes_from_its_last_level() {
    let mut model = model();
    model.l2.kib = 128;
    let time = |model: &Model| {
        let report = repeat(model, 2, 8_192, &options(100_000), |words, core, done| {
            words[(core * 4_096 + done as usize) % 8_192].fetch_add(1, Relaxed);
        });
        report.seconds * 2e9 / report.operations as f64
    };
    let shared = time(&model);
    (model.cores_per_group, model.llc_of_group) = (1, true);
    let more = (model.hand_over.socket - model.llc.ns) / model.overlap.exchanges;
    assert_near(time(&model) - shared, more, 0.1);
}

#[test]
fn call_without_effect_is_cheap() {
    let model = model();
    let calls: [fn(&AtomicU64); 2] = [
        |word| wake(std::ptr::from_ref(word).addr()),
        |_| {
            pause(Pause::Call);
        },
    ];
    for call in calls {
        let found = alone(&model, 1, &options(1_000), move |word| {
            word.load(Relaxed);
            call(word);
        });
        assert_near(found, model.waiting.call, 0.02);
    }
}

#[test]
fn compute_time_passes_except_after_pause() {
    let model = model();
    let mut options = options(20_000);
    options.compute = 10.0;
    let load = model.l1.ns / model.overlap.loads;
    for pauses in [0, 1, 4] {
        let found = alone(&model, 1, &options, move |word| {
            for access in 0..4 {
                if access < pauses {
                    pause(Pause::Spin(1));
                }
                word.load(Relaxed);
            }
        });
        let computed = 10.0 * f64::from(4 - pauses);
        let expected = computed + f64::from(pauses) * model.waiting.pause + 4.0 * load;
        assert_near(found, expected, 0.02);
    }
}

/// Two cores wake each other in turn: each trip takes what the waker pays and the way of the sleeper.
#[test]
fn sleeper_wakes_after_call_of_waker() {
    const TRIPS: u64 = 100;
    let model = model();
    let mut options = options(1);
    options.limits.clear();
    let ran = simulator::run(&model, 2, &options, || {
        let words: Words = Rc::new([const { CachePadded::new(AtomicU64::new(0)) }; 2]);
        let body = |core: usize| {
            let words = Rc::clone(&words);
            Box::new(move |_: &Core| {
                let place = |core: usize| std::ptr::from_ref(&words[core]).addr();
                if core == 0 {
                    while words[0].load(Relaxed) == 0 {
                        pause(Pause::Spin(1));
                    }
                } else {
                    words[0].store(1, Relaxed);
                    park(place(1));
                }
                for trip in 1..=TRIPS {
                    wake(place(1 - core));
                    if core == 0 || trip < TRIPS {
                        park(place(core));
                    }
                }
            }) as Body
        };
        Ok(((), vec![body(0), body(1)]))
    });
    let ((), report) = ran.unwrap();
    let trip = report.seconds * 1e9 / (2 * TRIPS) as f64;
    let expected = model.waiting.wake + model.waiting.awake;
    assert_near(trip, expected, 0.01);
    let counts = report.counts;
    assert_eq!((counts.parked, counts.calls), (2 * TRIPS, 0));
}

#[test]
fn too_many_cores_are_refused() {
    let ran = simulator::run(&model(), 33, &options(1), || Ok(((), Vec::new())));
    let error = ran.unwrap_err().to_string();
    assert!(error.contains("1 to 32 threads, not 33"), "{error}");
}
