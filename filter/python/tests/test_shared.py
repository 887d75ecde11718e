"""Tests of filters that processes share: MEMORY=folder python -m unittest. MEMORY is on tmpfs; its file "rust" is written there."""

import contextlib
import copy
import http.client
import mmap
import multiprocessing
import os
import pickle
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from array import array
from pathlib import Path

import lfcf
from lfcf import CuckooFilter, Lookup

MEMORY = Path(os.environ["MEMORY"])
METHODS = ("fork", "spawn", "forkserver")


class InMemory(unittest.TestCase):
    """Each test has a folder of its own."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(dir=MEMORY))
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = self.folder / "seen"

    def wait_until(self, is_so):
        """Waits long enough for any machine."""
        deadline = time.monotonic() + 120
        while not is_so():
            self.assertLess(time.monotonic(), deadline, "it takes too long")
            time.sleep(0.001)


class Handles(InMemory):
    def test_handles_of_one_file_have_same_keys(self):
        first = CuckooFilter.shared(self.path, 1_000)
        second = CuckooFilter.shared(str(self.path), 7)
        look = Lookup(self.path)
        self.assertEqual(first.insert_batch(range(500)), b"\1" * 500)
        hashes = array("Q", map(CuckooFilter.hash, range(400, 600)))
        added = second.insert_if_absent_batch(hashes=hashes)
        self.assertEqual(added[:100], b"\0" * 100)
        self.assertGreater(sum(added), 90)
        second.insert("key")
        self.assertIn("key", first)
        self.assertFalse(first.insert_if_absent("key"))
        for filter in (first, second, look):
            self.assertEqual(filter.contains_batch(range(600)), b"\1" * 600)
            self.assertEqual(filter.contains_batch(hashes=hashes), b"\1" * 200)
            self.assertEqual((filter.count("key"), len(filter)), (1, 501 + sum(added)))
            self.assertEqual((filter.slots, filter.path), (first.slots, str(self.path)))
            self.assertFalse(filter.is_damaged)
        self.assertEqual(second.remove_batch(range(400)), b"\1" * 400)
        self.assertTrue(first.remove("key"))
        self.assertFalse(second.remove("key"))
        self.assertEqual(first.recount(), 100 + sum(added))
        self.assertTrue(0 < first.load_factor < 1 and 0 < first.false_positive_rate < 0.002)
        second.clear()
        first.take_over_all()
        self.assertEqual((len(look), "key" in look), (0, False))

    def test_copies_are_handles_of_same_file(self):
        before = Path.cwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)
        filter = CuckooFilter.shared("seen", 1_000)
        look = Lookup("seen")
        os.chdir(before)
        copies = [copy.copy(filter), copy.deepcopy(filter)]
        copies += [pickle.loads(pickle.dumps(filter, protocol)) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)]
        copies += [copy.copy(look), pickle.loads(pickle.dumps(look))]
        filter.insert("key")
        for other in copies:
            self.assertIs(type(other), Lookup if other in copies[-2:] else CuckooFilter)
            self.assertEqual((other.path, "key" in other), (str(self.path), True))

    def test_saved_file_is_filter_in_memory(self):
        filter = CuckooFilter.shared(self.path, 1_000)
        filter.insert_batch(range(500))
        saved = self.folder / "saved"
        filter.save(saved)
        for copied in (CuckooFilter.load(saved), CuckooFilter.from_bytes(filter.to_bytes())):
            filter.insert("key")
            self.assertEqual((copied.path, len(copied), "key" in copied), (None, 500, False))
            self.assertEqual(copied.contains_batch(range(500)), b"\1" * 500)
            filter.remove("key")

    def test_file_of_rust_is_opened(self):
        filter = CuckooFilter.shared(MEMORY / "rust")
        self.assertEqual(filter.contains_batch(range(1_000)), b"\1" * 1_000)
        of_python = CuckooFilter.shared(MEMORY / "python", 5_000)
        of_python.insert_batch(range(1_000))

    def test_what_cannot_be_opened_raises(self):
        for open in (CuckooFilter.shared, Lookup):
            with self.assertRaisesRegex(FileNotFoundError, f"{self.path} cannot be opened"):
                open(self.path)
        with self.assertRaisesRegex(ValueError, "buckets are too many: at most 2\\^32"):
            CuckooFilter.shared(self.path, 2**60)
        self.assertFalse(self.path.exists())
        CuckooFilter.shared(self.path, 10).insert("key")
        copied = self.folder / "copied"
        shutil.copy(self.path, copied)
        shutil.copy(f"{self.path}.lock", f"{copied}.lock")
        with self.assertRaisesRegex(ValueError, "is a copy"):
            CuckooFilter.shared(copied)
        copied.write_bytes(bytes(100_000))
        for open in (CuckooFilter.shared, Lookup):
            with self.assertRaisesRegex(ValueError, f"{copied} cannot be opened: the file is not one of shared words"):
                open(copied)
        filter = CuckooFilter(10)
        self.assertIsNone(filter.path)
        for call in (filter.recount, filter.take_over_all, filter.clear):
            with self.assertRaisesRegex(ValueError, "open it with CuckooFilter.shared$"):
                call()

    def test_full_file_raises_full(self):
        filter = CuckooFilter.shared(self.path, 1)
        with self.assertRaisesRegex(lfcf.Full, "larger capacity"):
            for key in range(10_000):
                filter.insert(key)
        self.assertIn(0, filter.insert_batch(range(100)))

    def test_damaged_file_raises_damaged(self):
        filter, look = CuckooFilter.shared(self.path, 1_000), Lookup(self.path)
        size = self.path.stat().st_size
        with self.path.open("r+b") as file:
            file.seek(2 << 20)
            file.write(b"\xff" * (size - (2 << 20)))
        with self.assertRaisesRegex(lfcf.Damaged, "damaged"):
            filter.insert("key")
        with self.assertRaises(lfcf.Damaged):
            filter.insert_batch(["key"])
        with self.assertRaises(OSError):
            filter.remove("key")
        self.assertEqual((filter.is_damaged, "key" in filter, "key" in look), (True, True, True))


def insert_if_absent(filter, worker, total, results):
    """Each worker begins elsewhere and tries all keys."""
    keys = [(worker * total // 4 + key) % total for key in range(total)]
    half = total // 2
    won = [key for key in keys[:half] if filter.insert_if_absent(key)]
    answers = filter.insert_if_absent_batch(keys[half:])
    won += [key for key, answer in zip(keys[half:], answers) if answer == 1]
    results.put(won)


def churn(filter, progress, worker):
    """Inserts keys forever, removes each 100 keys later and reports its progress."""
    with open(progress, "r+b") as file, mmap.mmap(file.fileno(), 0) as shared:
        counts = memoryview(shared).cast("Q")
        while True:
            key = counts[worker]
            filter.insert(f"{worker} {key}")
            if key >= 100:
                filter.remove(f"{worker} {key - 100}")
            counts[worker] = key + 1


class Processes(InMemory):
    def test_one_process_of_all_adds_a_key(self):
        for method in METHODS:
            with self.subTest(method):
                context = multiprocessing.get_context(method)
                filter = CuckooFilter.shared(self.folder / method, 20_000)
                filter.insert("of the parent")
                results = context.Queue()
                workers = [
                    context.Process(target=insert_if_absent, args=(filter, worker, 10_000, results)) for worker in range(4)
                ]
                for worker in workers:
                    worker.start()
                won = [results.get(timeout=120) for _ in workers]
                for worker in workers:
                    worker.join()
                    self.assertEqual(worker.exitcode, 0)
                winners = sorted(key for keys in won for key in keys)
                self.assertEqual(len(winners), len(set(winners)))
                self.assertEqual(len(filter), len(winners) + 1)
                self.assertGreater(len(winners), 9_900)
                self.assertEqual(filter.contains_batch(range(10_000)), b"\1" * 10_000)

    def test_killed_processes_lose_no_key(self):
        count, kills = 4, 40
        for method in METHODS[:2]:
            with self.subTest(method):
                context = multiprocessing.get_context(method)
                filter = CuckooFilter.shared(self.folder / method, 2_000)
                progress = self.folder / f"{method}-progress"
                progress.write_bytes(bytes(8 * count))
                chosen = random.Random(61)

                def counts():
                    return array("Q", progress.read_bytes())

                def started(worker):
                    process = context.Process(target=churn, args=(filter, progress, worker))
                    process.start()
                    return process

                workers = [started(worker) for worker in range(count)]
                for _ in range(kills):
                    worker = chosen.randrange(count)
                    goal = counts()[worker] + chosen.randrange(1, 300)
                    self.wait_until(lambda: counts()[worker] >= goal)
                    workers[worker].kill()
                    workers[worker].join()
                    self.assertEqual(workers[worker].exitcode, -signal.SIGKILL)
                    workers[worker] = started(worker)
                for process in workers:
                    process.kill()
                for process in workers:
                    process.join()
                self.assertFalse(filter.is_damaged)
                filter.take_over_all()
                expected = [
                    f"{worker} {key}" for worker, last in enumerate(counts()) for key in range(max(last - 99, 0), last)
                ]
                self.assertEqual(filter.contains_batch(expected), b"\1" * len(expected))
                # A call that was killed may have been made twice, and so each key that it inserted.
                self.assertLessEqual(abs(filter.recount() - 100 * count), 2 * (kills + count))
                self.assertEqual(len(filter), filter.recount())

    def test_fork_during_calls_of_other_threads_shares_filter(self):
        filter = CuckooFilter.shared(self.path, 100_000)
        is_over = threading.Event()
        inserted = []

        def insert():
            for number in range(20_000):
                filter.insert(f"parent {number}")
                inserted.append(number)
                if is_over.is_set():
                    return

        thread = threading.Thread(target=insert)
        thread.start()
        children = []
        for child in range(30):
            pid = os.fork()
            if pid == 0:
                for number in range(50):
                    filter.insert(f"{child} {number}")
                os._exit(0)
            children.append(pid)
        for pid in children:
            self.assertEqual(os.waitpid(pid, 0)[1], 0)
        is_over.set()
        thread.join()
        keys = [f"{child} {number}" for child in range(30) for number in range(50)]
        keys += [f"parent {number}" for number in inserted]
        self.assertEqual(filter.contains_batch(keys), b"\1" * len(keys))
        self.assertEqual(len(filter), len(keys))


class UnixConnection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.host)


SERVICE = """
import os
from lfcf import CuckooFilter

