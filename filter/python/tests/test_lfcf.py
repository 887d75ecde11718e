"""Tests of the module lfcf: GOLDEN=folder SHARED=folder python -m unittest."""

import ast
import collections
import contextlib
import copy
import ctypes
import errno
import inspect
import itertools
import mmap
import os
import pickle
import signal
import socket
import stat
import subprocess
import sys
import threading
import unittest
from array import array
from pathlib import Path

import numpy

import lfcf
from lfcf import CuckooFilter

try:
    # CPython's own tests have it: buffers of any format.
    import _testbuffer as testbuffer
except ImportError:
    testbuffer = None
try:
    import pandas
except ImportError:
    pandas = None

GOLDEN = Path(os.environ["GOLDEN"])
SHARED = Path(os.environ["SHARED"])

KINDS = {
    "fixed": lambda: CuckooFilter(30_000),
    "growing": CuckooFilter.growing,
    "expiring": lambda: CuckooFilter.expiring(30_000),
}


def in_threads(count, work):
    """Runs work(thread) in this many threads; what one raises is raised here."""
    raised = []

    def caught(thread):
        try:
            work(thread)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=caught, args=(thread,)) for thread in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


class Files(unittest.TestCase):
    def test_golden_files_are_read(self):
        fixed = CuckooFilter.load(GOLDEN / "version-3")
        self.assertEqual(len(fixed), 300)
        self.assertTrue(all(number in fixed for number in range(200)))
        self.assertTrue(all(f"key {number}" in fixed for number in range(100)))
        growing = CuckooFilter.load(str(GOLDEN / "growing-version-3"))
        self.assertEqual(len(growing), 300)
        self.assertTrue(all(number in growing for number in range(300)))
        expiring = CuckooFilter.load(GOLDEN / "expiring-version-3")
        for begun in range(3):
            self.assertTrue(all(number in expiring for number in range(100 * begun, 300)))
            self.assertEqual(expiring.advance(), 8 + begun)
        self.assertEqual(len(expiring), 0)

    def test_files_are_shared_with_rust_and_c(self):
        for kind in KINDS:
            of_rust = CuckooFilter.load(SHARED / f"rust-{kind}")
            for number in range(-500, 500):
                self.assertIn(number, of_rust)
                self.assertIn(str(number), of_rust)
                self.assertIn(str(number).encode(), of_rust)
            # In one that forgets, keys may have one copy between them, which a remove takes.
            if kind == "expiring":
                self.assertEqual(of_rust.advance(), 8)
            else:
                self.assertEqual(of_rust.remove_batch(range(-500, 0)), b"\1" * 500)
            self.assertNotIn(2, of_rust.insert_if_absent_batch(list(range(1_000))))
            of_rust.save(SHARED / f"python-{kind}")
            of_c = SHARED / f"c-{kind}"
            if of_c.exists():
                of_c = CuckooFilter.load(of_c)
                self.assertTrue(all(number in of_c for number in range(1_000)))

    def test_what_is_no_filter_is_refused(self):
        damaged = SHARED / "damaged"
        bytes = bytearray((GOLDEN / "version-3").read_bytes() + b"more")
        damaged.write_bytes(bytes)
        with self.assertRaisesRegex(ValueError, "4 bytes follow"):
            CuckooFilter.load(damaged)
        bytes[41] ^= 1
        damaged.write_bytes(bytes)
        with self.assertRaisesRegex(ValueError, "damaged"):
            CuckooFilter.load(damaged)
        for use in (CuckooFilter.load, CuckooFilter(10).save):
            with self.assertRaisesRegex(FileNotFoundError, "nowhere") as raised:
                use("nowhere/at/all")
            self.assertEqual(raised.exception.errno, errno.ENOENT)
        with self.assertRaises(IsADirectoryError):
            CuckooFilter.load(SHARED)

    def test_save_to_special_file_is_refused(self):
        folder = SHARED / "special"
        folder.mkdir()
        directory, fifo, link, device = (folder / name for name in ("directory", "fifo", "link", "device"))
        directory.mkdir()
        os.mkfifo(fifo)
        link.symlink_to(fifo)
        special = [fifo, link]
        # Not to a real device: a defect would replace it. Only root may make one, here of the numbers of /dev/null.
        with contextlib.suppress(PermissionError):
            os.mknod(device, stat.S_IFCHR | 0o600, os.makedev(1, 3))
            special.append(device)
        filter = CuckooFilter(10)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(folder / "socket"))
            for path in (*special, folder / "socket"):
                before = path.lstat()
                with self.subTest(path), self.assertRaisesRegex(OSError, f"{path}.*a device, a pipe or a socket"):
                    filter.save(path)
                self.assertEqual(path.lstat(), before)
        with self.assertRaises(IsADirectoryError):
            filter.save(directory)
        # A link to a file is replaced, and not the file.
        (folder / "file").write_bytes(b"older")
        link.unlink()
        link.symlink_to("file")
        filter.save(link)
        self.assertEqual((len(CuckooFilter.load(link)), (folder / "file").read_bytes()), (0, b"older"))

    def test_growing_filter_reserves_only_requested_bytes(self):
        def address_space():
            return int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE

        path = SHARED / "reserving"
        for requested in (0, 300 << 20):
            before = address_space()
            made = CuckooFilter.growing(1_000_000, reserved_bytes=requested)
            made.save(path)
            loaded = CuckooFilter.load(path, reserved_bytes=requested)
            taken = address_space() - before
            self.assertTrue(2 * requested <= taken < 2 * requested + (32 << 20), taken)
            self.assertEqual(loaded.slots, made.slots)
            del made, loaded
        with self.assertRaises(MemoryError):
            CuckooFilter.growing(reserved_bytes=2**62)


