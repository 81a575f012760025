/* SPDX-License-Identifier: Apache-2.0 */
/* logparts.c - see logparts.h. The memory of a part is made by the thread that fills it, so that
 * parts that wait for a thread are small. */
#include "argusd/logs/logparts.h"

#include <stdlib.h>

#include "argusd/ground/work.h"
#include "base/mem.h"
#include "fsroot/logs/logread.h"
#include "fsroot/logs/logtimes.h"

static void logparts_run(void *arg)
{
    struct logpart *p = arg;
    if (p->since) {
        uint64_t from = logtimes_find(p->root, p->job, p->k, p->name, p->since);
        p->offset = from > p->offset ? from : p->offset;
    }
    struct logread_part got = {.offset = p->offset};
    p->bytes = xmalloc(p->want + 1);
    p->result =
        logread_at(p->root, p->job, p->k, p->name, p->offset, p->bytes, p->want, &got, &p->err);
    p->at = got.offset;
    p->n = got.n;
    p->end = got.end;
}

static void logparts_finish(void *arg)
{
    struct logpart *p = arg;
    p->done(p, p->arg);
    free(p->root);
    free(p->job);
    free(p->name);
    free(p->bytes);
    free(p);
}

void logpart_read(uv_loop_t *loop, const struct logpart_ask *ask)
{
    struct logpart *p = xcalloc(1, sizeof(*p));
    *p = (struct logpart){.root = xstrdup(ask->root),
                          .job = xstrdup(ask->job),
                          .name = xstrdup(ask->name),
                          .k = ask->k,
                          .offset = ask->offset,
                          .since = ask->since,
                          .want = ask->want,
                          .done = ask->done,
                          .arg = ask->arg};
    work_start(loop, logparts_run, logparts_finish, p);
}
