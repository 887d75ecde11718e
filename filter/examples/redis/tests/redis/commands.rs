//! Replies and errors of each command, in both protocols, and what the server says of them.

use std::collections::BTreeSet;

use redis::Value;

use crate::server::{Server, ask, error, line};

/// A reply in short: 1, true, "text", [1, 0].
fn short(reply: Value) -> String {
    let list = |values: Vec<Value>| values.into_iter().map(short).collect::<Vec<_>>().join(" ");
    match reply {
        Value::Int(number) => number.to_string(),
        Value::Boolean(truth) => truth.to_string(),
        Value::Okay => "OK".into(),
        Value::SimpleString(text) => text,
        Value::BulkString(bytes) => String::from_utf8_lossy(&bytes).into(),
        Value::Array(values) => format!("[{}]", list(values)),
        Value::Map(pairs) => {
            let pairs = pairs.into_iter().flat_map(|(key, value)| [key, value]);
            format!("{{{}}}", list(pairs.collect()))
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn replies() {
    let server = Server::start(&[]);
    let [resp2, resp3] = &mut ["2", "3"].map(|protocol| server.try_connect(protocol).unwrap());
    // Each has a database of its own.
    line(resp3, "SELECT 1");
    for (command, wanted2, wanted3) in [
        (
            "CF.RESERVE f 1000 BUCKETSIZE 4 MAXITERATIONS 7 EXPANSION 2",
            "OK",
            "OK",
        ),
        ("CF.ADD f a", "1", "true"),
        ("CF.ADDNX f a", "0", "false"),
        ("CF.ADDNX f b", "1", "true"),
        ("CF.EXISTS f a", "1", "true"),
        ("CF.EXISTS none z", "0", "false"),
        ("CF.MEXISTS f a z b", "[1 0 1]", "[true false true]"),
        ("CF.MEXISTS none a z", "[0 0]", "[false false]"),
        ("CF.INSERT g ITEMS a a", "[1 1]", "[true true]"),
        ("CF.INSERTNX g NOCREATE ITEMS a d", "[0 1]", "[0 1]"),
        ("CF.INSERT h CAPACITY 50000 ITEMS a", "[1]", "[true]"),
        ("CF.COUNT g a", "2", "2"),
        ("CF.COUNT none a", "0", "0"),
        ("CF.DEL g a", "1", "true"),
        ("CF.DEL g zzz", "0", "false"),
        ("CF.COMPACT g", "OK", "OK"),
    ] {
        assert_eq!(short(line(resp2, command)), wanted2, "{command}");
        assert_eq!(short(line(resp3, command)), wanted3, "{command}");
    }
    for info in [line(resp2, "CF.INFO g"), line(resp3, "CF.INFO g")].map(short) {
        let counts = "Number of items inserted 2 Number of items deleted 1";
        assert!(info.contains(counts), "{info}");
    }
    assert!(matches!(line(resp3, "CF.INFO g"), Value::Map(fields) if fields.len() == 8));
}

#[test]
fn errors() {
    let server = Server::start(&[]);
    let c = &mut server.connect();
    line(c, "SET text x");
    line(c, "CF.ADD f a");
    for (command, arguments) in [
        ("CF.RESERVE", "100"),
        ("CF.ADD", "a"),
        ("CF.ADDNX", "a"),
        ("CF.INSERT", "ITEMS a"),
        ("CF.INSERTNX", "ITEMS a"),
        ("CF.EXISTS", "a"),
        ("CF.MEXISTS", "a"),
        ("CF.DEL", "a"),
        ("CF.COUNT", "a"),
        ("CF.SCANDUMP", "0"),
        ("CF.LOADCHUNK", "1 x"),
        ("CF.INFO", ""),
        ("CF.COMPACT", ""),
    ] {
        let words = format!("{command} text {arguments}");
        error(c, words.trim(), "WRONGTYPE");
        let fewer = words.trim().rsplit_once(' ').unwrap().0;
        let mut wrong = vec![fewer.to_string()];
        // These take any number of items, or options.
        let of_many = ["RESERVE", "INSERT", "MEXISTS"];
        if !of_many.iter().any(|name| command.contains(name)) {
            wrong.push(format!("{} x", words.trim()));
        }
        for wrong in wrong {
            error(c, &wrong, "wrong number of arguments");
        }
    }
    for (wrong, says) in [
        ("CF.RESERVE n 100 BUCKETSIZE", "wrong number of arguments"),
        ("CF.INSERT f NOCREATE CAPACITY", "wrong number of arguments"),
        ("CF.INSERTNX f NOCREATE ITEMS", "wrong number of arguments"),
        ("CF.RESERVE f 100", "item exists"),
        ("CF.RESERVE n 3", "from 4 to"),
        ("CF.RESERVE n 7 BUCKETSIZE 4", "from 8 to"),
        ("CF.RESERVE n 1073741825", "to 1073741824"),
        ("CF.RESERVE n many", "capacity"),
        ("CF.RESERVE n 100 BUCKETSIZE 256", "from 1 to 255"),
        ("CF.RESERVE n 100 MAXITERATIONS 65536", "from 1 to 65535"),
        ("CF.RESERVE n 100 EXPANSION 32769", "from 1 to 32768"),
        ("CF.RESERVE n 100 EXPANSION 0", "always grows"),
        ("CF.RESERVE n 100 COLOUR 1", "unknown option"),
        ("CF.INSERT n NOCREATE ITEMS a", "not found"),
        ("CF.INSERT n CAPACITY 1 ITEMS a", "CAPACITY"),
        ("CF.INSERT n COLOUR ITEMS a", "unknown option"),
        ("CF.DEL n a", "not found"),
        ("CF.INFO n", "not found"),
        ("CF.COMPACT n", "not found"),
        ("CF.SCANDUMP n 0", "not found"),
        ("CF.SCANDUMP f -1", "Invalid position"),
        ("CF.LOADCHUNK f 1 x", "item exists"),
    ] {
        error(c, wrong, says);
    }
    let left = line(c, "EXISTS n");
    assert_eq!(left, Value::Int(0), "an error has left a key");
}

/// Every command of the module is a row of the README's table, and every row that does not say "not
/// there" is a command.
#[test]
fn readme_table_lists_all_commands() {
    let server = Server::start(&[]);
    let c = &mut server.connect();
    let words = ["LIST", "FILTERBY", "MODULE", "cuckoo"];
    let listed: BTreeSet<String> = ask(c, "COMMAND", &words);
    let listed: BTreeSet<String> = listed.iter().map(|name| name.to_uppercase()).collect();
    let readme = include_str!("../../README.md");
    let rows = readme.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("| `CF.")?.split_once([' ', '`'])?;
        (!rest.contains("| not there")).then(|| format!("CF.{name}"))
    });
    assert_eq!(listed, rows.collect());
    assert_eq!(listed.len(), 13);
}

#[test]
fn command_key_flags_are_registered() {
    let server = Server::start(&[]);
    let c = &mut server.connect();
    for (command, wanted) in [
        ("CF.EXISTS k i", "[[k [RO access]]]"),
        ("CF.MEXISTS k i j", "[[k [RO access]]]"),
        ("CF.ADD k i", "[[k [RW access insert]]]"),
        ("CF.INSERT k CAPACITY 9 ITEMS i", "[[k [RW access insert]]]"),
        ("CF.LOADCHUNK k 1 x", "[[k [RW access insert]]]"),
        ("CF.DEL k i", "[[k [RW access delete]]]"),
        ("CF.COMPACT k", "[[k [RW update]]]"),
    ] {
        let keys = short(line(c, &format!("COMMAND GETKEYSANDFLAGS {command}")));
        assert_eq!(keys, wanted, "{command}");
    }
}
