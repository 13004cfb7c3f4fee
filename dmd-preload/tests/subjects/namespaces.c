/* Loads a library of C into a namespace of its own, which has a C library of its own, too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments) {
    void *library = count > 1 ? dlmopen(LM_ID_NEWLM, arguments[1], RTLD_NOW) : NULL;
    if (library == NULL) {
        printf("%s\n", dlerror());
        return 1;
    }
    size_t (*fill)(size_t) = (size_t (*)(size_t))dlsym(library, "c_fill");
    size_t (*kept)(void) = (size_t (*)(void))dlsym(library, "c_count");
    void (*clear)(void) = (void (*)(void))dlsym(library, "c_clear");
    for (int i = 0; i < 10; i++) {
        fill(1000);
        printf("%zu blocks\n", kept());
        clear();
    }
    return dlclose(library);
}
