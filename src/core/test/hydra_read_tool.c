/* SPDX-License-Identifier: Apache-2.0 */
/* hydra_read_tool.c - lets a test compare what we read in overrides with the real Hydra.
 *
 * stdin: overrides, each ended by a NUL byte. stdout: a line of JSON for each: the fault (enum
 * hydra_fault), the texts or null, the nearest that is right or null. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "core/spec/hydra_read.h"

enum { INPUT_MAX = 16 * 1024 * 1024 };

static void answer(const char *override)
{
    struct hydra_value v;
    enum hydra_fault fault = hydra_read(override, &v);
    _cleanup_(freep) char *near = fault ? hydra_nearest(override) : NULL;
    struct buf out = BUF_INIT(INPUT_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    jout_int(&j, "fault", fault);
    if (v.is_known) {
        jout_open(&j, "texts", '[');
        for (size_t i = 0; i < v.texts.n; i++)
            jout_str(&j, NULL, v.texts.v[i]);
        jout_close(&j, ']');
    }
    jout_str(&j, "near", near);
    jout_close(&j, '}');
    puts(buf_str(&out));
    buf_release(&out);
    hydra_value_release(&v);
}

int main(void)
{
    char *in = xmalloc(INPUT_MAX + 1);
    size_t n = fread(in, 1, INPUT_MAX, stdin);
    in[n] = 0;
    for (const char *s = in; s < in + n; s += strlen(s) + 1)
        answer(s);
    free(in);
    return 0;
}
