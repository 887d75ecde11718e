//! The filters as a module of Python. `lfcf.pyi` has its types, and the same docs.

#![forbid(unsafe_code)]

use std::collections::TryReserveError;
use std::error::Error;
use std::ffi::OsString;
use std::hash::BuildHasher;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ::lfcf::any::AnyFilter;
use ::lfcf::texts::{Language, system_error};
use ::lfcf::{LfcfStatus, status_of};
use filter::{ExpiringCuckooFilter, Filter, FixedState, InsertError};
use pyo3::exceptions::{PyMemoryError, PyOSError, PyOverflowError, PyRuntimeError};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyByteArray, PyBytes, PyInt, PyMemoryView, PyString, PyType};

pyo3::create_exception!(
    lfcf,
    Full,
    PyRuntimeError,
    "There is no room for the key, or for another copy of it; the filter holds what it held."
);
pyo3::create_exception!(
    lfcf,
    Damaged,
    PyOSError,
    "Another process has damaged the file of a shared filter: make a new one."
);

/// What Python calls the functions that texts of errors advise.
const PYTHON: Language = Language {
    new_fixed: "CuckooFilter(capacity, false_positive_rate=...)",
    new_expiring: "CuckooFilter.expiring",
    open_shared: "CuckooFilter.shared",
    insert_if_absent: "insert_if_absent",
};

const EXPECTED: &str = "a key is a str, bytes, or an int from -2**63 to 2**64 - 1";

/// The hash of a key, as Rust hashes it by default.
struct Key(u64);

impl<'py> FromPyObject<'_, 'py> for Key {
    type Error = PyErr;

    fn extract(key: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = key.cast::<PyString>() {
            return Ok(Key(FixedState.hash_one(text.to_str()?)));
        }
        if let Ok(bytes) = key.cast::<PyBytes>() {
            return Ok(Key(FixedState.hash_one(bytes.as_bytes())));
        }
        if let Ok(number) = key.cast::<PyInt>() {
            return Key::of_int(&number);
        }
        let py = key.py();
        if key.is_instance_of::<PyByteArray>() {
            // In memory of Python's, whose lack is no panic.
            let bytes = py.get_type::<PyBytes>().call1((key,))?;
            return Ok(Key(FixedState.hash_one(bytes.cast::<PyBytes>()?.as_bytes())));
        }
        static INDEX: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        match INDEX.import(py, "operator", "index")?.call1((key,)) {
            Ok(number) => Key::of_int(number.cast::<PyInt>()?),
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                let found = key.get_type().name()?;
                let text = format!("{EXPECTED}, not {found}");
                Err(PyTypeError::new_err(text))
            }
            Err(error) => Err(error),
        }
    }
}

impl Key {
    fn of_int(number: &Bound<'_, PyInt>) -> PyResult<Self> {
        if let Ok(number) = number.extract::<i64>() {
            return Ok(Key(FixedState.hash_one(number)));
        }
        if let Ok(number) = number.extract::<u64>() {
            return Ok(Key(FixedState.hash_one(number)));
        }
        let text = format!("{EXPECTED}: this int is out of range");
        Err(PyOverflowError::new_err(text))
    }
}

/// What a call for many keys is given: an iterable of keys, or an array of their hashes.
type Keys<'py> = Option<Bound<'py, PyAny>>;
type Hashes<'py> = Option<Bound<'py, PyAny>>;

/// A byte for each of them.
type Answers = PyResult<Py<PyBytes>>;

