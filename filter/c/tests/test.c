/* Tests of the C interface: test GOLDEN_FOLDER SHARED_FOLDER MEMORY_FOLDER, which is on tmpfs. */
#define _DEFAULT_SOURCE /* mknod */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lfcf.h"

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: %s; %s\n", __FILE__, __LINE__, #condition,        \
                    lfcf_message());                                                \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)
#define DONE(call) CHECK((call) == LFCF_STATUS_OK)

enum { THREADS = 4, KEYS = 20000 };

static LfcfFilter *load(const char *folder, const char *name) {
    char path[4096];
    LfcfFilter *filter;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    DONE(lfcf_load(path, NULL, &filter));
    return filter;
}

static uint64_t hash_of_text(const char *before, long number) {
    char text[64];
    int length = snprintf(text, sizeof text, "%s%ld", before, number);
    return lfcf_hash_text(text, (size_t)length);
}

static void check_numbers(const LfcfFilter *filter, int64_t from, int64_t to) {
    for (int64_t number = from; number < to; number++)
        CHECK(lfcf_contains(filter, lfcf_hash_number((uint64_t)number)));
}

static void golden_files_are_read(const char *folder) {
    LfcfFilter *fixed = load(folder, "version-3");
    CHECK(lfcf_length(fixed) == 300);
    check_numbers(fixed, 0, 200);
    for (long number = 0; number < 100; number++)
        CHECK(lfcf_contains(fixed, hash_of_text("key ", number)));
    lfcf_free(fixed);

    LfcfFilter *growing = load(folder, "growing-version-3");
    CHECK(lfcf_length(growing) == 300);
    check_numbers(growing, 0, 300);
    lfcf_free(growing);

    LfcfFilter *expiring = load(folder, "expiring-version-3");
    uint64_t period = 0;
    for (int64_t begun = 1; begun <= 3; begun++) {
        check_numbers(expiring, 100 * (begun - 1), 300);
        DONE(lfcf_advance(expiring, &period));
        CHECK(period == 7 + (uint64_t)begun);
    }
    CHECK(lfcf_length(expiring) == 0);
    lfcf_free(expiring);
}

static void files_are_shared_with_rust(const char *folder) {
    const char *kinds[] = {"fixed", "growing", "expiring"};
    for (size_t kind = 0; kind < 3; kind++) {
        char name[64], path[4096];
        snprintf(name, sizeof name, "rust-%s", kinds[kind]);
        LfcfFilter *filter = load(folder, name);
        check_numbers(filter, -500, 500);
        for (long number = -500; number < 500; number++) {
            char bytes[64];
            size_t length = (size_t)snprintf(bytes, sizeof bytes, "%ld", number);
            CHECK(lfcf_contains(filter, hash_of_text("", number)));
            CHECK(lfcf_contains(filter, lfcf_hash_bytes(bytes, length)));
        }
        bool removed = false;
        /* In one that forgets, keys may have one copy between them, which a remove takes. */
        for (int64_t number = -500; number < 0 && kind < 2; number++) {
            DONE(lfcf_remove(filter, lfcf_hash_number((uint64_t)number), &removed));
            CHECK(removed);
        }
        if (kind == 2) DONE(lfcf_advance(filter, NULL));
        for (uint64_t number = 0; number < 1000; number++)
            DONE(lfcf_insert_if_absent(filter, lfcf_hash_number(number), NULL));
        snprintf(path, sizeof path, "%s/c-%s", folder, kinds[kind]);
        DONE(lfcf_save(filter, path));
        lfcf_free(filter);
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
        LfcfFilter *filter = load(folder, "pipe");
        check_numbers(filter, 0, 200);
        lfcf_free(filter);
    }
    /* One byte of what follows is read, and no more: there might be no end to it. */
    LfcfFilter *filter;
    snprintf(command, sizeof command, "(cat '%s/version-3'; head -c 1000000 /dev/zero) >'%s/pipe' &", golden, folder);
    CHECK(system(command) == 0);
    snprintf(command, sizeof command, "%s/pipe", folder);
    CHECK(lfcf_load(command, NULL, &filter) == LFCF_STATUS_FORMAT && filter == NULL);
    CHECK(strncmp(lfcf_message(), "1 bytes follow", 14) == 0);
    snprintf(command, sizeof command, "rm '%s/pipe'", folder);
    CHECK(system(command) == 0);
}

static pthread_key_t at_the_end;

