/* SPDX-License-Identifier: Apache-2.0 */
/* retention.c - see retention.h. One page of the store is read at a time, and none while jobs of
 * its own wait to be packed: so a long history costs little, and people who ask for an archive have
 * their turn beside it. */
#include "argusd/archive/retention.h"

#include <errno.h>
#include <stdlib.h>

#include "argusd/jobs/record.h"
#include "base/str.h"

enum { TICK_MS = 2000, PAGE = 100, ROOM_IN_LINE = 8 };
static const usec_t RETENTION_PAUSE = 10 * 60 * USEC_SEC; /* between two rounds */

struct retention {
    struct retention_parts p;
    uv_timer_t timer;
    size_t pos;    /* of people_next_project() */
    char *project; /* whose jobs are walked; NULL: the next one's */
    char *cursor;  /* of the page to read; NULL: the first */
    usec_t before; /* what ended later stays; of the page that is read */
    usec_t pause;  /* monotonic: no round begins before it */
    bool reading, closing;
};

static void retention_leave(struct retention *rt)
{
    set_str(&rt->project, NULL);
    set_str(&rt->cursor, NULL);
}

static void retention_tell(struct retention *rt, const struct job *job, const struct project *p)
{
    char span[CLOCK_TEXT_MAX], text[240];
    message_write(text, sizeof(text),
                  MESSAGE_ARGS(MESSAGE_STR("project", p->name),
                               MESSAGE_STR("span", span_to_string(p->retention, span))));
    struct events_note note = {.kind = "retention",
                               .actor = "argusd",
                               .job_seq = job->seq,
                               .job = job->id,
                               .code = "retention",
                               .text = text};
    events_add(rt->p.events, &note, clock_wall());
}

/* ERR_BUSY: too many wait. What cannot be packed now is met again in the next round. */
static int retention_pack(struct retention *rt,
                          const struct store_job *row,
                          const struct project *p)
{
    struct job *job = NULL;
    struct record_extra extra = {0};
    if (!row->ended_at || row->ended_at > rt->before ||
        !archives_may_retire(rt->p.archives, row->id, rt->before) ||
        (!p->retention_checkpoints && rt->p.has_checkpoints(row->id, rt->p.arg)))
        return 0;
    int r = record_to_job(row, &job, &extra, NULL);
    if (r == 0)
        r = archives_pack(rt->p.archives, job, 0, "argusd", NULL);
    if (r == 0)
        retention_tell(rt, job, p);
    record_extra_release(&extra);
    job_free(job);
    return r;
}

static void retention_on_page(const struct store_result *r, void *arg)
{
    struct retention *rt = arg;
    rt->reading = false;
    const struct project *p =
        rt->closing || !rt->project ? NULL : people_find_project(rt->p.people, rt->project);
    if (r->err.code || !p || !p->retention) {
        retention_leave(rt);
        return;
    }
    for (size_t i = 0; i < r->njobs; i++)
        if (retention_pack(rt, &r->jobs[i], p) == ERR_BUSY)
            return; /* this page again, when fewer wait */
    set_str(&rt->cursor, r->next);
    if (!r->next)
        retention_leave(rt);
}

/* NULL: the round is over. */
static const struct project *retention_project(struct retention *rt)
{
    const struct project *p = rt->project ? people_find_project(rt->p.people, rt->project) : NULL;
    if (p && p->retention)
        return p;
    retention_leave(rt);
    do
        p = people_next_project(rt->p.people, &rt->pos);
    while (p && !p->retention);
    if (p)
        set_str(&rt->project, p->name);
    return p;
}

static void retention_read(struct retention *rt, const struct project *p)
{
    static const char *const ended[] = {"SUCCEEDED", "FAILED", "STOPPED", "TIMEOUT"};
    usec_t now = clock_wall();
    rt->before = now > p->retention ? now - p->retention : 1;
    rt->reading = true;
    struct store_job_query q = {.states = ended,
                                .nstates = array_len(ended),
                                .project = p->name,
                                .until = rt->before,
                                .cursor = rt->cursor,
                                .limit = PAGE};
    struct store_then then = {.done = retention_on_page, .arg = rt};
    (void)store_list_jobs(rt->p.store, &q, &then); /* dropped when the store is closed */
}

static void retention_on_tick(uv_timer_t *timer)
{
    struct retention *rt = container_of(timer, struct retention, timer);
    if (rt->reading || clock_mono() < rt->pause || !cluster_root_is_ok(rt->p.cluster) ||
        store_is_failing(rt->p.store) || archives_waiting(rt->p.archives, "argusd") >= ROOM_IN_LINE)
        return;
    const struct project *p = retention_project(rt);
    if (p) {
        retention_read(rt, p);
        return;
    }
    rt->pos = 0;
    rt->pause = clock_mono() + RETENTION_PAUSE;
}

struct retention *retention_new(const struct retention_parts *parts)
{
    struct retention *rt = xcalloc(1, sizeof(*rt));
    rt->p = *parts;
    (void)uv_timer_init(parts->loop, &rt->timer); /* never fails */
    return rt;
}

void retention_start(struct retention *rt)
{
    (void)uv_timer_start(&rt->timer, retention_on_tick, TICK_MS, TICK_MS); /* cannot fail */
}

void retention_close(struct retention *rt)
{
    if (!rt || rt->closing)
        return;
    rt->closing = true;
    uv_close((uv_handle_t *)&rt->timer, NULL);
}

void retention_free(struct retention *rt)
{
    if (!rt)
        return;
    retention_leave(rt);
    free(rt);
}
