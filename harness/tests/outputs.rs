//! Tests of commands that cannot write: to a standard output that nobody reads or that is full, and
//! to directories that are not writable.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use assert_cmd::cargo::cargo_bin;
use tempfile::TempDir;

/// Returns a sweep of six measurements with this name.
fn experiment(name: &str) -> String {
    format!(
        "name = '{name}'\ntitle = 'A tiny sweep'\nsubjects = ['lock-free', 'segment-lock', 'roofline']\n\
         threads = [1, 2]\nrounds = 1\nseconds = 0.01\nkeys = 1000\nseed = 1\n\
         [[workload]]\nkind = 'lookup-hit'\nload = 0.9"
    )
}

/// Every command that measures at once and writes its files at the end, in a tiny version, with the
/// name of its files.
const STUDIES: [(&str, &str); 6] = [
    ("layouts", "layouts --buckets 1000 --tables 1 --absent 1000"),
    ("kcas", "kcas --rounds 1 --threads 1 --seconds 0.001"),
    (
        "memory",
        "memory --subjects lock-free --loads 0.5 --keys 1000 --absent 1000",
    ),
    ("theory", "theory --only bloom --keys 10000"),
    (
        "cuckoo-hashing",
        "cuckoo-hashing --buckets 1000 --rounds 1 --operations 10 --loads 0.2",
    ),
    ("growth", "growth --keys 10000 --rounds 1 --slices 3"),
];

/// A directory of its own to run the program in.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for name in ["a", "b"] {
            fs::write(place.path(&format!("{name}.toml")), experiment(name)).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Returns the files in a directory, sorted; empty if it does not exist.
    fn files(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(directory));
        let names = entries
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    fn run(&self, arguments: &str, stdout: impl Into<Stdio>) -> Ended {
        let mut command = Command::new(cargo_bin!("harness"));
        command.args(arguments.split(' ')).stdout(stdout);
        self.end(command)
    }

    fn end(&self, mut command: Command) -> Ended {
        command.current_dir(self.0.path()).stderr(Stdio::piped());
        let Output {
            status,
            stdout,
            stderr,
        } = command.spawn().unwrap().wait_with_output().unwrap();
        Ended {
            code: status.code(),
            stdout: String::from_utf8(stdout).unwrap(),
            stderr: String::from_utf8(stderr).unwrap(),
        }
    }
}

#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Returns a standard output whose reader has gone, as with `| true`.
fn unread() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// Returns a standard output on a full disk.
#[cfg(target_os = "linux")]
fn full() -> Stdio {
    File::options()
        .write(true)
        .open("/dev/full")
        .unwrap()
        .into()
}

#[test]
fn what_only_prints_ends_quietly_when_nobody_reads() {
    let place = Place::new();
    for arguments in ["list --experiments .", "--help", "plot --help"] {
        let ended = place.run(arguments, unread());
        assert_eq!(ended.code, Some(0), "{arguments}: {ended:?}");
        assert_eq!(ended.stdout + &ended.stderr, "", "{arguments}");
    }
}

