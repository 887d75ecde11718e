"""Lock-free cuckoo filters: shared approximate sets with deletion, for any number of threads and processes.

help(lfcf.CuckooFilter) explains them.
"""

from collections.abc import Iterable
from os import PathLike
from typing import SupportsIndex, final

from typing_extensions import Buffer

_Key = str | bytes | bytearray | SupportsIndex

def register_thread() -> None:
    """Reserves one of the 4,096 ids of threads that change filters for this thread, until it ends.

    RuntimeError if all are taken. Without this call, a thread gets an id when it first changes or saves a filter, and keeps
    it unless 3,072 are kept already: then it has one during each call only. A batch that inserts or removes makes this call.
    It reserves no id in a shared file, where the first change of a thread may raise RuntimeError.
    """

class Full(RuntimeError):
    """There is no room for the key, or for another copy of it; the filter holds what it held."""

class Damaged(OSError):
    """Another process has damaged the file of a shared filter: make a new one."""

@final
class CuckooFilter:
    """A set of keys that never misses a present key and is wrong about few others.

    It takes about two bytes per key, and stores no keys: so it cannot list, compare or unite them.

        from lfcf import CuckooFilter

        seen = CuckooFilter(1_000_000)        # room for a million keys, wrong about one absent key in 500
        seen.insert("https://example.org/a")  # adds a copy, or raises Full
        "https://example.org/a" in seen       # True
        seen.insert_if_absent(b"b")           # True: it was added. Then False
        seen.remove(b"b")                     # remove only what was inserted
        seen.insert_batch(range(1_000))       # many keys at once

    The kinds:

        CuckooFilter(capacity)                # a fixed size, for capacity keys
        CuckooFilter.growing()                # grows; wrong more often, the more it has grown
        CuckooFilter.expiring(capacity)       # forgets keys two to three periods after they last came
        CuckooFilter.shared(path, capacity)   # in a file that processes share

    Keys are str, bytes, and int from -2**63 to 2**64 - 1. They have the hashes that they have in Rust by default (but an int
    of 255 not that of a u8). A negative int and that int plus 2**64 are one key: -1 and 2**64 - 1, for example. A bytearray
    is the key of its bytes, and an object with __index__, such as a whole number of NumPy, that of its int.

    Threads: all may use a filter at once. Batches and files let other threads of Python go on. Of several threads that
    insert a key if it is absent, at most one gets True.

    Errors: what changes a filter raises Full if there is no room, MemoryError if there is no memory to grow, RuntimeError if
    there is no id for the thread (register_thread), and Damaged if another process has damaged the file. After any of
    these but Damaged, a call for one key has changed nothing.

    Batches take any finite iterable of keys, or an array of hashes as hashes=, and return a byte for each. The array has
    unsigned 64-bit integers of either byte order: array.array("Q"), numpy.uint64, ctypes.c_uint64 or a memoryview cast
    to "Q". Any other array raises a TypeError. Without hashes=, the numbers of an array are keys. bytes and str are one
    key: a TypeError here. If a key is not of these types, no call of the batch is made. A batch is many calls, not one:
    Ctrl-C ends it after some of them, as does any error but Full. Its answers are lost then, and keys after the one that
    failed may have been inserted or removed, too.

    Files: save and load, from any language. Filters can be pickled and copied. A copy of a growing filter has the default
    reserved_bytes; a copy of a shared filter is another handle of the file that has its path then.
    """

    def __new__(cls, capacity: int, *, false_positive_rate: float = 0.002) -> CuckooFilter: ...

    @staticmethod
    def growing(capacity: int = 0, *, reserved_bytes: int | None = None) -> CuckooFilter:
        """A filter that grows. It begins to grow at 0.37 to 1.2 times capacity; a small one at some 1,900 keys.

        reserved_bytes sets how many bytes the filter allocates at once for its table, so that the table grows in one piece
        up to that size: 0 takes the least memory. None reserves four times the first size, but at most 64 MiB, and nothing
        for a table of less than 128 KiB. On Linux, what is reserved is address space and no memory, unless the process
        calls mlockall, the system does not overcommit, or the process has 65,536 large blocks.
        """

    @staticmethod
    def expiring(capacity: int) -> CuckooFilter:
        """A filter that forgets keys two to three periods after they last came, with room for the keys of three.

        Make room for the keys of one more period if keys are inserted while the oldest ones are forgotten.
        """

    @classmethod
    def shared(cls, path: str | PathLike[str], capacity: int | None = None) -> CuckooFilter:
        """Opens the filter in a file that processes share (64-bit Linux), or creates the file with room for capacity keys.

        An existing file keeps its size; without a capacity, there must be one. Any process may be killed at any moment: the
        others never wait and lose no key, and a process that opens the file again continues at once. Put the file on tmpfs,
        such as /dev/shm, since it does not survive a restart of the system. Locks are in a second file, PATH.lock: to delete
        the filter, remove that one first. At most 1,024 open handles of all processes, with up to four updating threads each,
        can change it.

        The handle works after a fork, and pickles as its path. A filter that is opened in the parent, before a server such as
        gunicorn with preload_app forks its workers, is one filter in all of them.
        """

    @staticmethod
    def load(path: str | PathLike[str], *, reserved_bytes: int | None = None) -> CuckooFilter:
        """Loads a filter of any kind, saved from any language. A filter that grows gets these reserved_bytes.

        ValueError if the file is not a filter, or is damaged.
        """

    def save(self, path: str | PathLike[str]) -> None:
        """Replaces a file at one moment. Other threads may go on, but only one at a time may save under this name.

        If two calls overlap, the file of the last one to end stays, even if that call read the filter first.
        A directory, a device, a pipe or a socket is refused. After an OSError, an older file is as it was, unless the text
        says that the filter is saved, but may be lost when the power fails. A shared filter is saved while other
        processes change it, by one of them at a time: RuntimeError.
        """

    def to_bytes(self) -> bytes:
        """The bytes that save would write."""

    @classmethod
    def from_bytes(cls, data: Buffer, *, reserved_bytes: int | None = None) -> CuckooFilter:
        """Loads a filter from the bytes of to_bytes or of a file, as load does."""

    @staticmethod
    def hash(key: _Key) -> int:
        """The hash of a key, for the batches that take hashes."""

    def insert(self, key: _Key) -> None:
        """Adds a copy of the key; in a filter that forgets, adds or renews it.

        Raises Full, and the other errors of the class.
        """

    def insert_if_absent(self, key: _Key) -> bool:
        """Adds the key unless it is there (a filter that forgets does not renew it then). Raises Full.

        Returns whether it was added. Of several threads or processes that add one key, at most one gets True, unless the key
        is removed or forgotten in between. None does if the filter has no room or mistakes the key for another. Even if
        only keys that got True are removed, a key that was mistaken for a removed one is missing afterwards.
        """

    def insert_or_renew(self, key: _Key) -> bool:
        """Adds the key to a filter that forgets, or renews it. Returns whether it was added. Raises Full.

        ValueError for other kinds.
        """

    def remove(self, key: _Key) -> bool:
        """Takes a copy of the key and returns True; False if there was none. Remove only what was inserted."""

    def count(self, key: _Key) -> int:
        """The number of copies."""

    def __contains__(self, key: _Key, /) -> bool: ...
    def __len__(self) -> int: ...

    def insert_batch(self, keys: Iterable[_Key] | None = None, *, hashes: Buffer | None = None) -> bytes:
        """1 if a copy was added, 0 if there was no room.

        MemoryError if there was no memory for a key. Keys before it are inserted, and keys after it may be.
        """

    def insert_if_absent_batch(self, keys: Iterable[_Key] | None = None, *, hashes: Buffer | None = None) -> bytes:
        """1 if the key was added, 0 if it was there, 2 if there was no room. MemoryError as in insert_batch."""

    def contains_batch(self, keys: Iterable[_Key] | None = None, *, hashes: Buffer | None = None) -> bytes:
        """1 if the key is there, 0 if not."""

    def remove_batch(self, keys: Iterable[_Key] | None = None, *, hashes: Buffer | None = None) -> bytes:
        """1 if a copy was taken, 0 if there was none."""

    def advance(self) -> int:
        """Begins a period of a filter that forgets, and returns its number; ValueError for other kinds.

        Each call begins one: threads that read a clock call advance_to.
        """

    def advance_to(self, period: int) -> None:
        """Begins periods until the present one has this number; ValueError if the filter does not forget.

        Begins none if it has this number or a greater one. So any number of threads may call this before each
        call, with the time divided by the length of a period. The number must be below 2**42.

        A number that is too great cannot be taken back: until the clock reaches it, nothing is forgotten. If a clock
        may be wrong, compare with period first.
        """

    def take_over_all(self) -> None:
        """Decides all calls of killed processes on a shared filter: each has then taken effect or never will.

        Opening the file does this, too. ValueError for other kinds.
        """

    def recount(self) -> int:
        """Counts the copies in a shared filter, corrects len and returns it; ValueError for other kinds.

        Each thread that was killed in a call may have made len wrong by one, in clear by up to four. It is exact if
        take_over_all was called before and no other thread changes the filter during the call.
        """

    def clear(self) -> None:
        """Removes all keys of a shared filter, bucket by bucket; ValueError for other kinds: make a new one.

        Keys that others insert at the same time may stay. A call that is killed may have removed some of the keys.
        """

    @property
    def path(self) -> str | None:
        """The absolute path of a shared filter; None for other kinds."""

    @property
    def is_damaged(self) -> bool:
        """True once a call of this process has found that another process has damaged the file of a shared filter.

        From then on every key seems to be there, and calls that change the filter raise Damaged.
        """

    @property
    def period(self) -> int:
        """The present period of a filter that forgets, 0 at first; ValueError for other kinds."""

    @property
    def slots(self) -> int:
        """The number of slots: a filter of fixed size begins to refuse keys somewhat below it."""

    @property
    def load_factor(self) -> float:
        """The fraction of the slots that are taken."""

    @property
    def false_positive_rate(self) -> float:
        """The fraction of absent keys about which the filter would be wrong if every slot were taken."""

    @property
    def memory_bytes(self) -> int:
        """The memory that the filter takes, or the bytes of its table in the file."""

@final
class Lookup:
    """A shared filter for lookups alone, in any number of processes.

    It maps the file of CuckooFilter.shared read-only: the right to read the file is enough, and it does not count among the
    handles that change the filter. It pickles as its path.

        look = Lookup("/dev/shm/seen")
        "key" in look
        look.contains_batch(keys)
    """

    def __new__(cls, path: str | PathLike[str]) -> Lookup: ...

    def count(self, key: _Key) -> int:
        """The number of copies."""

    def __contains__(self, key: _Key, /) -> bool: ...
    def __len__(self) -> int: ...

    def contains_batch(self, keys: Iterable[_Key] | None = None, *, hashes: Buffer | None = None) -> bytes:
        """1 if the key is there, 0 if not, as CuckooFilter.contains_batch."""

    @property
    def slots(self) -> int:
        """The number of slots."""

    @property
    def is_damaged(self) -> bool:
        """True once a call of this process has found that the file is damaged: then every key seems to be there."""

    @property
    def path(self) -> str:
        """The absolute path of the file."""