class Copies(unittest.TestCase):
    def test_copies_of_each_kind_are_separate(self):
        for kind, make in KINDS.items():
            filter = make()
            if kind == "expiring":
                filter.advance_to(7)
            filter.insert_batch(range(1_000))
            path = SHARED / f"bytes-of-{kind}"
            filter.save(path)
            self.assertEqual(filter.to_bytes(), path.read_bytes())
            copies = [copy.copy(filter), copy.deepcopy(filter), copy.deepcopy([filter, filter])[1]]
            copies += [pickle.loads(pickle.dumps(filter, protocol)) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)]
            copies += [CuckooFilter.from_bytes(form(filter.to_bytes())) for form in (bytes, bytearray, memoryview)]
            for other in copies:
                with self.subTest(kind):
                    self.assertEqual((len(other), other.slots), (len(filter), filter.slots))
                    self.assertEqual(other.contains_batch(range(1_000)), b"\1" * 1_000)
                    other.insert("key")
                    self.assertNotIn("key", filter)
                    if kind == "expiring":
                        self.assertEqual(other.period, 7)

    def test_what_is_no_filter_is_refused_as_bytes(self):
        bytes = CuckooFilter(10).to_bytes()
        damaged = bytes[:41] + b"?" + bytes[42:]
        for wrong, text in ((b"", "cut off"), (bytes + b"more", "4 bytes follow"), (damaged, "damaged")):
            with self.subTest(text), self.assertRaisesRegex(ValueError, text):
                CuckooFilter.from_bytes(wrong)
        with self.assertRaises(TypeError):
            CuckooFilter.from_bytes("a text")
        # A layout that another program may have saved.
        layout = CuckooFilter(10, false_positive_rate=1e-6).to_bytes()
        self.assertEqual(len(CuckooFilter.from_bytes(layout)), 0)


