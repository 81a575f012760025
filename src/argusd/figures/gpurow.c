/* SPDX-License-Identifier: Apache-2.0 */
/* gpurow.c - a book's GPUs as rows of a job; see gpurow.h.
 *
 * A GPU of the lease on which no process of the job was seen is the lease's: in a container the
 * driver counts processes in another way than we do, and then knows none of ours. */
#include <stdlib.h>
#include <string.h>

#include "argusd/figures/gpurow.h"
#include "base/text.h"

#define ROW(member, ftype, ...) FIELD_AT(gpurow, #member, ftype, member, __VA_ARGS__)
static const struct field gpurow_rows[] = {
    ROW(node, FIELD_TEXT, .size = sizeof(((struct gpurow *)0)->node)),
    ROW(gpu, FIELD_INT32, .flags = 0),
    ROW(uuid, FIELD_TEXT, .size = FIGURE_UUID_MAX),
    ROW(attempt, FIELD_INT32, .flags = 0),
    ROW(rank, FIELD_REAL, .flags = FIELD_NO_LIMIT),
    ROW(by_processes, FIELD_BOOL, .flags = 0),
    ROW(watched_s, FIELD_REAL, .flags = FIELD_NO_LIMIT),
    ROW(busy_s, FIELD_REAL, .flags = FIELD_NO_LIMIT),
    ROW(used_joules, FIELD_REAL, .flags = FIELD_NO_LIMIT),
    ROW(mem_peak_bytes, FIELD_REAL, .flags = FIELD_NO_LIMIT),
};
const struct field_table gpurow_table = FIELD_TABLE("JobGpuUse", gpurow_rows, gpurow);

/* The job's part of a card with processes of its own: their work, energy in the same proportion,
 * and their memory. */
static void gpurow_take_ours(const struct gpu_card *c, struct gpurow *row)
{
    double busy = 0, all = 0, peak = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct gpu_process *p = &c->v[i];
        all += p->busy_s;
        if (!p->is_ours)
            continue;
        busy += p->busy_s;
        peak += p->mem_peak_bytes > 0 ? p->mem_peak_bytes : 0;
        if (p->rank >= 0 && (row->rank < 0 || p->rank < row->rank))
            row->rank = p->rank;
    }
    bool is_shared = all > busy;
    row->by_processes = true;
    row->busy_s = is_shared ? busy : c->busy_s;
    row->used_joules = is_shared ? c->used_joules * busy / all : c->used_joules;
    row->mem_peak_bytes = peak > 0 ? peak : c->mem_peak_bytes;
}

struct gpurow gpurow_blank(void)
{
    return (struct gpurow){
        .rank = -1, .watched_s = -1, .busy_s = -1, .used_joules = -1, .mem_peak_bytes = -1};
}

size_t gpurow_list(const struct gpu_sample *book,
                   const struct gang_node *node,
                   int attempt,
                   bool has_part,
                   struct gpurow *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < book->n && n < FIGURE_GPUS_MAX; i++) {
        const struct gpu_card *c = &book->v[i];
        if (!c->is_ours && !(node->gpus >> c->index & 1))
            continue;
        struct gpurow *row = &ret[n++];
        *row = gpurow_blank();
        row->gpu = c->index;
        row->attempt = attempt;
        row->watched_s = c->watched_s;
        text_copy(row->node, node->name);
        text_copy(row->uuid, c->uuid);
        if (c->is_ours) {
            gpurow_take_ours(c, row);
        } else if (!has_part) {
            row->busy_s = c->busy_s;
            row->used_joules = c->used_joules;
            row->mem_peak_bytes = c->mem_peak_bytes;
        }
    }
    return n;
}

static struct gpurow gpurow_read(const json_t *item)
{
    struct gpurow row = gpurow_blank();
    field_from_json(&gpurow_table, item, FIELD_ALL, &row);
    return row;
}

bool gpurow_find(const json_t *rows, const char *node, int gpu, int attempt, struct gpurow *ret)
{
    size_t i;
    json_t *item;
    json_array_foreach (rows, i, item)
        if (json_get_int(item, "gpu", -1) == gpu && json_get_int(item, "attempt", -1) == attempt &&
            !strcmp(json_get_str(item, "node", ""), node)) {
            *ret = gpurow_read(item);
            return true;
        }
    return false;
}

static void gpurow_add_number(double *sum, double v)
{
    if (v >= 0)
        *sum = *sum > 0 ? *sum + v : v;
}

static void gpurow_add(struct gpurow *sum, const struct gpurow *row)
{
    gpurow_add_number(&sum->watched_s, row->watched_s);
    gpurow_add_number(&sum->busy_s, row->busy_s);
    gpurow_add_number(&sum->used_joules, row->used_joules);
    if (row->mem_peak_bytes > sum->mem_peak_bytes)
        sum->mem_peak_bytes = row->mem_peak_bytes;
}

struct gpurow gpurow_sum(const json_t *rows)
{
    size_t i;
    json_t *item;
    struct gpurow sum = gpurow_blank();
    json_array_foreach (rows, i, item) {
        const struct gpurow row = gpurow_read(item);
        gpurow_add(&sum, &row);
    }
    return sum;
}

/* The first of the attempts before this one whose rows all stay. */
static int gpurow_first(const json_t *rows, int attempt, size_t room)
{
    size_t n[GPUROW_ATTEMPTS_MAX] = {0}, i; /* rows of the attempt that is so many before */
    json_t *item;
    int first = attempt;
    json_array_foreach (rows, i, item) {
        int64_t before = attempt - json_get_int(item, "attempt", 0);
        if (before > 0 && before < attempt && before < GPUROW_ATTEMPTS_MAX)
            n[before]++;
    }
    for (int before = 1; before < GPUROW_ATTEMPTS_MAX && before < attempt; before++) {
        if (n[before] > room)
            break;
        room -= n[before];
        first = attempt - before;
    }
    return first;
}

size_t gpurow_earlier(const json_t *rows, int attempt, size_t room, struct gpurow **ret)
{
    size_t n = 1, i;
    json_t *item;
    int first = gpurow_first(rows, attempt, room);
    bool has_sum = false;
    struct gpurow *v = xcalloc(json_array_size(rows) + 1, sizeof(*v));
    v[0] = gpurow_blank();
    json_array_foreach (rows, i, item) {
        const struct gpurow row = gpurow_read(item);
        if (row.attempt >= attempt)
            continue;
        if (row.attempt >= first) {
            v[n++] = row;
            continue;
        }
        gpurow_add(&v[0], &row);
        has_sum = true;
    }
    if (!has_sum)
        memmove(v, v + 1, --n * sizeof(*v));
    *ret = v;
    return n;
}
