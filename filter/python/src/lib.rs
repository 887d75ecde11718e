//! The filters as a module of Python, which `lfcf.pyi` describes.

#![forbid(unsafe_code)]

use std::error::Error;
use std::hash::BuildHasher;
use std::io;
use std::iter;
use std::path::PathBuf;

use ::lfcf::any::AnyFilter;
use ::lfcf::{LfcfStatus, status_of, text_of};
use filter::{ExpiringCuckooFilter, Filter, FixedState, InsertError};
use pyo3::exceptions::{PyMemoryError, PyOSError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView};

pyo3::create_exception!(lfcf, Full, PyRuntimeError, "There is no room for the key.");

/// A key, which is hashed as it is in Rust by default.
#[derive(FromPyObject)]
enum Key {
    Text(PyBackedStr),
    Bytes(PyBackedBytes),
    Signed(i64),
    Unsigned(u64),
}

impl Key {
    fn hash(&self) -> u64 {
        match self {
            Key::Text(text) => FixedState.hash_one::<&str>(text),
            Key::Bytes(bytes) => FixedState.hash_one::<&[u8]>(bytes),
            Key::Signed(number) => FixedState.hash_one(number),
            Key::Unsigned(number) => FixedState.hash_one(number),
        }
    }
}

/// What a call for many keys is given: the keys, or an array of their hashes.
type Keys<'py> = Option<Bound<'py, PyAny>>;
type Hashes<'py> = Option<Bound<'py, PyAny>>;

/// A byte for each of them.
type Answers = PyResult<Py<PyBytes>>;

/// A call for many hashes, with a byte for each as the answer.
type Many = fn(&dyn Filter, &[u64]) -> PyResult<Vec<u8>>;

/// A filter of any kind, which all threads may use at once.
#[pyclass(frozen, module = "lfcf")]
struct CuckooFilter(AnyFilter);

impl CuckooFilter {
    fn that_expires(&self) -> PyResult<&ExpiringCuckooFilter> {
        let why = "this filter does not forget: make it with CuckooFilter.expiring";
        let filter = self.0.that_expires();
        filter.ok_or_else(|| PyValueError::new_err(why))
    }

    /// Makes a call for many keys, or for hashes, while other threads of Python go on.
    fn batch(&self, py: Python<'_>, keys: Keys<'_>, hashes: Hashes<'_>, call: Many) -> Answers {
        let keys = keys.map(|keys| listed(&keys)).transpose()?;
        // Copied, since other threads may write to the array meanwhile.
        let hashes = hashes
            .map(|hashes| HashArray::copied(&hashes))
            .transpose()?;
        let answers = py.detach(|| {
            let hashes = match (&keys, hashes) {
                (Some(keys), None) => keys.iter().map(Key::hash).collect(),
                (None, Some(hashes)) => hashes.hashes(),
                _ => return Err(PyValueError::new_err("pass either keys or hashes")),
            };
            call(self.0.filter(), &hashes)
        })?;
        Ok(PyBytes::new(py, &answers).unbind())
    }
}

#[pymethods]
impl CuckooFilter {
    #[new]
    #[pyo3(signature = (capacity, *, false_positive_rate=0.002))]
    fn fixed(capacity: usize, false_positive_rate: f64) -> PyResult<Self> {
        let made = AnyFilter::fixed(capacity, false_positive_rate);
        made.map(Self).map_err(raised)
    }

    #[staticmethod]
    #[pyo3(signature = (capacity=0, *, reserved_bytes=None))]
    fn growing(capacity: usize, reserved_bytes: Option<usize>) -> PyResult<Self> {
        let made = AnyFilter::growing(capacity, reserved_bytes);
        made.map(Self).map_err(raised)
    }

    #[staticmethod]
    fn expiring(capacity: usize) -> PyResult<Self> {
        AnyFilter::expiring(capacity).map(Self).map_err(raised)
    }

