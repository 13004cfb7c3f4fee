/* Runs until its input ends, and does what the lines of its input say:
 *   keep N SIZE   allocates N blocks of SIZE bytes
 *   drop          frees all kept blocks
 *   load FILE     loads a library and calls its function keep(N, SIZE) on later lines
 * Arguments: churn=N threads that replace blocks; wait=N threads that wait for a condition; filter
 * for a filter of system calls; signals=N for a program that must get N signals of number 40;
 * parent for one that looks for children all the time and must not have any. Its exit status tells
 * whether its blocks kept their contents, whether it got the signals, and whether it had children. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

static volatile int ends, is_broken;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void *churn(void *argument) {
    unsigned seed = 1 + (unsigned)(size_t)argument;
    unsigned char *blocks[256] = {0};
    size_t sizes[256] = {0};
    while (!ends) {
        unsigned i = rand_r(&seed) % 256;
        if (blocks[i] && (blocks[i][0] != i || blocks[i][sizes[i] - 1] != i))
            is_broken = 1;
        size_t size = rand_r(&seed) % 3000 + 1;
        if (size % 7 == 0) {
            blocks[i] = realloc(blocks[i], size);
        } else {
            free(blocks[i]);
            blocks[i] = size % 5 ? malloc(size) : calloc(1, size);
        }
        memset(blocks[i], i, size);
        sizes[i] = size;
    }
    for (int i = 0; i < 256; i++)
        free(blocks[i]);
    return 0;
}

static void *wait_for_end(void *unused) {
    pthread_mutex_lock(&lock);
    while (!ends)
        pthread_cond_wait(&condition, &lock);
    pthread_mutex_unlock(&lock);
    return unused;
}

/* Handlers run on any thread, also two at once. */
static int received, children;

static void count_child(int unused) {
    (void)unused;
    __atomic_fetch_add(&children, 1, __ATOMIC_RELAXED);
}

static void *look_for_children(void *unused) {
    while (!ends)
        children += waitpid(-1, 0, WNOHANG) != -1;
    return unused;
}

static void receive(int unused) {
    (void)unused;
    __atomic_fetch_add(&received, 1, __ATOMIC_RELAXED);
}

static void **kept;
static size_t kept_count;

__attribute__((noinline)) void keep(size_t count, size_t size) {
    kept = realloc(kept, (kept_count + count) * sizeof *kept);
    for (size_t i = 0; i < count; i++)
        kept[kept_count++] = memset(malloc(size), 1, size);
}

static void drop(void) {
    while (kept_count)
        free(kept[--kept_count]);
}

int main(int count, char **words) {
    pthread_t threads[16];
    int started = 0;
    int expected = 0;
    void (*keep_there)(size_t, size_t) = 0;
    for (int i = 1; i < count; i++) {
        int number = atoi(strchr(words[i], '=') ? strchr(words[i], '=') + 1 : "0");
        if (!strncmp(words[i], "signals=", 8)) {
            struct sigaction action = {0};
            action.sa_handler = receive;
            action.sa_flags = SA_RESTART;
            sigaction(40, &action, 0);
            expected = number;
            continue;
        }
        if (!strcmp(words[i], "parent")) {
            signal(SIGCHLD, count_child);
            pthread_create(&threads[started++], 0, look_for_children, 0);
            continue;
        }
        void *(*work)(void *) = words[i][0] == 'c' ? churn : wait_for_end;
        for (int j = 0; j < number; j++, started++)
            pthread_create(&threads[started], 0, work, (void *)(size_t)j);
        if (!strcmp(words[i], "filter")) {
            struct sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
            struct sock_fprog program = {1, &allow};
            prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
        }
    }
    char line[4096], path[4000];
    size_t number, size;
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "keep %zu %zu", &number, &size) == 2) {
            (keep_there ? keep_there : keep)(number, size);
        } else if (sscanf(line, "load %3999s", path) == 1) {
            keep_there = (void (*)(size_t, size_t))dlsym(dlopen(path, RTLD_NOW), "keep");
        } else {
            drop();
        }
        puts("done");
        fflush(stdout);
    }
    pthread_mutex_lock(&lock);
    ends = 1;
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&lock);
    while (started)
        pthread_join(threads[--started], 0);
    drop();
    free(kept);
    return is_broken || received != expected || children;
}
