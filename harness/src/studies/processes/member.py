"""A process of the study `processes` in Python. It does what `Member` in processes.rs does, with the same board."""

import mmap
import os
import resource
import sys
from random import getrandbits
from time import perf_counter_ns

from lfcf import CuckooFilter
from pybloomfilter import BloomFilter

LINE = 16
ACTION, DONE, LOW, HIGH, OPERATIONS, WRONG_ANSWERS, STOPS, GAP_NS, WAIT_NS, FIRST_ANSWER_NS = range(10)
FILL, CHECK, WORK, WORK_TIMED = range(2, 6)
ABSENT = 1 << 40

subject, path, board = sys.argv[1:4]
process, processes, seed, keys = map(int, sys.argv[4:])
with open(board, "r+b") as file:
    own = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")[LINE * process :][:LINE]
is_cuckoo = subject != "pybloomfiltermmap3"
scheduled = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
# A Bloom filter cannot remove: it inserts as many keys again as it has at first, and then the same ones.
ring = 2 * keys // processes


def open_filter():
    if is_cuckoo:
        return CuckooFilter.shared(path, keys)
    if os.path.exists(path):
        return BloomFilter.open(path)
    return BloomFilter(2 * keys, 1 / 512, path)


def key(number):
    return seed + number * processes + process


def waits():
    """How often another thread got the core while this one ran, and for how many ns this one was ready without a core."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw, int(os.pread(scheduled, 99, 0).split()[1])


known = key(own[LOW])
start = perf_counter_ns()
seen = open_filter()
known in seen
own[FIRST_ANSWER_NS] = perf_counter_ns() - start

if is_cuckoo:
    # Raises if there is no room.
    insert, remove = seen.insert, seen.remove
else:
    insert, remove = seen.add, None


def work(action):
    low, high = own[LOW], own[HIGH]
    new, stops, since, last = high, own[STOPS], waits(), perf_counter_ns()
    while own[ACTION] == action:
        wrong = 0
        if remove:
            low += 1
            own[LOW] = low
        for _ in range(4):
            drawn = getrandbits(64)
            present = low + ((drawn & 0xFFFF_FFFF) * (high - low) >> 32)
            wrong += seed + present * processes + process not in seen
            seed + (ABSENT + (drawn >> 32)) * processes + process in seen
        if remove:
            insert(key(high))
            wrong += not remove(key(low - 1))
            high += 1
        else:
            insert(key(new % ring))
            insert(key((new + 1) % ring))
            new += 2
            high = max(high, min(new, ring))
        own[HIGH] = high
        own[OPERATIONS] += 10
        if wrong:
            own[WRONG_ANSWERS] += wrong
        if action == WORK:
            continue
        gap = perf_counter_ns() - last
        if gap > own[WAIT_NS]:
            now = waits()
            if stops == own[STOPS]:
                without_core = now[1] - since[1] if now[0] > since[0] else 0
                own[GAP_NS] = max(own[GAP_NS], gap)
                own[WAIT_NS] = max(own[WAIT_NS], gap - without_core)
            since, stops = waits(), own[STOPS]
        last = perf_counter_ns()


while True:
    action = own[ACTION]
    if action == FILL:
        for number in range(own[LOW], own[HIGH]):
            insert(key(number))
    elif action == CHECK:
        own[WRONG_ANSWERS] += sum(key(number) not in seen for number in range(own[LOW], own[HIGH]))
    elif action >= WORK:
        work(action)
    own[DONE] = 1
    if not os.read(0, 1):
        break