    #[staticmethod]
    #[pyo3(signature = (path, *, reserved_bytes=None))]
    fn load(py: Python<'_>, path: PathBuf, reserved_bytes: Option<usize>) -> PyResult<Self> {
        let loaded = py.detach(|| AnyFilter::load(&path, reserved_bytes));
        loaded.map(Self).map_err(raised)
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.0.filter().save_dyn(&path))
            .map_err(raised)
    }

    #[staticmethod]
    fn hash(key: Key) -> u64 {
        key.hash()
    }

    fn insert(&self, key: Key) -> PyResult<()> {
        let inserted = self.0.filter().insert_hash(key.hash());
        inserted.map_err(raised)
    }

    fn insert_if_absent(&self, key: Key) -> PyResult<bool> {
        let inserted = self.0.filter().insert_if_absent_hash(key.hash());
        inserted.map_err(raised)
    }

    fn insert_or_renew(&self, key: Key) -> PyResult<bool> {
        let inserted = self.that_expires()?.insert_or_renew_hash(key.hash());
        inserted.map_err(raised)
    }

    fn remove(&self, key: Key) -> PyResult<bool> {
        let removed = self.0.filter().remove_hash(key.hash());
        removed.map_err(raised)
    }

    fn count(&self, key: Key) -> usize {
        self.0.filter().count_hash(key.hash())
    }

    fn __contains__(&self, key: Key) -> bool {
        self.0.filter().contains_hash(key.hash())
    }

    fn __len__(&self) -> usize {
        self.0.filter().len()
    }

    #[pyo3(signature = (keys=None, *, hashes=None))]
    fn insert_batch(&self, py: Python<'_>, keys: Keys<'_>, hashes: Hashes<'_>) -> Answers {
        self.batch(py, keys, hashes, |filter, hashes| {
            filter::register_thread().map_err(raised)?;
            let mut results = vec![Ok(()); hashes.len()];
            filter.insert_hash_batch(hashes, &mut results);
            let answers = results.into_iter().map(|result| match result {
                Ok(()) => Ok(1),
                Err(error) => full_as(0, error),
            });
            answers.collect()
        })
    }

    #[pyo3(signature = (keys=None, *, hashes=None))]
    fn insert_if_absent_batch(
        &self,
        py: Python<'_>,
        keys: Keys<'_>,
        hashes: Hashes<'_>,
    ) -> Answers {
        self.batch(py, keys, hashes, |filter, hashes| {
            filter::register_thread().map_err(raised)?;
            let mut results = vec![Ok(true); hashes.len()];
            filter.insert_if_absent_hash_batch(hashes, &mut results);
            let answers = results.into_iter().map(|result| match result {
                Ok(added) => Ok(added.into()),
                Err(error) => full_as(2, error),
            });
            answers.collect()
        })
    }

    #[pyo3(signature = (keys=None, *, hashes=None))]
    fn contains_batch(&self, py: Python<'_>, keys: Keys<'_>, hashes: Hashes<'_>) -> Answers {
        self.batch(py, keys, hashes, |filter, hashes| {
            let mut found = vec![false; hashes.len()];
            filter.contains_hash_batch(hashes, &mut found);
            Ok(found.into_iter().map(u8::from).collect())
        })
    }

    #[pyo3(signature = (keys=None, *, hashes=None))]
    fn remove_batch(&self, py: Python<'_>, keys: Keys<'_>, hashes: Hashes<'_>) -> Answers {
        self.batch(py, keys, hashes, |filter, hashes| {
            filter::register_thread().map_err(raised)?;
            let mut removed = vec![Ok(false); hashes.len()];
            filter.remove_hash_batch(hashes, &mut removed);
            let answers = removed
                .into_iter()
                .map(|removed| Ok(removed.map_err(raised)?.into()));
            answers.collect()
        })
    }

    fn advance(&self, py: Python<'_>) -> PyResult<u64> {
        let filter = self.that_expires()?;
        py.detach(|| filter.advance()).map_err(raised)
    }

    fn advance_to(&self, py: Python<'_>, period: u64) -> PyResult<()> {
        let filter = self.that_expires()?;
        py.detach(|| filter.advance_to(period)).map_err(raised)
    }

    #[getter]
    fn period(&self) -> PyResult<u64> {
        self.that_expires().map(ExpiringCuckooFilter::period)
    }

    #[getter]
    fn slots(&self) -> usize {
        self.0.filter().slots()
    }

    #[getter]
    fn load_factor(&self) -> f64 {
        self.0.filter().load_factor()
    }

    #[getter]
    fn false_positive_rate(&self) -> f64 {
        self.0.filter().false_positive_rate()
    }

    #[getter]
    fn memory_bytes(&self) -> usize {
        self.0.filter().memory_bytes()
    }

    fn __repr__(&self) -> String {
        format!("<lfcf.CuckooFilter {:?}>", self.0.filter())
    }
}

