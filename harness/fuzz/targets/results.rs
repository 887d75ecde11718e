//! Any bytes are read as rows of results and their sidecar, or refused with an error.

#![no_main]

use harness::show::sidecar::Sidecar;
use harness::studies::kinds::read_any;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let path = std::env::temp_dir().join(format!("results-{}.csv", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    let sidecar = Sidecar::read(&path);
    if let Ok(rows) = read_any(&path) {
        assert!(bytes.iter().filter(|&&byte| byte == b'\n').count() >= rows.count());
        if let Ok(sidecar) = sidecar {
            let _ = rows.missing(&sidecar);
        }
    }
});
