//! What is refused, with what the message says, before anything is measured or written; and the list.

use harness::registry::Registry;

use crate::place::{Place, TINY};

/// The exit code, the command, and what its message has.
const REFUSED: &str = "
2 |  | Usage
2 | measure | measure
1 | sweep nowhere.toml | nowhere.toml
1 | sweep quik | quik.toml | `harness list` shows
1 | sweep tiny.toml --cores 60000 | --cores | core 60000 is not available to this process | available cores
1 | sweep tiny.toml --cores some | --cores | not a list such as 0-3,8
2 | sweep tiny.toml --append 2 --rounds 2 | cannot be used with
1 | sweep tiny.toml --append 2 | --append: cannot add rounds to
1 | sweep tiny.toml --out tiny.toml/r | cannot write results | --out
1 | sweep tiny.toml --out tiny.toml | tiny.toml is not a directory | --out
1 | sweep tiny.toml --builds nowhere | --builds: nowhere is not a file
1 | sweep torn.toml | torn.toml | line 6
1 | sweep field.toml | field.toml | unknown field `sed` | `seed`
1 | sweep keys.toml | keys.toml | `keys` and `load` | at most
1 | sweep frozen.toml | frozen.toml | `frozen`
1 | sweep mistyped.toml | did you mean \"lock-free\"? Expected one of: lock-free, 
1 | sweep quick --rounds 0 | quick.toml | `rounds`: 0 is not
2 | reproduce --quick --full | --quick | --full
1 | check --subjects roofline | cannot insert
2 | check --subjects lock-free --threads 2,65 | 1 to 64
2 | check --subjects lock-free --seconds 0 | above 0
2 | check --subjects lock-free --seconds soon | not a number
2 | check --subjects lock-free --patience inf | --patience | at most 604800
2 | check --subjects lock-free --round 1000000 | --seed
2 | pair lock-free | 2 values | RIVAL
1 | pair lock-free word-look | did you mean \"word-lock\"?
1 | pair lock-free lock-free | with these names | `against`
2 | pair --seed 9223372036854775808 | --seed
2 | kcas --threads 1,257 | error: invalid value
2 | kcas --seconds -1 | '-1' | --seconds | above 0
2 | growth --keys 9999 | --keys
2 | growth --rounds 0 | --rounds
1 | memory --keys 4000000000 | --keys | at most
1 | memory --subjects roofline | holds no keys
1 | worker sweep x balloon | this build is of commit | of balloon
1 | plot tiny.toml --out few.txt | must end in .svg
1 | plot nowhere.csv | nowhere.csv
1 | report directory | harness reproduce | no results
1 | report torn | torn.csv
";

/// The same, and whether this build refuses it.
const BY_FEATURES: [(bool, &str); 3] = [
    (
        !cfg!(feature = "steps"),
        "1 | sweep stalls | stalls.toml | `frozen` | \
         cargo run --release -p harness --features steps -- sweep experiments/stalls.toml",
    ),
    (
        !cfg!(feature = "simulation"),
        "1 | simulate tiny.toml | --features simulation -- simulate",
    ),
    (
        !cfg!(processes),
        "1 | processes --rounds 1 | 64-bit Linux | without the features `steps` and `simulation`",
    ),
];

/// Files with a changed [`TINY`].
const EXPERIMENTS: [(&str, &str, &str); 5] = [
    ("torn", "rounds = 2", "rounds 2"),
    ("field", "seed = 1", "sed = 1"),
    ("keys", "keys = 1000", "keys = 1_000_000_000_000"),
    ("frozen", "2]", "0]\nfrozen = []"),
    ("mistyped", "lock-free", "lockfree"),
];

#[test]
fn impossible_commands_explain_and_leave_no_files() {
    let place = Place::with_tiny("", "");
    place.write("directory/file", "");
    place.write("torn/torn.csv", "experiment,subject\n");
    for (name, from, to) in EXPERIMENTS {
        assert!(TINY.contains(from));
        place.write(&format!("{name}.toml"), TINY.replace(from, to));
    }
    let before = place.files(".");
    let by_features = BY_FEATURES.iter().filter(|(is_refused, _)| *is_refused);
    let by_features = by_features.map(|(_, line)| *line);
    for line in REFUSED.lines().skip(1).chain(by_features) {
        let parts: Vec<_> = line.split(" | ").collect();
        let [code, command, texts @ ..] = &parts[..] else {
            panic!("{line}");
        };
        place.ends(code.parse().unwrap(), command).notes(texts);
    }
    assert_eq!(place.files("."), before);
    assert_eq!(place.files("torn"), ["torn.csv"]);
}

#[test]
fn list_shows_subjects_workloads_and_experiments() {
    let place = Place::new();
    place.write("experiments/tiny.toml", TINY);
    place.write("experiments/broken.toml", "name = 3");
    let experiments = ["A tiny sweep", "broken.toml\n      not usable"];
    let listed = place.run("list").prints(&experiments);
    let listed = listed.prints(&Registry::standard().names());
    let texts = ["kind = \"mix\"", "kind = \"lookup-miss\"", "16,384 locks"];
    listed.prints(&texts);
    // There are none here.
    let listed = Place::new().run("list");
    assert!(!listed.stdout.contains("not usable"));
    let mut lines = listed.stdout.lines();
    assert!(lines.all(|line| line.chars().count() <= 100));
    listed.prints(&["quick.toml", "stalls.toml"]);
}