static void insert_into_a_full_one(void *filter) {
    CHECK(lfcf_insert(filter, 1) == LFCF_STATUS_FULL && lfcf_message() != NULL);
}

static void *leave_it_to_the_end(void *filter) {
    CHECK(pthread_setspecific(at_the_end, filter) == 0);
    insert_into_a_full_one(filter);
    return NULL;
}

/* The thread has lost its message when its keys are destroyed. */
static void an_ending_thread_gets_errors(void) {
    LfcfFilter *filter;
    pthread_t thread;
    DONE(lfcf_new_fixed(10, 0.002, &filter));
    for (int copy = 0; copy < 8; copy++) DONE(lfcf_insert(filter, 1));
    CHECK(pthread_key_create(&at_the_end, insert_into_a_full_one) == 0);
    CHECK(pthread_create(&thread, NULL, leave_it_to_the_end, filter) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    lfcf_free(filter);
}

static void insert_and_remove(void *filter) {
    bool removed = false;
    DONE(lfcf_insert(filter, 1));
    DONE(lfcf_remove(filter, 1, &removed));
    CHECK(removed);
}

static void *register_before_the_end(void *filter) {
    DONE(lfcf_register_thread());
    CHECK(pthread_setspecific(at_the_end, filter) == 0);
    return NULL;
}

/* More threads, one after another, than may be alive at the same time. */
static void registered_thread_gives_its_place_back(void) {
    LfcfFilter *filter;
    pthread_t thread;
    DONE(lfcf_new_fixed(10, 0.002, &filter));
    CHECK(pthread_key_create(&at_the_end, insert_and_remove) == 0);
    for (int number = 0; number < 5000; number++) {
        CHECK(pthread_create(&thread, NULL, register_before_the_end, filter) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    lfcf_free(filter);
}

static void library_has_version_of_header(void) {
    char version[64];
    int length = snprintf(version, sizeof version, "%d.%d.", LFCF_VERSION_MAJOR, LFCF_VERSION_MINOR);
    CHECK(strncmp(lfcf_version(), version, (size_t)length) == 0);
}

static void sizes_of_each_kind_are_reported(void) {
    LfcfFilter *filters[3];
    DONE(lfcf_new_fixed(1000, 0.002, &filters[0]));
    DONE(lfcf_new_growing(0, NULL, &filters[1]));
    DONE(lfcf_new_expiring(1000, &filters[2]));
    for (size_t kind = 0; kind < 3; kind++) {
        CHECK(lfcf_slots(filters[kind]) >= 1000);
        CHECK(lfcf_memory_bytes(filters[kind]) >= lfcf_slots(filters[kind]));
        DONE(lfcf_insert(filters[kind], lfcf_hash_number(1)));
        DONE(lfcf_insert(filters[kind], lfcf_hash_number(1)));
        /* One that forgets renews a key. */
        CHECK(lfcf_count(filters[kind], lfcf_hash_number(1)) == (kind == 2 ? 1 : 2));
        CHECK(lfcf_count(filters[kind], lfcf_hash_number(2)) == 0);
        lfcf_free(filters[kind]);
    }
    CHECK(lfcf_count(NULL, 1) == 0 && lfcf_slots(NULL) == 0 && lfcf_memory_bytes(NULL) == 0);
}

static void expiring_filter_renews_on_request(void) {
    LfcfFilter *filter;
    bool added = true;
    DONE(lfcf_new_expiring(1000, &filter));
    DONE(lfcf_insert_or_renew(filter, lfcf_hash_number(1), &added));
    CHECK(added);
    DONE(lfcf_insert_or_renew(filter, lfcf_hash_number(2), NULL));
    DONE(lfcf_advance(filter, NULL));
    DONE(lfcf_insert_or_renew(filter, lfcf_hash_number(1), &added));
    CHECK(!added);
    DONE(lfcf_insert_if_absent(filter, lfcf_hash_number(2), &added));
    CHECK(!added);
    DONE(lfcf_advance(filter, NULL));
    DONE(lfcf_advance(filter, NULL));
    CHECK(lfcf_contains(filter, lfcf_hash_number(1)) && !lfcf_contains(filter, lfcf_hash_number(2)));
    lfcf_free(filter);
}

static void errors_have_a_code_and_a_text(const char *folder) {
    LfcfFilter *filter = NULL;
    bool answer = true;
    CHECK(lfcf_new_fixed(10, 1.5, &filter) == LFCF_STATUS_INVALID && filter == NULL);
    CHECK(strstr(lfcf_message(), "below 1"));
    CHECK(lfcf_new_growing(SIZE_MAX, NULL, &filter) == LFCF_STATUS_INVALID);
    CHECK(lfcf_new_expiring(10, NULL) == LFCF_STATUS_INVALID);
    CHECK(lfcf_load("not/there", NULL, &filter) == LFCF_STATUS_FILE);
    CHECK(strstr(lfcf_message(), "not/there"));
    CHECK(lfcf_load(NULL, NULL, &filter) == LFCF_STATUS_INVALID);
    CHECK(lfcf_insert(NULL, 1) == LFCF_STATUS_INVALID);
    CHECK(lfcf_insert_if_absent(NULL, 1, &answer) == LFCF_STATUS_INVALID);
    CHECK(lfcf_remove(NULL, 1, &answer) == LFCF_STATUS_INVALID);
    CHECK(lfcf_advance_to(NULL, 1) == LFCF_STATUS_INVALID);
    CHECK(!lfcf_contains(NULL, 1) && lfcf_length(NULL) == 0 && lfcf_period(NULL) == 0);
    lfcf_free(NULL);

    DONE(lfcf_new_fixed(10, 0.002, &filter));
    CHECK(lfcf_advance(filter, NULL) == LFCF_STATUS_INVALID);
    CHECK(strcmp(lfcf_message(), "this filter does not forget: make it with lfcf_new_expiring") == 0);
    CHECK(lfcf_insert_or_renew(filter, 1, NULL) == LFCF_STATUS_INVALID);
    CHECK(lfcf_advance_to(filter, 1) == LFCF_STATUS_INVALID && lfcf_period(filter) == 0);
    CHECK(lfcf_save(filter, "not/there") == LFCF_STATUS_FILE);
    CHECK(lfcf_save(filter, "\xff") == LFCF_STATUS_INVALID);
    DONE(lfcf_remove(filter, 1, &answer));
    CHECK(!answer);
    for (int copy = 0; copy < 8; copy++) DONE(lfcf_insert(filter, 1));
    CHECK(lfcf_insert(filter, 1) == LFCF_STATUS_FULL && lfcf_length(filter) == 8);
    CHECK(strstr(lfcf_message(), "8 copies") && strstr(lfcf_message(), "once (lfcf_insert_if_absent)"));

    /* A file of which one bit is wrong. */
    char path[4096];
    snprintf(path, sizeof path, "%s/damaged", folder);
    DONE(lfcf_save(filter, path));
    lfcf_free(filter);
    FILE *file = fopen(path, "r+b");
    CHECK(file && fseek(file, 41, SEEK_SET) == 0);
    int byte = fgetc(file);
    CHECK(fseek(file, 41, SEEK_SET) == 0 && fputc(byte ^ 1, file) != EOF && fclose(file) == 0);
    CHECK(lfcf_load(path, NULL, &filter) == LFCF_STATUS_FORMAT && filter == NULL);
    CHECK(strstr(lfcf_message(), "damaged"));
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
        LfcfFilter *made, *loaded;
        size_t before = address_space();
        DONE(lfcf_new_growing(1000000, &requests[request], &made));
        DONE(lfcf_save(made, path));
        DONE(lfcf_load(path, &requests[request], &loaded));
        size_t taken = address_space() - before;
        CHECK(2 * requests[request] <= taken && taken < 2 * requests[request] + 32 * MIB);
        lfcf_free(made);
        lfcf_free(loaded);
    }
}

/* Not to a real device: a defect would replace it. */
static void save_to_special_file_is_refused(const char *folder) {
    LfcfFilter *filter;
    char paths[4][4200];
    const char *names[] = {"directory", "fifo", "device", "link"};
    for (size_t kind = 0; kind < 4; kind++) {
        CHECK(snprintf(paths[kind], sizeof paths[kind], "%s/special-%s", folder, names[kind]) < 4200);
        remove(paths[kind]);
    }
    CHECK(mkdir(paths[0], 0700) == 0 && mkfifo(paths[1], 0600) == 0 && symlink(paths[1], paths[3]) == 0);
    /* Only root may make one, of the numbers of /dev/null. */
    if (mknod(paths[2], S_IFCHR | 0600, makedev(1, 3)) != 0) strcpy(paths[2], paths[1]);
    DONE(lfcf_new_fixed(10, 0.002, &filter));
    for (size_t kind = 0; kind < 4; kind++) {
        struct stat before, after;
        CHECK(lstat(paths[kind], &before) == 0);
        CHECK(lfcf_save(filter, paths[kind]) == LFCF_STATUS_FILE);
        CHECK(strstr(lfcf_message(), paths[kind]));
        CHECK(strstr(lfcf_message(), kind == 0 ? "directory" : "a device, a pipe or a socket"));
        CHECK(lstat(paths[kind], &after) == 0 && after.st_mode == before.st_mode && after.st_ino == before.st_ino);
    }
    /* A link to a file is replaced, and not the file. */
    CHECK(remove(paths[3]) == 0 && symlink("rust-fixed", paths[3]) == 0);
    DONE(lfcf_save(filter, paths[3]));
    lfcf_free(filter);
    filter = load(folder, "special-link");
    CHECK(lfcf_length(filter) == 0);
    lfcf_free(filter);
    filter = load(folder, "rust-fixed");
    CHECK(lfcf_length(filter) > 0);
    lfcf_free(filter);
}

static void *insert_all(void *argument) {
    uintptr_t added = 0;
    for (uint64_t number = 0; number < KEYS; number++) {
        bool new = false;
        DONE(lfcf_insert_if_absent(argument, lfcf_hash_number(number), &new));
        added += new;
        CHECK(lfcf_contains(argument, lfcf_hash_number(number)));
    }
    return (void *)added;
}

static void one_thread_of_all_adds_a_key(void) {
    LfcfFilter *filters[3];
    DONE(lfcf_new_fixed(KEYS, 0.002, &filters[0]));
    DONE(lfcf_new_growing(0, NULL, &filters[1]));
    DONE(lfcf_new_expiring(KEYS, &filters[2]));
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
        CHECK(added == lfcf_length(filters[kind]) && added > KEYS - KEYS / 100);
        lfcf_free(filters[kind]);
    }
}

enum { PERIODS = 200 };

static void *advance_to_all(void *filter) {
    for (uint64_t period = 1; period <= PERIODS; period++) DONE(lfcf_advance_to(filter, period));
    return NULL;
}

static void threads_with_a_clock_begin_a_period_once(void) {
    LfcfFilter *filter;
    pthread_t threads[THREADS];
    DONE(lfcf_new_expiring(1000, &filter));
    for (size_t thread = 0; thread < THREADS; thread++)
        CHECK(pthread_create(&threads[thread], NULL, advance_to_all, filter) == 0);
    for (size_t thread = 0; thread < THREADS; thread++)
        CHECK(pthread_join(threads[thread], NULL) == 0);
    CHECK(lfcf_period(filter) == PERIODS);

    /* Periods may be left out, and none begins again. */
    const uint64_t hash = lfcf_hash_number(7);
    const uint64_t last = ((uint64_t)1 << 42) - 1;
    DONE(lfcf_advance_to(filter, last - 3));
    DONE(lfcf_insert(filter, hash));
    DONE(lfcf_advance_to(filter, last - 1));
    DONE(lfcf_advance_to(filter, 5));
    CHECK(lfcf_period(filter) == last - 1 && lfcf_contains(filter, hash));
    DONE(lfcf_advance_to(filter, last));
    CHECK(!lfcf_contains(filter, hash) && lfcf_length(filter) == 0);
    CHECK(lfcf_advance_to(filter, last + 1) == LFCF_STATUS_INVALID);
    CHECK(strstr(lfcf_message(), "there is no period") && lfcf_period(filter) == last);
    lfcf_free(filter);
}

static LfcfFilter *open_shared(const char *folder, const char *name, size_t capacity) {
    char path[4096];
    LfcfFilter *filter;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    DONE(lfcf_open_shared(path, capacity, &filter));
    return filter;
}

static void remove_shared(const char *folder, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.lock", folder, name);
    CHECK(remove(path) == 0);
    path[strlen(path) - 5] = 0;
    CHECK(remove(path) == 0);
}

static void shared_filters_of_one_file_have_same_keys(const char *folder) {
    char path[4096], copied[4096], command[16500];
    bool answer = false;
    size_t copies = 0;
    LfcfFilter *first = open_shared(folder, "same", 1000), *second = open_shared(folder, "same", 0), *look;
    snprintf(path, sizeof path, "%s/same", folder);
    DONE(lfcf_open_lookup(path, &look));
    for (uint64_t number = 0; number < 500; number++) DONE(lfcf_insert(first, lfcf_hash_number(number)));
    check_numbers(second, 0, 500);
    check_numbers(look, 0, 500);
    DONE(lfcf_insert_if_absent(second, lfcf_hash_number(7), &answer));
    CHECK(!answer && lfcf_count(look, lfcf_hash_number(7)) == 1);
    DONE(lfcf_remove(second, lfcf_hash_number(7), &answer));
    CHECK(answer && lfcf_length(first) == 499 && lfcf_length(look) == 499);
    DONE(lfcf_take_over_all(first));
    DONE(lfcf_recount(first, &copies));
    CHECK(copies == 499 && lfcf_slots(look) == lfcf_slots(first) && lfcf_memory_bytes(look) >= 2 * lfcf_slots(look));

    /* Lookups alone. */
    CHECK(lfcf_insert(look, 1) == LFCF_STATUS_INVALID && strstr(lfcf_message(), "open it with lfcf_open_shared"));
    CHECK(lfcf_insert_if_absent(look, 1, &answer) == LFCF_STATUS_INVALID);
    CHECK(lfcf_remove(look, 1, &answer) == LFCF_STATUS_INVALID && lfcf_clear(look) == LFCF_STATUS_INVALID);
    CHECK(lfcf_recount(look, &copies) == LFCF_STATUS_INVALID && lfcf_take_over_all(look) == LFCF_STATUS_INVALID);
    CHECK(lfcf_advance(first, NULL) == LFCF_STATUS_INVALID && strstr(lfcf_message(), "lfcf_new_expiring"));

    DONE(lfcf_clear(first));
    CHECK(lfcf_length(look) == 0 && !lfcf_is_damaged(look) && !lfcf_is_damaged(NULL));

    /* What is no shared filter, or a copy. */
    LfcfFilter *none;
    snprintf(copied, sizeof copied, "%s/copied", folder);
    CHECK(lfcf_open_shared(copied, 0, &none) == LFCF_STATUS_FILE && none == NULL);
    CHECK(strstr(lfcf_message(), copied));
    CHECK(lfcf_open_lookup(copied, &none) == LFCF_STATUS_FILE && none == NULL);
    CHECK(lfcf_open_shared(copied, SIZE_MAX, &none) == LFCF_STATUS_INVALID && none == NULL);
    snprintf(command, sizeof command, "cp '%s' '%s' && cp '%s.lock' '%s.lock'", path, copied, path, copied);
    CHECK(system(command) == 0);
    CHECK(lfcf_open_shared(copied, 0, &none) == LFCF_STATUS_FORMAT && strstr(lfcf_message(), "is a copy"));
    CHECK(lfcf_open_shared(NULL, 0, &none) == LFCF_STATUS_INVALID && lfcf_open_lookup(NULL, &none) == LFCF_STATUS_INVALID);
    DONE(lfcf_new_fixed(10, 0.002, &none));
    CHECK(lfcf_clear(none) == LFCF_STATUS_INVALID && strstr(lfcf_message(), "open it with lfcf_open_shared"));
    lfcf_free(none);

    /* Words that no call writes. */
    FILE *file = fopen(path, "r+b");
    CHECK(file && fseek(file, 1 << 21, SEEK_SET) == 0);
    for (size_t byte = 0; byte < lfcf_memory_bytes(look); byte++) CHECK(fputc(0xff, file) != EOF);
    CHECK(fclose(file) == 0);
    CHECK(lfcf_insert(first, 1) == LFCF_STATUS_DAMAGED && lfcf_is_damaged(first) && lfcf_contains(first, 1));
    lfcf_free(first);
    lfcf_free(second);
    lfcf_free(look);
    remove_shared(folder, "same");
    remove_shared(folder, "copied");
}

static void shared_filter_of_rust_is_opened(const char *folder) {
    LfcfFilter *filter = open_shared(folder, "rust", 0);
    check_numbers(filter, 0, 1000);
    lfcf_free(filter);
    filter = open_shared(folder, "c", 5000);
    DONE(lfcf_clear(filter));
    for (uint64_t number = 0; number < 1000; number++) DONE(lfcf_insert(filter, lfcf_hash_number(number)));
    lfcf_free(filter);
}

/* Children of a process that has opened the filter insert their keys, two at a time, and are killed. No key that was inserted is lost. */
static void killed_children_lose_no_key(const char *folder) {
    enum { CHILDREN = 40 };
    LfcfFilter *filter = open_shared(folder, "killed", 200000);
    volatile uint64_t *done = mmap(NULL, CHILDREN * sizeof *done, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(done != MAP_FAILED);
    DONE(lfcf_insert(filter, lfcf_hash_text("parent", 6)));
    pid_t children[CHILDREN];
    for (size_t child = 0; child < CHILDREN; child++) {
        children[child] = fork();
        CHECK(children[child] >= 0);
        if (children[child] == 0)
            for (uint64_t number = 0;; number++) {
                DONE(lfcf_insert(filter, lfcf_hash_number(1000000 * child + number % 1000)));
                done[child] = number + 1;
                bool removed = false;
                if (number >= 999) DONE(lfcf_remove(filter, lfcf_hash_number(1000000 * child + (number + 1) % 1000), &removed));
            }
        while (done[child] < 2000 + 37 * child) CHECK(waitpid(children[child], NULL, WNOHANG) == 0);
        if (child > 0) CHECK(kill(children[child - 1], SIGKILL) == 0);
    }
    CHECK(kill(children[CHILDREN - 1], SIGKILL) == 0);
    for (size_t child = 0; child < CHILDREN; child++) {
        int status;
        CHECK(waitpid(children[child], &status, 0) == children[child] && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    DONE(lfcf_take_over_all(filter));
    for (uint64_t child = 0; child < CHILDREN; child++)
        /* The next two may be about to be removed and inserted. */
        for (uint64_t number = done[child] + 2; number < done[child] + 1000; number++)
            CHECK(lfcf_contains(filter, lfcf_hash_number(1000000 * child + number % 1000)));
    size_t copies;
    DONE(lfcf_recount(filter, &copies));
    CHECK(copies >= 998 * CHILDREN && copies <= 1001 * CHILDREN && lfcf_length(filter) == copies);
    CHECK(lfcf_contains(filter, lfcf_hash_text("parent", 6)) && !lfcf_is_damaged(filter));
    lfcf_free(filter);
    remove_shared(folder, "killed");
}

static LfcfFilter *looked_up;
static volatile sig_atomic_t lookups, misses;

static void look_up(int signal) {
    (void)signal;
    lookups++;
    if (!lfcf_contains(looked_up, lfcf_hash_number(0)) || lfcf_count(looked_up, lfcf_hash_number(0)) == 0) misses++;
}

/* The handler interrupts calls that change the same buckets. */
static void signal_handler_may_look_up(const char *folder) {
    LfcfFilter *filters[3];
    DONE(lfcf_new_fixed(300, 0.002, &filters[0]));
    DONE(lfcf_new_expiring(300, &filters[1]));
    filters[2] = open_shared(folder, "signals", 300);
    struct sigaction action = {.sa_handler = look_up, .sa_flags = SA_RESTART};
    const struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    for (size_t kind = 0; kind < 3; kind++) {
        looked_up = filters[kind];
        lookups = misses = 0;
        DONE(lfcf_insert(looked_up, lfcf_hash_number(0)));
        CHECK(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
        for (uint64_t number = 1; lookups < 2000; number++) {
            /* Nearly full: chains of shifts are under way. */
            LfcfStatus status = lfcf_insert(looked_up, lfcf_hash_number(number % 320 + 1));
            CHECK(status == LFCF_STATUS_OK || status == LFCF_STATUS_FULL);
            if (status == LFCF_STATUS_FULL)
                for (uint64_t other = 1; other <= 320; other += 2) DONE(lfcf_remove(looked_up, lfcf_hash_number(other), NULL));
        }
        CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
        CHECK(misses == 0);
        lfcf_free(looked_up);
    }
    remove_shared(folder, "signals");
}

int main(int count, char **arguments) {
    CHECK(count == 4);
    shared_filters_of_one_file_have_same_keys(arguments[3]);
    shared_filter_of_rust_is_opened(arguments[3]);
    killed_children_lose_no_key(arguments[3]);
    signal_handler_may_look_up(arguments[3]);
    golden_files_are_read(arguments[1]);
    a_filter_of_any_kind_is_loaded_from_a_pipe(arguments[1], arguments[2]);
    files_are_shared_with_rust(arguments[2]);
    library_has_version_of_header();
    sizes_of_each_kind_are_reported();
    expiring_filter_renews_on_request();
    errors_have_a_code_and_a_text(arguments[2]);
    growing_filter_reserves_only_requested_bytes(arguments[2]);
    save_to_special_file_is_refused(arguments[2]);
    an_ending_thread_gets_errors();
    registered_thread_gives_its_place_back();
    one_thread_of_all_adds_a_key();
    threads_with_a_clock_begin_a_period_once();
    puts("The C interface passes its tests.");
    return 0;
}
