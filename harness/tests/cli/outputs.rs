//! Tests of commands that cannot write: to a standard output that nobody reads or that is full, and
//! to directories that are not writable.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use assert_cmd::cargo::cargo_bin;

use crate::place::Place;

/// Every command that measures at once and writes its files at the end, in a tiny version, with the
/// name of its files.
const STUDIES: [(&str, &str); 6] = [
    (
        "layouts",
        "space layouts --buckets 1000 --tables 1 --absent 1000",
    ),
    ("kcas", "kcas --rounds 1 --threads 1 --seconds 0.001"),
    (
        "memory",
        "space memory --subjects lock-free --loads 0.5 --keys 1000 --absent 1000",
    ),
    ("theory", "space theory --subjects bloom --keys 10000"),
    (
        "cuckoo-hashing",
        "cuckoo-hashing --buckets 1000 --rounds 1 --operations 10 --loads 0.2",
    ),
    ("growth", "growth --keys 10000 --rounds 1 --slices 3"),
];

/// Returns a sweep of six measurements in each round.
fn experiment(name: &str, rounds: usize) -> String {
    format!(
        "name = '{name}'\ntitle = 'A tiny sweep'\nsubjects = ['lock-free', 'segment-lock', 'roofline']\n\
         threads = [1, 2]\nrounds = {rounds}\nseconds = 0.01\nkeys = 1000\nseed = 1\n\
         [[workload]]\nkind = 'lookup-hit'\nload = 0.9"
    )
}

fn place() -> Place {
    let place = Place::new();
    for name in ["a", "b"] {
        place.write(&format!("{name}.toml"), experiment(name, 1));
    }
    place
}

#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Ended {
    /// Returns the last line of standard error.
    fn error(&self) -> &str {
        self.stderr.lines().last().unwrap_or_default()
    }
}

