/* Keeps a block for each line of its input, and says so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *kept[1000];

int main(void) {
    char line[100];
    for (int at = 0; at < 1000 && fgets(line, sizeof line, stdin); at++) {
        kept[at] = malloc(10000);
        memset(kept[at], at, 10000);
        puts("done");
        fflush(stdout);
    }
    return 0;
}
