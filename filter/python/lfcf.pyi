"""Lock-free cuckoo filters: shared approximate sets with deletion, for any number of threads.

A key is a str, bytes, or an int from -2**63 to 2**64 - 1, and has the hash that it has in Rust by default
(but an int of 255 not that of a u8). A negative int and that int plus 2**64 are one key: -1 and 2**64 - 1, for example.
"""

from collections.abc import Sequence
from os import PathLike
from typing import final

from typing_extensions import Buffer

_Key = str | bytes | int

def register_thread() -> None:
    """Reserves one of the 4,096 places of threads that change filters for this thread, until it ends.

    Without this call, a thread gets its place when it first changes or saves a filter. RuntimeError if all are taken.
    """

class Full(RuntimeError):
    """There is no room for the key, or for another copy of it; the filter holds what it held."""

@final
class CuckooFilter:
    """A filter of fixed size, or one that grows or forgets. All threads may use it at once.

    The batches take keys, or an array of hashes as hashes=, and return a byte for each. The array has unsigned
    64-bit integers of either byte order: array.array("Q"), numpy.uint64, ctypes.c_uint64 or a memoryview cast to
    "Q". Any other array raises a TypeError. Without hashes=, the numbers of an array are keys. bytes and str are
    one key: a TypeError here. Other threads of Python go on meanwhile. A batch is many calls, not one.
    """

    def __new__(cls, capacity: int, *, false_positive_rate: float = 0.002) -> CuckooFilter:
        """A filter of fixed size with room for this many keys, with at most this false positive rate."""

    @staticmethod
    def growing(capacity: int = 0, *, reserved_bytes: int | None = None) -> CuckooFilter:
        """A filter that grows. It begins to grow at 0.37 to 1.2 times capacity; a small one at some 1,900 keys.

        reserved_bytes sets how many bytes the filter allocates at once for its table, so that the table grows in one
        piece up to that size: None sets the default of Rust, and 0 the least memory. reserved_bytes in Rust lists where
        the reserved bytes are real memory.
        """

    @staticmethod
    def expiring(capacity: int) -> CuckooFilter:
        """A filter that forgets keys two to three periods after they last came, with room for the keys of three.

        Make room for the keys of one more period if keys are inserted while the oldest ones are forgotten.
        """

    @staticmethod
    def load(path: str | PathLike[str], *, reserved_bytes: int | None = None) -> CuckooFilter:
        """Loads a filter of any kind, saved from any language. A filter that grows gets these reserved_bytes.

        ValueError if the file is not a filter, or is damaged.
        """

    def save(self, path: str | PathLike[str]) -> None:
        """Replaces a file at one moment. Other threads may go on, but only one at a time may save under this name.

        Of two calls that overlap, the file of the one that ends last stays, even if that one read the filter first.
        A directory, a device, a pipe or a socket is refused. After an OSError, an older file is as it was, unless the text says that the filter is saved, but may be lost
        when the power fails.
        """

    @staticmethod
    def hash(key: _Key) -> int:
        """The hash of a key, for the batches that take hashes."""

    def insert(self, key: _Key) -> None:
        """Adds a copy of the key; in a filter that forgets, adds or renews it. Raises Full."""

    def insert_if_absent(self, key: _Key) -> bool:
        """Adds the key unless it is there (a filter that forgets does not renew it then). Raises Full.

        Returns whether it was added. Of several threads that add one key, at most one gets True, unless the key is
        removed or forgotten in between. None does if the filter has no room or mistakes the key for another. Even if
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

    def __contains__(self, key: _Key) -> bool: ...
    def __len__(self) -> int:
        """The number of copies of all keys."""

    def insert_batch(self, keys: Sequence[_Key] | None = None, *, hashes: Buffer | None = None) -> bytes:
        """1 if a copy was added, 0 if there was no room.

        MemoryError if there was no memory for a key. Keys that had room are inserted all the same.
        """

    def insert_if_absent_batch(
        self, keys: Sequence[_Key] | None = None, *, hashes: Buffer | None = None
    ) -> bytes:
        """1 if the key was added, 0 if it was there, 2 if there was no room. MemoryError as in insert_batch."""

    def contains_batch(self, keys: Sequence[_Key] | None = None, *, hashes: Buffer | None = None) -> bytes:
        """1 if the key is there, 0 if not."""

    def remove_batch(self, keys: Sequence[_Key] | None = None, *, hashes: Buffer | None = None) -> bytes:
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
        """The memory that the filter takes."""
