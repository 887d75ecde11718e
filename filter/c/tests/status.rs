//! Which error has which status, where no program in C can cause it.

use lfcf::{LfcfStatus, status_of};

#[test]
fn unknown_error_has_status_of_its_own() {
    assert_eq!(status_of(&std::fmt::Error), LfcfStatus::Other);
}