#[pyfunction]
fn register_thread() -> PyResult<()> {
    filter::register_thread().map_err(raised)
}

/// Returns this answer for a key that the filter has no room for; any other error ends the batch.
fn full_as(answer: u8, error: InsertError) -> PyResult<u8> {
    match status_of(&error) {
        LfcfStatus::Full => Ok(answer),
        _ => Err(raised(error)),
    }
}

/// A sequence of keys. Bytes are one key, though Python takes them for a sequence of numbers. (So is a str, which is
/// never taken for a sequence here.)
fn listed(keys: &Bound<'_, PyAny>) -> PyResult<Vec<Key>> {
    if keys.is_instance_of::<PyBytes>() || keys.is_instance_of::<PyByteArray>() {
        let why = "bytes are one key: pass a list of keys, or an array of hashes as hashes=";
        return Err(PyTypeError::new_err(why));
    }
    keys.extract()
}

/// An array of hashes: the bytes of its items in order, and how to read an item.
struct HashArray {
    bytes: PyBackedBytes,
    read: fn([u8; 8]) -> u64,
}

impl HashArray {
    /// Copies an array. `PyBuffer<u64>` would read the bytes of big-endian items in the machine's order.
    fn copied(array: &Bound<'_, PyAny>) -> PyResult<HashArray> {
        let refused = |found: String| {
            PyTypeError::new_err(format!(
                "hashes= {found}; expected unsigned 64-bit integers of either byte order: array('Q'), \
                 numpy.uint64, ctypes.c_uint64 or a memoryview cast to 'Q'"
            ))
        };
        let view = PyMemoryView::from(array)
            .map_err(|error| refused(format!("is not an array ({error})")))?;
        let format: String = view.getattr("format")?.extract()?;
        let size: usize = view.getattr("itemsize")?.extract()?;
        let read = match (format.as_bytes(), size) {
            ([order @ .., b'Q' | b'L' | b'N'], 8) => match order {
                b"" | b"@" | b"=" => Some(u64::from_ne_bytes as fn(_) -> _),
                b"<" => Some(u64::from_le_bytes as _),
                b">" | b"!" => Some(u64::from_be_bytes as _),
                _ => None,
            },
            _ => None,
        };
        let read =
            read.ok_or_else(|| refused(format!("has items of format {format:?}, {size} bytes")))?;
        let bytes = view.call_method0("tobytes")?.extract()?;
        Ok(HashArray { bytes, read })
    }

    fn hashes(&self) -> Vec<u64> {
        let (items, _) = self.bytes.as_chunks();
        items.iter().map(|&item| (self.read)(item)).collect()
    }
}

/// The exception for an error of the filters.
fn raised(error: impl Error + 'static) -> PyErr {
    let text = text_of(&error);
    match status_of(&error) {
        LfcfStatus::Full => Full::new_err(text),
        LfcfStatus::Memory => PyMemoryError::new_err(text),
        LfcfStatus::File => match code_of(&error) {
            // Python chooses the exception by the code: the first argument, on Windows the fourth.
            Some(code) => PyOSError::new_err((code, text, None::<()>, code)),
            None => PyOSError::new_err(text),
        },
        LfcfStatus::Invalid | LfcfStatus::Format => PyValueError::new_err(text),
        LfcfStatus::Threads | LfcfStatus::Ok | LfcfStatus::Defect | LfcfStatus::Other => {
            PyRuntimeError::new_err(text)
        }
    }
}

/// The system's code for an error of a file.
fn code_of(error: &(dyn Error + 'static)) -> Option<i32> {
    let mut causes = iter::successors(Some(error), |&error| error.source());
    let error = causes.find_map(|error| error.downcast_ref::<io::Error>());
    error?.raw_os_error()
}

/// Lock-free cuckoo filters.
#[pymodule(gil_used = false)]
mod lfcf {
    #[pymodule_export]
    use super::{CuckooFilter, Full, register_thread};
}
