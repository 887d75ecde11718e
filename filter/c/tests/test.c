/* Tests of the C interface: test GOLDEN_FOLDER SHARED_FOLDER. */
#define _DEFAULT_SOURCE /* mknod */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "cuckoo.h"

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: %s; %s\n", __FILE__, __LINE__, #condition,        \
                    cuckoo_message());                                                \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)
#define DONE(call) CHECK((call) == CUCKOO_STATUS_OK)

enum { THREADS = 4, KEYS = 20000 };

static CuckooFilter *load(const char *folder, const char *name) {
    char path[4096];
    CuckooFilter *filter;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    DONE(cuckoo_load(path, NULL, &filter));
    return filter;
}

static uint64_t hash_of_text(const char *before, long number) {
    char text[64];
    int length = snprintf(text, sizeof text, "%s%ld", before, number);
    return cuckoo_hash_text(text, (size_t)length);
}

static void check_numbers(const CuckooFilter *filter, int64_t from, int64_t to) {
    for (int64_t number = from; number < to; number++)
        CHECK(cuckoo_contains(filter, cuckoo_hash_number((uint64_t)number)));
}

static void golden_files_are_read(const char *folder) {
    CuckooFilter *fixed = load(folder, "version-3");
    CHECK(cuckoo_length(fixed) == 300);
    check_numbers(fixed, 0, 200);
    for (long number = 0; number < 100; number++)
        CHECK(cuckoo_contains(fixed, hash_of_text("key ", number)));
    cuckoo_free(fixed);

    CuckooFilter *growing = load(folder, "growing-version-3");
    CHECK(cuckoo_length(growing) == 300);
    check_numbers(growing, 0, 300);
    cuckoo_free(growing);

    CuckooFilter *expiring = load(folder, "expiring-version-3");
    uint64_t period = 0;
    for (int64_t begun = 1; begun <= 3; begun++) {
        check_numbers(expiring, 100 * (begun - 1), 300);
        DONE(cuckoo_advance(expiring, &period));
        CHECK(period == 7 + (uint64_t)begun);
    }
    CHECK(cuckoo_length(expiring) == 0);
    cuckoo_free(expiring);
}

static void files_are_shared_with_rust(const char *folder) {
    const char *kinds[] = {"fixed", "growing", "expiring"};
    for (size_t kind = 0; kind < 3; kind++) {
        char name[64], path[4096];
        snprintf(name, sizeof name, "rust-%s", kinds[kind]);
        CuckooFilter *filter = load(folder, name);
        check_numbers(filter, -500, 500);
        for (long number = -500; number < 500; number++) {
            char bytes[64];
            size_t length = (size_t)snprintf(bytes, sizeof bytes, "%ld", number);
            CHECK(cuckoo_contains(filter, hash_of_text("", number)));
            CHECK(cuckoo_contains(filter, cuckoo_hash_bytes((uint8_t *)bytes, length)));
        }
        bool removed = false;
        /* In one that forgets, keys may have one copy between them, which a remove takes. */
        for (int64_t number = -500; number < 0 && kind < 2; number++) {
            DONE(cuckoo_remove(filter, cuckoo_hash_number((uint64_t)number), &removed));
            CHECK(removed);
        }
        if (kind == 2) DONE(cuckoo_advance(filter, NULL));
        for (uint64_t number = 0; number < 1000; number++)
            DONE(cuckoo_insert_unique(filter, cuckoo_hash_number(number), NULL));
        snprintf(path, sizeof path, "%s/c-%s", folder, kinds[kind]);
        DONE(cuckoo_save(filter, path));
        cuckoo_free(filter);
    }
}

