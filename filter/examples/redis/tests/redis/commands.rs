//! Replies and errors of each command, in both protocols, and what the server says of them.

use std::collections::BTreeSet;

use redis::Value;

use crate::server::{Server, ask, error, line};

fn int(number: i64) -> Value {
    Value::Int(number)
}

#[test]
fn replies_in_resp2() {
    let server = Server::start(&[]);
    let c = &mut server.connect();
    assert_eq!(
        line(
            c,
            "CF.RESERVE f 1000 BUCKETSIZE 4 MAXITERATIONS 7 EXPANSION 2"
        ),
        Value::Okay
    );
    assert_eq!(line(c, "CF.ADD f a"), int(1));
    assert_eq!(line(c, "CF.ADDNX f a"), int(0));
    assert_eq!(line(c, "CF.ADDNX f b"), int(1));
    assert_eq!(line(c, "CF.EXISTS f a"), int(1));
    assert_eq!(line(c, "CF.EXISTS f z"), int(0));
    assert_eq!(line(c, "CF.EXISTS none z"), int(0));
    assert_eq!(
        line(c, "CF.MEXISTS f a z b"),
        Value::Array(vec![int(1), int(0), int(1)])
    );
    assert_eq!(
        line(c, "CF.MEXISTS none a z"),
        Value::Array(vec![int(0), int(0)])
    );
    assert_eq!(
        line(c, "CF.INSERT g ITEMS a a a"),
        Value::Array(vec![int(1), int(1), int(0)])
    );
    assert_eq!(
        line(c, "CF.INSERTNX g NOCREATE ITEMS a d"),
        Value::Array(vec![int(0), int(1)])
    );
    assert_eq!(
        line(c, "CF.INSERT h CAPACITY 50000 ITEMS a"),
        Value::Array(vec![int(1)])
    );
    assert_eq!(line(c, "CF.COUNT g a"), int(2));
    assert_eq!(line(c, "CF.COUNT none a"), int(0));
    assert_eq!(line(c, "CF.DEL g a"), int(1));
    assert_eq!(line(c, "CF.DEL g zzz"), int(0));
    assert_eq!(line(c, "CF.COUNT g a"), int(1));
    assert_eq!(line(c, "CF.COMPACT g"), Value::Okay);
    let Value::Array(info) = line(c, "CF.INFO g") else {
        panic!("CF.INFO replies with an array");
    };
    assert_eq!(info.len(), 16);
    assert_eq!(
        info[6],
        Value::SimpleString("Number of items inserted".into())
    );
    assert_eq!(info[7], int(2));
    assert_eq!(info[9], int(1), "one was deleted");
}

#[test]
fn replies_in_resp3() {
    let server = Server::start(&[]);
    let c = &mut server.connect_resp3();
    let truth = Value::Boolean;
    assert_eq!(line(c, "CF.ADD f a"), truth(true));
    assert_eq!(line(c, "CF.ADDNX f a"), truth(false));
    assert_eq!(line(c, "CF.EXISTS f a"), truth(true));
    assert_eq!(line(c, "CF.EXISTS none a"), truth(false));
    assert_eq!(
        line(c, "CF.MEXISTS f a z"),
        Value::Array(vec![truth(true), truth(false)])
    );
    assert_eq!(
        line(c, "CF.INSERT f ITEMS a a b"),
        Value::Array(vec![truth(true), truth(false), truth(true)])
    );
    assert_eq!(
        line(c, "CF.INSERTNX f ITEMS a c"),
        Value::Array(vec![int(0), int(1)])
    );
    assert_eq!(line(c, "CF.COUNT f a"), int(2));
    assert_eq!(line(c, "CF.DEL f c"), truth(true));
    let Value::Map(info) = line(c, "CF.INFO f") else {
        panic!("CF.INFO replies with a map");
    };
    assert_eq!(info.len(), 8);
    assert_eq!(
        info[3],
        (
            Value::SimpleString("Number of items inserted".into()),
            int(3)
        )
    );
}

