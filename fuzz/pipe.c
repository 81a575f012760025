/* SPDX-License-Identifier: Apache-2.0 */
/* A pipeline; what is read is run, each step succeeding with what its expressions ask for missing.
 */
#include <stdlib.h>

#include "core/pipe/pipe_jobs.h"
#include "core/pipe/pipe_run.h"
#include "fuzz.h"

enum { FILLED_MAX = 1 << 16 };

static void run_it(const struct pipe *p)
{
    struct pipe_run run = {.pipe = p, .params = json_object()};
    size_t item;
    pipe_run_begin(&run);
    for (enum pipe_act act; (act = pipe_run_next(&run, UINT64_MAX, &item)) != PIPE_ACT_NONE;) {
        struct buf out = BUF_INIT(FILLED_MAX);
        struct err err = {0};
        if (act == PIPE_ACT_SKIP) {
            pipe_run_skip(&run, item, 1);
            continue;
        }
        pipe_run_started(&run, item, "j", 1);
        int r = pipe_run_fill(&run, item, &out, &err);
        pipe_run_ended(&run, item, r == 0 ? PIPE_SUCCEEDED : PIPE_FAILED, "{\"job\":\"j\"}", NULL,
                       NULL, 1);
        buf_release(&out);
    }
    if (pipe_run_state(&run) == PIPE_RUNNING)
        abort();
    pipe_run_release(&run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct problems ps = {0};
    struct pipe *p = NULL;
    if (pipe_read((const char *)data, size, &p, &ps) == 0) {
        pipe_jobs_check(p, &ps);
        run_it(p);
        pipe_free(p);
    }
    problems_release(&ps);
    return 0;
}