/// Makes a call for hashes while other threads of Python go on. The call replaces results, each of which has an answer.
fn batch<T: Clone + Send + Sync>(
    py: Python<'_>,
    filter: &dyn Filter,
    hashes: &HashArray,
    result: T,
    call: fn(&dyn Filter, &[u64], &mut [T]),
    answer: fn(T) -> PyResult<u8>,
) -> Answers {
    /// Hashes of one call: so few that the clock is read often, and so many that this costs nothing.
    const GROUP: usize = 4_096;
    /// The time after which a batch looks for Ctrl-C. To come back from other threads may take as long as they like.
    const PATIENCE: Duration = Duration::from_millis(50);
    let mut answers = room_for(hashes.len())?;
    let mut group = room_for(GROUP)?;
    while answers.len() < hashes.len() {
        py.detach(|| {
            let begin = Instant::now();
            while answers.len() < hashes.len() && begin.elapsed() < PATIENCE {
                hashes.read(answers.len(), GROUP, &mut group);
                let mut results = filled(result.clone(), group.len())?;
                call(filter, &group, &mut results);
                for result in results {
                    answers.push(answer(result)?);
                }
            }
            PyResult::Ok(())
        })?;
        py.check_signals()?;
    }
    Ok(bytes_of(py, &answers)?.unbind())
}

fn contains_batch(
    py: Python<'_>,
    filter: &AnyFilter,
    keys: Keys<'_>,
    hashes: Hashes<'_>,
) -> Answers {
    let hashes = HashArray::of_keys_or_hashes(keys, hashes)?;
    let call = |filter: &dyn Filter, hashes: &[u64], found: &mut [bool]| {
        filter.contains_hash_batch(hashes, found);
    };
    batch(py, filter.lookups(), &hashes, false, call, |found| {
        Ok(found.into())
    })
}

fn no_memory(error: TryReserveError) -> PyErr {
    PyMemoryError::new_err(error.to_string())
}

fn room_for<T>(length: usize) -> PyResult<Vec<T>> {
    let mut room = Vec::new();
    room.try_reserve_exact(length).map_err(no_memory)?;
    Ok(room)
}

fn filled<T: Clone>(item: T, length: usize) -> PyResult<Vec<T>> {
    let mut items = room_for(length)?;
    items.resize(length, item);
    Ok(items)
}

/// Copies bytes for Python. (`PyBytes::new` panics without memory.)
fn bytes_of<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, bytes.len(), |copy| {
        copy.copy_from_slice(bytes);
        Ok(())
    })
}

/// A set of keys that never misses a present key and is wrong about few others.
///
/// It takes about two bytes per key, and stores no keys: so it cannot list, compare or unite them.
///
///     from lfcf import CuckooFilter
///
///     seen = CuckooFilter(1_000_000)        # room for a million keys, wrong about one absent key in 500
///     seen.insert("https://example.org/a")  # adds a copy, or raises Full
///     "https://example.org/a" in seen       # True
///     seen.insert_if_absent(b"b")           # True: it was added. Then False
///     seen.remove(b"b")                     # remove only what was inserted
///     seen.insert_batch(range(1_000))       # many keys at once
///
/// The kinds:
///
///     CuckooFilter(capacity)                # a fixed size, for capacity keys
///     CuckooFilter.growing()                # grows; wrong more often, the more it has grown
///     CuckooFilter.expiring(capacity)       # forgets keys two to three periods after they last came
///     CuckooFilter.shared(path, capacity)   # in a file that processes share
///
/// Keys are str, bytes, and int from -2**63 to 2**64 - 1. They have the hashes that they have in Rust by default (but an int
/// of 255 not that of a u8). A negative int and that int plus 2**64 are one key: -1 and 2**64 - 1, for example. A bytearray
/// is the key of its bytes, and an object with __index__, such as a whole number of NumPy, that of its int.
///
/// Threads: all may use a filter at once. Batches and files let other threads of Python go on. Of several threads that
/// insert a key if it is absent, at most one gets True.
///
/// Errors: what changes a filter raises Full if there is no room, MemoryError if there is no memory to grow, RuntimeError if
/// there is no id for the thread (register_thread), and Damaged if another process has damaged the file. After any of
/// these but Damaged, a call for one key has changed nothing.
///
/// Batches take any finite iterable of keys, or an array of hashes as hashes=, and return a byte for each. The array has
/// unsigned 64-bit integers of either byte order: array.array("Q"), numpy.uint64, ctypes.c_uint64 or a memoryview cast
/// to "Q". Any other array raises a TypeError. Without hashes=, the numbers of an array are keys. bytes and str are one
/// key: a TypeError here. If a key is not of these types, no call of the batch is made. A batch is many calls, not one:
/// Ctrl-C ends it after some of them, as does any error but Full. Its answers are lost then, and keys after the one that
/// failed may have been inserted or removed, too.
///
/// Files: save and load, from any language. Filters can be pickled and copied. A copy of a growing filter has the default
/// reserved_bytes; a copy of a shared filter is another handle of the file that has its path then.
#[pyclass(frozen, module = "lfcf")]
struct CuckooFilter(AnyFilter);

