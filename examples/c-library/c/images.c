/* A library in C with three sorts of memory: blocks of malloc that a reporter counts one by one, a
   mapping that it reports as an amount, and blocks of functions that the program passes in. */
#define _GNU_SOURCE
#include "memreport.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct image {
    struct image *next;
    unsigned char *pixels;
};

/* A collection runs the reporter on any thread. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct image *images;
static void *texture;
static const size_t texture_bytes = 1 << 20;
static uint64_t reporter;

static void visit(memreport_blocks *blocks, void *data) {
    (void)data;
    for (struct image *image = images; image != NULL; image = image->next) {
        memreport_block(blocks, image);
        memreport_block(blocks, image->pixels);
    }
}

static void collect(memreport_reports *reports, void *data) {
    int64_t count = 0;
    (void)data;
    /* Not waited for: the thread that has the lock may wait for the snapshot. */
    if (pthread_mutex_trylock(&lock) != 0) {
        memreport_missed(reports, "explicit/images");
        return;
    }
    memreport_measure(reports, "explicit/images/decoded", visit, NULL, "Decoded images.");
    memreport_amount(reports, "explicit/images/texture", MEMREPORT_NONHEAP, MEMREPORT_BYTES,
                     (int64_t)texture_bytes, "The texture, a mapping.");
    for (struct image *image = images; image != NULL; image = image->next) count++;
    memreport_amount(reports, "images", MEMREPORT_OTHER, MEMREPORT_COUNT, count, "Images.");
    /* Refused, with a note: explicit/ takes bytes. */
    memreport_amount(reports, "explicit/images/count", MEMREPORT_OTHER, MEMREPORT_COUNT, count, "");
    pthread_mutex_unlock(&lock);
}

/* Decodes images of these bytes, each in the scope "decode". Returns the bytes of malloc. */
size_t images_decode(size_t count, size_t bytes) {
    size_t used = 0;
    if (reporter == 0) {
        texture = mmap(NULL, texture_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        reporter = memreport_register(collect, NULL);
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t scope = memreport_enter_scope("decode");
        struct image *image = malloc(sizeof *image);
        image->pixels = malloc(bytes);
        memset(image->pixels, 1, bytes);
        pthread_mutex_lock(&lock);
        image->next = images;
        images = image;
        pthread_mutex_unlock(&lock);
        used += sizeof *image + bytes;
        memreport_leave_scope(scope);
    }
    return used;
}

/* Frees everything. */
void images_clear(void) {
    /* Without the lock, because it waits for the reporter. Afterwards nobody else has the list. */
    memreport_unregister(reporter);
    reporter = 0;
    while (images != NULL) {
        struct image *next = images->next;
        free(images->pixels);
        free(images);
        images = next;
    }
    munmap(texture, texture_bytes);
}

/* Functions that allocate, as many libraries take them. */
struct allocator {
    void *(*allocate)(size_t);
    void (*release)(void *);
};

static void *index_of_images;
static struct allocator own;

/* Makes an index with the program's functions. */
void images_index(struct allocator allocator, size_t bytes) {
    own = allocator;
    index_of_images = own.allocate(bytes);
    memset(index_of_images, 1, bytes);
}

/* Frees the index. */
void images_drop_index(void) {
    own.release(index_of_images);
}
