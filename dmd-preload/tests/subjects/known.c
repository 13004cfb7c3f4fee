/* Keeps blocks of known sizes, and prints their number and bytes by the allocator's own words. */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *kept[4000];
static size_t count;

__attribute__((noinline)) static void keep(void *block) {
    kept[count++] = block;
}

__attribute__((noinline)) void *innermost(size_t size) {
    void *block = malloc(size);
    keep(block);
    return block;
}

__attribute__((noinline)) void *middle(size_t size) {
    void *block = innermost(size);
    memset(block, 1, size);
    return block;
}

__attribute__((noinline)) static void fill(void) {
    for (size_t size = 1; size <= 1000; size++) {
        void *block = middle(size);
        if (size % 3 == 0) {
            free(block);
            count--;
        }
    }
    for (size_t size = 1; size <= 500; size++) keep(calloc(size, 3));
    for (size_t size = 1; size <= 200; size++) keep(realloc(malloc(size), size * 20));
    for (size_t size = 1; size <= 200; size++) keep(aligned_alloc(256, size * 256));
    for (size_t size = 1; size <= 20; size++) keep(strdup("a text of some length"));
    /* In a program without position independence, its own file has an address of malloc. */
    void *(*volatile allocate)(size_t) = malloc;
    keep(allocate(10000000));
}

int main(void) {
    /* The library's threads, if any, have blocks until they are ready. */
    usleep(300000);
    struct mallinfo2 before = mallinfo2();
    fill();
    struct mallinfo2 after = mallinfo2();
    size_t bytes = 0;
    for (size_t at = 0; at < count; at++) bytes += malloc_usable_size(kept[at]);
    size_t grown = after.uordblks + after.hblkhd - before.uordblks - before.hblkhd;
    printf("%zu blocks, %zu bytes, mallinfo2 %zu bytes\n", count, bytes, grown);
    fflush(stdout);
    return 0;
}