impl CuckooFilter {
    fn filter(&self) -> PyResult<&dyn Filter> {
        self.0.filter().map_err(raised)
    }

    fn that_expires(&self) -> PyResult<&ExpiringCuckooFilter> {
        self.0.that_expires().map_err(raised)
    }

    /// Makes a call that changes the filter. The thread gets its id before: without one, the call fails for no key.
    fn update_batch<T: Clone + Send + Sync>(
        &self,
        (py, keys, hashes): (Python<'_>, Keys<'_>, Hashes<'_>),
        result: T,
        call: fn(&dyn Filter, &[u64], &mut [T]),
        answer: fn(T) -> PyResult<u8>,
    ) -> Answers {
        let hashes = HashArray::of_keys_or_hashes(keys, hashes)?;
        register_thread()?;
        batch(py, self.filter()?, &hashes, result, call, answer)
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

    /// A filter that grows. It begins to grow at 0.37 to 1.2 times capacity; a small one at some 1,900 keys.
    ///
    /// reserved_bytes sets how many bytes the filter allocates at once for its table, so that the table grows in one piece
    /// up to that size: 0 takes the least memory. None reserves four times the first size, but at most 64 MiB, and nothing
    /// for a table of less than 128 KiB. On Linux, what is reserved is address space and no memory, unless the process
    /// calls mlockall, the system does not overcommit, or the process has 65,536 large blocks.
    #[staticmethod]
    #[pyo3(signature = (capacity=0, *, reserved_bytes=None))]
    fn growing(capacity: usize, reserved_bytes: Option<usize>) -> PyResult<Self> {
        let made = AnyFilter::growing(capacity, reserved_bytes);
        made.map(Self).map_err(raised)
    }

    /// A filter that forgets keys two to three periods after they last came, with room for the keys of three.
    ///
    /// Make room for the keys of one more period if keys are inserted while the oldest ones are forgotten.
    #[staticmethod]
    fn expiring(capacity: usize) -> PyResult<Self> {
        AnyFilter::expiring(capacity).map(Self).map_err(raised)
    }

    /// Opens the filter in a file that processes share (64-bit Linux), or creates the file with room for capacity keys.
    ///
    /// An existing file keeps its size; without a capacity, there must be one. Any process may be killed at any moment: the
    /// others never wait and lose no key, and a process that opens the file again continues at once. Put the file on tmpfs,
    /// such as /dev/shm, since it does not survive a restart of the system. Locks are in a second file, PATH.lock: to delete
    /// the filter, remove that one first. At most 1,024 open handles of all processes, with up to four updating threads each,
    /// can change it.
    ///
    /// The handle works after a fork, and pickles as its path. A filter that is opened in the parent, before a server such as
    /// gunicorn with preload_app forks its workers, is one filter in all of them.
    #[classmethod]
    #[pyo3(signature = (path, capacity=None))]
    fn shared(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        path: PathBuf,
        capacity: Option<usize>,
    ) -> PyResult<Self> {
        let opened = py.detach(|| AnyFilter::open_shared(&path, capacity));
        opened.map(Self).map_err(raised)
    }

    /// Loads a filter of any kind, saved from any language. A filter that grows gets these reserved_bytes.
    ///
    /// ValueError if the file is not a filter, or is damaged.
    #[staticmethod]
    #[pyo3(signature = (path, *, reserved_bytes=None))]
    fn load(py: Python<'_>, path: PathBuf, reserved_bytes: Option<usize>) -> PyResult<Self> {
        let loaded = py.detach(|| AnyFilter::load(&path, reserved_bytes));
        loaded.map(Self).map_err(raised)
    }

    /// Replaces a file at one moment. Other threads may go on, but only one at a time may save under this name.
    ///
    /// If two calls overlap, the file of the last one to end stays, even if that call read the filter first.
    /// A directory, a device, a pipe or a socket is refused. After an OSError, an older file is as it was, unless the text
    /// says that the filter is saved, but may be lost when the power fails. A shared filter is saved while other
    /// processes change it, by one of them at a time: RuntimeError.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let filter = self.filter()?;
        py.detach(|| filter.save_dyn(&path)).map_err(raised)
    }

    /// The bytes that save would write.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let filter = self.filter()?;
        let bytes = py.detach(|| filter.to_bytes()).map_err(raised)?;
        bytes_of(py, &bytes)
    }

