/* SPDX-License-Identifier: Apache-2.0 */
/* dealings.c - see dealings.h. What each sum means is core/account/dealing.h's to say. Sums of
 * pairs are added up as real numbers, which no number of pairs and years overflows. */
#include "argusd/api/usage/dealings.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/account/accounting.h"
#include "base/str.h"
#include "base/strv.h"

struct dealing_part {
    char *project;
    double gpu_s;
};
static const struct field part_rows[] = {
    FIELD_AT(dealing_part,
             "project",
             FIELD_STR,
             project,
             .flags = FIELD_ALWAYS,
             .doc = "\"\": nobody, it was guaranteed to nobody; \"*\": several together"),
    FIELD_AT(dealing_part, "gpu_s", FIELD_REAL, gpu_s),
};
const struct field_table dealing_part_table = FIELD_TABLE("DealingPart", part_rows, dealing_part);

struct dealings_page {
    char *project;
    double all[DEALING_SUMS], own_wait;
    struct field_list lent, borrowed;
};
#define DEALINGS(key, ftype, member, ...) FIELD_AT(dealings_page, key, ftype, member, __VA_ARGS__)
static const struct field dealings_rows[] = {
    DEALINGS("project", FIELD_STR, project, .flags = FIELD_ALWAYS),
    DEALINGS("wait_taken_gpu_s",
             FIELD_REAL,
             all[DEALING_WAIT_TAKEN],
             .doc = "GPUs wanted times time, of its jobs that only GPUs kept waiting"),
    DEALINGS("wait_own_gpu_s",
             FIELD_REAL,
             own_wait,
             .doc = "the part of wait_taken_gpu_s for GPUs that it held itself"),
    DEALINGS("wait_given_gpu_s",
             FIELD_REAL,
             all[DEALING_WAIT_GIVEN],
             .doc = "the part of what others waited for GPUs that it held"),
    DEALINGS("lent_gpu_s",
             FIELD_REAL,
             all[DEALING_LENT],
             .doc = "of its guarantee, held by others and so not free for it"),
    DEALINGS("borrowed_gpu_s",
             FIELD_REAL,
             all[DEALING_BORROWED],
             .doc = "held beyond its guarantee, where some project has one"),
    DEALINGS("lent", FIELD_LIST, lent, .of = &dealing_part_table, .doc = "to whom, most first"),
    DEALINGS("borrowed",
             FIELD_LIST,
             borrowed,
             .of = &dealing_part_table,
             .doc = "of whom, most first"),
};
const struct field_table dealings_table =
    FIELD_TABLE("UsageDealings", dealings_rows, dealings_page);

struct dealings {
    struct dealings_page *v;
    size_t n;
};

/* ---- rows ---- */

static struct dealings_page *dealings_of(struct dealings *d, const char *project, size_t len)
{
    for (size_t i = d->n; i-- > 0;) /* rows come by name: mostly the last one */
        if (!strncmp(d->v[i].project, project, len) && !d->v[i].project[len])
            return &d->v[i];
    d->v = xrealloc(d->v, d->n + 1, sizeof(*d->v));
    d->v[d->n] = (struct dealings_page){.project = xstrndup(project, len)};
    return &d->v[d->n++];
}

static void dealings_add_part(struct field_list *parts, const char *other, double gpu_s)
{
    struct dealing_part *v = parts->v;
    if (gpu_s <= 0)
        return;
    for (size_t i = 0; i < parts->n; i++)
        if (str_eq(v[i].project, other)) {
            v[i].gpu_s += gpu_s;
            return;
        }
    parts->v = v = xrealloc(v, parts->n + 1, sizeof(*v));
    v[parts->n++] = (struct dealing_part){.project = xstrdup(other), .gpu_s = gpu_s};
}

static const char *dealings_name(const char *other, const struct people_view *view)
{
    if (!*other || !view->scope || strv_has(&view->projects, other))
        return other;
    return DEALING_OTHERS;
}

static void dealings_add(struct dealings *d,
                         const struct store_usage_sum *row,
                         const struct people_view *view)
{
    const char *end = strchr(row->name, ACCOUNTING_PAIR);
    double gpu_s[DEALING_SUMS];
    if (!end || row->point != 0)
        return; /* a name of another kind, of which there is no row under these steps */
    struct dealings_page *p = dealings_of(d, row->name, (size_t)(end - row->name));
    for (int i = 0; i < DEALING_SUMS; i++) {
        gpu_s[i] = (double)row->sums[i] / ((double)SLOTBOOK_GPU * 1000);
        p->all[i] += gpu_s[i];
    }
    if (str_eq(p->project, end + 1))
        p->own_wait += gpu_s[DEALING_WAIT_TAKEN];
    dealings_add_part(&p->lent, dealings_name(end + 1, view), gpu_s[DEALING_LENT]);
    dealings_add_part(&p->borrowed, dealings_name(end + 1, view), gpu_s[DEALING_BORROWED]);
}

static int dealing_part_by_size(const void *a, const void *b)
{
    const struct dealing_part *p = a, *q = b;
    if (p->gpu_s < q->gpu_s || p->gpu_s > q->gpu_s)
        return p->gpu_s < q->gpu_s ? 1 : -1;
    return strcmp(p->project, q->project);
}

static int dealings_by_project(const void *a, const void *b)
{
    return strcmp(((const struct dealings_page *)a)->project,
                  ((const struct dealings_page *)b)->project);
}

struct dealings *dealings_read(const struct store_result *r, const struct people_view *view)
{
    struct dealings *d = xcalloc(1, sizeof(*d));
    for (size_t i = 0; i < r->nusage; i++)
        dealings_add(d, &r->usage[i], view);
    xsort(d->v, d->n, sizeof(*d->v), dealings_by_project);
    for (size_t i = 0; i < d->n; i++) {
        xsort(d->v[i].lent.v, d->v[i].lent.n, sizeof(struct dealing_part), dealing_part_by_size);
        xsort(d->v[i].borrowed.v, d->v[i].borrowed.n, sizeof(struct dealing_part),
              dealing_part_by_size);
    }
    return d;
}

static void dealings_free_parts(struct field_list *parts)
{
    struct dealing_part *v = parts->v;
    for (size_t i = 0; i < parts->n; i++)
        free(v[i].project);
    free(v);
}

void dealings_free(struct dealings *d)
{
    for (size_t i = 0; d && i < d->n; i++) {
        free(d->v[i].project);
        dealings_free_parts(&d->v[i].lent);
        dealings_free_parts(&d->v[i].borrowed);
    }
    if (d)
        free(d->v);
    free(d);
}

struct field_list dealings_list(const struct dealings *d)
{
    return d ? (struct field_list){.v = d->v, .n = d->n} : (struct field_list){0};
}
