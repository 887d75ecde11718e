/* The cuckoo filters for programs in C. Written by cbindgen: scripts/optional.sh c --header. */

#ifndef LFCF_H
#define LFCF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 The version of this header; lfcf_version returns that of the library.
 */
#define LFCF_VERSION_MAJOR 0

/*
 See LFCF_VERSION_MAJOR.
 */
#define LFCF_VERSION_MINOR 1

/*
 The result of a call; lfcf_message returns a text for each except LFCF_STATUS_OK. Later versions may add values:
 handle unknown ones as LFCF_STATUS_OTHER.
 */
typedef enum LfcfStatus {
  /*
   The call succeeded.
   */
  LFCF_STATUS_OK = 0,
  /*
   The filter has no room for the key or for another copy of it. Its contents are unchanged.
   */
  LFCF_STATUS_FULL = 1,
  /*
   An argument is invalid.
   */
  LFCF_STATUS_INVALID = 2,
  /*
   There is not enough memory.
   */
  LFCF_STATUS_MEMORY = 3,
  /*
   All ids of threads are in use, or those of a shared filter (lfcf_open_shared). Nothing has changed, except by
   lfcf_clear.
   */
  LFCF_STATUS_THREADS = 4,
  /*
   A file cannot be read or written.
   */
  LFCF_STATUS_FILE = 5,
  /*
   A file is neither a saved nor a shared filter, is damaged, or has another layout or hasher.
   */
  LFCF_STATUS_FORMAT = 6,
  /*
   A defect of the library.
   */
  LFCF_STATUS_DEFECT = 7,
  /*
   An error that has no value of its own.
   */
  LFCF_STATUS_OTHER = 8,
  /*
   Another process has damaged the file of a shared filter.
   */
  LFCF_STATUS_DAMAGED = 9,
  /*
   Another thread or process is saving the shared filter, or a program that a process was just starting still has the
   lock: try again.
   */
  LFCF_STATUS_BUSY = 10,
} LfcfStatus;

/*
 A filter of any kind. Any call except lfcf_free may be made from several threads at once.

 `const LfcfFilter *` means that threads share the filter, not that it stays as it is: lfcf_insert and lfcf_remove
 change it.

 Signal handlers: a handler may call lfcf_contains, lfcf_count and lfcf_hash_*, at any moment and for any kind of filter
 but one that grows. It must call nothing else of this library: other calls allocate memory, or use what the interrupted
 thread has of the filter. It must not leave an interrupted call by longjmp, and no thread must be cancelled
 asynchronously (pthread_setcanceltype) in a call. Any call may be interrupted, and none fails with EINTR.

 After a fork, the child may use all filters: it has a copy of those in memory, and those in files are shared with it.
 If a signal handler that interrupted a call on a shared filter forks, its child must not return from the handler.
 */
typedef struct LfcfFilter LfcfFilter;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Returns the version of the library, such as "0.1.0".
 */
const char *lfcf_version(void);

/*
 Makes a filter of fixed size with room for `capacity` keys and a false positive rate of at most `rate`:
 0.002 for the layout of CuckooFilter::with_capacity in Rust.

 Like the other calls that make or load a filter, it writes a filter to `*filter` that the caller must end with
 lfcf_free, or NULL and returns an error; whatever was in `*filter` is not read.
 */
enum LfcfStatus lfcf_new_fixed(size_t capacity,
                               double rate,
                               struct LfcfFilter **filter);

/*
 Makes a filter that grows. It begins to grow at 0.37 to 1.2 times `capacity`; a small one at some 1,900 keys.

 `reserved_bytes` sets how many bytes the filter allocates at once for its table, so that the table grows in one piece
 up to that size. NULL sets the default: a table that begins with at least 128 KiB (65,536 slots) reserves four times
 its first size, but at most 64 MiB, and a smaller one reserves nothing. 0 takes the least memory. Where the system
 supplies memory when a page is first written, as Linux does, what is reserved is address space and no memory. It is
 real memory after mlockall, in systems that do not overcommit, and after 65,536 large blocks in a process with glibc.
 So pass a pointer to 0 if a program has thousands of such filters or calls mlockall.
 */
enum LfcfStatus lfcf_new_growing(size_t capacity,
                                 const size_t *reserved_bytes,
                                 struct LfcfFilter **filter);

