/* SPDX-License-Identifier: Apache-2.0 */
/* rankbooks.c - see rankbooks.h. What is read when is bookround.c's. */
#include "argusd/evidence/rankbooks.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/evidence/bookround.h"
#include "base/str.h"
#include "fsroot/attempt/rankfiles.h"

enum { BUSY_MAX = 2, PAGE_MAX = 8192 };
static const usec_t EVERY = 5 * USEC_SEC;      /* ranks tell each 10 s */
static const usec_t KNOWN_FOR = 15 * USEC_MIN; /* after the last judgement */

struct rankbooks_reader {
    struct bookreader is;
    usec_t judged_at; /* mono */
    usec_t since;     /* wall: what stands has stood since then; 0: nothing does */
    /* What was told of this attempt: the ranks that were slow, each with its cause. */
    int told_k;
    struct strv told;
    struct rank_verdict verdict; /* of the pass under way, and of the last one */
};

struct rankbooks {
    struct rankbooks_parts p;
    struct bookround *round;
};

static struct rankbooks_reader *rankbooks_of(struct bookreader *r)
{
    return container_of(r, struct rankbooks_reader, is);
}

static void rankbooks_release(struct bookreader *r)
{
    strv_release(&rankbooks_of(r)->told);
}

/* ---- in the worker ---- */

static void rankbooks_read(struct bookreader *is)
{
    struct rankbooks_reader *r = rankbooks_of(is);
    const struct rankbooks *rs = bookreader_arg(is);
    struct rank_told *told = NULL;
    size_t n = 0;
    if (fsroot_ranks_read(rs->p.settings->shared_root, is->id, is->k, &told, &n, NULL) < 0)
        n = 0; /* a root that is away tells of no rank */
    rank_judge(told, n, clock_wall(), &r->verdict);
    free(told);
}

/* ---- on the loop ---- */

/* The node is what the rank says of itself: it counts where the job has it. */
static bool rankbooks_is_its(const struct job *j, const char *node)
{
    for (size_t i = 0; i < j->gang.n; i++)
        if (str_eq(j->gang.v[i].name, node))
            return true;
    return false;
}

/* An event, once for each rank and cause of an attempt, of the first few. */
static void rankbooks_tell(struct rankbooks_reader *r, struct live *l)
{
    enum { TOLD_MAX = 16 };
    char args[JOB_REASON_TEXT_MAX];
    const struct rank_verdict *v = &r->verdict;
    _cleanup_(freep) char *what =
        xasprintf("%lld %s", (long long)v->rank, rank_cause_to_string(v->cause));
    if (r->told_k != r->is.k)
        strv_release(&r->told);
    r->told_k = r->is.k;
    if (strv_has(&r->told, what) || r->told.n == TOLD_MAX)
        return;
    strv_add(&r->told, what);
    jobs_note(l, "rank_slow", rank_message(v, args, sizeof(args)), args, clock_wall());
}

/* Whether it is a machine's doing, as far as that can be told: what a rank computes, or waits for,
 * may be the job's own. */
static bool rankbooks_is_of_node(enum rank_cause c)
{
    return c != RANK_COMPUTES && c != RANK_BLOCKED;
}

/* What was known stays for a while when nobody tells: in a long rollout no rank meets another. */
static bool rankbooks_stays(struct rankbooks_reader *r, usec_t now)
{
    if (r->verdict.is_judged)
        r->judged_at = now;
    return !r->verdict.is_judged && r->since && now < r->judged_at + KNOWN_FOR;
}

static void rankbooks_take(struct bookreader *is, struct live *l)
{
    struct rankbooks_reader *r = rankbooks_of(is);
    const struct rankbooks *rs = bookreader_arg(is);
    if (!l || rankbooks_stays(r, clock_mono()))
        return;
    bool is_slow = r->verdict.is_slow && rankbooks_is_its(l->job, r->verdict.node);
    freep(&l->extra.slow_rank);
    freep(&l->extra.slow_rank_says);
    r->since = is_slow ? (r->since ? r->since : clock_wall()) : 0;
    if (!is_slow)
        return;
    struct buf out = BUF_INIT(PAGE_MAX);
    struct jout j = jout_begin(&out);
    l->extra.slow_rank_says = rank_to_json(&r->verdict, r->since, &j);
    l->extra.slow_rank = out.failed ? NULL : buf_take(&out);
    buf_release(&out);
    rankbooks_tell(r, l);
    if (rankbooks_is_of_node(r->verdict.cause))
        nodes_note_slow(rs->p.nodes, r->verdict.node, l->job->id, l->job->user);
}

/* ---- life ---- */

static bool rankbooks_wants(const struct live *l)
{
    (void)l;
    return true; /* whatever meets in collectives */
}

struct rankbooks *rankbooks_new(const struct rankbooks_parts *parts)
{
    struct rankbooks *rs = xcalloc(1, sizeof(*rs));
    struct bookround_parts round = {.loop = parts->loop,
                                    .cluster = parts->cluster,
                                    .jobs = parts->jobs,
                                    .arg = rs,
                                    .size = sizeof(struct rankbooks_reader),
                                    .most = BUSY_MAX,
                                    .every = EVERY,
                                    .wants = rankbooks_wants,
                                    .read = rankbooks_read,
                                    .done = rankbooks_take,
                                    .release = rankbooks_release};
    rs->p = *parts;
    rs->round = bookround_new(&round);
    return rs;
}

void rankbooks_start(struct rankbooks *rs)
{
    bookround_start(rs->round);
}

void rankbooks_close(struct rankbooks *rs)
{
    bookround_close(rs ? rs->round : NULL);
}

void rankbooks_free(struct rankbooks *rs)
{
    bookround_free(rs ? rs->round : NULL);
    free(rs);
}