seen = CuckooFilter.shared(os.environ["SEEN"], 100_000)
opened_by = os.getpid()

def app(environ, start_response):
    answer = "new" if seen.insert_if_absent(environ["PATH_INFO"]) else "seen"
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{answer} {os.getpid()} {opened_by}".encode()]
"""


class Servers(InMemory):
    def test_gunicorn_with_preload_app_shares_filter(self):
        try:
            import gunicorn  # noqa: F401
        except ImportError:
            why = "gunicorn is missing: python -m pip install gunicorn"
            print("skipped:", why, file=sys.stderr)
            self.skipTest(why)
        (self.folder / "service.py").write_text(SERVICE)
        address = str(self.folder / "socket")
        command = [sys.executable, "-m", "gunicorn", "--preload", "--workers", "3", "--bind", f"unix:{address}"]
        command += ["--chdir", str(self.folder), "--log-level", "critical", "--no-control-socket", "service:app"]
        server = subprocess.Popen(command, env=dict(os.environ, SEEN=str(self.path)))

        def stop():
            server.terminate()
            server.wait(60)

        self.addCleanup(stop)

        def ask(key):
            """The answer of a worker and its process; asked again if it was killed."""
            while True:
                self.assertIsNone(server.poll())
                connection = UnixConnection(address)
                with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
                    connection.request("GET", f"/{key}")
                    return connection.getresponse().read().decode().split()
                time.sleep(0.01)

        self.wait_until(lambda: os.path.exists(address))
        chosen = random.Random(61)
        workers, kills, new = set(), 0, 0
        for number in range(400):
            answer, worker, opened_by = ask(number)
            # Preloaded: the parent has opened it. A first request may have been killed after its insert, or a key mistaken.
            self.assertEqual(int(opened_by), server.pid)
            new += answer == "new"
            workers.add(int(worker))
            self.assertEqual(ask(number)[0], "seen")
            if chosen.random() < 0.05:
                kills += 1
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(worker), signal.SIGKILL)
        self.assertGreaterEqual(len(workers), kills // 2)
        self.assertTrue(new <= 400 and new >= 400 - kills - 10, (new, kills))
        look = Lookup(self.path)
        self.assertEqual(look.contains_batch(f"/{number}" for number in range(400)), b"\1" * 400)


if __name__ == "__main__":
    unittest.main()
