/* Keeps blocks. For each line of its input it prints what the preloaded library and glibc count. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *kept[3000];

int main(void) {
    char line[100];
    uint64_t bytes = 0, blocks = 0;
    int (*live)(uint64_t *, uint64_t *) =
        (int (*)(uint64_t *, uint64_t *))dlsym(RTLD_DEFAULT, "memreport_live_heap");
    for (int at = 0; at < 3000; at++) {
        kept[at] = at % 3 ? calloc(1, (size_t)at) : strdup("a text that strdup copies for its caller");
        if (at % 10 == 9) free(kept[at - 3]);
    }
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (live != NULL) live(&bytes, &blocks);
        struct mallinfo2 glibc = mallinfo2();
        printf("counted %llu %llu %zu\n", (unsigned long long)bytes, (unsigned long long)blocks,
               glibc.uordblks + glibc.hblkhd);
        fflush(stdout);
    }
    return 0;
}
