/* SPDX-License-Identifier: Apache-2.0 */
/* queue.c - who waits, in order, and why. */
#include "argus/noun/noun.h"

#include <stdlib.h>

#include "argus/job/jobtable.h"
#include "argus/job/jobview.h"

enum { QUEUE_QUEUE_MAX = 100000 };

struct queue_opts {
    int output;
    bool utc, watch;
    int64_t limit;
};

static const struct opt QUEUE_OPTS[] = {
    {.name = "limit",
     .type = OPT_NUMBER,
     .offset = offsetof(struct queue_opts, limit),
     .arg = "N",
     .doc = "show only the first N"},
    OPT_OUTPUT(struct queue_opts),
    OPT_UTC(struct queue_opts),
    OPT_WATCH(struct queue_opts),
};

/* By position; those without one by time, after them. */
static int queue_in_order(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    int64_t p = json_get_int(x, "position", INT64_MAX), q = json_get_int(y, "position", INT64_MAX);
    if (p != q)
        return p < q ? -1 : 1;
    usec_t s = when_get(x, "queued_at"), t = when_get(y, "queued_at");
    return s < t ? -1 : s > t;
}

/* A new array of the first n jobs in the queue's order. */
static json_t *queue_sorted(const json_t *jobs, size_t n)
{
    size_t count = json_array_size(jobs);
    json_t **v = xcalloc(count + 1, sizeof(json_t *));
    json_t *out = json_array();
    for (size_t i = 0; i < count; i++)
        v[i] = json_array_get(jobs, i);
    xsort(v, count, sizeof(json_t *), queue_in_order);
    for (size_t i = 0; i < count && i < n; i++)
        (void)json_array_append(out, v[i]); /* fails only for lack of memory */
    free(v);
    return out;
}

static int queue_page(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct queue_opts *o = opts;
    _cleanup_(json_unrefp) json_t *found = NULL;
    bool more = false;
    (void)args;
    int r = jobview_list(cli, "?state=QUEUED&all=1", QUEUE_QUEUE_MAX, &found, &more, err);
    if (r < 0)
        return r;
    _cleanup_(json_unrefp) json_t *jobs =
        queue_sorted(found, o->limit ? (size_t)o->limit : QUEUE_QUEUE_MAX);
    if (o->output >= OUTPUT_JSON) {
        json_t *all = json_pack("{s:O}", "jobs", jobs);
        cli_emit(cli, all, o->output);
        json_decref(all);
        return 0;
    }
    struct when w = cli_when(cli, o->utc);
    jobtable_print(cli, jobs, JOBTABLE_QUEUE, &w, o->output == OUTPUT_WIDE);
    return 0;
}

static int queue_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct queue_opts *o = opts;
    int r = cli_open(cli, err);
    return r < 0 ? r : cli_page(cli, o->watch, queue_page, opts, args, err);
}

static const struct command QUEUE_COMMANDS[] = {
    {
        .name = "queue",
        .args = "",
        .summary = "show who waits, in order, and why",
        .text = "Lists the jobs that have not started, as far as you may see them, with "
                "position, time waited and the reason why each still waits.",
        .opts = QUEUE_OPTS,
        .n_opts = array_len(QUEUE_OPTS),
        .opts_size = sizeof(struct queue_opts),
        .run = queue_run,
    },
};

NOUN(queue, QUEUE_COMMANDS);
