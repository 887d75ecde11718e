//! Which error has which status and text, where no program in C can cause it.

use filter::ExpiringCuckooFilter;
use lfcf::any::AnyFilter;
use lfcf::texts::C;
use lfcf::{LfcfStatus, status_of};

#[test]
fn unknown_error_has_status_of_its_own() {
    assert_eq!(status_of(&std::fmt::Error), LfcfStatus::Other);
}

#[test]
fn other_ages_name_maker_of_expiring_filters() {
    let builder = ExpiringCuckooFilter::builder().layout::<4, 11, 3>();
    let saved = builder.capacity(10).build().unwrap().to_bytes().unwrap();
    let error = AnyFilter::from_bytes(&saved, None).err().unwrap();
    let text = C.text_of(&error);
    assert!(text.contains("ages of 3 bits"), "{text}");
    assert!(text.contains("make one with lfcf_new_expiring"), "{text}");
}