    /// Loads a filter from the bytes of to_bytes or of a file, as load does.
    #[classmethod]
    #[pyo3(signature = (data, *, reserved_bytes=None))]
    fn from_bytes(
        _class: &Bound<'_, PyType>,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        reserved_bytes: Option<usize>,
    ) -> PyResult<Self> {
        // (Of a bytearray, `PyBackedBytes` itself would make a copy that aborts without memory.)
        let bytes: PyBackedBytes = match data.cast::<PyBytes>() {
            Ok(bytes) => bytes.clone().into(),
            Err(_) => PyMemoryView::from(data)?
                .call_method0("tobytes")?
                .extract()?,
        };
        let loaded = py.detach(|| AnyFilter::from_bytes(&bytes, reserved_bytes));
        loaded.map(Self).map_err(raised)
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyAny>,))> {
        let (make, from) = match path_of(&self.0) {
            Some(path) => ("shared", path.into_pyobject(py)?.into_any()),
            None => ("from_bytes", self.to_bytes(py)?.into_any()),
        };
        Ok((py.get_type::<Self>().getattr(make)?, (from,)))
    }

    /// The hash of a key, for the batches that take hashes.
    #[staticmethod]
    fn hash(key: Key) -> u64 {
        key.0
    }

    /// Adds a copy of the key; in a filter that forgets, adds or renews it.
    ///
    /// Raises Full, and the other errors of the class.
    fn insert(&self, key: Key) -> PyResult<()> {
        self.filter()?.insert_hash(key.0).map_err(raised)
    }

    /// Adds the key unless it is there (a filter that forgets does not renew it then). Raises Full.
    ///
    /// Returns whether it was added. Of several threads or processes that add one key, at most one gets True, unless the key
    /// is removed or forgotten in between. None does if the filter has no room or mistakes the key for another. Even if
    /// only keys that got True are removed, a key that was mistaken for a removed one is missing afterwards.
    fn insert_if_absent(&self, key: Key) -> PyResult<bool> {
        self.filter()?.insert_if_absent_hash(key.0).map_err(raised)
    }

    /// Adds the key to a filter that forgets, or renews it. Returns whether it was added. Raises Full.
    ///
    /// ValueError for other kinds.
    fn insert_or_renew(&self, key: Key) -> PyResult<bool> {
        let inserted = self.that_expires()?.insert_or_renew_hash(key.0);
        inserted.map_err(raised)
    }

    /// Takes a copy of the key and returns True; False if there was none. Remove only what was inserted.
    fn remove(&self, key: Key) -> PyResult<bool> {
        self.filter()?.remove_hash(key.0).map_err(raised)
    }

    /// The number of copies.
    fn count(&self, key: Key) -> usize {
        self.0.lookups().count_hash(key.0)
    }

    fn __contains__(&self, key: Key) -> bool {
        self.0.lookups().contains_hash(key.0)
    }

    fn __len__(&self) -> usize {
        self.0.lookups().len()
    }

    /// 1 if a copy was added, 0 if there was no room.
    ///
    /// MemoryError if there was no memory for a key. Keys before it are inserted, and keys after it may be.
    #[pyo3(signature = (keys=None, *, hashes=None))]
    fn insert_batch(&self, py: Python<'_>, keys: Keys<'_>, hashes: Hashes<'_>) -> Answers {
        let call = |filter: &dyn Filter, hashes: &[u64], results: &mut [_]| {
            filter.insert_hash_batch(hashes, results);
        };
        self.update_batch((py, keys, hashes), Ok(()), call, |result| match result {
            Ok(()) => Ok(1),
            Err(error) => full_as(0, error),
        })
    }

    /// 1 if the key was added, 0 if it was there, 2 if there was no room. MemoryError as in insert_batch.
    #[pyo3(signature = (keys=None, *, hashes=None))]
    fn insert_if_absent_batch(
        &self,
        py: Python<'_>,
        keys: Keys<'_>,
        hashes: Hashes<'_>,
    ) -> Answers {
        let call = |filter: &dyn Filter, hashes: &[u64], results: &mut [_]| {
            filter.insert_if_absent_hash_batch(hashes, results);
        };
        self.update_batch((py, keys, hashes), Ok(true), call, |result| match result {
            Ok(added) => Ok(added.into()),
            Err(error) => full_as(2, error),
        })
    }

    /// 1 if the key is there, 0 if not.
    #[pyo3(signature = (keys=None, *, hashes=None))]
    fn contains_batch(&self, py: Python<'_>, keys: Keys<'_>, hashes: Hashes<'_>) -> Answers {
        contains_batch(py, &self.0, keys, hashes)
    }

    /// 1 if a copy was taken, 0 if there was none.
    #[pyo3(signature = (keys=None, *, hashes=None))]
    fn remove_batch(&self, py: Python<'_>, keys: Keys<'_>, hashes: Hashes<'_>) -> Answers {
        let call = |filter: &dyn Filter, hashes: &[u64], results: &mut [_]| {
            filter.remove_hash_batch(hashes, results);
        };
        self.update_batch((py, keys, hashes), Ok(false), call, |removed| {
            removed.map(u8::from).map_err(raised)
        })
    }

    /// Begins a period of a filter that forgets, and returns its number; ValueError for other kinds.
    ///
    /// Each call begins one: threads that read a clock call advance_to.
    fn advance(&self, py: Python<'_>) -> PyResult<u64> {
        let filter = self.that_expires()?;
        py.detach(|| filter.advance()).map_err(raised)
    }

    /// Begins periods until the present one has this number; ValueError if the filter does not forget.
    ///
    /// Begins none if it has this number or a greater one. So any number of threads may call this before each
    /// call, with the time divided by the length of a period. The number must be below 2**42.
    ///
    /// A number that is too great cannot be taken back: until the clock reaches it, nothing is forgotten. If a clock
    /// may be wrong, compare with period first.
    fn advance_to(&self, py: Python<'_>, period: u64) -> PyResult<()> {
        let filter = self.that_expires()?;
        py.detach(|| filter.advance_to(period)).map_err(raised)
    }

    /// Decides all calls of killed processes on a shared filter: each has then taken effect or never will.
    ///
    /// Opening the file does this, too. ValueError for other kinds.
    fn take_over_all(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.take_over_all()).map_err(raised)
    }

    /// Counts the copies in a shared filter, corrects len and returns it; ValueError for other kinds.
    ///
    /// Each thread that was killed in a call may have made len wrong by one, in clear by up to four. It is exact if
    /// take_over_all was called before and no other thread changes the filter during the call.
    fn recount(&self, py: Python<'_>) -> PyResult<usize> {
        py.detach(|| self.0.recount()).map_err(raised)
    }

    /// Removes all keys of a shared filter, bucket by bucket; ValueError for other kinds: make a new one.
    ///
    /// Keys that others insert at the same time may stay. A call that is killed may have removed some of the keys.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.clear()).map_err(raised)
    }

    /// The absolute path of a shared filter; None for other kinds.
    #[getter]
    fn path(&self) -> Option<OsString> {
        path_of(&self.0)
    }

    /// True once a call of this process has found that another process has damaged the file of a shared filter.
    ///
    /// From then on every key seems to be there, and calls that change the filter raise Damaged.
    #[getter]
    fn is_damaged(&self) -> bool {
        self.0.is_damaged()
    }

    /// The present period of a filter that forgets, 0 at first; ValueError for other kinds.
    #[getter]
    fn period(&self) -> PyResult<u64> {
        self.that_expires().map(ExpiringCuckooFilter::period)
    }

    /// The number of slots: a filter of fixed size begins to refuse keys somewhat below it.
    #[getter]
    fn slots(&self) -> usize {
        self.0.lookups().slots()
    }

    /// The fraction of the slots that are taken.
    #[getter]
    fn load_factor(&self) -> PyResult<f64> {
        Ok(self.filter()?.load_factor())
    }

    /// The fraction of absent keys about which the filter would be wrong if every slot were taken.
    #[getter]
    fn false_positive_rate(&self) -> PyResult<f64> {
        Ok(self.filter()?.false_positive_rate())
    }

    /// The memory that the filter takes, or the bytes of its table in the file.
    #[getter]
    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    fn __repr__(&self) -> String {
        format!("<lfcf.CuckooFilter {:?}>", self.0)
    }
}

