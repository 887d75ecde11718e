//! Tests of filters in files that processes share.
#![cfg(all(target_os = "linux", not(feature = "__steps")))]

mod file;
mod opening;
mod saving;
mod storm;