/*
 Makes a filter that forgets keys two to three periods after they last came (lfcf_advance_to), with room for
 `capacity` keys in three periods. Make room for the keys of one more period if keys are inserted while the oldest ones
 are forgotten.
 */
enum LfcfStatus lfcf_new_expiring(size_t capacity,
                                  struct LfcfFilter **filter);

/*
 Loads a filter of any kind that was saved from any language, with the default hasher of Rust. A filter
 that grows gets these `reserved_bytes`, as in lfcf_new_growing.

 # Safety
 `path` is NULL, or UTF-8 that ends with a 0.
 */
enum LfcfStatus lfcf_load(const char *path,
                          const size_t *reserved_bytes,
                          struct LfcfFilter **filter);

/*
 Opens the filter in this file, which processes share (64-bit Linux), or creates the file with room for `capacity` keys.
 An existing file keeps its size. With a capacity of 0, no file is created: if there is none, it returns
 LFCF_STATUS_FILE.

 Any process may be killed at any instruction. The others never wait and lose no key; a call that was killed took effect
 wholly or not at all, except lfcf_clear, which may have removed some of the keys. Put the file on tmpfs, for example in
 /dev/shm: it does not survive a restart of the system. Locks are in a second file, `path`.lock. At most 1,024 filters that
 are open in all processes, with up to four updating threads each, can change it. A process that truncates the file kills
 the others (SIGBUS). To delete the filter, remove `path`.lock first, then `path`.
 A forked child may use the filter that its parent opened. Programs in Rust and Python open the same file.

 # Safety
 See lfcf_load.
 */
enum LfcfStatus lfcf_open_shared(const char *path,
                                 size_t capacity,
                                 struct LfcfFilter **filter);

/*
 Opens the filter in this file, which processes share, for lookups alone: it needs only the right to read the file, and
 does not count among the filters that change it. Calls that change the filter return LFCF_STATUS_INVALID.

 # Safety
 See lfcf_load.
 */
enum LfcfStatus lfcf_open_lookup(const char *path,
                                 struct LfcfFilter **filter);

/*
 Decides all calls of killed processes on a shared filter: afterwards, each has taken effect or never will. Opening the
 file does this, too. Other kinds are LFCF_STATUS_INVALID.
 */
enum LfcfStatus lfcf_take_over_all(const struct LfcfFilter *filter);

/*
 Counts the copies in a shared filter, and corrects lfcf_length, which may be wrong by one for each thread that was killed
 in a call (by up to four in lfcf_clear). The count is exact if lfcf_take_over_all was called before and no thread changes
 the filter at the same time. Other kinds are LFCF_STATUS_INVALID.
 */
enum LfcfStatus lfcf_recount(const struct LfcfFilter *filter,
                             size_t *copies);

/*
 Removes all keys of a shared filter, bucket by bucket: keys that others insert at the same time may stay. Other kinds are
 LFCF_STATUS_INVALID: make a new one.
 */
enum LfcfStatus lfcf_clear(const struct LfcfFilter *filter);

/*
 True once a call of this process has found that another process has damaged the file of a shared filter. From then on
 lfcf_contains returns true, and calls that change the filter return LFCF_STATUS_DAMAGED.
 */
bool lfcf_is_damaged(const struct LfcfFilter *filter);

/*
 Saves the filter as a file, which it replaces at one moment. Other threads may go on, but only one at a time may
 save under this name: of two calls that overlap, the file of the one that ends last stays, even if that one read the
 filter first. After an error, an older file is as it was, unless lfcf_message says that the filter is saved, but may
 be lost when the power fails. A shared filter
 is saved while other processes change it, by one of them at a time: LFCF_STATUS_BUSY.

 # Safety
 See lfcf_load.
 */
enum LfcfStatus lfcf_save(const struct LfcfFilter *filter,
                          const char *path);

/*
 Ends a filter, which may be NULL and which no thread may use any more.
 */
void lfcf_free(struct LfcfFilter *filter);

/*
 Returns the hash of a whole number, as Rust hashes integers of any type up to 64 bits (except the u8 255): negative
 ones as their int64_t.
 */
uint64_t lfcf_hash_number(uint64_t number);

/*
 Returns the hash of bytes, as Rust hashes a [u8].

 # Safety
 `length` bytes can be read at `bytes`, which may be NULL if there are none.
 */