/* A pipe can be opened once only, and what was read from it is gone. */
static void a_filter_of_any_kind_is_loaded_from_a_pipe(const char *golden, const char *folder) {
    const char *kinds[] = {"version-3", "growing-version-3", "expiring-version-3"};
    char command[12500];
    snprintf(command, sizeof command, "mkfifo '%s/pipe'", folder);
    CHECK(system(command) == 0);
    for (size_t kind = 0; kind < 3; kind++) {
        snprintf(command, sizeof command, "cat '%s/%s' >'%s/pipe' &", golden, kinds[kind], folder);
        CHECK(system(command) == 0);
        CuckooFilter *filter = load(folder, "pipe");
        check_numbers(filter, 0, 200);
        cuckoo_free(filter);
    }
    /* One byte of what follows is read, and no more: there might be no end to it. */
    CuckooFilter *filter;
    snprintf(command, sizeof command, "(cat '%s/version-3'; head -c 1000000 /dev/zero) >'%s/pipe' &", golden, folder);
    CHECK(system(command) == 0);
    snprintf(command, sizeof command, "%s/pipe", folder);
    CHECK(cuckoo_load(command, NULL, &filter) == CUCKOO_STATUS_FORMAT && filter == NULL);
    CHECK(strncmp(cuckoo_message(), "1 bytes follow", 14) == 0);
    snprintf(command, sizeof command, "rm '%s/pipe'", folder);
    CHECK(system(command) == 0);
}

static pthread_key_t at_the_end;

static void insert_into_a_full_one(void *filter) {
    CHECK(cuckoo_insert(filter, 1) == CUCKOO_STATUS_FULL && cuckoo_message() != NULL);
}

static void *leave_it_to_the_end(void *filter) {
    CHECK(pthread_setspecific(at_the_end, filter) == 0);
    insert_into_a_full_one(filter);
    return NULL;
}

