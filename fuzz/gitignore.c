/* SPDX-License-Identifier: Apache-2.0 */
/* gitignore.c - a path in the first line, patterns in the rest: an answer, and soon. */
#include <assert.h>
#include <string.h>

#include "core/check/gitignore.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *end = memchr(text, '\n', size);
    size_t n = end ? (size_t)(end - text) : size;
    if (n > 4096 || memchr(text, 0, n))
        return 0;
    char path[4097];
    memcpy(path, text, n);
    path[n] = 0;
    struct gitignore *g = gitignore_new();
    gitignore_add(g, "", text + n, size - n);
    bool file = gitignore_skips(g, path, false);
    gitignore_add(g, "", "\n!*\n", 4); /* the last pattern wins */
    assert(!*path || !gitignore_skips(g, path, false) || strchr(path, '/'));
    gitignore_cut(g, 0);
    assert(!gitignore_skips(g, path, file));
    gitignore_free(g);
    return 0;
}
