/* SPDX-License-Identifier: Apache-2.0 */
/* grepneeds.c - "<pattern>\n<line>": a line that matches has what the pattern is said to need. */
#define _GNU_SOURCE
#include "core/metric/grepneeds.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/metric/loggrep.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(freep) char *pattern = xstrndup((const char *)data, size);
    char *line = strchr(pattern, '\n');
    struct loggrep *g = NULL;
    struct grepneeds needs;
    if (!line)
        return 0;
    *line++ = '\0';
    if (loggrep_new(pattern, &g, NULL) < 0)
        return 0;
    grepneeds_read(pattern, &needs);
    bool fits = !needs.n;
    for (size_t i = 0; i < needs.n && !fits; i++) {
        fits = true;
        for (size_t k = 0; k < needs.v[i].n; k++)
            fits &= strcasestr(line, needs.v[i].v[k]) != NULL;
    }
    assert(fits || !loggrep_matches(g, line, strlen(line)));
    grepneeds_release(&needs);
    loggrep_free(g);
    return 0;
}
