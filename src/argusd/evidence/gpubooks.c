/* SPDX-License-Identifier: Apache-2.0 */
/* gpubooks.c - see gpubooks.h. A reader is with its worker while `busy`, and with nobody else. */
#include "argusd/evidence/gpubooks.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/figures/gpurow.h"
#include "argusd/ground/work.h"
#include "base/digest/hash.h"
#include "base/map.h"
#include "base/str.h"
#include "fsroot/attempt/gpufiles.h"

enum {
    TICK_MS = 1000,
    BUSY_MAX = 4,            /* jobs at once: a slow root must not take all workers */
    GPUS_JSON_MAX = 1 << 20, /* of a job: 4,000 GPUs */
};
static const usec_t EVERY = 5 * USEC_SEC;  /* books change each 15 s */
static const usec_t KEEP_EVERY = USEC_MIN; /* the store's copy */

struct gpubooks_reader {
    struct gpubooks_reader *next;
    struct gpubooks *gs;
    char *id;
    bool busy;
    usec_t after, kept_at; /* mono */

    /* What belongs to the pass under way, and to the last one. */
    int k;
    struct gang gang;
    struct gpu_sample **books; /* one for each node of the gang; NULL: none was there */
    struct pairs told;         /* node: the time of the sample that was told last */
};

struct gpubooks {
    struct gpubooks_parts p;
    uv_timer_t timer;
    struct map *by_id;
    struct gpubooks_reader *first;
    int busy;
    bool closing;
};

static void gpubooks_drop(struct gpubooks_reader *r)
{
    for (size_t i = 0; r->books && i < r->gang.n; i++)
        free(r->books[i]);
    free(r->books);
    r->books = NULL;
    gang_release(&r->gang);
}

static void gpubooks_reader_free(struct gpubooks_reader *r)
{
    gpubooks_drop(r);
    pairs_release(&r->told);
    free(r->id);
    free(r);
}

/* ---- in the worker ---- */

static void gpubooks_run(void *arg)
{
    struct gpubooks_reader *r = arg;
    const char *root = r->gs->p.settings->shared_root;
    for (size_t i = 0; i < r->gang.n; i++) {
        struct buf text = BUF_INIT(GPU_BOOK_MAX_BYTES);
        struct gpu_sample *book = xcalloc(1, sizeof(*book));
        if (fsroot_gpus_read(root, r->id, r->k, r->gang.v[i].name, &text, NULL) == 0 &&
            gpu_sample_read(buf_str(&text), text.len, book))
            r->books[i] = book;
        else
            free(book);
        buf_release(&text);
    }
}

/* ---- on the loop ---- */

/* A book that has not changed says nothing of now. */
static bool gpubooks_is_news(struct gpubooks_reader *r, const char *node, usec_t at)
{
    _cleanup_(freep) char *text = xasprintf("%llu", (unsigned long long)at);
    if (str_eq(pairs_find(&r->told, node), text))
        return false;
    pairs_set(&r->told, node, text);
    return true;
}

static void gpubooks_tell(struct gpubooks_reader *r)
{
    for (size_t i = 0; i < r->gang.n; i++)
        if (r->books[i] && gpubooks_is_news(r, r->gang.v[i].name, r->books[i]->at))
            figures_put_cards(r->gs->p.figures, r->gang.v[i].name, r->books[i], r->gang.v[i].gpus);
}

/* The rows as JSON; NULL: no book is there. */
static char *gpubooks_json(const struct gpubooks_reader *r)
{
    bool is_any = false;
    struct buf out = BUF_INIT(GPUS_JSON_MAX);
    struct jout j = jout_begin(&out);
    struct gpurow *rows = xcalloc(FIGURE_GPUS_MAX, sizeof(*rows));
    jout_open(&j, NULL, '[');
    for (size_t i = 0; i < r->gang.n; i++) {
        if (!r->books[i])
            continue;
        size_t n = gpurow_list(r->books[i], r->gang.v[i].name, r->gang.v[i].gpus, r->k, rows);
        for (size_t g = 0; g < n; g++)
            field_to_json(&gpurow_table, &rows[g], FIELD_ALL, FIELD_ROW, &j, NULL);
        is_any = true;
    }
    jout_close(&j, ']');
    free(rows);
    char *text = is_any && !out.failed ? buf_take(&out) : NULL;
    buf_release(&out);
    return text;
}

