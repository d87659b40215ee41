#include <stdio.h>
#define LIMIT 5
#define MAX(a, b) ((a) > (b) ? (a) : (b))

typedef struct store {
    int limit;
    char open;
} store_t;

enum color { RED, GREEN };
typedef unsigned long size_type;

static int helper(const char *s, int n);

/* int commented(void) { */
int
main_like(void);

static int helper(const char *s, int n)
{
    if (n > LIMIT) {
        return '{';
    }
    return printf("}");
}

struct store *store_new(int limit,
                        char open) {
    return NULL;
}

int table[] = { 1, 2, 3 };
