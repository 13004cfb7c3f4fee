/* A library that keeps blocks. */
#include <stdlib.h>

static void *last;

__attribute__((noinline)) void keep(size_t count, size_t size) {
    for (size_t i = 0; i < count; i++) {
        void **block = malloc(size);
        *block = last;
        last = block;
    }
}
