//! The program: its options, its threads, and its end.

mod saved_file;
mod service;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::{io, thread};

use anyhow::{Context, Result, anyhow};
use clap::Parser;
use filter::CuckooFilter;
use programs::{at_least_1, counted, ending, tell};
use tiny_http::Server;

use saved_file::SavedFile;
use service::{REQUESTS, Service};

/// A cuckoo filter as an HTTP service: was this key inserted?
///
/// Several threads answer. One of them is busy while the filter is saved, and the others go on. The
/// filter is loaded from FILE at the start, and saved there at the end (SIGTERM, or Ctrl-C) and
/// whenever a client asks. Whatever was acknowledged before a save began is in FILE once that save
/// is acknowledged. A service that is killed leaves FILE as the last save left it.
///
/// Whoever reaches the address may change the filter: let only programs that you trust reach it.
#[derive(Debug, Parser)]
#[command(max_term_width = 100, after_help = REQUESTS)]
struct Options {
    /// Where the filter is saved; it begins empty if there is no such file. FILE.lock shows others
    /// that it is in use, and a save is in FILE.saving until it is complete.
    file: PathBuf,
    /// The address to listen on. Port 0 takes any that is free, and says which.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    address: String,
    /// Number of keys to make room for, if there is no FILE yet: the size of a filter is fixed.
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = at_least_1)]
    capacity: NonZeroUsize,
    /// Number of threads that answer requests; by default one for each core, and one to save.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

fn main() -> ExitCode {
    ending(serve(Options::parse()))
}

fn serve(options: Options) -> Result<()> {
    let file = SavedFile::open(options.file)?;
    let filter = match file.load()? {
        Some(filter) => filter,
        None => (CuckooFilter::builder()
            .capacity(options.capacity.get())
            .build())
        .with_context(|| format!("cannot make room for {} keys", options.capacity))?,
    };
    tell(format_args!(
        "{} of {}",
        counted(filter.len() as u64, "key"),
        filter.capacity()
    ));
    let service = Service { filter, file };
    let threads = match options.threads {
        Some(threads) => usize::from(threads),
        None => 1 + thread::available_parallelism().map_or(1, NonZeroUsize::get),
    };
    let server = Server::http(&options.address).map_err(|error| anyhow!(error));
    let server = server.with_context(|| {
        let address = &options.address;
        format!("cannot listen on {address}: choose another --address")
    })?;
    let server = Arc::new(server);
    let stopped = Arc::clone(&server);
    ctrlc::set_handler(move || stopped.unblock()).context("cannot wait for signals")?;
    tell(format_args!("listening on http://{}", server.server_addr()));

    let ended = thread::scope(|scope| {
        let start = |_| scope.spawn(|| work(&server, &service));
        let workers: Vec<_> = (0..threads).map(start).collect();
        let mut ends = workers.into_iter().map(|worker| worker.join());
        ends.try_for_each(|end| end.expect("no answer panics"))
    });
    // Nobody changes the filter any more: everything acknowledged is saved.
    service.save()?;
    tell(format_args!("saved {}", service.file.path().display()));
    ended.context("cannot accept connections any more")
}

/// Answers requests until the server is stopped.
fn work(server: &Server, service: &Service) -> io::Result<()> {
    let ended = loop {
        // Unlike `recv`, it tells a stop from an error.
        match server.recv_timeout(std::time::Duration::MAX) {
            Ok(Some(request)) => service.answer(request),
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    // A stop reaches one thread, which passes it on to the next.
    server.unblock();
    ended
}
