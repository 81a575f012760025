/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - uv_queue_work with one allocation and two plain functions; see work.h. */
#include "argusd/ground/work.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

struct work {
    uv_work_t req;
    work_f run, done;
    void *arg;
};

static void on_work(uv_work_t *req)
{
    struct work *w = container_of(req, struct work, req);
    w->run(w->arg);
}

static void work_on_done(uv_work_t *req, int status)
{
    struct work *w = container_of(req, struct work, req);
    work_f done = w->done;
    void *arg = w->arg;
    (void)status; /* nobody cancels */
    free(w);
    done(arg);
}

void work_start(uv_loop_t *loop, work_f run, work_f done, void *arg)
{
    struct work *w = xcalloc(1, sizeof(*w));
    w->run = run;
    w->done = done;
    w->arg = arg;
    int r = uv_queue_work(loop, &w->req, on_work, work_on_done);
    assert(r == 0); /* it only refuses a NULL callback */
    (void)r;
}