#[test]
fn what_measures_goes_on_when_nobody_reads() {
    let place = Place::new();
    let swept = "sweep a.toml b.toml --out swept";
    let studies = STUDIES.map(|(_, arguments)| format!("{arguments} --out studies"));
    for arguments in studies.iter().map(String::as_str).chain([swept]) {
        let ended = place.run(arguments, unread());
        assert_eq!(ended.code, Some(0), "{arguments}: {ended:?}");
        let told = ended
            .stderr
            .matches("standard output is no longer read")
            .count();
        assert_eq!(told, 1, "{arguments}: {ended:?}");
    }
    for name in ["a", "b"] {
        let csv = fs::read_to_string(place.path(&format!("swept/{name}.csv"))).unwrap();
        assert_eq!(csv.lines().count(), 1 + 6);
        assert!(place.path(&format!("swept/{name}.svg")).exists());
    }
    for (name, _) in STUDIES {
        let csv = fs::read_to_string(place.path(&format!("studies/{name}.csv"))).unwrap();
        assert!(csv.lines().count() > 1, "{name}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_standard_output_is_one_line_of_error_and_costs_no_file() {
    let place = Place::new();
    let error =
        "error: cannot write to the standard output: No space left on device (os error 28)\n";
    for arguments in ["list --experiments .", "--help", "--version"] {
        let ended = place.run(arguments, full());
        assert_eq!(
            (ended.code, &*ended.stderr),
            (Some(1), error),
            "{arguments}"
        );
    }
    for (arguments, files) in [
        ("sweep a.toml b.toml --out swept", 6),
        (
            "layouts --buckets 1000 --tables 1 --absent 1000 --out studied",
            3,
        ),
    ] {
        let ended = place.run(arguments, full());
        assert_eq!(ended.code, Some(1), "{arguments}: {ended:?}");
        assert!(ended.stderr.ends_with(error), "{arguments}: {ended:?}");
        assert_eq!(ended.stderr.matches("standard output").count(), 1);
        let directory = arguments.rsplit(' ').next().unwrap();
        assert_eq!(place.files(directory).len(), files, "{arguments}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_standard_error_that_fails_stops_nothing() {
    let place = Place::new();
    let mut command = Command::new(cargo_bin!("harness"));
    command.args(["sweep", "a.toml", "--out", "swept"]);
    command.current_dir(place.0.path()).stdout(Stdio::null());
    assert!(command.stderr(full()).status().unwrap().success());
    assert_eq!(place.files("swept").len(), 3);
}

/// Writes results of a sweep, and of a command that measures at once.
fn results(place: &Place, directory: &str) {
    for command in ["sweep a.toml", STUDIES[0].1] {
        let ended = place.run(&format!("{command} --out {directory}"), Stdio::piped());
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
}

#[test]
fn a_foreign_file_keeps_no_page_from_being_made() {
    let place = Place::new();
    results(&place, "r");
    fs::write(place.path("r/prices.csv"), "fruit,price\napple,1\n").unwrap();
    fs::write(place.path("r/empty.csv"), "").unwrap();
    fs::create_dir(place.path("r/directory.csv")).unwrap();
    fs::write(place.path("r/picture.csv"), b"\x89PNG\r\n\xff\xfe,\n").unwrap();

    let ended = place.run("report r", Stdio::piped());
    assert_eq!(
        (ended.code, &*ended.stdout),
        (Some(0), "r/report.html\n"),
        "{ended:?}"
    );
    let page = fs::read_to_string(place.path("r/report.html")).unwrap();
    assert!(page.contains("href=\"a.csv\"") && page.contains("href=\"layouts.csv\""));
    for (name, why) in [
        ("prices", "no command leaves such columns"),
        ("empty", "no command leaves such columns"),
        ("picture", "no command leaves such columns"),
    ] {
        let told = ended
            .stderr
            .lines()
            .filter(|line| line.contains(&format!("r/{name}.csv")));
        let told: Vec<_> = told.collect();
        assert_eq!(told.len(), 1, "{name}: {ended:?}");
        assert!(
            told[0].starts_with("note: left out") && told[0].contains(why),
            "{told:?}"
        );
        assert_eq!(told[0].matches(".csv").count(), 1, "{told:?}");
        let on_page = page.split("Left out").nth(1).unwrap();
        assert!(on_page.contains(&format!("<li>{name}.csv")), "{on_page}");
    }
}

#[test]
fn results_that_cannot_be_read_are_an_error_but_keep_no_page_from_being_made() {
    let place = Place::new();
    results(&place, "r");
    let rows = fs::read_to_string(place.path("r/a.csv")).unwrap();
    let last = rows.trim_end().rfind('\n').unwrap() + 1;
    fs::write(place.path("r/torn.csv"), &rows[..last + 20]).unwrap();
    let ended = place.run("report r", Stdio::piped());
    assert_eq!(
        (ended.code, &*ended.stdout),
        (Some(1), "r/report.html\n"),
        "{ended:?}"
    );
    let line = rows.lines().count();
    let columns = rows.lines().next().unwrap().split(',').count();
    let expected = format!(
        "r/torn.csv: line {line}: 3 values where the header has {columns}, as it is cut off; `sweep --resume`"
    );
    assert!(
        ended.stderr.contains(&expected) && ended.stderr.contains("measure them anew"),
        "{ended:?}"
    );
    assert_eq!(ended.stderr.matches("torn.csv").count(), 1, "{ended:?}");
    let page = fs::read_to_string(place.path("r/report.html")).unwrap();
    assert!(page.contains("href=\"a.csv\"") && page.contains("<li>torn.csv: line"));
}

#[test]
fn what_plot_draws_is_told_in_help_and_errors() {
    let place = Place::new();
    fs::write(place.path("prices.csv"), "fruit,price\napple,1\n").unwrap();
    let drawn = [
        "sweep",
        "layouts",
        "kcas",
        "memory",
        "cuckoo-hashing",
        "growth",
    ];
    let help = place.run("plot --help", Stdio::piped()).stdout;
    assert!(help.contains("theory.csv"), "{help}");
    for (name, why) in [("prices.csv", "column `experiment` is missing")] {
        let ended = place.run(&format!("plot {name}"), Stdio::piped());
        assert_eq!(ended.code, Some(1));
        let error = ended.stderr.lines().last().unwrap();
        assert!(
            error.starts_with("error: ") && error.contains(why),
            "{error}"
        );
        assert_eq!(error.matches(name).count(), 1, "{error}");
        for command in drawn {
            assert!(
                error.contains(&format!("`{command}`")),
                "{command}: {error}"
            );
            assert!(help.contains(&format!("`{command}`")), "{command}: {help}");
        }
    }
}

/// Returns every command that writes results, without `--out`.
fn leaving() -> impl Iterator<Item = &'static str> {
    let studies = STUDIES.iter().map(|(_, arguments)| *arguments);
    studies.chain(["sweep a.toml b.toml"])
}

/// Checks that it ended with one line of error, before it measured or showed anything.
fn ended_before_anything(ended: &Ended, arguments: &str) {
    assert_eq!(
        (ended.code, &*ended.stdout),
        (Some(1), ""),
        "{arguments}: {ended:?}"
    );
    let lines = ended.stderr.lines();
    let lines: Vec<_> = lines
        .filter(|line| !line.starts_with("note: this build"))
        .collect();
    assert_eq!(lines.len(), 1, "{arguments}: {ended:?}");
    assert!(
        lines[0].starts_with("error: cannot write results"),
        "{lines:?}"
    );
    assert!(lines[0].contains("--out"), "{lines:?}");
}

#[test]
fn a_directory_that_cannot_be_made_is_found_before_anything_is_measured() {
    let place = Place::new();
    for arguments in leaving() {
        let ended = place.run(&format!("{arguments} --out b.toml/r"), Stdio::piped());
        ended_before_anything(&ended, arguments);
        assert_eq!(ended.stderr.matches("b.toml/r").count(), 1, "{ended:?}");
    }
}

/// Runs it with files limited to `blocks` blocks of 512 bytes, as if the disk were full then.
#[cfg(target_os = "linux")]
fn on_a_full_disk(place: &Place, blocks: u32, arguments: &str) -> Ended {
    let mut command = Command::new("sh");
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    command.args(["-c", &script]).arg(cargo_bin!("harness"));
    command.args(arguments.split(' ')).stdout(Stdio::piped());
    place.end(command)
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_found_before_anything_is_measured() {
    let place = Place::new();
    for arguments in leaving() {
        let ended = on_a_full_disk(&place, 0, &format!("{arguments} --out full"));
        ended_before_anything(&ended, arguments);
        assert!(!place.path("full").exists(), "{arguments}");
    }
}

/// The figure is too long.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_fills_up_costs_only_what_does_not_fit() {
    let place = Place::new();
    let second = "\n[[workload]]\nkind = 'insert'\nload = 0.9";
    fs::write(place.path("a.toml"), experiment("a") + second).unwrap();
    for (name, arguments) in [STUDIES[0], ("a", "sweep a.toml")] {
        let ended = on_a_full_disk(&place, 16, &format!("{arguments} --out {name}"));
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let error = ended.stderr.lines().last().unwrap();
        assert!(
            error.starts_with(&format!("error: cannot write {name}/{name}.svg: ")),
            "{error}"
        );
        let files = [".csv", ".machine.toml"].map(|ending| format!("{name}{ending}"));
        assert_eq!(place.files(name), files);
        assert!(ended.stdout.contains("|----"), "no table: {ended:?}");
        for file in files {
            assert!(
                ended.stdout.contains(&format!("{name}/{file}\n")),
                "{ended:?}"
            );
        }
    }
}

/// The rows are too many.
#[cfg(target_os = "linux")]
#[test]
fn rows_that_do_not_fit_are_shown_and_leave_earlier_results_alone() {
    let place = Place::new();
    let kcas = "kcas --rounds 2 --threads 1,2 --seconds 0.001 --out r";
    assert_eq!(place.run(kcas, Stdio::piped()).code, Some(0));
    let earlier = fs::read(place.path("r/kcas.csv")).unwrap();
    let ended = on_a_full_disk(&place, 16, kcas);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let error = ended.stderr.lines().last().unwrap();
    assert!(
        error.starts_with("error: cannot write r/kcas.csv: "),
        "{error}"
    );
    assert!(
        ended.stdout.contains("|----") && !ended.stdout.contains("r/kcas"),
        "{ended:?}"
    );
    assert_eq!(
        place.files("r"),
        ["kcas.csv", "kcas.machine.toml", "kcas.svg"]
    );
    assert_eq!(fs::read(place.path("r/kcas.csv")).unwrap(), earlier);
}

#[cfg(target_os = "linux")]
#[test]
fn a_sweep_whose_rows_do_not_fit_shows_what_it_has_and_can_go_on() {
    let place = Place::new();
    let more = experiment("a").replace("rounds = 1", "rounds = 40");
    fs::write(place.path("a.toml"), more).unwrap();
    let ended = on_a_full_disk(&place, 16, "sweep a.toml b.toml --out r");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let error = ended.stderr.lines().last().unwrap();
    assert!(
        error.starts_with("error: the run ended early, with "),
        "{error}"
    );
    assert!(error.contains("cannot write to r/a.csv"), "{error}");
    assert!(ended.stdout.contains("|----"), "no table: {ended:?}");
    assert!(!place.files("r").iter().any(|file| file.ends_with(".new")));
    let resumed = place.run("sweep a.toml b.toml --out r --resume", Stdio::piped());
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let csv = fs::read_to_string(place.path("r/a.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 6 * 40);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_costs_no_earlier_figure_and_no_page() {
    let place = Place::new();
    results(&place, "r");
    assert_eq!(place.run("report r", Stdio::piped()).code, Some(0));
    for (command, file) in [("plot r/a.csv", "r/a.svg"), ("report r", "r/report.html")] {
        let before = (fs::read(place.path(file)).unwrap(), place.files("r"));
        let ended = on_a_full_disk(&place, 1, command);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let error = ended.stderr.lines().last().unwrap();
        assert!(
            error.starts_with(&format!("error: cannot write {file}: ")),
            "{error}"
        );
        assert_eq!(
            (fs::read(place.path(file)).unwrap(), place.files("r")),
            before
        );
    }
}

/// The process that measures the second subject cannot get the memory it needs.
#[cfg(target_os = "linux")]
#[test]
fn what_memory_measured_is_kept_when_a_subject_fails() {
    let place = Place::new();
    let mut command = Command::new("sh");
    let script = "ulimit -v 100000; exec \"$0\" \"$@\"";
    command.args(["-c", script]).arg(cargo_bin!("harness"));
    let arguments = "memory --subjects lock-free,exact-set --loads 0.5 --keys 3000000 --absent 1 --threads 1 --out r";
    command.args(arguments.split(' ')).stdout(Stdio::piped());
    let ended = place.end(command);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let error = ended
        .stderr
        .lines()
        .find(|line| line.starts_with("error: "));
    let error = error.unwrap();
    assert!(
        error.contains("kept") && error.contains("exact-set at load factor 0.5"),
        "{error}"
    );
    assert!(ended.stdout.contains("| lock-free"), "{ended:?}");
    let csv = fs::read_to_string(place.path("r/memory.csv")).unwrap();
    assert_eq!(csv.lines().count(), 2);
}

/// The first Ctrl-C ends the measurement, the second the program.
#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_study_leaves_no_file_behind() {
    use std::io::{BufRead, BufReader};

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    let place = Place::new();
    let mut command = Command::new(cargo_bin!("harness"));
    command.args(["layouts", "--absent", "1000000000", "--out", "r"]);
    command.current_dir(place.0.path()).stdout(Stdio::null());
    let mut study = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(study.stderr.take().unwrap()).lines();
    // What is noted of the build comes before.
    assert!(lines.any(|line| !line.unwrap().starts_with("note: ")));
    let pid = Pid::from_raw(study.id().try_into().unwrap());
    kill(pid, Signal::SIGINT).unwrap();
    assert!(lines.any(|line| line.unwrap().contains("Stopping")));
    kill(pid, Signal::SIGINT).unwrap();
    assert_eq!(study.wait().unwrap().code(), Some(130));
    assert!(place.files("r").is_empty(), "{:?}", place.files("r"));
}
