//! The requests, and their answers.

use std::time::SystemTime;

use filter::{CuckooFilter, InsertError};
use percent_encoding::percent_decode_str;
use tiny_http::{Method, Request, Response};

use crate::saved_file::SavedFile;

/// What a client may ask for.
pub(crate) const REQUESTS: &str = "\
Requests:
  POST /insert?key=KEY    inserts a copy of KEY
  POST /remove?key=KEY    removes a copy of KEY: true, or false if there was none; remove only what
                          you inserted, or another key may be denied
  GET  /contains?key=KEY  true or false: true also for about one absent key in 512, if it is full
  GET  /count?key=KEY     the number of copies
  POST /save              saves the filter now
  GET  /metrics           sizes and saves, for Prometheus

KEY is any bytes, percent-encoded. Try:
  curl -X POST 'http://127.0.0.1:8080/insert?key=a'
  curl 'http://127.0.0.1:8080/contains?key=a'
";

/// A filter that clients share, and its file.
pub(crate) struct Service {
    pub(crate) filter: CuckooFilter,
    pub(crate) file: SavedFile,
}

/// The status and the text of an answer that is an error.
type Refusal = (u16, String);

impl Service {
    /// Does what is asked, and answers.
    pub(crate) fn answer(&self, request: Request) {
        let answer = self.act(request.method(), request.url());
        let (status, text) = answer.map_or_else(|refusal| refusal, |text| (200, text));
        let response = Response::from_string(text + "\n").with_status_code(status);
        // If the client has gone, nobody waits for the answer.
        let _ = request.respond(response);
    }

    fn act(&self, method: &Method, url: &str) -> Result<String, Refusal> {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        match (method, path) {
            (Method::Post, "/insert") => match self.filter.insert(&key(query)?) {
                Ok(()) => Ok("inserted".to_owned()),
                Err(error) => Err(not_inserted(error)),
            },
            (Method::Post, "/remove") => Ok(self.filter.remove(&key(query)?).to_string()),
            (Method::Get, "/contains") => Ok(self.filter.contains(&key(query)?).to_string()),
            (Method::Get, "/count") => Ok(self.filter.count(&key(query)?).to_string()),
            (Method::Post, "/save") => match self.save() {
                Ok(()) => Ok("saved".to_owned()),
                Err(error) => Err((500, format!("{error:#}"))),
            },
            (Method::Get, "/metrics") => Ok(self.metrics()),
            (_, "/insert" | "/remove" | "/save") => Err((405, format!("use POST {path}"))),
            (_, "/contains" | "/count" | "/metrics") => Err((405, format!("use GET {path}"))),
            _ => Err((404, format!("there is no {path}\n\n{REQUESTS}"))),
        }
    }

    /// Saves the filter.
    pub(crate) fn save(&self) -> anyhow::Result<()> {
        self.file.save(&self.filter)
    }

    /// Returns the metrics in the text format of Prometheus.
    fn metrics(&self) -> String {
        let (filter, keys) = (&self.filter, self.filter.len());
        let last_save = self.file.last_save();
        let last_save = last_save.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
        let metrics = [
            ("keys", "gauge", "Copies held.", keys as f64),
            ("capacity", "gauge", "Slots.", filter.capacity() as f64),
            (
                "load_factor",
                "gauge",
                "Copies per slot.",
                filter.load_factor(),
            ),
            (
                "false_positive_rate",
                "gauge",
                "Fraction of absent keys that are wrongly found now.",
                filter.false_positive_rate_with(keys),
            ),
            (
                "memory_bytes",
                "gauge",
                "Memory of the filter.",
                filter.memory_bytes() as f64,
            ),
            (
                "saves_total",
                "counter",
                "Saves since the start.",
                self.file.saves() as f64,
            ),
            (
                "last_save_timestamp_seconds",
                "gauge",
                "When it was last saved; 0 if it never was.",
                last_save.map_or(0.0, |since| since.as_secs_f64()),
            ),
        ];
        let lines = metrics.map(|(name, kind, help, value)| {
            format!(
                "# HELP filter_{name} {help}\n# TYPE filter_{name} {kind}\nfilter_{name} {value}"
            )
        });
        lines.join("\n")
    }
}

/// Returns the bytes of the key that the query names.
fn key(query: &str) -> Result<Vec<u8>, Refusal> {
    let Some(key) = query.strip_prefix("key=").filter(|key| !key.contains('&')) else {
        return Err((400, "name one key: ?key=KEY, percent-encoded".to_owned()));
    };
    // As in forms, `+` is a space.
    Ok(percent_decode_str(&key.replace('+', " ")).collect())
}

fn not_inserted(error: InsertError) -> Refusal {
    let status = match error {
        InsertError::Full => 507,
        InsertError::TooManyCopies { .. } => 409,
        _ => 503,
    };
    (status, error.to_string())
}
