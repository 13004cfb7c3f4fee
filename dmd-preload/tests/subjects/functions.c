/* Prints what every function of malloc does in usual and unusual cases. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile size_t huge = SIZE_MAX;

/* Prints a result: null or not, the usable size, whether the alignment is right, and errno. The size of
   an aligned block depends on the holes that blocks before it have left. */
static void show(const char *call, size_t size, size_t align, void *block) {
    int error = errno;
    printf("%s(%zu, %zu): ", call, size, align);
    if (block == NULL) {
        printf("null");
    } else {
        size_t usable = malloc_usable_size(block);
        if (align) printf("enough %d", usable >= size);
        else printf("usable %zu", usable);
        printf("%s%s", (uintptr_t)block % 16 ? " unaligned" : "", align && (align & (align - 1)) == 0 && (uintptr_t)block % align ? " misplaced" : "");
    }
    printf(", errno %d\n", error);
    errno = 0;
}

static int is_filled(const unsigned char *block, size_t size, int byte) {
    for (size_t at = 0; at < size; at++)
        if (block[at] != byte) return 0;
    return 1;
}

static void resized(void *block, size_t from, size_t to) {
    size_t common = from < to ? from : to;
    memset(block, 7, from);
    void *moved = realloc(block, to);
    show("realloc", from, to, moved);
    if (moved) {
        printf("  kept %d\n", is_filled(moved, common, 7));
        free(moved);
    }
}

int main(void) {
    size_t sizes[] = {0, 1, 8, 16, 24, 25, 32, 40, 100, 1000, 1032, 1033, 5000, 70000, 200000, 5000000,
                      (size_t)PTRDIFF_MAX - 100, (size_t)PTRDIFF_MAX, (size_t)PTRDIFF_MAX + 1, huge - 20, huge};
    size_t aligns[] = {0, 1, 2, 3, 4, 8, 12, 16, 24, 32, 48, 64, 100, 1024, 4096, 65536, (size_t)1 << 40,
                       (size_t)1 << 62, (size_t)1 << 63, ((size_t)1 << 63) + 1, huge};
    size_t pairs[][2] = {{0, 0}, {0, 5}, {5, 0}, {3, 7}, {1000, 1000}, {huge, 1}, {huge, 2}, {2, huge},
                         {(size_t)1 << 32, (size_t)1 << 32}, {(size_t)1 << 33, (size_t)1 << 31}};
    size_t small[] = {0, 1, 24, 25, 1000, 70000, 200000, (size_t)PTRDIFF_MAX, huge};
    size_t count = sizeof sizes / sizeof *sizes;
    errno = 0;
    for (size_t at = 0; at < count; at++) {
        void *block = malloc(sizes[at]);
        show("malloc", sizes[at], 0, block);
        free(block);
        block = valloc(sizes[at]);
        show("valloc", sizes[at], 4096, block);
        free(block);
        block = pvalloc(sizes[at]);
        show("pvalloc", sizes[at], 4096, block);
        free(block);
        block = realloc(NULL, sizes[at]);
        show("realloc null", sizes[at], 0, block);
        free(block);
    }
    for (size_t at = 0; at < sizeof pairs / sizeof *pairs; at++) {
        size_t *pair = pairs[at];
        unsigned char *block = calloc(pair[0], pair[1]);
        show("calloc", pair[0], pair[1], block);
        if (block) printf("  zero %d\n", is_filled(block, pair[0] * pair[1], 0));
        free(block);
        block = reallocarray(NULL, pair[0], pair[1]);
        show("reallocarray null", pair[0], pair[1], block);
        free(block);
        block = malloc(50);
        void *moved = reallocarray(block, pair[0], pair[1]);
        show("reallocarray", pair[0], pair[1], moved);
        if (moved) free(moved);
        else if (pair[0] && pair[1]) free(block);
    }
    for (size_t at = 0; at < sizeof aligns / sizeof *aligns; at++) {
        for (size_t other = 0; other < sizeof small / sizeof *small; other++) {
            size_t align = aligns[at], size = small[other];
            void *block = memalign(align, size);
            show("memalign", size, align ? align : 1, block);
            free(block);
            block = aligned_alloc(align, size);
            show("aligned_alloc", size, align ? align : 1, block);
            free(block);
            void *place = (void *)7;
            int error = posix_memalign(&place, align, size);
            printf("posix_memalign %d%s ", error, place == (void *)7 ? " unchanged" : "");
            if (error == 0) {
                errno = 0;
                show("posix_memalign", size, align, place);
                free(place);
            } else {
                printf("\n");
                errno = 0;
            }
        }
    }
    for (size_t from = 1; from < 300000; from = from * 3 + 5)
        for (size_t to = 1; to < 300000; to = to * 3 + 5) resized(malloc(from), from, to);
    resized(memalign(4096, 1000), 1000, 3000);
    resized(memalign(256, 500000), 500000, 900000);
    void *block = malloc(100);
    show("realloc to 0", 100, 0, realloc(block, 0));
    block = malloc(100);
    show("realloc too far", 100, huge, realloc(block, huge));
    printf("  kept %zu\n", malloc_usable_size(block));
    show("realloc too far", 100, 0, realloc(block, (size_t)1 << 60));
    errno = EINTR;
    free(block);
    free(NULL);
    printf("free keeps errno: %d\n", errno == EINTR);
    block = malloc(10000000);
    errno = EINTR;
    free(block);
    printf("free of a mapping keeps errno: %d\n", errno == EINTR);
    printf("usable of null: %zu\n", malloc_usable_size(NULL));
    return 0;
}
