//! Every command that measures at once and writes its files at the end, in a tiny version.

use crate::place::{Place, has, rows};

pub(crate) struct Study {
    pub(crate) name: &'static str,
    pub(crate) line: &'static str,
    /// What it prints, separated by `; `.
    prints: &'static str,
    /// The first columns of its rows, and how many rows there are.
    columns: &'static str,
    rows: usize,
    /// What its description has.
    described: &'static [&'static str],
    /// What its figure has; it has none if this is empty.
    figure: &'static str,
}

pub(crate) const STUDIES: [Study; 7] = [
    Study {
        name: "pair",
        line: "pair lock-free word-lock --against fastbloom --threads 2,1 --processes 2 --keys 1000 \
               --seconds 0.001",
        prints: "over itself; over fastbloom; | Removes, from load factor 0.95 ; the median alone",
        columns: "process,workload,threads,first,subject,ratio",
        // Itself and one rival in four workloads, and what cannot remove in two.
        rows: 2 * 2 * (4 * 3 + 2),
        described: &["hand_over_ns = ", "ended = "],
        figure: "Throughput of lock-free over the rival's; fastbloom (",
    },
    Study {
        name: "layouts",
        line: "space layouts --buckets 1000 --tables 1 --absent 10000",
        prints: "4×12; 2×24; tables of 1,000 buckets, 1 of each layout",
        columns: "slots,bits,timestamp_bits,buckets,tables,planned_load",
        rows: 11,
        described: &["rate_upper = "],
        figure: "4×12; Bloom filter",
    },
    Study {
        name: "kcas",
        line: "kcas --threads 2,1,2 --rounds 1 --seconds 0.001",
        prints: "over crate kcas; over mutex; | contended |       2 | 8 |",
        columns: "experiment,subject,workload,threads,",
        // Two workloads, eight sizes, two numbers of threads.
        rows: 2 * 8 * 2 * harness::subjects::engines::ENGINES.len(),
        described: &["kcas --threads 2,1,2", "wrong_words = "],
        figure: "disjoint (1 thread; contended (2 threads; ours, epoch; Commit",
    },
    Study {
        name: "memory",
        line: "space memory --subjects lock-free-8x7,bloom --loads 0.5 --keys 1000,2000 --absent 1000 --rounds 2",
        prints: "lock-free-8x7 |;  million/s |",
        columns: "subject,load_factor,keys,refused",
        rows: 2 * 2 * 2,
        described: &["resident_bytes = ", "lookup_mops = "],
        figure: "8x7; 2,000 keys; million lookups/s",
    },
    Study {
        name: "theory",
        line: "space theory --keys 10000 --subjects counting-bloom,global-lock --seed 7",
        prints: "(1 − e^(−kn/m))^k; Fan et al. 2014, table 2; results/theory.csv",
        // In the order in which they are named.
        columns: "structure,quantity,formula,predicted,measured,least,most,holds\ncounting-bloom,",
        rows: 7,
        described: &["least = ", "seed = 7"],
        figure: "",
    },
    Study {
        name: "cuckoo-hashing",
        line: "cuckoo-hashing --buckets 1000 --loads 0.3,0.8 --rounds 2 --operations 200",
        prints: "100/0/0; 0/95/5; plain-cuckoo gives up after 50 kicks;  first refused at load |",
        columns: "table,mix,load,round,buckets,most_kicks",
        rows: 2 * 5 * 2 * 2,
        described: &["wasted_kicks = "],
        figure: "smart-cuckoo; 25/75/0",
    },
    Study {
        name: "growth",
        line: "growth --keys 20000 --slices 6 --rounds 2 --threads 2",
        prints: "20,000 keys, inserted by 2 threads, with 4 lookups; | 20,000 keys ; over scalable-bloom;  the whole way |",
        columns: "subject,round,keys,all_keys,threads,",
        // Two rounds of three subjects, with six slices and the first one.
        rows: 2 * 3 * 7,
        described: &["timing costs", "timing_ns = ", "a thousandth of the keys"],
        figure: "insert, longest; scalable-bloom; 2 threads; Commit",
    },
];

#[test]
fn a_study_leaves_table_rows_a_figure_that_can_be_drawn_again_and_a_page() {
    for study in &STUDIES {
        let place = Place::new();
        let all = |texts: &'static str| texts.split("; ").collect::<Vec<_>>();
        let ended = place.run(study.line).prints(&all(study.prints));
        for line in ended.stdout.lines().chain(ended.stderr.lines()) {
            assert!(line.chars().count() <= 100, "{line}");
        }
        let file = |ending: &str| format!("results/{}.{ending}", study.name);
        let csv = place.text(&file("csv"));
        assert!(csv.starts_with(study.columns), "{csv}");
        assert_eq!(rows(&csv), study.rows, "{}", study.name);
        has(&place.text(&file("machine.toml")), study.described);
        let described = place.table(&file("machine.toml"));
        for column in csv.lines().next().unwrap().split(',') {
            assert!(described["columns"][column].is_str(), "{column}");
        }
        if study.figure.is_empty() {
            assert!(!place.path(&file("svg")).exists());
        } else {
            let figure = place.text(&file("svg"));
            has(&figure, &all(study.figure));
            place.remove(&file("svg"));
            place.run(&format!("plot {}", file("csv")));
            assert_eq!(place.text(&file("svg")), figure);
        }
        place.run("report");
        has(
            &place.text("results/report.html"),
            &[&format!("<h2 id=\"{}\"", study.name)],
        );
    }
}

#[test]
fn growth_with_more_threads_than_cores_is_labelled() {
    let threads = harness::machine::pinning::Cores::detect().count() + 1;
    let place = Place::new();
    let growth = format!("growth --keys 10000 --slices 3 --rounds 1 --threads {threads}");
    place.run(&growth).prints(&["more threads than cores"]);
    let label = format!("{threads} threads, oversubscribed");
    has(&place.text("results/growth.svg"), &[&label]);
}

/// One rule for the tables of all commands.
#[test]
fn one_round_is_no_claim_in_any_table() {
    let place = Place::with_tiny("rounds = 2", "rounds = 1");
    let kicks = "cuckoo-hashing --rounds 1 --buckets 1000 --loads 0.2,0.4 --operations 20";
    for (line, least_marked) in [
        // Ours and three or four others, under two workloads with 1 to 8 words.
        ("kcas --rounds 1 --threads 1 --seconds 0.01", 64),
        (kicks, 10),
        ("growth --rounds 1 --keys 10000 --threads 1 --slices 3", 8),
        ("sweep tiny.toml", 2),
    ] {
        let printed = place.run(line).stdout;
        let marked = printed.matches("] #").count();
        assert!(marked >= least_marked, "{marked} marks\n{printed}");
        let lines = printed.lines().filter(|line| line.starts_with('|'));
        let mut cells = lines.flat_map(|line| line.split('|'));
        let claim = cells.find(|cell| cell.contains('[') && !cell.trim_end().ends_with("] #"));
        assert_eq!(claim, None, "{printed}");
        has(&printed, &["# no claim: fewer than 9 rounds"]);
    }
    let figure = place.text("results/tiny.svg");
    assert!(figure.contains("median of 1 round.") && !figure.contains("1 rounds"));
}
