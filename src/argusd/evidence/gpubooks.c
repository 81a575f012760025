/* SPDX-License-Identifier: Apache-2.0 */
/* gpubooks.c - see gpubooks.h. What is read when is bookround.c's. */
#include "argusd/evidence/gpubooks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/evidence/bookround.h"
#include "argusd/figures/gpurow.h"
#include "base/str.h"
#include "fsroot/attempt/gpufiles.h"

enum {
    BUSY_MAX = 4,
    GPUS_JSON_MAX = 1 << 20, /* of a job: 4,000 GPUs */
};
static const usec_t EVERY = 5 * USEC_SEC;  /* books change each 15 s */
static const usec_t KEEP_EVERY = USEC_MIN; /* the store's copy */

struct gpubooks_reader {
    struct bookreader is;
    usec_t kept_at; /* mono */

    /* What belongs to the pass under way, and to the last one. */
    struct gang gang;
    struct gpu_sample **books; /* one for each node of the gang; NULL: none was there */
    struct pairs told;         /* node: the time of the sample that was told last */

    int earlier_of; /* the attempt that these are of; 0: none */
    struct gpurow *earlier;
    size_t n_earlier;
};

struct gpubooks {
    struct gpubooks_parts p;
    struct bookround *round;
};

static struct gpubooks_reader *gpubooks_of(struct bookreader *r)
{
    return container_of(r, struct gpubooks_reader, is);
}

static void gpubooks_drop(struct gpubooks_reader *r)
{
    for (size_t i = 0; r->books && i < r->gang.n; i++)
        free(r->books[i]);
    free(r->books);
    r->books = NULL;
    gang_release(&r->gang);
}

static void gpubooks_release(struct bookreader *is)
{
    struct gpubooks_reader *r = gpubooks_of(is);
    gpubooks_drop(r);
    pairs_release(&r->told);
    free(r->earlier);
}

/* ---- in the worker ---- */

