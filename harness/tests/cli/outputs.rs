//! Tests of commands that cannot write: to a standard output that nobody reads or that is full, and
//! to directories that are not writable.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::place::{Ended, Place, TINY, has};
use crate::studies::{STUDIES, Study};

/// A study that leaves a figure at once.
const LAYOUTS: &str = "space layouts --buckets 1000 --tables 1 --absent 1000";

/// Returns a sweep of six measurements in each round: [`TINY`] without its second workload.
fn experiment(name: &str, rounds: usize) -> String {
    let (first, _) = TINY.rsplit_once("[[workload]]").unwrap();
    let rounds = format!("rounds = {rounds}");
    first
        .replace("\"tiny\"", &format!("{name:?}"))
        .replace("rounds = 2", &rounds)
}

fn place() -> Place {
    let place = Place::new();
    for name in ["a", "b"] {
        place.write(&format!("{name}.toml"), experiment(name, 1));
    }
    place
}

/// Runs a command under a limit of `ulimit`, which fails with this last line of standard error.
#[cfg(target_os = "linux")]
fn limited(place: &Place, limit: &str, line: &str, error: &str) -> Ended {
    let mut command = Command::new("sh");
    let script = format!("trap '' XFSZ; ulimit {limit}; exec \"$0\" \"$@\"");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_harness")]);
    command.args(line.split(' ')).current_dir(place.0.path());
    let ended = Ended::of(&mut command);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let last = ended.stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with(error), "{line}: {ended:?}");
    ended
}

/// Runs a command with such a standard output.
fn into(place: &Place, line: &str, stdout: impl Into<Stdio>) -> Ended {
    Ended::of(place.command(line).stdout(stdout))
}

