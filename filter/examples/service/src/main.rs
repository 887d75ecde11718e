//! The program: its options, its answers, and its end.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::SystemTime;

use anyhow::{Context, Result, bail, ensure};
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::routing::{MethodFilter, MethodRouter, get, on, post};
use clap::{Parser, value_parser};
use filter::{BuildError, CuckooFilter, ExpiringCuckooFilter, Filter, InsertError, LoadError};
use percent_encoding::percent_decode_str;
use programs::{at_least_1, counted, ending, note};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::task::block_in_place;

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
    /// Where the filter is saved; it begins empty if nothing has this name. FILE.lock shows others
    /// that it is in use, and a save is in FILE.partial0 until it is complete. (A save that is killed leaves that file, and
    /// the next one removes it.) If FILE is a symbolic link, all of these are where it leads.
    file: PathBuf,
    /// The address to listen on. Port 0 takes any that is free, and says which.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    address: String,
    /// Number of keys to make room for; 1000000 if there is no FILE yet. With --window, count all that come
    /// in two windows. The size of a filter is fixed: if FILE has another one, the service does not start.
    #[arg(long, value_name = "N", value_parser = at_least_1)]
    capacity: Option<NonZeroUsize>,
    /// Forget keys: each is remembered for so many seconds after it came last, and forgotten at most half that
    /// time later. FILE must have been saved with the same window.
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(1..=1_000_000_000))]
    window: Option<u64>,
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
  POST /seen?key=KEY           true if KEY came within the --window; KEY is remembered from now on
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
    // A save would replace a link, and services that use one file by several names must meet at one lock.
    let file = fs::canonicalize(&options.file).unwrap_or(options.file);
    let _lock = lock(&file)?;
    let capacity = options.capacity.map(NonZeroUsize::get);
    let filter = match options.window {
        None => {
            let build = |keys| CuckooFilter::builder().capacity(keys).build();
            let load = |file: &Path| CuckooFilter::load(file);
            Kept::ForEver(load_or_build(&file, capacity, load, build)?)
        }
        Some(seconds) => {
            let build = |keys| ExpiringCuckooFilter::builder().capacity(keys).build();
            let load = |file: &Path| ExpiringCuckooFilter::load(file);
            Kept::ForAWindow {
                filter: load_or_build(&file, capacity, load, build)?,
                period_ms: seconds * 1_000 / 2,
            }
        }
    };
    filter.check_clock()?;
    filter.go_on()?;
    let keys = counted(filter.any().len() as u64, "key");
    note(format_args!("{keys} of {}", filter.any().capacity()));

    let (stop, stopped) = mpsc::channel();
    ctrlc::set_handler(move || _ = stop.send(())).context("cannot wait for signals")?;
    let runtime = Runtime::new().context("cannot start threads")?;
    let address = options.address;
    let listener = runtime.block_on(TcpListener::bind(&address));
    let taken = || format!("cannot listen on {address}: choose another --address");
    let listener = listener.with_context(taken)?;
    let address = listener.local_addr()?;
    let service = Arc::new(Service {
        filter,
        file,
        saving: Mutex::new(()),
    });
    runtime.spawn(axum::serve(listener, router(service.clone())).into_future());
    note(format_args!("listening on http://{address}"));

    stopped.recv()?;
    drop(runtime);
    // Nobody changes the filter any more: everything acknowledged is saved.
    service.save()?;
    note(format_args!("saved {}", service.file.display()));
    Ok(())
}

/// Takes possession of the file, until the process ends. The lock is another file, since this one is
/// replaced.
fn lock(file: &Path) -> Result<File> {
    let lock = file.with_added_extension("lock");
    let name = lock.display();
    let locked = File::create(&lock)
        .with_context(|| format!("cannot create {name} (is its directory there?)"))?;
    match locked.try_lock() {
        Err(TryLockError::WouldBlock) => {
            bail!("{name} is locked: stop the service that uses it, or name another file")
        }
        tried => tried.with_context(|| format!("cannot lock {name}"))?,
    }
    Ok(locked)
}

