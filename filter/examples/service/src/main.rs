//! The program: its options, its answers, and its end.

mod saved_file;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, mpsc};

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::http::header::ALLOW;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{AppendHeaders, IntoResponse, Response};
use clap::Parser;
use filter::{CuckooFilter, InsertError};
use percent_encoding::percent_decode_str;
use programs::{at_least_1, counted, ending, note};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::task::block_in_place;

use saved_file::SavedFile;

/// A cuckoo filter as an HTTP service: was this key inserted?
///
/// The filter is loaded from FILE at the start, and saved there at the end (SIGTERM, or Ctrl-C) and
/// whenever a client asks; others are answered meanwhile. Whatever was acknowledged before a save
/// began is in FILE once that save is acknowledged. A service that is killed leaves FILE as the last
/// save left it.
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
    /// Number of keys to make room for; 1000000 if there is no FILE yet. The size of a filter is
    /// fixed: if FILE has another one, the service does not start.
    #[arg(long, value_name = "N", value_parser = at_least_1)]
    capacity: Option<NonZeroUsize>,
}

/// What a client may ask for.
const REQUESTS: &str = "\
Requests:
  POST /insert?key=KEY         inserts a copy of KEY
  POST /insert_unique?key=KEY  inserts KEY if it is new: true, or false if it is there already; false
                               also for about one new key in 512, if it is full
  POST /remove?key=KEY         removes a copy of KEY: true, or false if there was none; remove only
                               what you inserted, or another key may be denied
  GET  /contains?key=KEY       true or false: true also for about one absent key in 512, if it is full
  GET  /count?key=KEY          the number of copies
  POST /save                   saves the filter now
  GET  /metrics                sizes and the last save, for Prometheus

KEY is any bytes, percent-encoded. Try:
  curl -X POST 'http://127.0.0.1:8080/insert?key=a'
  curl 'http://127.0.0.1:8080/contains?key=a'
";

fn main() -> ExitCode {
    ending(serve(Options::parse()))
}

fn serve(options: Options) -> Result<()> {
    let file = SavedFile::open(options.file)?;
    let built = |keys: usize| {
        let built = CuckooFilter::builder().capacity(keys).build();
        built.with_context(|| format!("cannot make room for {keys} keys"))
    };
    let wished = options.capacity.map(|keys| built(keys.get())).transpose()?;
    let filter = match file.load()? {
        Some(filter) => {
            let (name, slots) = (file.path().display(), filter.capacity());
            let slots_wished = wished.map_or(slots, |empty| empty.capacity());
            ensure!(
                slots == slots_wished,
                "{name} has {slots} slots, but --capacity asks for {slots_wished}: leave out \
                 --capacity to go on with this filter, or move the file away to begin with an \
                 empty one"
            );
            filter
        }
        None => wished.map_or_else(|| built(1_000_000), Ok)?,
    };
    let keys = counted(filter.len() as u64, "key");
    note(format_args!("{keys} of {}", filter.capacity()));

    let (stop, stopped) = mpsc::channel();
    ctrlc::set_handler(move || _ = stop.send(())).context("cannot wait for signals")?;
    let runtime = Runtime::new().context("cannot start threads")?;
    let listener = runtime.block_on(TcpListener::bind(&options.address));
    let taken = || {
        format!(
            "cannot listen on {}: choose another --address",
            options.address
        )
    };
    let listener = listener.with_context(taken)?;
    let address = listener.local_addr()?;
    let service = Arc::new(Service { filter, file });
    let shared = service.clone();
    let answer = async move |method, uri| shared.answer(&method, &uri);
    runtime.spawn(axum::serve(listener, Router::new().fallback(answer)).into_future());
    note(format_args!("listening on http://{address}"));

    stopped.recv()?;
    drop(runtime);
    // Nobody changes the filter any more: everything acknowledged is saved.
    service.file.save(&service.filter)?;
    note(format_args!("saved {}", service.file.path().display()));
    Ok(())
}

