//! Memory for which huge pages were requested carries the advice, and other memory does not and gets none, if the
//! system grants them on request. How many it gets depends on the memory that is free.
#![cfg(target_os = "linux")]

use std::fs;
use std::ops::Range;

const BYTES: usize = 64 << 20;

/// Returns how much of this process's memory is in huge pages.
fn huge_bytes() -> usize {
    let smaps = fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = smaps
        .lines()
        .find_map(|line| line.strip_prefix("AnonHugePages:"));
    let kilobytes = line.unwrap().trim().strip_suffix(" kB").unwrap();
    kilobytes.parse::<usize>().unwrap() << 10
}

/// Whether the mapping that this memory lies in carries the advice.
fn is_advised(memory: &[u64]) -> bool {
    fn range(line: &str) -> Option<Range<usize>> {
        let address = |hex| usize::from_str_radix(hex, 16).ok();
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        Some(address(start)?..address(end)?)
    }
    // The advice is about whole huge pages: not about either end.
    let middle = memory[memory.len() / 2..].as_ptr().addr();
    let smaps = fs::read_to_string("/proc/self/smaps").unwrap();
    let is_elsewhere = |line: &&str| !range(line).is_some_and(|mapping| mapping.contains(&middle));
    let mut lines = smaps.lines().skip_while(is_elsewhere);
    let flags = lines.find_map(|line| line.strip_prefix("VmFlags:"));
    flags.unwrap().split(' ').any(|flag| flag == "hg")
}

#[test]
fn memory_keeps_advice() {
    let mode =
        fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let write = |ask: bool| {
        let mut memory = vec![0u64; BYTES / 8];
        if ask {
            huge_pages::advise(&memory);
        }
        let before = huge_bytes();
        memory.fill(1);
        let huge = huge_bytes() - before;
        assert!(memory.iter().all(|&word| word == 1));
        if mode.contains("[madvise]") {
            assert_eq!(is_advised(&memory), ask);
        }
        huge
    };
    let (not_asked, asked) = (write(false), write(true));
    println!(
        "of {BYTES} bytes: {not_asked} in huge pages, with advice {asked} ({})",
        mode.trim()
    );
    if mode.contains("[madvise]") {
        assert_eq!(not_asked, 0);
    }
    // Less than a huge page, or nothing at all, is left alone.
    huge_pages::advise(&[0u64; 100]);
    huge_pages::advise::<u64>(&[]);
}