static void gpubooks_read(struct bookreader *is)
{
    struct gpubooks_reader *r = gpubooks_of(is);
    const struct gpubooks *gs = bookreader_arg(is);
    const char *root = gs->p.settings->shared_root;
    for (size_t i = 0; i < r->gang.n; i++) {
        struct buf text = BUF_INIT(GPU_BOOK_MAX_BYTES);
        struct gpu_sample *book = xcalloc(1, sizeof(*book));
        if (fsroot_gpus_read(root, is->id, is->k, r->gang.v[i].name, &text, NULL) == 0 &&
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

static bool gpubooks_has_part(const struct live *l)
{
    return fmod(l->job->demand.gpus_per_node, 1) > 0;
}

static void gpubooks_tell(const struct gpubooks *gs,
                          struct gpubooks_reader *r,
                          const struct live *l)
{
    for (size_t i = 0; i < r->gang.n; i++) {
        const struct gang_node *node = &r->gang.v[i];
        if (!r->books[i] || !gpubooks_is_news(r, node->name, r->books[i]->at))
            continue;
        /* First the part, which stands for the slots after its own, too. */
        figures_put_parts(gs->p.figures, r->is.id, node, r->books[i], gpubooks_has_part(l));
        figures_put_cards(gs->p.figures, node->name, r->books[i], node->gpus);
    }
}

/* The rows of earlier attempts: they change with the attempt alone. */
static void gpubooks_take_earlier(struct gpubooks_reader *r, const struct live *l)
{
    size_t gpus = 0;
    if (r->earlier_of == r->is.k)
        return;
    for (size_t i = 0; i < r->gang.n; i++)
        gpus += (size_t)gang_node_gpus(&r->gang.v[i]);
    json_t *rows = l->extra.gpus ? json_loads(l->extra.gpus, 0, NULL) : NULL;
    free(r->earlier);
    r->n_earlier = gpurow_earlier(rows, r->is.k,
                                  gpus < GPUROW_ROWS_MAX ? GPUROW_ROWS_MAX - gpus : 0, &r->earlier);
    r->earlier_of = r->is.k;
    json_decref(rows);
}

/* The rows as JSON, and the energy of all of them; NULL: no book is there. */
static char *gpubooks_json(const struct gpubooks_reader *r,
                           const struct live *l,
                           double *ret_joules)
{
    bool is_any = false;
    double joules = 0;
    struct buf out = BUF_INIT(GPUS_JSON_MAX);
    struct jout j = jout_begin(&out);
    struct gpurow *rows = xcalloc(FIGURE_GPUS_MAX, sizeof(*rows));
    jout_open(&j, NULL, '[');
    for (size_t i = 0; i < r->n_earlier; i++) {
        field_to_json(&gpurow_table, &r->earlier[i], FIELD_ALL, FIELD_ROW, &j, NULL);
        joules += fmax(r->earlier[i].used_joules, 0);
    }
    for (size_t i = 0; i < r->gang.n; i++) {
        if (!r->books[i])
            continue;
        size_t n = gpurow_list(r->books[i], &r->gang.v[i], r->is.k, gpubooks_has_part(l), rows);
        for (size_t g = 0; g < n; g++) {
            field_to_json(&gpurow_table, &rows[g], FIELD_ALL, FIELD_ROW, &j, NULL);
            joules += fmax(rows[g].used_joules, 0);
        }
        is_any = true;
    }
    jout_close(&j, ']');
    free(rows);
    char *text = is_any && !out.failed ? buf_take(&out) : NULL;
    buf_release(&out);
    *ret_joules = joules;
    return text;
}

static void gpubooks_keep(struct gpubooks_reader *r, struct live *l)
{
    gpubooks_take_earlier(r, l);
    double joules;
    char *text = gpubooks_json(r, l, &joules);
    usec_t now = clock_mono();
    if (!text || str_eq(text, l->extra.gpus)) {
        free(text);
        return;
    }
    bool first = !l->extra.gpus;
    free(l->extra.gpus);
    l->extra.gpus = text;
    l->extra.gpu_joules = joules;
    if (first || now - r->kept_at > KEEP_EVERY) {
        r->kept_at = now;
        jobs_keep(l);
    }
}

static void gpubooks_done(struct bookreader *is, struct live *l)
{
    struct gpubooks_reader *r = gpubooks_of(is);
    if (l) {
        gpubooks_tell(bookreader_arg(is), r, l);
        gpubooks_keep(r, l);
    }
    gpubooks_drop(r);
}

static bool gpubooks_wants(const struct live *l)
{
    return l->job->demand.gpus_per_node > 0;
}

static void gpubooks_begin(struct bookreader *is, const struct live *l)
{
    struct gpubooks_reader *r = gpubooks_of(is);
    gang_copy(&r->gang, &l->job->gang);
    r->books = xcalloc(r->gang.n + 1, sizeof(struct gpu_sample *));
}

/* ---- life ---- */

struct gpubooks *gpubooks_new(const struct gpubooks_parts *parts)
{
    struct gpubooks *gs = xcalloc(1, sizeof(*gs));
    struct bookround_parts round = {.loop = parts->loop,
                                    .cluster = parts->cluster,
                                    .jobs = parts->jobs,
                                    .arg = gs,
                                    .size = sizeof(struct gpubooks_reader),
                                    .most = BUSY_MAX,
                                    .every = EVERY,
                                    .wants = gpubooks_wants,
                                    .begin = gpubooks_begin,
                                    .read = gpubooks_read,
                                    .done = gpubooks_done,
                                    .release = gpubooks_release};
    gs->p = *parts;
    gs->round = bookround_new(&round);
    return gs;
}

void gpubooks_start(struct gpubooks *gs)
{
    bookround_start(gs->round);
}

void gpubooks_close(struct gpubooks *gs)
{
    bookround_close(gs ? gs->round : NULL);
}

void gpubooks_free(struct gpubooks *gs)
{
    bookround_free(gs ? gs->round : NULL);
    free(gs);
}