uint64_t lfcf_hash_bytes(const void *bytes, size_t length);

/*
 Returns the hash of a text in UTF-8, as Rust hashes a str.

 # Safety
 See lfcf_hash_bytes; no terminating 0 is needed.
 */
uint64_t lfcf_hash_text(const char *text, size_t length);

/*
 Adds a copy of the key with this hash; in a filter that forgets, adds or renews it. Like all calls that change a
 filter, it returns LFCF_STATUS_INVALID for one that lfcf_open_lookup has opened.
 */
enum LfcfStatus lfcf_insert(const struct LfcfFilter *filter,
                            uint64_t hash);

/*
 Adds the key with this hash unless it is there (a filter that forgets does not renew it then) and reports whether it
 was added. Of several threads that add one key, at most one gets true, unless the key is removed or forgotten in
 between. None does if the filter has no room or mistakes the key for another. Even if only keys that were added are
 removed, a key that was mistaken for a removed one is missing afterwards.
 */
enum LfcfStatus lfcf_insert_if_absent(const struct LfcfFilter *filter,
                                      uint64_t hash,
                                      bool *added);

/*
 Adds the key with this hash to a filter that forgets, or renews it, and reports whether it was added. For other kinds
 it returns LFCF_STATUS_INVALID.
 */
enum LfcfStatus lfcf_insert_or_renew(const struct LfcfFilter *filter,
                                     uint64_t hash,
                                     bool *added);

/*
 Takes a copy of the key with this hash; says whether there was one. Remove only what was inserted.
 */
enum LfcfStatus lfcf_remove(const struct LfcfFilter *filter, uint64_t hash, bool *removed);

/*
 Begins a period of a filter that forgets, and forgets what came, or was renewed, three periods ago; says
 which period it is. Each call begins one: threads that read a clock call lfcf_advance_to. Other kinds
 are LFCF_STATUS_INVALID.
 */
enum LfcfStatus lfcf_advance(const struct LfcfFilter *filter,
                             uint64_t *period);

/*
 Begins periods of a filter that forgets until the present one has this number, which is below 2^42; none
 if it has this number or a greater one. So any number of threads may call it before each call, with the
 time divided by the length of a period. A number that is too great cannot be taken back: until the clock reaches it,
 nothing is forgotten. If a clock may be wrong, compare with lfcf_period first. Other kinds are
 LFCF_STATUS_INVALID.
 */
enum LfcfStatus lfcf_advance_to(const struct LfcfFilter *filter,
                                uint64_t period);

/*
 Returns the number of the present period of a filter that forgets: 0 before the first lfcf_advance or
 lfcf_advance_to. Also 0 if `filter` is NULL or of another kind, for which lfcf_advance returns LFCF_STATUS_INVALID.
 */
uint64_t lfcf_period(const struct LfcfFilter *filter);

/*
 True if the key with this hash is there, or by chance; false without a filter.
 */
bool lfcf_contains(const struct LfcfFilter *filter, uint64_t hash);

/*
 Returns the number of copies of the key with this hash, as far as the filter can tell; 0 if `filter` is NULL.
 */
size_t lfcf_count(const struct LfcfFilter *filter,
                  uint64_t hash);

/*
 Returns the number of copies of all keys; 0 if `filter` is NULL.
 */
size_t lfcf_length(const struct LfcfFilter *filter);

/*
 Returns the number of slots: a filter of fixed size begins to refuse keys somewhat below it. 0 if `filter` is NULL.
 */
size_t lfcf_slots(const struct LfcfFilter *filter);

/*
 Returns the memory that the filter uses, in bytes; 0 if `filter` is NULL.
 */
size_t lfcf_memory_bytes(const struct LfcfFilter *filter);

/*
 Reserves one of the 4,096 ids of threads that change filters for the calling thread, until it ends; LFCF_STATUS_THREADS
 if all are taken. Without this call, a thread gets an id when it first changes or saves a filter, and keeps it unless 3,072
 are kept already: then it has one during each call only. It reserves no id in a shared file, where the first change of a
 thread may return LFCF_STATUS_THREADS.
 */
enum LfcfStatus lfcf_register_thread(void);

/*
 Returns what was wrong with the last call of this thread that failed; valid until the next call that fails, or until the
 thread ends.
 */
const char *lfcf_message(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LFCF_H */
