/* Forks workers without exec, as servers do, and prints their numbers. Each keeps blocks of its own
   and allocates until its parent's input ends. The argument chooses: workers=N; beside=N threads of
   the parent that allocate meanwhile; daemon for a child that outlives its parent. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *kept[1000];
static volatile int ends;

static void *churn(void *unused) {
    while (!ends) free(malloc(100));
    return unused;
}

/* Returns the value of an argument such as workers=3. */
static int value(int count, char **arguments, const char *name) {
    size_t length = strlen(name);
    for (int at = 1; at < count; at++)
        if (!strncmp(arguments[at], name, length)) return atoi(arguments[at] + length);
    return 0;
}

static void keep_blocks(int number) {
    for (int at = 0; at < number; at++) kept[at] = malloc(3000);
}

/* Runs until the other end of the pipe is closed. */
static void work(int pipe) {
    char byte;
    while (read(pipe, &byte, 1) > 0) free(malloc(50));
}

int main(int count, char **arguments) {
    int workers = value(count, arguments, "workers="), ends_of_pipe[2];
    pthread_t beside[8];
    int threads = value(count, arguments, "beside=");
    for (int at = 0; at < threads; at++) pthread_create(&beside[at], NULL, churn, NULL);
    keep_blocks(10);
    if (value(count, arguments, "pause=")) usleep(300000);
    if (value(count, arguments, "daemon=") && daemon(1, 1) != 0) return 1;
    if (pipe(ends_of_pipe) != 0) return 1;
    for (int at = 0; at < workers; at++) {
        pid_t worker = fork();
        if (worker == 0) {
            close(ends_of_pipe[1]);
            keep_blocks(100 + at);
            work(ends_of_pipe[0]);
            exit(0);
        }
        printf("%d\n", (int)worker);
    }
    printf("%d\n", (int)getpid());
    fflush(stdout);
    char line[10];
    while (fgets(line, sizeof line, stdin) != NULL) {}
    close(ends_of_pipe[1]);
    int failed = 0, status;
    while (wait(&status) > 0) failed += status != 0;
    ends = 1;
    for (int at = 0; at < threads; at++) pthread_join(beside[at], NULL);
    return failed;
}