/// Returns the filter that was saved last, which must have this capacity; or an empty one.
fn load_or_build<F: Filter>(
    file: &Path,
    capacity: Option<usize>,
    load: fn(&Path) -> Result<F, LoadError>,
    build: fn(usize) -> Result<F, BuildError>,
) -> Result<F> {
    let build = |keys| build(keys).with_context(|| format!("cannot make room for {keys} keys"));
    match fs::symlink_metadata(file) {
        // Not a link that leads nowhere, which a save would replace.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return build(capacity.unwrap_or(1_000_000));
        }
        found => found.with_context(|| format!("cannot look for {}", file.display()))?,
    };
    let cannot = "start it with or without --window as before, or move the file away to begin with an \
                  empty filter";
    let filter = load(file).context(cannot)?;
    if let Some(keys) = capacity {
        let (name, slots, wished) = (file.display(), filter.capacity(), build(keys)?.capacity());
        ensure!(
            slots == wished,
            "{name} has {slots} slots, but --capacity asks for {wished}: leave out --capacity to go \
             on with this filter, or move the file away to begin with an empty one"
        );
    }
    Ok(filter)
}

/// A filter, and for how long it keeps its keys.
enum Kept {
    ForEver(CuckooFilter),
    /// A window has two periods, and part of a third one.
    ForAWindow {
        filter: ExpiringCuckooFilter,
        period_ms: u64,
    },
}

impl Kept {
    fn any(&self) -> &(dyn Filter + Send + Sync) {
        match self {
            Kept::ForEver(filter) => filter,
            Kept::ForAWindow { filter, .. } => filter,
        }
    }

    /// Fails if the filter is of a later period than it is now.
    fn check_clock(&self) -> Result<()> {
        if let Kept::ForAWindow { filter, period_ms } = self {
            // A little later is possible if the clock was set back.
            ensure!(
                filter.period() <= now(*period_ms)? + 2,
                "the file was saved with a shorter --window, or the clock is or was wrong: start it with \
                 the window of before, or move the file away to begin with an empty filter"
            );
        }
        Ok(())
    }

    /// Forgets what is too old by now.
    fn go_on(&self) -> Result<()> {
        if let Kept::ForAWindow { filter, period_ms } = self {
            let period = now(*period_ms)?;
            if filter.period() < period {
                // It takes a while: the runtime lets another thread answer the others.
                block_in_place(|| filter.advance_to(period))?;
            }
        }
        Ok(())
    }
}

/// Returns the number of the present period since 1970.
fn now(period_ms: u64) -> Result<u64> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    Ok(now.as_millis() as u64 / period_ms)
}

/// A filter that clients share, and its file.
struct Service {
    filter: Kept,
    file: PathBuf,
    /// Held while saving: of two saves at the same time, the one that read the filter first could
    /// otherwise replace the file last.
    saving: Mutex<()>,
}

/// The text of an answer; or, with its status, that of an error.
type Answer = Result<String, (StatusCode, String)>;

fn router(service: Arc<Service>) -> Router {
    let save = async |State(service): State<Arc<Service>>| -> Answer {
        // It takes a while: the runtime lets another thread answer the others.
        match block_in_place(|| service.save()) {
            Ok(()) => Ok("saved\n".to_owned()),
            Err(error) => Err(failed(error)),
        }
    };
    let metrics =
        async |State(service): State<Arc<Service>>| -> Answer { service.metrics().map_err(failed) };
    let insert: WithKey = |filter, key| filter.insert_hash(key).map(|()| "inserted".to_owned());
    let insert_unique: WithKey = |filter, key| Ok(filter.insert_unique_hash(key)?.to_string());
    let remove: WithKey = |filter, key| Ok(filter.remove_hash(key).to_string());
    let contains: WithKey = |filter, key| Ok(filter.contains_hash(key).to_string());
    let count: WithKey = |filter, key| Ok(filter.count_hash(key).to_string());
    let seen: WithKey = |filter, key| Ok((!filter.insert_unique_hash(key)?).to_string());
    let changes = |answer| with_key(MethodFilter::POST, answer);
    Router::new()
        .route("/insert", changes(insert))
        .route("/insert_unique", changes(insert_unique))
        .route("/remove", changes(remove))
        .route("/contains", with_key(MethodFilter::GET, contains))
        .route("/count", with_key(MethodFilter::GET, count))
        .route("/seen", changes(seen))
        .route("/save", post(save))
        .route("/metrics", get(metrics))
        .fallback(async || (StatusCode::NOT_FOUND, REQUESTS))
        .method_not_allowed_fallback(async || (StatusCode::METHOD_NOT_ALLOWED, REQUESTS))
        .with_state(service)
}

