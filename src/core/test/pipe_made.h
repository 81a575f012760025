/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_made.h - the pipeline of a test's text, which has to be right: else the test fails and says
 * why. */
#pragma once
#include <string.h>

#include "base/unit.h"
#include "base/unit_message.h"
#include "core/pipe/pipe.h"

/* Freed by the caller. */
static inline struct pipe *pipe_made(const char *text)
{
    struct problems ps = {0};
    struct pipe *p = NULL;
    int r = pipe_read(text, strlen(text), &p, &ps);
    for (size_t i = 0; i < ps.n; i++)
        print_message("%s: %s\n", ps.v[i].field, unit_problem(&ps.v[i]));
    assert_int_equal(r, 0);
    problems_release(&ps);
    return p;
}