/// A filter that clients share, and its file.
struct Service {
    filter: CuckooFilter,
    file: SavedFile,
}

/// The text of an answer; or, with its status, that of an error.
type Answer = Result<String, (StatusCode, String)>;

impl Service {
    fn answer(&self, method: &Method, uri: &Uri) -> Response {
        let path = uri.path();
        match method_of(path) {
            Some(right) if method != right => {
                let text = format!("send {right} {path}, not {method}\n\n{REQUESTS}");
                let allowed = AppendHeaders([(ALLOW, right)]);
                (StatusCode::METHOD_NOT_ALLOWED, allowed, text).into_response()
            }
            _ => self.do_and_answer(method, uri).into_response(),
        }
    }

    /// Answers a request whose method is right, if there is such a path.
    fn do_and_answer(&self, method: &Method, uri: &Uri) -> Answer {
        let key = || key(uri.query().unwrap_or_default());
        let text = match uri.path() {
            "/insert" => (self.filter.insert(&key()?))
                .map(|()| "inserted".to_owned())
                .map_err(not_inserted)?,
            "/insert_unique" => (self.filter.insert_unique(&key()?))
                .map_err(not_inserted)?
                .to_string(),
            "/remove" => self.filter.remove(&key()?).to_string(),
            "/contains" => self.filter.contains(&key()?).to_string(),
            "/count" => self.filter.count(&key()?).to_string(),
            // It takes a while: the runtime lets another thread answer the others.
            "/save" => block_in_place(|| self.file.save(&self.filter))
                .map(|()| "saved".to_owned())
                .map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}\n")))?,
            "/metrics" => self.metrics(),
            path => {
                let text = format!("there is no {method} {path}\n\n{REQUESTS}");
                return Err((StatusCode::NOT_FOUND, text));
            }
        };
        Ok(text + "\n")
    }

    /// Returns the metrics in the text format of Prometheus.
    fn metrics(&self) -> String {
        let (filter, keys) = (&self.filter, self.filter.len());
        let gauges = [
            ("keys", "Copies held.", keys as f64),
            ("capacity", "Slots.", filter.capacity() as f64),
            ("load_factor", "Copies per slot.", filter.load_factor()),
            (
                "false_positive_rate",
                "Fraction of absent keys that are wrongly found now.",
                filter.false_positive_rate_with(keys),
            ),
            (
                "memory_bytes",
                "Memory of the filter.",
                filter.memory_bytes() as f64,
            ),
            (
                "last_save_timestamp_seconds",
                "When it was last saved; 0 if it never was.",
                self.file.last_save(),
            ),
        ];
        let lines = gauges.map(|(name, help, value)| {
            format!(
                "# HELP filter_{name} {help}\n# TYPE filter_{name} gauge\nfilter_{name} {value}"
            )
        });
        lines.join("\n")
    }
}

/// Returns the method of a path: a line of the help begins with both.
fn method_of(path: &str) -> Option<&'static str> {
    let method = |line: &'static str| {
        let (method, rest) = line.trim_start().split_once(' ')?;
        let known = rest.trim_start().split([' ', '?']).next();
        (known == Some(path)).then_some(method)
    };
    REQUESTS.lines().find_map(method)
}

/// Returns the bytes of the key that the query names.
fn key(query: &str) -> Result<Vec<u8>, (StatusCode, String)> {
    match query.strip_prefix("key=") {
        // As in forms, `+` is a space.
        Some(key) if !key.contains('&') => Ok(percent_decode_str(&key.replace('+', " ")).collect()),
        _ => Err((
            StatusCode::BAD_REQUEST,
            "name one key: ?key=KEY, percent-encoded\n".to_owned(),
        )),
    }
}

fn not_inserted(error: InsertError) -> (StatusCode, String) {
    let status = match error {
        InsertError::Full => StatusCode::INSUFFICIENT_STORAGE,
        InsertError::TooManyCopies { .. } => StatusCode::CONFLICT,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, format!("{error}\n"))
}
