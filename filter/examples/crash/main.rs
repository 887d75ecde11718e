//! Eight processes insert keys into one filter, one of them is killed every 20 ms, and no key is lost.
//!
//! ```text
//! cargo run --release --example crash --features shared
//! ```
//!
//! Each worker prints how many keys it has inserted. A killed worker is started again and continues there.

#[cfg(all(target_os = "linux", not(feature = "__steps")))]
mod workers;

use anyhow::Result;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    #[cfg(all(target_os = "linux", not(feature = "__steps")))]
    return workers::run(&arguments);
    #[cfg(not(all(target_os = "linux", not(feature = "__steps"))))]
    anyhow::bail!("only Linux has shared filters: {arguments:?}");
}
