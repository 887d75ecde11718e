//! Tests of filters in files that processes share.
#![cfg(all(target_os = "linux", not(feature = "__steps")))]

mod any;
mod damaged;
mod expiring;
mod file;
mod opening;
mod region;
mod saving;
// Elsewhere, an exclusive load and store may never succeed when a debugger steps from one to the other.
#[cfg(target_arch = "x86_64")]
mod single;
mod storm;
mod worker;
