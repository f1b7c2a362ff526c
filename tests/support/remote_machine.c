/* A process by remote control: holds memory, loads libraries, calls functions and starts threads as its parent says.

   A request on standard input is a word that names it, then its arguments, all words of 64 bits but texts and contents,
   whose length comes first. Every answer on standard output is one word, but for contents. At the end of input, or
   where nothing can be loaded, it leaves. */

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef int64_t word;
typedef word function(word, word, word, word, word, word, word, word);

enum { ALLOCATE, RELEASE, WRITE, READ, LOAD, ADDRESS, CALL, START };

static void get(void *place, size_t size) {
    if (fread(place, 1, size, stdin) != size) exit(0);
}

static word get_word(void) {
    word value;
    get(&value, sizeof value);
    return value;
}

static char *get_text(void) {
    word size = get_word();
    char *text = malloc(size + 1);
    get(text, size);
    text[size] = 0;
    return text;
}

static void put(const void *place, size_t size) {
    if (fwrite(place, 1, size, stdout) != size) exit(1);
}

static void answer(word value) {
    put(&value, sizeof value);
    fflush(stdout);
}

static void *existing(void *found) {
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return found;
}

/* What programs call to have threads started, or Python's signals looked at: all is well, or they should stop. */
word do_nothing(void) { return 0; }

word refuse(void) { return 1; }

struct start {
    void (*function)(word);
    word argument;
};

static void *run(void *given) {
    struct start start = *(struct start *)given;
    free(given);
    start.function(start.argument);
    return NULL;
}

static word start_thread(void *function, word argument) {
    struct start *start = malloc(sizeof *start);
    pthread_t thread;
    start->function = (void (*)(word))function;
    start->argument = argument;
    return pthread_create(&thread, NULL, run, start);
}

static word call(function *called) {
    word a[8];
    get(a, sizeof a);
    return called(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
}

int main(void) {
    for (;;) {
        word kind = get_word(), place, size;
        void *library;
        char *text;
        switch (kind) {
        case ALLOCATE:
            size = get_word();
            answer((word)aligned_alloc(64, (size + 63) / 64 * 64));
            break;
        case RELEASE:
            free((void *)get_word());
            break;
        case WRITE:
            place = get_word();
            get((void *)place, get_word());
            break;
        case READ:
            place = get_word();
            put((void *)place, get_word());
            fflush(stdout);
            break;
        case LOAD:
            text = get_text();
            answer((word)existing(dlopen(text, RTLD_NOW)));
            free(text);
            break;
        case ADDRESS:
            library = (void *)get_word();
            text = get_text();
            answer((word)existing(dlsym(library, text)));
            free(text);
            break;
        case CALL:
            answer(call((function *)get_word()));
            break;
        case START:
            library = (void *)get_word();
            answer(start_thread(library, get_word()));
            break;
        default:
            exit(2);
        }
    }
}
