/* Holds lists by a static, a thread-local, and the stack; forgets blocks; prints a line and waits
 * for the end of its input. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct node {
    struct node *next;
    char *text;
};

struct node *static_list;
static __thread struct node *local_list;

__attribute__((noinline)) static struct node *make(int count, int size) {
    struct node *list = 0;
    for (int i = 0; i < count; i++) {
        struct node *node = malloc(sizeof *node);
        node->next = list;
        node->text = malloc(size);
        memset(node->text, 1, size);
        list = node;
    }
    return list;
}

__attribute__((noinline)) static void forget(int count, int size) {
    while (count--)
        memset(malloc(size), 1, size);
}

static pthread_barrier_t done;

static void *work(void *unused) {
    local_list = make(300, 2000);
    pthread_barrier_wait(&done);
    pause();
    return local_list ? unused : 0;
}

int main(void) {
    pthread_t thread;
    char line[10];
    pthread_barrier_init(&done, 0, 2);
    static_list = make(10, 100000);
    forget(50, 4000);
    struct node *volatile stack_list = make(200, 1000);
    pthread_create(&thread, 0, work, 0);
    pthread_barrier_wait(&done);
    write(1, "1 1 1 1 1 1 1 1\n", 16);
    read(0, line, sizeof line);
    return stack_list == 0;
}