#[test]
fn closed_stdout_is_not_an_error() {
    let place = place();
    let unread = |line: &str, notes: usize| {
        // Its reader has gone, as with `| true`.
        let (_, writer) = std::io::pipe().unwrap();
        let ended = into(&place, line, writer);
        assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
        let noted = ended.stderr.matches("standard output is no longer read");
        assert_eq!(noted.count(), notes, "{line}: {ended:?}");
        assert!(notes > 0 || ended.stderr.is_empty(), "{ended:?}");
    };
    for line in ["list", "--help", "plot --help"] {
        unread(line, 0);
    }
    for Study { name, line, .. } in &STUDIES {
        unread(&format!("{line} --out studies"), 1);
        let csv = place.text(&format!("studies/{name}.csv"));
        assert!(csv.lines().count() > 1, "{name}");
    }
    unread("sweep a.toml b.toml --out swept", 1);
    for name in ["a", "b"] {
        let csv = place.text(&format!("swept/{name}.csv"));
        assert_eq!(csv.lines().count(), 1 + 6);
        assert!(place.path(&format!("swept/{name}.svg")).exists());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn full_stdout_is_one_line_of_error_and_costs_no_file() {
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let place = place();
    let studied = LAYOUTS.to_owned() + " --out studied";
    for (line, directory, files) in [
        ("list", "none", 0),
        ("--help", "none", 0),
        ("--version", "none", 0),
        ("sweep a.toml b.toml --out swept", "swept", 6),
        (&studied, "studied", 3),
    ] {
        let ended = into(&place, line, full());
        assert_eq!(ended.code, Some(1), "{line}: {ended:?}");
        let error =
            "error: cannot write to the standard output: No space left on device (os error 28)";
        assert_eq!(ended.stderr.lines().last(), Some(error), "{line}");
        assert_eq!(ended.stderr.matches("standard output").count(), 1);
        assert_eq!(place.files(directory).len(), files, "{line}");
    }
    // A standard error that fails stops nothing.
    let mut command = place.command("sweep a.toml --out quiet");
    let quiet = command.stdout(Stdio::null()).stderr(full()).status();
    assert!(quiet.unwrap().success());
    assert_eq!(place.files("quiet").len(), 3);
}

/// Writes results of a sweep, and of a command that measures at once.
fn results() -> Place {
    let place = place();
    for line in ["sweep a.toml", LAYOUTS] {
        place.run(&format!("{line} --out r"));
    }
    place
}

/// The page has the others.
#[test]
fn what_cannot_be_read_keeps_no_page_from_being_made() {
    let place = results();
    place.write("r/prices.csv", "fruit,price\napple,1\n");
    place.write("r/empty.csv", "");
    place.write("r/picture.csv", b"\x89PNG\r\n\xff\xfe,\n");
    fs::create_dir(place.path("r/directory.csv")).unwrap();
    let check = |code, names: &[&str], line: &str, why: &str| {
        let ended = place.ends(code, "report r");
        assert_eq!(ended.stdout, "r/report.html\n");
        let page = place.text("r/report.html");
        has(&page, &["href=\"a.csv\"", "href=\"layouts.csv\""]);
        for name in names {
            let lines = ended.stderr.lines();
            let noted: Vec<_> = lines.filter(|line| line.contains(name)).collect();
            let [noted] = noted[..] else {
                panic!("{name}: {ended:?}");
            };
            assert!(noted.starts_with(line) && noted.contains(why), "{noted}");
            assert_eq!(noted.matches(".csv").count(), 1, "{noted:?}");
            has(&page, &[&format!("<li class=\"bad\">{name}")]);
        }
    };
    let names = ["prices.csv", "empty.csv", "picture.csv"];
    let foreign = "no command writes such columns";
    check(1, &names, "  r/", foreign);
    let rows = place.text("r/a.csv");
    let last = rows.trim_end().rfind('\n').unwrap() + 1;
    place.write("r/torn.csv", &rows[..last + 20]);
    let line = rows.lines().count();
    let columns = rows.lines().next().unwrap().split(',').count();
    let torn = format!(
        "line {line}: 3 values where the header has {columns}, as it is cut off: delete this line"
    );
    check(1, &["torn.csv"], "  r/torn.csv", &torn);
}

#[test]
fn plot_names_the_commands_that_it_draws() {
    let place = Place::new();
    place.write("prices.csv", "fruit,price\napple,1\n");
    let help = place.run("plot --help").prints(&["theory.csv"]).stdout;
    let error = place.ends(1, "plot prices.csv").stderr;
    let why = "error: prices.csv holds no measurements: column `experiment` is missing";
    assert!(error.starts_with(why), "{error}");
    let drawn = STUDIES.map(|study| study.line.split(' ').next().unwrap());
    for command in drawn.into_iter().chain(["sweep"]) {
        let command = format!("`{command}`");
        has(&error, &[&command]);
        has(&help, &[&command]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn unwritable_results_are_found_before_anything_is_measured() {
    let place = place();
    let studies = STUDIES.iter().map(|study| study.line);
    for line in studies.chain(["sweep a.toml b.toml"]) {
        for (limit, out) in [("-f unlimited", "b.toml/r"), ("-f 0", "full")] {
            let line = format!("{line} --out {out}");
            let ended = limited(&place, limit, &line, "error: cannot write results");
            assert_eq!(ended.stdout, "");
            let lines = ended.stderr.lines();
            let lines = lines.filter(|line| line.starts_with("error: "));
            assert_eq!(lines.count(), 1, "{ended:?}");
            has(&ended.stderr, &["--out"]);
        }
        assert!(!place.path("full").exists(), "{line}");
    }
}

/// Returns the limit half-way between a file that can be written under it, and one that cannot.
#[cfg(target_os = "linux")]
fn limit_between(place: &Place, fits: &[String], too_long: &str) -> String {
    let size = |file: &str| fs::metadata(place.path(file)).unwrap().len();
    let fits = fits.iter().map(|file| size(file)).max().unwrap();
    // In blocks of 512 bytes.
    let blocks = (fits + size(too_long)) / 2 / 512;
    assert!(fits < blocks * 512, "{too_long} is too short: {fits} fit");
    format!("-f {blocks}")
}

/// Limits are taken from what is written without one. The first two write a figure that is too long, the others rows
/// that are too many: these do not replace earlier ones.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_fills_up_costs_only_what_does_not_fit() {
    let place = place();
    let second = "\n[[workload]]\nkind = 'insert'\nload = 0.9";
    place.write("a.toml", experiment("a", 1) + second);
    for (name, line) in [("layouts", LAYOUTS), ("a", "sweep a.toml")] {
        place.run(&format!("{line} --out whole"));
        let files = [".csv", ".machine.toml"].map(|ending| format!("{name}{ending}"));
        let fit = files.each_ref().map(|file| format!("whole/{file}"));
        let limit = limit_between(&place, &fit, &format!("whole/{name}.svg"));
        let error = format!("error: cannot write {name}/{name}.svg: ");
        let ended = limited(&place, &limit, &format!("{line} --out {name}"), &error);
        assert_eq!(place.files(name), files);
        has(&ended.stdout, &["|----"]);
        for file in files {
            has(&ended.stdout, &[&format!("{name}/{file}\n")]);
        }
    }
    let growth = "growth --keys 20000 --rounds 2 --slices 30 --out r";
    place.run(growth);
    let limit = limit_between(&place, &["r/growth.machine.toml".into()], "r/growth.csv");
    let left = || (place.files("r"), place.text("r/growth.csv"));
    let earlier = left();
    let error = "error: cannot write r/growth.csv: ";
    let ended = limited(&place, &limit, growth, error);
    assert!(ended.stdout.contains("|----") && !ended.stdout.contains("r/growth"));
    assert_eq!(left(), earlier);

    place.write("a.toml", experiment("a", 40));
    place.run("sweep a.toml --out long");
    let limit = limit_between(&place, &["long/a.machine.toml".into()], "long/a.csv");
    let line = "sweep a.toml b.toml --out s";
    let error = "error: the run ended early, with ";
    let ended = limited(&place, &limit, line, error);
    has(&ended.stderr, &["cannot write to s/a.csv"]);
    has(&ended.stdout, &["|----"]);
    assert!(!place.files("s").iter().any(|file| file.ends_with(".new")));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_costs_no_earlier_figure_and_no_page() {
    let place = results();
    place.run("report r");
    for (line, file) in [("plot r/a.csv", "r/a.svg"), ("report r", "r/report.html")] {
        let before = (place.text(file), place.files("r"));
        let error = format!("error: cannot write {file}: ");
        limited(&place, "-f 1", line, &error);
        assert_eq!((place.text(file), place.files("r")), before);
    }
}

/// The process that measures the second subject cannot get the memory it needs.
#[cfg(target_os = "linux")]
#[test]
fn memory_keeps_what_it_measured_when_a_subject_fails() {
    let place = Place::new();
    let line = "space memory --subjects lock-free,exact-set --loads 0.5 --keys 3000000 --absent 1 --threads 1 --out r";
    let ended = limited(&place, "-v 320000", line, "");
    let mut lines = ended.stderr.lines();
    let error = lines.find(|line| line.starts_with("error: ")).unwrap();
    has(error, &["kept", "exact-set at load factor 0.5"]);
    has(&ended.stdout, &["| lock-free"]);
    assert_eq!(place.text("r/memory.csv").lines().count(), 2);
}

/// The other run holds the folder until it ends.
#[test]
fn folder_in_use_is_refused_and_holder_named() {
    let place = place();
    place.write("long.toml", experiment("long", 1_000));
    let mut long = place.command("sweep long.toml --out r");
    let long = long.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut first = long.spawn().unwrap();
    let mut lines = BufReader::new(first.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("round 1, ")));
    let holder = format!("process {} (harness sweep long.toml --out r)", first.id());
    for line in ["sweep a.toml --out r", &format!("{LAYOUTS} --out r")] {
        let refused = place.ends(1, line);
        refused.notes(&["r is in use by", &holder, "--out"]);
    }
    // Another folder is free, but the cores are not.
    place
        .run("sweep a.toml --out s")
        .notes(&["another harness measures"]);
    first.kill().unwrap();
    first.wait().unwrap();
    place.run("sweep a.toml --out r");
    assert_eq!(
        place
            .files("r")
            .iter()
            .filter(|file| file.starts_with("a."))
            .count(),
        3
    );
}

#[test]
fn bad_value_leaves_earlier_results_in_place() {
    let place = place();
    place.run("sweep a.toml --out r");
    let earlier = (place.files("r"), place.text("r/a.csv"));
    let good = place.text("a.toml");
    for load in ["1e-300", "nan", "0.0", "-0.1", "1.0"] {
        place.write(
            "a.toml",
            good.replace("load = 0.9", &format!("load = {load}")),
        );
        place
            .ends(1, "sweep a.toml --out r")
            .notes(&["field `load`"]);
        assert_eq!((place.files("r"), place.text("r/a.csv")), earlier, "{load}");
    }
    // A build that measures nothing.
    place.write("a.toml", good);
    place.ends(1, "sweep a.toml --out r --builds /usr/bin/true");
    assert_eq!((place.files("r"), place.text("r/a.csv")), earlier);
}