class Keys(unittest.TestCase):
    def test_keys_hash_as_in_rust(self):
        # Those of the tests of FixedState.
        self.assertEqual(CuckooFilter.hash(7), 0x3317_4310_C9F6_F55B)
        self.assertEqual(CuckooFilter.hash(-7), 0x18FC_BC06_D9CC_8058)
        self.assertEqual(CuckooFilter.hash("key"), 0x40BD_59FF_2470_12E7)
        self.assertEqual(CuckooFilter.hash(b"key"), 0xB8DD_036B_5A72_0F29)
        self.assertEqual(CuckooFilter.hash(2**64 - 1), CuckooFilter.hash(-1))
        self.assertEqual(CuckooFilter.hash(bytearray(b"key")), CuckooFilter.hash(b"key"))
        self.assertEqual(CuckooFilter.hash(numpy.int32(-7)), CuckooFilter.hash(-7))
        self.assertEqual(CuckooFilter.hash(numpy.uint64(2**64 - 7)), CuckooFilter.hash(-7))

    def test_wrong_keys_raise_one_line_that_names_right_ones(self):
        expected = "a key is a str, bytes, or an int from -2**63 to 2**64 - 1"
        filter = CuckooFilter(10)
        calls = (CuckooFilter.hash, filter.insert, filter.count, filter.__contains__, lambda key: filter.insert_batch([1, key]))
        for call in calls:
            for wrong in (1.5, None, ("a", 1), numpy.float64(1), object()):
                with self.assertRaises(TypeError) as raised:
                    call(wrong)
                self.assertRegex(str(raised.exception), f"^.*{expected.replace('*', '.')}, not {type(wrong).__name__}$")
            for wrong in (2**64, -(2**63) - 1, 10**100):
                with self.assertRaises(OverflowError) as raised:
                    call(wrong)
                self.assertEqual(str(raised.exception), f"{expected}: this int is out of range")
            with self.assertRaises(UnicodeEncodeError):
                call("\udc00")
        with self.assertRaisesRegex(TypeError, "^item 2 of keys: a key is"):
            filter.insert_batch(["a", "b", None])
        with self.assertRaisesRegex(TypeError, "'int' object is not iterable"):
            filter.insert_batch(7)
        self.assertEqual(len(filter), 0)

    def test_index_is_called_once_and_raises(self):
        class Number:
            def __init__(self, index):
                self.index, self.calls = index, 0

            def __index__(self):
                self.calls += 1
                return self.index()

        for number in (7, -7, 2**64 - 1):
            key = Number(lambda: number)
            self.assertEqual(CuckooFilter.hash(key), CuckooFilter.hash(number))
            self.assertEqual(key.calls, 1)
        for index, error, text in (
            (lambda: 1 // 0, ZeroDivisionError, "division"),
            (lambda: 2**70, OverflowError, "this int is out of range"),
            (lambda: "7", TypeError, "not Number"),
        ):
            key = Number(index)
            with self.assertRaisesRegex(error, text):
                CuckooFilter.hash(key)
            self.assertEqual(key.calls, 1)

    def test_a_key_comes_and_goes(self):
        for make in KINDS.values():
            filter = make()
            filter.insert("key")
            self.assertFalse(filter.insert_if_absent("key"))
            self.assertIn("key", filter)
            self.assertEqual((filter.count("key"), len(filter)), (1, 1))
            self.assertTrue(filter.remove("key"))
            self.assertFalse(filter.remove("key"))
            self.assertNotIn("key", filter)
            self.assertGreater(filter.memory_bytes, 0)
            self.assertGreater(filter.slots, 0)
            self.assertEqual(filter.load_factor, 0)
            self.assertTrue(0 < filter.false_positive_rate < 0.01)

    def test_repr_names_kind(self):
        for make, kind in zip(KINDS.values(), ("DynCuckooFilter", "GrowingCuckooFilter", "ExpiringCuckooFilter")):
            self.assertRegex(repr(make()), f"^<lfcf.CuckooFilter {kind} {{.*}}>$")

    def test_expiring_filter_renews_on_request(self):
        filter = CuckooFilter.expiring(1_000)
        for key in ("renewed", "left"):
            self.assertTrue(filter.insert_or_renew(key))
        filter.advance()
        self.assertFalse(filter.insert_or_renew("renewed"))
        self.assertFalse(filter.insert_if_absent("left"))
        filter.advance()
        filter.advance()
        self.assertEqual(("renewed" in filter, "left" in filter), (True, False))

    def test_errors(self):
        filter = CuckooFilter(10)
        for _ in range(8):
            filter.insert("key")
        with self.assertRaisesRegex(lfcf.Full, "8 copies.*: insert each key once .insert_if_absent."):
            filter.insert("key")
        self.assertEqual(filter.insert_batch(["key", "other"]), b"\0\1")
        for make in (lambda: CuckooFilter(10, false_positive_rate=1.5), lambda: CuckooFilter(2**63)):
            with self.assertRaises(ValueError):
                make()
        with self.assertRaises(OverflowError):
            CuckooFilter(-1)
        renew = lambda: filter.insert_or_renew("key")
        for wrong in (filter.advance, lambda: filter.advance_to(1), lambda: filter.period, renew):
            with self.assertRaisesRegex(ValueError, "does not forget: make it with CuckooFilter.expiring$"):
                wrong()
        for wrong in ({}, {"keys": [1], "hashes": array("Q")}):
            with self.assertRaisesRegex(ValueError, "either keys or hashes"):
                filter.contains_batch(**wrong)

    def test_one_key_is_no_batch(self):
        filter = CuckooFilter(10)
        batches = (filter.insert_batch, filter.insert_if_absent_batch, filter.contains_batch, filter.remove_batch)
        for batch in batches:
            for wrong in (b"key", bytearray(b"key"), b"", "key", ""):
                with self.assertRaises(TypeError):
                    batch(wrong)
        self.assertEqual(len(filter), 0)
        self.assertEqual(filter.insert_batch((b"key", "key")), b"\1\1")
        # Without hashes=, numbers are keys, in an array, too.
        self.assertEqual(filter.insert_batch(array("Q", [7])), b"\1")
        self.assertIn(7, filter)


class Batches(unittest.TestCase):
    def test_hashes_are_those_of_keys(self):
        for make in KINDS.values():
            filter = make()
            keys = [number if number % 2 else str(number) for number in range(10_000)]
            hashes = array("Q", map(CuckooFilter.hash, keys))
            added = filter.insert_if_absent_batch(hashes=hashes)
            self.assertEqual(len(filter), sum(added))
            self.assertEqual(filter.contains_batch(keys), b"\1" * len(keys))
            self.assertEqual(filter.contains_batch(hashes=memoryview(hashes)[::2]), b"\1" * 5_000)
            self.assertEqual(filter.contains_batch(hashes=array("Q")), b"")
            if make is not KINDS["expiring"]:
                removed = filter.remove_batch([key for key, one in zip(keys, added) if one])
                self.assertEqual((len(filter), sum(removed)), (0, sum(added)))

    def test_keys_can_be_any_iterable(self):
        keys = [f"key {number}" for number in range(100)]
        iterables = [tuple(keys), set(keys), frozenset(keys), dict.fromkeys(keys), dict.fromkeys(keys).keys(), iter(keys)]
        iterables += [(key for key in keys), map(str, keys), collections.deque(keys), numpy.array(keys), numpy.array(keys, "O")]
        if pandas:
            iterables += [pandas.Series(keys), pandas.Index(keys), pandas.DataFrame({"key": keys})["key"]]
        for iterable in iterables:
            with self.subTest(type(iterable)):
                filter = CuckooFilter(1_000)
                self.assertEqual(filter.insert_batch(iterable), b"\1" * 100)
                self.assertEqual(filter.contains_batch(keys), b"\1" * 100)
        if pandas:
            self.assertEqual(filter.insert_batch(pandas.Series([1, 2], dtype="int32")), b"\1\1")
            self.assertEqual(filter.contains_batch(pandas.Series([2, 1])), b"\1\1")
            with self.assertRaisesRegex(TypeError, "^item 1 of keys: .* not float$"):
                filter.insert_batch(pandas.Series(["key", None], dtype="str"))

    def test_iterable_that_raises_inserts_nothing(self):
        def keys():
            yield from range(10_000)
            raise ZeroDivisionError

        filter = CuckooFilter(20_000)
        with self.assertRaises(ZeroDivisionError):
            filter.insert_batch(keys())
        self.assertEqual(len(filter), 0)

    def test_batch_ends_soon_after_signal(self):
        class Alarm(Exception):
            pass

        def ring(number, frame):
            raise Alarm

        before = signal.signal(signal.SIGALRM, ring)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        total = 10_000_000
        hashes = numpy.random.default_rng(1).integers(2**64, size=total, dtype=numpy.uint64)
        for batch in (CuckooFilter.insert_batch, CuckooFilter.insert_if_absent_batch):
            for keys in ({"hashes": hashes}, {"keys": range(total)}):
                filter = CuckooFilter(total)
                signal.setitimer(signal.ITIMER_REAL, 0.02)
                with self.subTest(batch), self.assertRaises(Alarm):
                    batch(filter, **keys)
                self.assertLess(len(filter), total // 2)
                filter.insert("key")
                self.assertIn("key", filter)

    def test_batch_without_memory_raises_memory_error(self):
        # In a process of its own, since it limits the address space.
        program = """
import mmap, numpy, resource
from lfcf import CuckooFilter
filter = CuckooFilter.growing(reserved_bytes=0)
filter.insert(0)
random = numpy.random.default_rng(1)
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * mmap.PAGESIZE
resource.setrlimit(resource.RLIMIT_AS, (used + (4 << 20),) * 2)
try:
    while True:
        filter.CALL(hashes=random.integers(2**64, size=10_000, dtype=numpy.uint64))
except MemoryError as error:
    assert "no memory for a table" in str(error), error
"""
        for call in ("insert_batch", "insert_if_absent_batch"):
            with self.subTest(call):
                subprocess.run([sys.executable, "-c", program.replace("CALL", call)], check=True, timeout=120)

    def test_endless_keys_raise_memory_error(self):
        program = """
import itertools, mmap, resource
from lfcf import CuckooFilter
filter = CuckooFilter(10)
filter.insert(0)
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * mmap.PAGESIZE
resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20),) * 2)
try:
    filter.CALL(itertools.count())
except MemoryError:
    assert len(filter) == 1
else:
    raise AssertionError
"""
        for call in ("contains_batch", "insert_batch"):
            with self.subTest(call):
                subprocess.run([sys.executable, "-c", program.replace("CALL", call)], check=True, timeout=120)

    def test_hashes_can_be_an_array_of_numpy(self):
        filter = CuckooFilter(1_000)
        hashes = numpy.array([CuckooFilter.hash(key) for key in range(1_000)], dtype=numpy.uint64)
        self.assertEqual(filter.insert_batch(hashes=hashes), b"\1" * 1_000)
        found = numpy.frombuffer(filter.contains_batch(hashes=hashes.reshape(10, 100)), dtype=bool)
        self.assertTrue(found.all())
        self.assertEqual(filter.remove_batch(hashes=hashes.astype(">u8")), b"\1" * 1_000)


def exported(hashes):
    """The hashes as each kind of buffer of unsigned 64-bit integers."""
    native, twice = array("Q", hashes), [hash for hash in hashes for _ in range(2)]
    for code in "QLN":
        for order in ("", "@"):
            yield f"cast to {order}{code}", memoryview(native).cast("B").cast(order + code)
    yield "array of L", array("L", hashes)
    yield "bytes, not aligned", memoryview(b"x" + native.tobytes())[1:].cast("Q")
    shared = mmap.mmap(-1, 8 * len(hashes))
    shared[:] = native.tobytes()
    yield "mmap", memoryview(shared).cast("Q")
    yield "every second", memoryview(array("Q", twice))[::2]
    yield "backwards", memoryview(array("Q", hashes[::-1]))[::-1]
    yield "several dimensions", memoryview(native).cast("B").cast("Q", [2, 1, len(hashes) // 2])
    for number in (ctypes.c_uint64, ctypes.c_ulong, ctypes.c_uint64.__ctype_be__, ctypes.c_uint64.__ctype_le__):
        yield f"ctypes, {number.__name__}", (number * len(hashes))(*hashes)
    for dtype in ("<u8", ">u8", "=u8", "L", "Q", "P"):
        dtype = numpy.dtype(dtype)
        numbers = numpy.array(hashes, dtype)
        frozen = numbers.copy()
        frozen.flags.writeable = False
        packed = numpy.zeros(len(hashes), [("byte", "u1"), ("hash", dtype)])
        packed["hash"] = hashes
        for kind, numbers in {
            "contiguous": numbers,
            "read-only": frozen,
            "strided": numpy.array(twice, dtype)[::2],
            "backwards": numpy.array(hashes[::-1], dtype)[::-1],
            "of a packed record": packed["hash"],
            "in columns": numpy.asfortranarray(numbers.reshape(2, -1)),
            "a column": numbers.repeat(3).reshape(-1, 3)[:, 1],
        }.items():
            yield f"NumPy {dtype.str}, {kind}", numbers
    if testbuffer:
        for format in ("Q", "@Q", "=Q", "<Q", ">Q", "!Q", "L", "@N"):
            yield f"ndarray of {format}", testbuffer.ndarray(hashes, shape=[len(hashes)], format=format)
        by_address = dict(shape=[2, len(hashes) // 2], format=">Q", flags=testbuffer.ND_PIL)
        yield "ndarray of addresses", testbuffer.ndarray(hashes, **by_address)


class HashBuffers(unittest.TestCase):
    def test_batch_each_hash_buffer_finds_its_keys(self):
        filter = CuckooFilter(1_000)
        filter.insert_batch(range(5))
        hashes = [CuckooFilter.hash(key) for key in range(10)]
        for kind, buffer in exported(hashes):
            with self.subTest(kind):
                self.assertEqual(filter.contains_batch(hashes=buffer), b"\1" * 5 + b"\0" * 5)
        for dtype in ("<u8", ">u8"):
            with self.subTest(dtype):
                one = numpy.array(hashes[0], dtype)
                self.assertEqual(filter.contains_batch(hashes=one), b"\1")
                every = numpy.broadcast_to(one, 3)
                self.assertEqual(filter.contains_batch(hashes=every), b"\1" * 3)
                self.assertEqual(filter.contains_batch(hashes=every[:0]), b"")
                # Without hashes=, the numbers are keys.
                self.assertEqual(filter.contains_batch(numpy.array([4, 5], dtype)), b"\1\0")

    def test_batch_other_buffers_raise_type_error(self):
        class Empty(ctypes.Structure):
            _fields_ = []

        wrong = [b"12345678", bytearray(8), "12345678", [1], 1, memoryview((Empty * 1)())]
        wrong += [array(code, [1]) for code in "bBhHiIlqfd"] + [array("u", "ab"), array("d")]
        wrong += [memoryview(bytes(8)).cast(order + code) for order in ("", "@") for code in "nqlPdc?"]
        wrong += [(number * 1)() for number in (ctypes.c_int64, ctypes.c_double, ctypes.c_void_p, ctypes.c_uint32)]
        codes = ("i8", ">i8", "f8", ">f8", "c8", "u4", ">u4", "?", "S8", "U2", "V8", "g", "O", "M8[s]", "m8[s]")
        wrong += [numpy.zeros(2, code) for code in codes]
        wrong += [numpy.zeros(2, [("hash", order + "u8")]) for order in "<>"]
        wrong += [numpy.zeros(2, [("one", "u4"), ("other", "u4")]), numpy.zeros(0, "f8"), numpy.float64(1)]
        released = memoryview(array("Q", [1]))
        released.release()
        wrong.append(released)
        if testbuffer:
            formats = ("=L", "<L", ">q", "!d", "1Q", " Q", "QQ")
            wrong += [testbuffer.ndarray([(0, 0) if format == "QQ" else 0], shape=[1], format=format) for format in formats]
        filter = CuckooFilter(10)
        for batch in (filter.insert_batch, filter.insert_if_absent_batch, filter.contains_batch, filter.remove_batch):
            for buffer in wrong:
                with self.subTest(buffer), self.assertRaisesRegex(TypeError, "array.'Q'., numpy.uint64"):
                    batch(hashes=buffer)
        self.assertEqual(len(filter), 0)


class Stub(unittest.TestCase):
    """lfcf.pyi and the module say the same."""

    def check(self, name, of_stub, of_module):
        """Compares a function, a property or a class."""
        stub = ast.get_docstring(of_stub) or ""
        if not name.rpartition(".")[2].startswith("__"):
            self.assertEqual(stub.split(), (of_module.__doc__ or "").split(), f"the docs of {name}")
        if isinstance(of_stub, ast.ClassDef):
            public = {each for each in vars(of_module) if not each.startswith("_")}
            self.assertEqual(public, {each.name for each in of_stub.body if getattr(each, "name", "_")[0] != "_"}, name)
            for each in of_stub.body:
                if isinstance(each, ast.FunctionDef):
                    self.check(f"{name}.{each.name}", each, getattr(of_module, each.name))
            return
        kinds = {decorator.id for decorator in of_stub.decorator_list}
        self.assertEqual("property" in kinds, inspect.isgetsetdescriptor(of_module), name)
        if "property" in kinds or "__" in name and "__new__" not in name:
            return
        if "__new__" in name:
            of_module = getattr(lfcf, name.partition(".")[0])
        arguments, parameters = of_stub.args, inspect.signature(of_module).parameters.values()
        named = [each.arg for each in arguments.args if each.arg not in ("self", "cls")]
        parameters = [each for each in parameters if each.name != "self"]
        self.assertEqual(named, [each.name for each in parameters if each.kind == each.POSITIONAL_OR_KEYWORD], name)
        only = [each.arg for each in arguments.kwonlyargs]
        self.assertEqual(only, [each.name for each in parameters if each.kind == each.KEYWORD_ONLY], name)
        defaults = [ast.literal_eval(each) for each in (*arguments.defaults, *filter(None, arguments.kw_defaults))]
        self.assertEqual(defaults, [each.default for each in parameters if each.default is not each.empty], name)

    def test_stub_agrees_with_module(self):
        stub = ast.parse((Path(__file__).parent.parent / "lfcf.pyi").read_text())
        self.assertEqual(ast.get_docstring(stub).split(), lfcf.lfcf.__doc__.split())
        defined = {each.name: each for each in stub.body if isinstance(each, ast.ClassDef | ast.FunctionDef)}
        self.assertEqual(sorted(defined), sorted(lfcf.__all__))
        for name, each in defined.items():
            self.check(name, each, getattr(lfcf, name))

    def test_example_of_docs_runs(self):
        lines = inspect.getdoc(CuckooFilter).split("The kinds:")[0].splitlines()
        exec("\n".join(line.strip() for line in lines if line.startswith("    ")), {})


class Threads(unittest.TestCase):
    def test_one_thread_of_all_adds_a_key(self):
        for make in KINDS.values():
            filter = make()
            added = [0] * 4
            hashes = array("Q", map(CuckooFilter.hash, range(20_000)))

            def insert(thread):
                half = len(hashes) // 2
                added[thread] += sum(filter.insert_if_absent_batch(hashes=hashes[:half]))
                added[thread] += sum(filter.insert_if_absent(number) for number in range(half, 2 * half))

            in_threads(4, insert)
            self.assertEqual(filter.contains_batch(hashes=hashes), b"\1" * len(hashes))
            self.assertEqual(sum(added), len(filter))
            self.assertGreater(len(filter), 19_800)

    def test_threads_that_register_give_their_places_back(self):
        for _ in range(5_000):
            in_threads(1, lambda thread: lfcf.register_thread())

    def test_threads_with_a_clock_begin_a_period_once(self):
        filter = CuckooFilter.expiring(1_000)

        def advance(thread):
            for period in range(1, 201):
                filter.advance_to(period)

        in_threads(4, advance)
        self.assertEqual(filter.period, 200)
        # Periods may be left out, and none begins again.
        last = 2**42 - 1
        filter.advance_to(last - 3)
        filter.insert("key")
        filter.advance_to(last - 1)
        filter.advance_to(5)
        self.assertEqual(filter.period, last - 1)
        self.assertIn("key", filter)
        filter.advance_to(last)
        self.assertNotIn("key", filter)
        with self.assertRaisesRegex(ValueError, "there is no period"):
            filter.advance_to(last + 1)
        with self.assertRaises(OverflowError):
            filter.advance_to(-1)
        self.assertEqual(filter.period, last)

    def test_batches_let_other_threads_go_on(self):
        filter = CuckooFilter(1_000_000)
        hashes = array("Q", map(CuckooFilter.hash, range(1_000_000)))
        done = threading.Event()
        started = threading.Event()
        during = 0

        def insert(thread):
            started.set()
            filter.insert_batch(hashes=hashes)
            done.set()

        inserting = threading.Thread(target=insert, args=(0,))
        inserting.start()
        started.wait()
        while not done.is_set():
            # Seen between none and all: the batch is under way, and this thread runs.
            during += 0 < len(filter) < 1_000_000
        inserting.join()
        self.assertGreater(during, 0)

    def test_other_threads_go_on_while_keys_come(self):
        # No step of this iterator is one of Python's, which would let other threads run.
        numbers, total = itertools.count(), 5_000_000
        hashing = threading.Thread(target=CuckooFilter(10).contains_batch, args=(itertools.islice(numbers, total),))
        hashing.start()
        while (reached := int(repr(numbers).strip("count()"))) == 0:
            pass
        hashing.join()
        self.assertLess(reached, total)

    def test_filters_are_saved_while_others_insert(self):
        filter = CuckooFilter.growing()
        path = SHARED / "while-others-insert"

        def work(thread):
            if thread > 0:
                filter.insert_batch(range(20_000 * thread, 20_000 * (thread + 1)))
                return
            for _ in range(20):
                filter.save(path)

        before = range(1_000)
        filter.insert_batch(before)
        in_threads(3, work)
        self.assertEqual(CuckooFilter.load(path).contains_batch(before), b"\1" * len(before))


if __name__ == "__main__":
    unittest.main()