/// A shared filter for lookups alone, in any number of processes.
///
/// It maps the file of CuckooFilter.shared read-only: the right to read the file is enough, and it does not count among the
/// handles that change the filter. It pickles as its path.
///
///     look = Lookup("/dev/shm/seen")
///     "key" in look
///     look.contains_batch(keys)
#[pyclass(frozen, module = "lfcf")]
struct Lookup(AnyFilter);

#[pymethods]
impl Lookup {
    #[new]
    fn open(path: PathBuf) -> PyResult<Self> {
        AnyFilter::open_lookup(&path).map(Self).map_err(raised)
    }

    /// The number of copies.
    fn count(&self, key: Key) -> usize {
        self.0.lookups().count_hash(key.0)
    }

    fn __contains__(&self, key: Key) -> bool {
        self.0.lookups().contains_hash(key.0)
    }

    fn __len__(&self) -> usize {
        self.0.lookups().len()
    }

    /// 1 if the key is there, 0 if not, as CuckooFilter.contains_batch.
    #[pyo3(signature = (keys=None, *, hashes=None))]
    fn contains_batch(&self, py: Python<'_>, keys: Keys<'_>, hashes: Hashes<'_>) -> Answers {
        contains_batch(py, &self.0, keys, hashes)
    }

    /// The number of slots.
    #[getter]
    fn slots(&self) -> usize {
        self.0.lookups().slots()
    }

