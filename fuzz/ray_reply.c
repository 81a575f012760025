/* SPDX-License-Identifier: Apache-2.0 */
/* ray_reply.c - any bytes as each of Ray's replies; the first byte chooses which. */
#include "fuzz.h"
#include "ray/parse.h"

#define KINDS(X) X(version) X(job) X(jobs) X(nodes) X(usages) X(actors) X(groups)

#define X(kind)                                                                                    \
    static void try_##kind(const char *text, size_t n)                                             \
    {                                                                                              \
        struct ray_##kind value;                                                                   \
        if (ray_parse_##kind(text, n, &value, NULL) == 0)                                          \
            ray_##kind##_release(&value);                                                          \
    }
KINDS(X)
#undef X

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const tries[])(const char *text, size_t n) = {
#define X(kind) try_##kind,
        KINDS(X)
#undef X
    };
    if (size > 0)
        tries[data[0] % array_len(tries)]((const char *)data + 1, size - 1);
    return 0;
}
