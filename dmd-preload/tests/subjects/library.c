/* A library with a thread-local value and a constructor. */
#include <stdlib.h>

static __thread int value;
static void *block;

int *local(void) {
    return &value;
}

__attribute__((constructor)) static void begin(void) {
    block = malloc(1000);
}

__attribute__((destructor)) static void end(void) {
    free(block);
}
