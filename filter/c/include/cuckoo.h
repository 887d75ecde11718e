/* The cuckoo filters for programs in C. Written by cbindgen: scripts/optional.sh c --header. */

#ifndef CUCKOO_H
#define CUCKOO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 The result of a call; cuckoo_message has a text for all but CUCKOO_STATUS_OK.
 */
typedef enum CuckooStatus {
  /*
   It was done.
   */
  CUCKOO_STATUS_OK = 0,
  /*
   There is no room for the key, or for another copy of it. The filter holds what it held.
   */
  CUCKOO_STATUS_FULL = 1,
  /*
   An argument is invalid.
   */
  CUCKOO_STATUS_INVALID = 2,
  /*
   There is not enough memory.
   */
  CUCKOO_STATUS_MEMORY = 3,
  /*
   All places for threads that change filters are taken. Nothing has changed.
   */
  CUCKOO_STATUS_THREADS = 4,
  /*
   A file cannot be read or written.
   */
  CUCKOO_STATUS_FILE = 5,
  /*
   A file is no saved filter, or a damaged one, or one of another layout or hasher.
   */
  CUCKOO_STATUS_FORMAT = 6,
  /*
   A defect of the library.
   */
  CUCKOO_STATUS_DEFECT = 7,
} CuckooStatus;

/*
 A filter of any kind. Any call except cuckoo_free may be made from several threads at once.
 */
typedef struct CuckooFilter CuckooFilter;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Makes a filter of fixed size with room for `capacity` keys and a false positive rate of at most `rate`:
 0.002 for the layout of CuckooFilter::with_capacity in Rust.
 */
enum CuckooStatus cuckoo_new_fixed(size_t capacity,
                                   double rate,
                                   struct CuckooFilter **filter);

/*
 Makes a filter that grows. It begins to grow at 0.37 to 1.2 times `capacity`; a small one at some 1,900 keys.

 `reserved_bytes` sets how many bytes the filter allocates at once for its table, so that the table grows in one piece
 up to that size: NULL sets the default of Rust, and 0 the least memory. reserved_bytes in Rust lists where the
 reserved bytes are real memory.
 */
enum CuckooStatus cuckoo_new_growing(size_t capacity,
                                     const size_t *reserved_bytes,
                                     struct CuckooFilter **filter);

/*
 Makes a filter that forgets keys two to three periods after they last came (cuckoo_advance_to), with room for
 `capacity` keys in three periods. Make room for the keys of one more period if keys are inserted while the oldest ones
 are forgotten.
 */
enum CuckooStatus cuckoo_new_expiring(size_t capacity,
                                      struct CuckooFilter **filter);

/*
 Loads a filter of any kind that was saved from any language, with the default hasher of Rust. A filter
 that grows gets these `reserved_bytes`, as in cuckoo_new_growing.

 # Safety
 `path` is NULL, or UTF-8 that ends with a 0.
 */
enum CuckooStatus cuckoo_load(const char *path,
                              const size_t *reserved_bytes,
                              struct CuckooFilter **filter);

/*
 Saves the filter as a file, which it replaces at one moment. Other threads may go on, but only one at a time may
 save under this name: of two calls that overlap, the file of the one that ends last stays, even if that one read the
 filter first. After an error, an older file is as it was, unless cuckoo_message says that the filter is saved, but may
 be lost when the power fails.

 # Safety
 As cuckoo_load.
 */
enum CuckooStatus cuckoo_save(const struct CuckooFilter *filter,
                              const char *path);

/*
 Ends a filter, which may be NULL and which no thread may use any more.
 */
void cuckoo_free(struct CuckooFilter *filter);

/*
 Returns the hash of a whole number, as Rust hashes integers of any type up to 64 bits (but for the u8 255): negative
 ones as their int64_t.
 */
uint64_t cuckoo_hash_number(uint64_t number);

/*
 Returns the hash of bytes, as Rust hashes a [u8].

 # Safety
 `length` bytes can be read at `bytes`, which may be NULL if there are none.
 */
uint64_t cuckoo_hash_bytes(const uint8_t *bytes, size_t length);

/*
 Returns the hash of a text in UTF-8, as Rust hashes a str.

 # Safety
 As cuckoo_hash_bytes; no terminating 0 is needed.
 */
uint64_t cuckoo_hash_text(const char *text, size_t length);

/*
 Adds a copy of the key with this hash; in a filter that forgets, adds or renews it.
 */
enum CuckooStatus cuckoo_insert(const struct CuckooFilter *filter, uint64_t hash);

/*
 Adds the key with this hash unless it is there (in a filter that forgets, it is renewed then); says
 whether it was added. Of several threads that add one key, at most one gets true, unless the key is
 removed or forgotten meanwhile; none is if there is no room, or if the key is mistaken for another.
 */
enum CuckooStatus cuckoo_insert_unique(const struct CuckooFilter *filter,
                                       uint64_t hash,
                                       bool *added);

/*
 Takes a copy of the key with this hash; says whether there was one. Remove only what was inserted.
 */
enum CuckooStatus cuckoo_remove(const struct CuckooFilter *filter, uint64_t hash, bool *removed);

/*
 Begins a period of a filter that forgets, and forgets what came, or was renewed, three periods ago; says
 which period it is. Each call begins one: threads that read a clock call cuckoo_advance_to. Other kinds
 are CUCKOO_STATUS_INVALID.
 */
enum CuckooStatus cuckoo_advance(const struct CuckooFilter *filter,
                                 uint64_t *period);

/*
 Begins periods of a filter that forgets until the present one has this number, which is below 2^42; none
 if it has this number or a greater one. So any number of threads may call it before each call, with the
 time divided by the length of a period. A number that is too great cannot be taken back: until the clock reaches it,
 nothing is forgotten. If a clock may be wrong, compare with cuckoo_period first. Other kinds are
 CUCKOO_STATUS_INVALID.
 */
enum CuckooStatus cuckoo_advance_to(const struct CuckooFilter *filter,
                                    uint64_t period);

/*
 Returns the number of the present period, 0 at first; 0 without a filter that forgets.
 */
uint64_t cuckoo_period(const struct CuckooFilter *filter);

/*
 True if the key with this hash is there, or by chance; false without a filter.
 */
bool cuckoo_contains(const struct CuckooFilter *filter, uint64_t hash);

/*
 Returns the number of copies held; 0 without a filter.
 */
size_t cuckoo_length(const struct CuckooFilter *filter);

/*
 Returns what was wrong with the last call of this thread that failed; valid until the next that fails.
 */
const char *cuckoo_message(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* CUCKOO_H */