/* The thread has lost its message when its keys are destroyed. */
static void an_ending_thread_gets_errors(void) {
    CuckooFilter *filter;
    pthread_t thread;
    DONE(cuckoo_new_fixed(10, 0.002, &filter));
    for (int copy = 0; copy < 8; copy++) DONE(cuckoo_insert(filter, 1));
    CHECK(pthread_key_create(&at_the_end, insert_into_a_full_one) == 0);
    CHECK(pthread_create(&thread, NULL, leave_it_to_the_end, filter) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    cuckoo_free(filter);
}

static void insert_and_remove(void *filter) {
    bool removed = false;
    DONE(cuckoo_insert(filter, 1));
    DONE(cuckoo_remove(filter, 1, &removed));
    CHECK(removed);
}

static void *remove_before_the_end(void *filter) {
    DONE(cuckoo_remove(filter, 1, NULL));
    CHECK(pthread_setspecific(at_the_end, filter) == 0);
    return NULL;
}

/* More threads, one after another, than may be alive at the same time. */
static void a_thread_that_removed_once_gives_its_place_back(void) {
    CuckooFilter *filter;
    pthread_t thread;
    DONE(cuckoo_new_fixed(10, 0.002, &filter));
    CHECK(pthread_key_create(&at_the_end, insert_and_remove) == 0);
    for (int number = 0; number < 5000; number++) {
        CHECK(pthread_create(&thread, NULL, remove_before_the_end, filter) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    cuckoo_free(filter);
}

static void errors_have_a_code_and_a_text(const char *folder) {
    CuckooFilter *filter = NULL;
    bool answer = true;
    CHECK(cuckoo_new_fixed(10, 1.5, &filter) == CUCKOO_STATUS_INVALID && filter == NULL);
    CHECK(strstr(cuckoo_message(), "below 1"));
    CHECK(cuckoo_new_growing(SIZE_MAX, NULL, &filter) == CUCKOO_STATUS_INVALID);
    CHECK(cuckoo_new_expiring(10, NULL) == CUCKOO_STATUS_INVALID);
    CHECK(cuckoo_load("not/there", NULL, &filter) == CUCKOO_STATUS_FILE);
    CHECK(strstr(cuckoo_message(), "not/there"));
    CHECK(cuckoo_load(NULL, NULL, &filter) == CUCKOO_STATUS_INVALID);
    CHECK(cuckoo_insert(NULL, 1) == CUCKOO_STATUS_INVALID);
    CHECK(cuckoo_insert_unique(NULL, 1, &answer) == CUCKOO_STATUS_INVALID);
    CHECK(cuckoo_remove(NULL, 1, &answer) == CUCKOO_STATUS_INVALID);
    CHECK(cuckoo_advance_to(NULL, 1) == CUCKOO_STATUS_INVALID);
    CHECK(!cuckoo_contains(NULL, 1) && cuckoo_length(NULL) == 0 && cuckoo_period(NULL) == 0);
    cuckoo_free(NULL);

    DONE(cuckoo_new_fixed(10, 0.002, &filter));
    CHECK(cuckoo_advance(filter, NULL) == CUCKOO_STATUS_INVALID);
    CHECK(cuckoo_advance_to(filter, 1) == CUCKOO_STATUS_INVALID && cuckoo_period(filter) == 0);
    CHECK(cuckoo_save(filter, "not/there") == CUCKOO_STATUS_FILE);
    CHECK(cuckoo_save(filter, "\xff") == CUCKOO_STATUS_INVALID);
    DONE(cuckoo_remove(filter, 1, &answer));
    CHECK(!answer);
    for (int copy = 0; copy < 8; copy++) DONE(cuckoo_insert(filter, 1));
    CHECK(cuckoo_insert(filter, 1) == CUCKOO_STATUS_FULL && cuckoo_length(filter) == 8);
    CHECK(strstr(cuckoo_message(), "8 copies"));

    /* A file of which one bit is wrong. */
    char path[4096];
    snprintf(path, sizeof path, "%s/damaged", folder);
    DONE(cuckoo_save(filter, path));
    cuckoo_free(filter);
    FILE *file = fopen(path, "r+b");
    CHECK(file && fseek(file, 41, SEEK_SET) == 0);
    int byte = fgetc(file);
    CHECK(fseek(file, 41, SEEK_SET) == 0 && fputc(byte ^ 1, file) != EOF && fclose(file) == 0);
    CHECK(cuckoo_load(path, NULL, &filter) == CUCKOO_STATUS_FORMAT && filter == NULL);
    CHECK(strstr(cuckoo_message(), "damaged"));
}

/* The address space of this process. */
static size_t address_space(void) {
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%zu", &pages) == 1 && fclose(file) == 0);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void growing_filter_reserves_only_requested_bytes(const char *folder) {
    enum { MIB = 1 << 20 };
    const size_t requests[] = {0, 300 * (size_t)MIB};
    char path[4096];
    snprintf(path, sizeof path, "%s/reserving", folder);
    for (size_t request = 0; request < 2; request++) {
        CuckooFilter *made, *loaded;
        size_t before = address_space();
        DONE(cuckoo_new_growing(1000000, &requests[request], &made));
        DONE(cuckoo_save(made, path));
        DONE(cuckoo_load(path, &requests[request], &loaded));
        size_t taken = address_space() - before;
        CHECK(2 * requests[request] <= taken && taken < 2 * requests[request] + 32 * MIB);
        cuckoo_free(made);
        cuckoo_free(loaded);
    }
}

/* Not to a real device: a defect would replace it. */
static void save_to_special_file_is_refused(const char *folder) {
    CuckooFilter *filter;
    char paths[4][4200];
    const char *names[] = {"directory", "fifo", "device", "link"};
    for (size_t kind = 0; kind < 4; kind++) {
        CHECK(snprintf(paths[kind], sizeof paths[kind], "%s/special-%s", folder, names[kind]) < 4200);
        remove(paths[kind]);
    }
    CHECK(mkdir(paths[0], 0700) == 0 && mkfifo(paths[1], 0600) == 0 && symlink(paths[1], paths[3]) == 0);
    /* Only root may make one, of the numbers of /dev/null. */
    if (mknod(paths[2], S_IFCHR | 0600, makedev(1, 3)) != 0) strcpy(paths[2], paths[1]);
    DONE(cuckoo_new_fixed(10, 0.002, &filter));
    for (size_t kind = 0; kind < 4; kind++) {
        struct stat before, after;
        CHECK(lstat(paths[kind], &before) == 0);
        CHECK(cuckoo_save(filter, paths[kind]) == CUCKOO_STATUS_FILE);
        CHECK(strstr(cuckoo_message(), paths[kind]));
        CHECK(strstr(cuckoo_message(), kind == 0 ? "directory" : "a device, a pipe or a socket"));
        CHECK(lstat(paths[kind], &after) == 0 && after.st_mode == before.st_mode && after.st_ino == before.st_ino);
    }
    /* A link to a file is replaced, and not the file. */
    CHECK(remove(paths[3]) == 0 && symlink("rust-fixed", paths[3]) == 0);
    DONE(cuckoo_save(filter, paths[3]));
    cuckoo_free(filter);
    filter = load(folder, "special-link");
    CHECK(cuckoo_length(filter) == 0);
    cuckoo_free(filter);
    filter = load(folder, "rust-fixed");
    CHECK(cuckoo_length(filter) > 0);
    cuckoo_free(filter);
}

static void *insert_all(void *argument) {
    uintptr_t added = 0;
    for (uint64_t number = 0; number < KEYS; number++) {
        bool new = false;
        DONE(cuckoo_insert_unique(argument, cuckoo_hash_number(number), &new));
        added += new;
        CHECK(cuckoo_contains(argument, cuckoo_hash_number(number)));
    }
    return (void *)added;
}

static void one_thread_of_all_adds_a_key(void) {
    CuckooFilter *filters[3];
    DONE(cuckoo_new_fixed(KEYS, 0.002, &filters[0]));
    DONE(cuckoo_new_growing(0, NULL, &filters[1]));
    DONE(cuckoo_new_expiring(KEYS, &filters[2]));
    for (size_t kind = 0; kind < 3; kind++) {
        pthread_t threads[THREADS];
        uintptr_t added = 0;
        for (size_t thread = 0; thread < THREADS; thread++)
            CHECK(pthread_create(&threads[thread], NULL, insert_all, filters[kind]) == 0);
        for (size_t thread = 0; thread < THREADS; thread++) {
            void *of_this;
            CHECK(pthread_join(threads[thread], &of_this) == 0);
            added += (uintptr_t)of_this;
        }
        /* Some are taken for others. */
        CHECK(added == cuckoo_length(filters[kind]) && added > KEYS - KEYS / 100);
        cuckoo_free(filters[kind]);
    }
}

enum { PERIODS = 200 };

static void *advance_to_all(void *filter) {
    for (uint64_t period = 1; period <= PERIODS; period++) DONE(cuckoo_advance_to(filter, period));
    return NULL;
}

static void threads_with_a_clock_begin_a_period_once(void) {
    CuckooFilter *filter;
    pthread_t threads[THREADS];
    DONE(cuckoo_new_expiring(1000, &filter));
    for (size_t thread = 0; thread < THREADS; thread++)
        CHECK(pthread_create(&threads[thread], NULL, advance_to_all, filter) == 0);
    for (size_t thread = 0; thread < THREADS; thread++)
        CHECK(pthread_join(threads[thread], NULL) == 0);
    CHECK(cuckoo_period(filter) == PERIODS);

    /* Periods may be left out, and none begins anew. */
    const uint64_t hash = cuckoo_hash_number(7);
    const uint64_t last = ((uint64_t)1 << 42) - 1;
    DONE(cuckoo_advance_to(filter, last - 3));
    DONE(cuckoo_insert(filter, hash));
    DONE(cuckoo_advance_to(filter, last - 1));
    DONE(cuckoo_advance_to(filter, 5));
    CHECK(cuckoo_period(filter) == last - 1 && cuckoo_contains(filter, hash));
    DONE(cuckoo_advance_to(filter, last));
    CHECK(!cuckoo_contains(filter, hash) && cuckoo_length(filter) == 0);
    CHECK(cuckoo_advance_to(filter, last + 1) == CUCKOO_STATUS_INVALID);
    CHECK(strstr(cuckoo_message(), "below 2^42") && cuckoo_period(filter) == last);
    cuckoo_free(filter);
}

int main(int count, char **arguments) {
    CHECK(count == 3);
    golden_files_are_read(arguments[1]);
    a_filter_of_any_kind_is_loaded_from_a_pipe(arguments[1], arguments[2]);
    files_are_shared_with_rust(arguments[2]);
    errors_have_a_code_and_a_text(arguments[2]);
    growing_filter_reserves_only_requested_bytes(arguments[2]);
    save_to_special_file_is_refused(arguments[2]);
    an_ending_thread_gets_errors();
    a_thread_that_removed_once_gives_its_place_back();
    one_thread_of_all_adds_a_key();
    threads_with_a_clock_begin_a_period_once();
    puts("The C interface passes its tests.");
    return 0;
}