#[test]
fn errors() {
    let server = Server::start(&[]);
    let c = &mut server.connect();
    line(c, "SET text x");
    line(c, "CF.ADD f a");
    for wrong in [
        "CF.RESERVE f",
        "CF.RESERVE n 100 BUCKETSIZE",
        "CF.ADD f",
        "CF.ADD f a b",
        "CF.ADDNX f",
        "CF.ADDNX f a b",
        "CF.INSERT f ITEMS",
        "CF.INSERT f a b",
        "CF.INSERT f NOCREATE CAPACITY",
        "CF.INSERTNX f ITEMS",
        "CF.INSERTNX f NOCREATE ITEMS",
        "CF.EXISTS f",
        "CF.EXISTS f a b",
        "CF.MEXISTS f",
        "CF.DEL f",
        "CF.DEL f a b",
        "CF.COUNT f",
        "CF.COUNT f a b",
        "CF.SCANDUMP f",
        "CF.SCANDUMP f 0 0",
        "CF.LOADCHUNK f 1",
        "CF.LOADCHUNK f 1 x y",
        "CF.INFO",
        "CF.INFO f g",
        "CF.COMPACT",
        "CF.COMPACT f g",
    ] {
        let error = error(c, wrong);
        let says = error.contains("wrong number of arguments") || error.contains("unknown option");
        assert!(says, "{wrong}: {error}");
    }
    for wrong in [
        "CF.RESERVE text 100",
        "CF.ADD text a",
        "CF.ADDNX text a",
        "CF.INSERT text ITEMS a",
        "CF.INSERTNX text ITEMS a",
        "CF.EXISTS text a",
        "CF.MEXISTS text a",
        "CF.DEL text a",
        "CF.COUNT text a",
        "CF.SCANDUMP text 0",
        "CF.LOADCHUNK text 1 x",
        "CF.INFO text",
        "CF.COMPACT text",
    ] {
        assert!(error(c, wrong).contains("WRONGTYPE"), "{wrong}");
    }
    for (wrong, says) in [
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
        let error = error(c, wrong);
        assert!(error.contains(says), "{wrong}: {error}");
    }
    assert_eq!(
        line(c, "EXISTS n"),
        Value::Int(0),
        "no error has left a key"
    );
}

/// Every command of the module is a row of the README's table, and every row that does not say "not
/// there" is a command.
#[test]
fn the_table_lists_the_commands() {
    let server = Server::start(&[]);
    let listed: BTreeSet<String> = ask(
        &mut server.connect(),
        "COMMAND",
        &["LIST", "FILTERBY", "MODULE", "cuckoo"],
    );
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
fn the_server_knows_keys_and_arguments() {
    let server = Server::start(&[]);
    let c = &mut server.connect();
    for command in [
        "CF.ADD k i",
        "CF.MEXISTS k i j",
        "CF.INSERT k CAPACITY 9 ITEMS i",
        "CF.LOADCHUNK k 1 x",
    ] {
        let words: Vec<&str> = [&["GETKEYS"], &command.split(' ').collect::<Vec<_>>()[..]].concat();
        assert_eq!(ask::<Vec<String>>(c, "COMMAND", &words), ["k"], "{command}");
    }
    for (command, flags) in [
        ("CF.EXISTS k i", "ro access"),
        ("CF.ADD k i", "rw access insert"),
        ("CF.DEL k i", "rw access delete"),
        ("CF.COMPACT k", "rw update"),
    ] {
        let words: Vec<&str> = [
            &["GETKEYSANDFLAGS"],
            &command.split(' ').collect::<Vec<_>>()[..],
        ]
        .concat();
        let keys: Vec<(String, Vec<String>)> = ask(c, "COMMAND", &words);
        assert_eq!(keys[0].1.join(" ").to_lowercase(), flags, "{command}");
    }
    let docs = format!(
        "{:?}",
        ask::<Value>(c, "COMMAND", &["DOCS", "CF.RESERVE", "CF.INSERT"])
    );
    for word in [
        "BUCKETSIZE",
        "MAXITERATIONS",
        "EXPANSION",
        "NOCREATE",
        "ITEMS",
        "optional",
        "multiple",
    ] {
        assert!(docs.contains(word), "COMMAND DOCS has no {word}");
    }
    // The keys, and what is done with them: a module cannot give its commands categories before 7.2.
    line(c, "ACL SETUSER reader on nopass %R~* +@all");
    line(c, "ACL SETUSER other on nopass ~other* +@all");
    line(c, "ACL SETUSER few on nopass ~* +cf.exists");
    let verdict = |c: &mut _, line: &str| {
        let words: Vec<&str> = [&["DRYRUN"], &line.split(' ').collect::<Vec<_>>()[..]].concat();
        ask::<String>(c, "ACL", &words)
    };
    assert_eq!(verdict(c, "reader CF.EXISTS k i"), "OK");
    assert!(verdict(c, "reader CF.ADD k i").contains("no permissions"));
    assert!(verdict(c, "reader CF.DEL k i").contains("no permissions"));
    assert_eq!(verdict(c, "few CF.EXISTS k i"), "OK");
    assert!(verdict(c, "few CF.ADD k i").contains("no permissions"));
    assert!(verdict(c, "other CF.ADD k i").contains("no permissions"));
    assert_eq!(verdict(c, "other CF.ADD other i"), "OK");
}

/// Commands that add are refused when the server has no memory left, and those that free are not.
#[test]
fn a_full_server_accepts_deletions() {
    let server = Server::start(&["--maxmemory", "8mb"]);
    let c = &mut server.connect();
    let mut number = 0;
    let refused = loop {
        match crate::server::try_ask::<bool>(c, "CF.ADD", &["f".to_string(), number.to_string()]) {
            Ok(_) => number += 1,
            Err(error) => break error.to_string(),
        }
    };
    assert!(refused.contains("maxmemory"), "{refused}");
    assert!(number > 100_000, "{number} keys in 8 MiB");
    assert_eq!(line(c, "CF.DEL f 0"), Value::Int(1));
    assert_eq!(line(c, "CF.COMPACT f"), Value::Okay);
}
