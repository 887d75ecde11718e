//! Memory for which huge pages were requested gets them, and other memory does not, if the system
//! grants them on request.
#![cfg(target_os = "linux")]

use std::fs;

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

#[test]
fn huge_pages_are_given_to_who_asks() {
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
        huge
    };
    let (not_asked, asked) = (write(false), write(true));
    println!(
        "of {BYTES} bytes: {not_asked} in huge pages, with advice {asked} ({})",
        mode.trim()
    );
    if mode.contains("[madvise]") {
        assert_eq!(not_asked, 0);
        assert!(asked > BYTES / 2, "{asked} bytes");
    }
    // Less than a huge page, or nothing at all, is left alone.
    huge_pages::advise(&[0u64; 100]);
    huge_pages::advise::<u64>(&[]);
}