    /// True once a call of this process has found that the file is damaged: then every key seems to be there.
    #[getter]
    fn is_damaged(&self) -> bool {
        self.0.is_damaged()
    }

    /// The absolute path of the file.
    #[getter]
    fn path(&self) -> Option<OsString> {
        path_of(&self.0)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (Option<OsString>,)) {
        (py.get_type::<Self>(), (path_of(&self.0),))
    }

    fn __repr__(&self) -> String {
        format!("<lfcf.Lookup {:?}>", self.0)
    }
}

fn path_of(filter: &AnyFilter) -> Option<OsString> {
    filter.path().map(|path| path.as_os_str().to_owned())
}

/// Reserves one of the 4,096 ids of threads that change filters for this thread, until it ends.
///
/// RuntimeError if all are taken. Without this call, a thread gets an id when it first changes or saves a filter, and keeps
/// it unless 3,072 are kept already: then it has one during each call only. A batch that inserts or removes makes this call.
/// It reserves no id in a shared file, where the first change of a thread may raise RuntimeError.
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

/// The hashes of a batch.
enum HashArray {
    OfKeys(Vec<u64>),
    /// The bytes of the items of an array in order, and how to read an item.
    Items {
        bytes: PyBackedBytes,
        read: fn([u8; 8]) -> u64,
    },
}

