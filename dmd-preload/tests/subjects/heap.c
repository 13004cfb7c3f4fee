/* Fills its heap from several threads, prints glibc's own sums and its own blocks, and waits for
 * the end of its input. */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { COUNT = 3000 };
static void *blocks[4][COUNT];
static pthread_barrier_t filled;

static void fill(void **place, unsigned seed) {
    for (int i = 0; i < COUNT; i++)
        place[i] = malloc(i % 500 == 7 ? 200000 + i : rand_r(&seed) % 3000 + 1);
    /* Single blocks and whole runs are freed: caches, fast bins and other bins. */
    for (int i = 0; i < COUNT; i++)
        if (i % 3 == 0 || i / 100 % 5 == 0) {
            free(place[i]);
            place[i] = 0;
        }
}

static void *work(void *number) {
    fill(blocks[(size_t)number], 1 + (unsigned)(size_t)number);
    pthread_barrier_wait(&filled);
    pause();
    return 0;
}

int main(void) {
    pthread_t thread;
    pthread_barrier_init(&filled, 0, 4);
    for (size_t number = 1; number < 4; number++)
        pthread_create(&thread, 0, work, (void *)number);
    fill(blocks[0], 99);
    pthread_barrier_wait(&filled);
    size_t count = 0, bytes = 0;
    for (int thread = 0; thread < 4; thread++)
        for (int i = 0; i < COUNT; i++)
            if (blocks[thread][i]) {
                count++;
                bytes += malloc_usable_size(blocks[thread][i]);
            }
    struct mallinfo2 info = mallinfo2();
    char line[300];
    int length = snprintf(line, sizeof line, "%zu %zu %zu %zu %zu %zu %zu %zu\n", count, bytes,
                          info.uordblks, info.fordblks, info.hblks, info.hblkhd, info.smblks,
                          info.fsmblks);
    write(1, line, length);
    read(0, line, sizeof line);
    return 0;
}