type WithKey = fn(&dyn Filter, u64) -> Result<String, InsertError>;

/// Answers requests that name a key.
fn with_key(method: MethodFilter, answer: WithKey) -> MethodRouter<Arc<Service>> {
    let handler =
        async move |State(service): State<Arc<Service>>, RawQuery(query): RawQuery| -> Answer {
            let key = query.as_deref().and_then(|of| of.strip_prefix("key="));
            let key = key.filter(|key| !key.contains('&')).ok_or_else(|| {
                let text = "name one key: ?key=KEY, percent-encoded\n";
                (StatusCode::BAD_REQUEST, text.to_owned())
            })?;
            // As in forms, `+` is a space.
            let key: Vec<u8> = percent_decode_str(&key.replace('+', " ")).collect();
            service.filter.go_on().map_err(failed)?;
            let filter = service.filter.any();
            let answered = answer(filter, filter.hash_dyn(&key.as_slice()));
            answered.map(|text| text + "\n").map_err(not_inserted)
        };
    on(method, handler)
}

fn failed(error: anyhow::Error) -> (StatusCode, String) {
    (StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}\n"))
}

fn not_inserted(error: InsertError) -> (StatusCode, String) {
    let status = match error {
        InsertError::Full => StatusCode::INSUFFICIENT_STORAGE,
        InsertError::TooManyCopies { .. } => StatusCode::CONFLICT,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, format!("{error}\n"))
}

impl Service {
    /// Saves the filter. Others may change it meanwhile.
    fn save(&self) -> Result<()> {
        let _saving = self.saving.lock().unwrap_or_else(PoisonError::into_inner);
        // What a save that was killed has left, if there is one.
        let _ = fs::remove_file(self.file.with_added_extension("partial0"));
        self.filter.go_on()?;
        let saved = self.filter.any().save(&self.file);
        saved.with_context(|| format!("cannot save {}", self.file.display()))
    }

    /// Returns the metrics in the text format of Prometheus.
    fn metrics(&self) -> Result<String> {
        self.filter.go_on()?;
        let (filter, keys) = (self.filter.any(), self.filter.any().len());
        let saved = fs::metadata(&self.file).and_then(|data| data.modified());
        let since = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).ok();
        let since = saved.ok().and_then(since);
        let last_save = since.map_or(0.0, |since| since.as_secs_f64());
        let rate = filter.false_positive_rate() * filter.load_factor().min(1.0);
        let memory = filter.memory_bytes() as f64;
        let wrong = "Fraction of absent keys that are wrongly found now.";
        let when = "When it was last saved; 0 if it never was.";
        let metrics = [
            ("keys", "Copies held.", keys as f64),
            ("capacity", "Slots.", filter.capacity() as f64),
            ("load_factor", "Copies per slot.", filter.load_factor()),
            ("false_positive_rate", wrong, rate),
            ("memory_bytes", "Memory of the filter.", memory),
            ("last_save_timestamp_seconds", when, last_save),
        ]
        .map(|(name, help, value)| {
            format!(
                "# HELP filter_{name} {help}\n# TYPE filter_{name} gauge\nfilter_{name} {value}\n"
            )
        });
        Ok(metrics.concat())
    }
}
