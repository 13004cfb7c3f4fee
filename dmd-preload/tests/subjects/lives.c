/* Threads, processes and libraries that begin and end. The argument chooses. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void churn(int rounds) {
    void *blocks[64] = {0};
    for (int round = 0; round < rounds; round++) {
        int at = round * 7 % 64;
        free(blocks[at]);
        blocks[at] = malloc((size_t)round * 37 % 3000);
        if (round % 5 == 0) blocks[at] = realloc(blocks[at], (size_t)round % 900 + 1);
    }
    for (int at = 0; at < 64; at++) free(blocks[at]);
}

static void *churning(void *rounds) {
    churn((int)(long)rounds);
    return strdup("result");
}

static pthread_key_t key;

/* Allocates after the library's own values of the thread are gone. */
static void late(void *value) {
    free(value);
    static __thread int again;
    if (again++ < 3) pthread_setspecific(key, malloc(50));
}

static void *with_key(void *rounds) {
    pthread_setspecific(key, malloc(10));
    return churning(rounds);
}

static void threads(size_t stack, int number) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (stack) pthread_attr_setstacksize(&attributes, stack);
    pthread_key_create(&key, late);
    for (int round = 0; round < number; round++) {
        pthread_t running[8];
        for (int at = 0; at < 8; at++) {
            int error = pthread_create(&running[at], &attributes, with_key, (void *)200L);
            if (error) exit(printf("no thread: %s\n", strerror(error)));
        }
        for (int at = 0; at < 8; at++) {
            void *result;
            pthread_join(running[at], &result);
            if (strcmp(result, "result")) printf("bad result\n");
            free(result);
        }
    }
    printf("%d threads\n", number * 8);
}

static void forks(int number) {
    int bad = 0;
    pthread_t beside;
    pthread_create(&beside, NULL, churning, (void *)2000000L);
    for (int round = 0; round < number; round++) {
        pid_t child = fork();
        if (child == 0) {
            churn(1000);
            pthread_t inner;
            void *result;
            pthread_create(&inner, NULL, churning, (void *)100L);
            pthread_join(inner, &result);
            free(result);
            if (round % 2) _exit(0);
            exit(0);
        }
        int status = -1;
        waitpid(child, &status, 0);
        bad += status != 0;
    }
    void *result;
    pthread_join(beside, &result);
    free(result);
    printf("%d forks, %d failed\n", number, bad);
}

static void vforks(int number) {
    int bad = 0;
    for (int round = 0; round < number; round++) {
        pid_t child = vfork();
        if (child == 0) {
            /* What programs do that know that they may not. */
            free(malloc(100));
            execl("/bin/true", "true", (char *)NULL);
            _exit(1);
        }
        int status = -1;
        waitpid(child, &status, 0);
        bad += status != 0;
        churn(100);
    }
    printf("%d vforks, %d failed\n", number, bad);
}

static void spawns(int number) {
    int bad = 0;
    for (int round = 0; round < number; round++) {
        pid_t child;
        char *arguments[] = {"true", NULL};
        bad += posix_spawnp(&child, "true", NULL, NULL, arguments, environ) != 0;
        int status = -1;
        waitpid(child, &status, 0);
        bad += status != 0;
    }
    printf("%d spawns, %d failed\n", number, bad);
}

static volatile int loaded, must_end;
static int *(*locals[64])(void);

/* Touches thread-locals of libraries that were loaded after this thread began. */
static void *touching(void *unused) {
    int seen = 0;
    while (!must_end) {
        churn(50);
        for (int now = loaded; seen < now; seen++) *locals[seen]() += seen;
    }
    for (int at = 0; at < seen; at++)
        if (*locals[at]() != at) printf("local %d is wrong\n", at);
    return unused;
}

static void libraries(char **paths) {
    pthread_t running[4];
    for (int at = 0; at < 4; at++) pthread_create(&running[at], NULL, touching, NULL);
    int number = 0;
    for (; paths[number]; number++) {
        void *library = dlopen(paths[number], RTLD_NOW);
        if (!library) exit(printf("%s\n", dlerror()));
        locals[number] = (int *(*)(void))dlsym(library, "local");
        __sync_synchronize();
        loaded = number + 1;
        churn(1000);
    }
    must_end = 1;
    for (int at = 0; at < 4; at++) pthread_join(running[at], NULL);
    for (int at = 0; at < number; at++) *locals[at]() = 1;
    printf("%d libraries\n", number);
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "";
    if (!strcmp(what, "threads")) threads(0, 300);
    if (!strcmp(what, "small")) threads((size_t)sysconf(_SC_THREAD_STACK_MIN), 50);
    if (!strcmp(what, "smallest")) threads(16384, 50);
    if (!strcmp(what, "forks")) forks(200);
    if (!strcmp(what, "vforks")) vforks(200);
    if (!strcmp(what, "spawns")) spawns(200);
    if (!strcmp(what, "libraries")) libraries(arguments + 2);
    return 0;
}