static void gpubooks_keep(struct gpubooks_reader *r, struct live *l)
{
    char *text = gpubooks_json(r);
    usec_t now = clock_mono();
    if (!text || str_eq(text, l->extra.gpus)) {
        free(text);
        return;
    }
    bool first = !l->extra.gpus;
    free(l->extra.gpus);
    l->extra.gpus = text;
    if (first || now - r->kept_at > KEEP_EVERY) {
        r->kept_at = now;
        jobs_keep(l);
    }
}

static void gpubooks_done(void *arg)
{
    struct gpubooks_reader *r = arg;
    struct gpubooks *gs = r->gs;
    struct live *l = gs->closing ? NULL : jobs_find_id(gs->p.jobs, r->id);
    const struct attempt *a = l ? job_attempt(l->job) : NULL;
    gs->busy--;
    r->busy = false;
    r->after = clock_mono() + EVERY;
    if (a && a->k == r->k) {
        gpubooks_tell(r);
        gpubooks_keep(r, l);
    }
    gpubooks_drop(r);
}

static struct gpubooks_reader *gpubooks_reader_of(struct gpubooks *gs, const char *id)
{
    struct gpubooks_reader *r = map_find(gs->by_id, id);
    if (r)
        return r;
    r = xcalloc(1, sizeof(*r));
    *r = (struct gpubooks_reader){.next = gs->first, .gs = gs, .id = xstrdup(id)};
    gs->first = r;
    (void)map_set(gs->by_id, id, r); /* there was none */
    return r;
}

static void gpubooks_begin(struct gpubooks *gs, const struct live *l, usec_t now)
{
    const struct attempt *a = job_attempt(l->job);
    struct gpubooks_reader *r = gpubooks_reader_of(gs, l->job->id);
    if (!a || r->busy || now < r->after || gs->busy == BUSY_MAX)
        return;
    gang_copy(&r->gang, &l->job->gang);
    r->books = xcalloc(r->gang.n + 1, sizeof(struct gpu_sample *));
    r->k = a->k;
    r->busy = true;
    gs->busy++;
    work_start(gs->p.loop, gpubooks_run, gpubooks_done, r);
}

static void gpubooks_forget(struct gpubooks *gs)
{
    for (struct gpubooks_reader **p = &gs->first; *p;) {
        struct gpubooks_reader *r = *p;
        if (r->busy || jobs_find_any(gs->p.jobs, r->id)) {
            p = &r->next;
            continue;
        }
        *p = r->next;
        map_remove(gs->by_id, r->id);
        gpubooks_reader_free(r);
    }
}

static void gpubooks_on_tick(uv_timer_t *t)
{
    struct gpubooks *gs = container_of(t, struct gpubooks, timer);
    const struct live *l;
    usec_t now = clock_mono();
    if (!cluster_root_hangs(gs->p.cluster))
        for (size_t pos = 0; (l = jobs_next_placed(gs->p.jobs, &pos));)
            if (job_is_in_ray(l->job) && l->job->demand.gpus_per_node > 0)
                gpubooks_begin(gs, l, now);
    gpubooks_forget(gs);
}

/* ---- life ---- */

struct gpubooks *gpubooks_new(const struct gpubooks_parts *parts)
{
    unsigned char seed[16];
    struct gpubooks *gs = xcalloc(1, sizeof(*gs));
    random_bytes(seed, sizeof(seed));
    gs->p = *parts;
    gs->by_id = map_new(seed);
    (void)uv_timer_init(parts->loop, &gs->timer); /* never fails */
    return gs;
}

void gpubooks_start(struct gpubooks *gs)
{
    (void)uv_timer_start(&gs->timer, gpubooks_on_tick, TICK_MS, TICK_MS); /* cannot fail */
}

void gpubooks_close(struct gpubooks *gs)
{
    if (!gs || gs->closing)
        return;
    gs->closing = true;
    uv_close((uv_handle_t *)&gs->timer, NULL);
}

void gpubooks_free(struct gpubooks *gs)
{
    if (!gs)
        return;
    for (struct gpubooks_reader *r = gs->first, *next; r; r = next) {
        next = r->next;
        gpubooks_reader_free(r);
    }
    map_free(gs->by_id);
    free(gs);
}
