/* A library of C with a known heap: every way to get a block, and functions of the C library that
   allocate for their caller. */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static void *kept[10000];
static size_t count;

static void *keep(void *block) {
    if (block == NULL || count == sizeof kept / sizeof kept[0]) abort();
    kept[count++] = block;
    return block;
}

static void many(size_t n) {
    for (size_t i = 0; i < n; i++) keep(malloc(i % 300));
}

static void grown(size_t n) {
    for (size_t i = 0; i < n; i++) keep(realloc(malloc(10 + i), 100 + 3 * i));
}

static void zeroed(size_t n) {
    for (size_t i = 0; i < n; i++) keep(calloc(3, 40 + i));
}

static void aligned(size_t n) {
    void *block = NULL;
    for (size_t i = 0; i < n; i++) {
        if (posix_memalign(&block, 64, 200) != 0) abort();
        keep(block);
        keep(memalign(256, 1000));
        keep(aligned_alloc(32, 320));
    }
}

static void copied(size_t n) {
    for (size_t i = 0; i < n; i++) keep(strdup("a text that strdup copies for its caller"));
}

/* Keeps blocks of every sort, and returns their usable bytes. */
size_t c_fill(size_t n) {
    size_t first = count, bytes = 0;
    many(n);
    grown(n / 10);
    zeroed(n / 10);
    aligned(n / 10);
    copied(n / 10);
    keep(malloc(3 << 20));
    for (size_t i = first; i < count; i++) bytes += malloc_usable_size(kept[i]);
    return bytes;
}

/* Returns the number of blocks that are kept. */
size_t c_count(void) {
    return count;
}

/* Forgets a block: a leak. */
void c_leak(size_t bytes) {
    memset(malloc(bytes), 1, bytes);
}

/* Frees everything. */
void c_clear(void) {
    while (count > 0) free(kept[--count]);
}
