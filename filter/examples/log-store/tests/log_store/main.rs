//! The store: what it keeps, what a crash leaves, and how often it reads.

mod contents;
mod crashes;
mod kills;
mod page_reads;
mod simulated_disk;
mod usage;

use std::process::Command;

use log_store::lines;
use log_store::store::Store;
use log_store::store::disk::Disk;
use log_store::store::log::Change;

/// Returns the program, with the name of a command.
fn program(command: &str) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_log-store"));
    program.env("RUST_BACKTRACE", "0").arg(command);
    program
}

/// Returns the change that gives this key this value.
fn set(key: &str, value: &[u8]) -> Change {
    Change {
        key: key.into(),
        value: Some(value.to_vec()),
    }
}

fn delete(key: &str) -> Change {
    Change {
        key: key.into(),
        value: None,
    }
}

/// Returns all values, as `export` writes them.
fn exported<D: Disk>(store: &Store<D>) -> Vec<u8> {
    let mut bytes = Vec::new();
    lines::export(store, &mut bytes).unwrap();
    bytes
}

/// Returns lines of all kinds: empty ones, with other line endings, with arbitrary bytes, and some
/// longer than a page; the last one has no ending.
fn odd_lines(number: usize) -> Vec<Vec<u8>> {
    let kinds: [&dyn Fn(usize) -> Vec<u8>; 7] = [
        &|_| b"\n".to_vec(),
        &|_| b"\r\n".to_vec(),
        &|n| format!("line {n}\n").into_bytes(),
        &|n| format!("\tline {n}\r\n").into_bytes(),
        &|n| [&[0, 0xff, b'\r', n as u8 % 10, 0xfe][..], b"\n"].concat(),
        &|n| [&vec![b'x'; n % 150][..], b"\n"].concat(),
        // Up to 3 pages long at every 20th turn, short otherwise.
        &|n| {
            [
                &vec![0x80; if n % 20 == 0 { n % 3 * 6_000 } else { 3 }][..],
                b"\n",
            ]
            .concat()
        },
    ];
    let mut lines: Vec<Vec<u8>> = (0..number)
        .map(|n| kinds[n % kinds.len()](n / kinds.len()))
        .collect();
    if let Some(last) = lines.last_mut() {
        *last = b"the end".to_vec();
    }
    lines
}