impl HashArray {
    fn of_keys_or_hashes(keys: Keys<'_>, hashes: Hashes<'_>) -> PyResult<HashArray> {
        match (keys, hashes) {
            (Some(keys), None) => HashArray::of_keys(&keys),
            (None, Some(hashes)) => HashArray::copied(&hashes),
            _ => Err(PyValueError::new_err("pass either keys or hashes")),
        }
    }

    /// Hashes the keys of any iterable. Bytes and texts are one key, though Python iterates over them.
    fn of_keys(keys: &Bound<'_, PyAny>) -> PyResult<HashArray> {
        let is_one = keys.is_instance_of::<PyBytes>()
            || keys.is_instance_of::<PyByteArray>()
            || keys.is_instance_of::<PyString>();
        let advice = "pass an iterable of keys, such as a list, or an array of hashes as hashes=";
        if is_one {
            let found = keys.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "{found} is one key: {advice}"
            )));
        }
        let keys = keys.try_iter().map_err(|error| {
            PyTypeError::new_err(format!("keys cannot be iterated ({error}): {advice}"))
        })?;
        let py = keys.py();
        let mut hashes = room_for(keys.size_hint().0.min(1 << 20))?;
        for key in keys {
            let hash = key?.extract::<Key>().map_err(|error| {
                if !error.is_instance_of::<PyTypeError>(py) {
                    return error;
                }
                let (nth, text) = (hashes.len(), error.value(py));
                PyTypeError::new_err(format!("item {nth} of keys: {text}"))
            })?;
            hashes.try_reserve(1).map_err(no_memory)?;
            hashes.push(hash.0);
            if hashes.len() % 4_096 == 0 {
                // Iterators in C, such as those of ranges, let no other thread run.
                py.detach(|| ());
                py.check_signals()?;
            }
        }
        Ok(HashArray::OfKeys(hashes))
    }

    /// Copies an array, since other threads may write to it during the call. `PyBuffer<u64>` would read the bytes of
    /// big-endian items in the machine's order.
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
        Ok(HashArray::Items { bytes, read })
    }

    fn len(&self) -> usize {
        match self {
            HashArray::OfKeys(hashes) => hashes.len(),
            HashArray::Items { bytes, .. } => bytes.len() / size_of::<u64>(),
        }
    }

    /// Reads the next hashes from this one on.
    fn read(&self, from: usize, most: usize, group: &mut Vec<u64>) {
        let end = self.len().min(from + most);
        group.clear();
        match self {
            HashArray::OfKeys(hashes) => group.extend(&hashes[from..end]),
            HashArray::Items { bytes, read } => {
                let (items, _) = bytes.as_chunks();
                group.extend(items[from..end].iter().map(|&item| read(item)));
            }
        }
    }
}

/// The exception for an error of the filters.
fn raised(error: impl Into<Box<dyn Error + Send + Sync>>) -> PyErr {
    let error = &*error.into();
    let text = PYTHON.text_of(error);
    match status_of(error) {
        LfcfStatus::Full => Full::new_err(text),
        LfcfStatus::Damaged => Damaged::new_err(text),
        LfcfStatus::Memory => PyMemoryError::new_err(text),
        LfcfStatus::File => match system_error(error).and_then(std::io::Error::raw_os_error) {
            // Python chooses the exception by the code: the first argument, on Windows the fourth.
            Some(code) => PyOSError::new_err((code, text, None::<()>, code)),
            None => PyOSError::new_err(text),
        },
        LfcfStatus::Invalid | LfcfStatus::Format => PyValueError::new_err(text),
        LfcfStatus::Threads
        | LfcfStatus::Busy
        | LfcfStatus::Ok
        | LfcfStatus::Defect
        | LfcfStatus::Other => PyRuntimeError::new_err(text),
    }
}

/// Lock-free cuckoo filters: shared approximate sets with deletion, for any number of threads and processes.
///
/// help(lfcf.CuckooFilter) explains them.
#[pymodule(gil_used = false)]
mod lfcf {
    #[pymodule_export]
    use super::{CuckooFilter, Damaged, Full, Lookup, register_thread};
}
