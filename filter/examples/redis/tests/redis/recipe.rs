//! The recipe of README.md that moves items to another server.

use std::process::Command;

use tempfile::TempDir;

use crate::server::{Server, ask};

/// Changes come between any two steps, also after a round that had none to apply.
#[test]
fn migration_recipe_brings_all_changes() {
    let readme = include_str!("../../README.md");
    let blocks: Vec<&str> = readme.split("   ```").collect();
    let block = |says| blocks.iter().find(|block| block.contains(says)).unwrap();
    let (add, apply) = (&block("SMEMBERS")[2..], &block("XRANGE")[2..]);
    let (old, new) = (Server::start(&[]), Server::start(&[]));
    let script = format!(
        r#"set -eu
        redis-cli() {{ command redis-cli -p {} "${{@/6380/{}}}"; }}
        change() {{ redis-cli XADD changes '*' "$@"; }}
        redis-cli SADD items 1 2 'a "b"' ''
        change CF.ADD before
        {add}
        change CF.DEL 1
        change CF.ADD 3
        {apply}
        {apply}
        change CF.ADD ''
        {apply}"#,
        old.port, new.port
    );
    let folder = TempDir::new().unwrap();
    let mut shell = Command::new("bash");
    let ended = shell.current_dir(&folder).arg("-c").arg(script).output();
    assert!(ended.as_ref().unwrap().status.success(), "{ended:?}");
    let c = &mut new.connect();
    let items = ["before", "1", "2", "3", "a \"b\"", ""];
    let counts = items.map(|item| ask::<u64>(c, "CF.COUNT", &["f", item]));
    assert_eq!(counts, [0, 0, 1, 1, 1, 2]);
}