fn end(place: &Place, mut command: Command, stdout: impl Into<Stdio>) -> Ended {
    command.current_dir(place.0.path()).stdout(stdout);
    let output = command.stderr(Stdio::piped()).spawn().unwrap();
    let output = output.wait_with_output().unwrap();
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn run(place: &Place, arguments: &str, stdout: impl Into<Stdio>) -> Ended {
    let mut command = Command::new(cargo_bin!("harness"));
    command.args(arguments.split(' '));
    end(place, command, stdout)
}

/// Runs it under a limit of `ulimit`.
#[cfg(target_os = "linux")]
fn limited(place: &Place, limit: &str, arguments: &str) -> Ended {
    let mut command = Command::new("sh");
    let script = format!("trap '' XFSZ; ulimit {limit}; exec \"$0\" \"$@\"");
    command.args(["-c", &script]).arg(cargo_bin!("harness"));
    command.args(arguments.split(' '));
    end(place, command, Stdio::piped())
}

/// Returns a standard output whose reader has gone, as with `| true`.
fn unread() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// Returns a standard output on a full disk.
#[cfg(target_os = "linux")]
fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

#[test]
fn closed_stdout_is_not_an_error() {
    let place = place();
    for arguments in ["list --experiments .", "--help", "plot --help"] {
        let ended = run(&place, arguments, unread());
        assert_eq!(ended.code, Some(0), "{arguments}: {ended:?}");
        assert_eq!(ended.stderr, "", "{arguments}");
    }
    let swept = "sweep a.toml b.toml --out swept";
    let studies = STUDIES.map(|(_, arguments)| format!("{arguments} --out studies"));
    for arguments in studies.iter().map(String::as_str).chain([swept]) {
        let ended = run(&place, arguments, unread());
        assert_eq!(ended.code, Some(0), "{arguments}: {ended:?}");
        let noted = ended.stderr.matches("standard output is no longer read");
        assert_eq!(noted.count(), 1, "{arguments}: {ended:?}");
    }
    for name in ["a", "b"] {
        let csv = place.text(&format!("swept/{name}.csv"));
        assert_eq!(csv.lines().count(), 1 + 6);
        assert!(place.path(&format!("swept/{name}.svg")).exists());
    }
    for (name, _) in STUDIES {
        let csv = place.text(&format!("studies/{name}.csv"));
        assert!(csv.lines().count() > 1, "{name}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn full_stdout_is_one_line_of_error_and_costs_no_file() {
    let place = place();
    let studied = STUDIES[0].1.to_owned() + " --out studied";
    for (arguments, directory, files) in [
        ("list --experiments .", "none", 0),
        ("--help", "none", 0),
        ("--version", "none", 0),
        ("sweep a.toml b.toml --out swept", "swept", 6),
        (&studied, "studied", 3),
    ] {
        let ended = run(&place, arguments, full());
        assert_eq!(ended.code, Some(1), "{arguments}: {ended:?}");
        let error =
            "error: cannot write to the standard output: No space left on device (os error 28)";
        assert_eq!(ended.error(), error, "{arguments}");
        assert_eq!(ended.stderr.matches("standard output").count(), 1);
        assert_eq!(place.files(directory).len(), files, "{arguments}");
    }
    // A standard error that fails stops nothing.
    let mut command = Command::new(cargo_bin!("harness"));
    command.args(["sweep", "a.toml", "--out", "quiet"]);
    command.current_dir(place.0.path()).stdout(Stdio::null());
    assert!(command.stderr(full()).status().unwrap().success());
    assert_eq!(place.files("quiet").len(), 3);
}

/// Writes results of a sweep, and of a command that measures at once.
fn results() -> Place {
    let place = place();
    for command in ["sweep a.toml", STUDIES[0].1] {
        let ended = run(&place, &format!("{command} --out r"), Stdio::piped());
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    place
}

/// A file that holds no results is left out with a note, one that is torn is an error.
#[test]
fn what_cannot_be_read_keeps_no_page_from_being_made() {
    let place = results();
    place.write("r/prices.csv", "fruit,price\napple,1\n");
    place.write("r/empty.csv", "");
    place.write("r/picture.csv", b"\x89PNG\r\n\xff\xfe,\n");
    fs::create_dir(place.path("r/directory.csv")).unwrap();
    let check = |code, line: &str, files: &[(&str, &str)]| {
        let ended = run(&place, "report r", Stdio::piped());
        assert_eq!(
            (ended.code, &*ended.stdout),
            (Some(code), "r/report.html\n")
        );
        let page = place.text("r/report.html");
        assert!(page.contains("href=\"a.csv\"") && page.contains("href=\"layouts.csv\""));
        for (name, why) in files {
            let lines = ended.stderr.lines();
            let noted: Vec<_> = lines.filter(|line| line.contains(name)).collect();
            assert_eq!(noted.len(), 1, "{name}: {ended:?}");
            assert!(
                noted[0].starts_with(line) && noted[0].contains(why),
                "{noted:?}"
            );
            assert_eq!(noted[0].matches(".csv").count(), 1, "{noted:?}");
            assert!(page.contains(&format!("<li>{name}")), "{name} in {page}");
        }
    };
    let foreign = "no command leaves such columns";
    let names = ["prices.csv", "empty.csv", "picture.csv"];
    check(0, "note: left out", &names.map(|name| (name, foreign)));
    let rows = place.text("r/a.csv");
    let last = rows.trim_end().rfind('\n').unwrap() + 1;
    place.write("r/torn.csv", &rows[..last + 20]);
    let line = rows.lines().count();
    let columns = rows.lines().next().unwrap().split(',').count();
    let torn = format!(
        "line {line}: 3 values where the header has {columns}, as it is cut off; `sweep --resume`"
    );
    check(1, "  r/torn.csv", &[("torn.csv", &torn)]);
}

#[test]
fn plot_names_the_commands_that_it_draws() {
    let place = Place::new();
    place.write("prices.csv", "fruit,price\napple,1\n");
    let help = run(&place, "plot --help", Stdio::piped()).stdout;
    assert!(help.contains("theory.csv"), "{help}");
    let ended = run(&place, "plot prices.csv", Stdio::piped());
    assert_eq!(ended.code, Some(1));
    let error = ended.error();
    let why = "error: prices.csv holds no measurements: column `experiment` is missing";
    assert!(error.starts_with(why), "{error}");
    let drawn = STUDIES
        .iter()
        .filter_map(|(_, line)| line.split(' ').next());
    for command in drawn.chain(["sweep"]) {
        let command = format!("`{command}`");
        assert!(error.contains(&command), "{command}: {error}");
        assert!(help.contains(&command), "{command}: {help}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn unwritable_results_are_found_before_anything_is_measured() {
    let place = place();
    let studies = STUDIES.iter().map(|(_, arguments)| *arguments);
    for arguments in studies.chain(["sweep a.toml b.toml"]) {
        let no_directory = format!("{arguments} --out b.toml/r");
        for ended in [
            run(&place, &no_directory, Stdio::piped()),
            limited(&place, "-f 0", &format!("{arguments} --out full")),
        ] {
            assert_eq!((ended.code, &*ended.stdout), (Some(1), ""), "{ended:?}");
            let lines = ended.stderr.lines();
            let lines: Vec<_> = lines
                .filter(|line| !line.trim_start().starts_with("note: "))
                .collect();
            assert_eq!(lines.len(), 1, "{arguments}: {ended:?}");
            let error = "error: cannot write results";
            assert!(
                lines[0].starts_with(error) && lines[0].contains("--out"),
                "{lines:?}"
            );
        }
        assert!(!place.path("full").exists(), "{arguments}");
    }
}

/// Blocks have 512 bytes. The first two write a figure that is too long, the others rows that are too
/// many: these do not replace earlier ones.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_fills_up_costs_only_what_does_not_fit() {
    let place = place();
    let second = "\n[[workload]]\nkind = 'insert'\nload = 0.9";
    place.write("a.toml", experiment("a", 1) + second);
    for (name, arguments) in [STUDIES[0], ("a", "sweep a.toml")] {
        let ended = limited(&place, "-f 16", &format!("{arguments} --out {name}"));
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let error = format!("error: cannot write {name}/{name}.svg: ");
        assert!(ended.error().starts_with(&error), "{ended:?}");
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
    let kcas = "kcas --rounds 2 --threads 1,2 --seconds 0.001 --out r";
    assert_eq!(run(&place, kcas, Stdio::piped()).code, Some(0));
    let earlier = place.text("r/kcas.csv");
    let ended = limited(&place, "-f 16", kcas);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let error = "error: cannot write r/kcas.csv: ";
    assert!(ended.error().starts_with(error), "{ended:?}");
    assert!(ended.stdout.contains("|----") && !ended.stdout.contains("r/kcas"));
    let files = ["kcas.csv", "kcas.machine.toml", "kcas.svg"];
    assert_eq!(
        (place.files("r"), place.text("r/kcas.csv")),
        (files.map(String::from).into(), earlier)
    );

    place.write("a.toml", experiment("a", 40));
    let ended = limited(&place, "-f 16", "sweep a.toml b.toml --out s");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let error = ended.error();
    assert!(
        error.starts_with("error: the run ended early, with "),
        "{error}"
    );
    assert!(error.contains("cannot write to s/a.csv"), "{error}");
    assert!(ended.stdout.contains("|----"), "no table: {ended:?}");
    assert!(!place.files("s").iter().any(|file| file.ends_with(".new")));
    let resumed = run(
        &place,
        "sweep a.toml b.toml --out s --resume",
        Stdio::piped(),
    );
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(place.text("s/a.csv").lines().count(), 1 + 6 * 40);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_costs_no_earlier_figure_and_no_page() {
    let place = results();
    assert_eq!(run(&place, "report r", Stdio::piped()).code, Some(0));
    for (command, file) in [("plot r/a.csv", "r/a.svg"), ("report r", "r/report.html")] {
        let before = (place.text(file), place.files("r"));
        let ended = limited(&place, "-f 1", command);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let error = format!("error: cannot write {file}: ");
        assert!(ended.error().starts_with(&error), "{ended:?}");
        assert_eq!((place.text(file), place.files("r")), before);
    }
}

/// The process that measures the second subject cannot get the memory it needs.
#[cfg(target_os = "linux")]
#[test]
fn memory_keeps_what_it_measured_when_a_subject_fails() {
    let place = Place::new();
    let arguments = "space memory --subjects lock-free,exact-set --loads 0.5 --keys 3000000 --absent 1 --threads 1 --out r";
    let ended = limited(&place, "-v 100000", arguments);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let mut lines = ended.stderr.lines();
    let error = lines.find(|line| line.starts_with("error: ")).unwrap();
    let failed = "exact-set at load factor 0.5";
    assert!(error.contains("kept") && error.contains(failed), "{error}");
    assert!(ended.stdout.contains("| lock-free"), "{ended:?}");
    assert_eq!(place.text("r/memory.csv").lines().count(), 2);
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
    command.args(["space", "layouts", "--absent", "1000000000", "--out", "r"]);
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
