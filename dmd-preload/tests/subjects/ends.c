/* Keeps 50 blocks of 1,000 bytes and ends in the way that the argument names. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void *kept[50];

static void keep(void) {
    for (int at = 0; at < 50; at++) kept[at] = malloc(1000);
}

static void end(int unused) {
    (void)unused;
    _exit(7);
}

static void *end_in_thread(void *unused) {
    _exit(7);
    return unused;
}

static void *churn(void *unused) {
    for (;;) free(malloc(100));
    return unused;
}

static void from_handler(void) {
    _exit(7);
}

int main(int count, char **arguments) {
    const char *how = count > 1 ? arguments[1] : "";
    keep();
    puts("kept");
    fflush(stdout);
    if (!strcmp(how, "_exit")) _exit(7);
    if (!strcmp(how, "_Exit")) _Exit(7);
    if (!strcmp(how, "quick_exit")) quick_exit(7);
    if (!strcmp(how, "exit")) exit(7);
    if (!strcmp(how, "system call")) syscall(SYS_exit_group, 7);
    if (!strcmp(how, "signal handler")) {
        signal(SIGUSR1, end);
        raise(SIGUSR1);
    }
    if (!strcmp(how, "exit handler")) {
        atexit(from_handler);
        exit(1);
    }
    if (!strcmp(how, "thread")) {
        pthread_t threads[3];
        for (int at = 0; at < 2; at++) pthread_create(&threads[at], NULL, churn, NULL);
        pthread_create(&threads[2], NULL, end_in_thread, NULL);
        pthread_join(threads[2], NULL);
    }
    if (!strcmp(how, "children")) {
        int status, failed = 0;
        for (int round = 0; round < 100; round++) {
            pid_t child = round % 2 ? fork() : vfork();
            if (child == 0) _exit(round);
            waitpid(child, &status, 0);
            failed += !WIFEXITED(status) || WEXITSTATUS(status) != round;
        }
        _exit(failed ? 1 : 7);
    }
    if (!strcmp(how, "SIGSEGV")) raise(SIGSEGV);
    if (!strcmp(how, "SIGTERM")) raise(SIGTERM);
    if (!strcmp(how, "SIGKILL")) raise(SIGKILL);
    if (!strcmp(how, "SIGABRT")) abort();
    return 0;
}
