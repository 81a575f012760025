/* SPDX-License-Identifier: Apache-2.0 */
/* gpurow.c - a book's GPUs as rows of a job; see gpurow.h.
 *
 * A GPU of the lease on which no process of the job was seen is the lease's: in a container the
 * driver counts processes in another way than we do, and then knows none of ours. */
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

size_t gpurow_list(const struct gpu_sample *book,
                   const char *node,
                   uint64_t leased,
                   int attempt,
                   struct gpurow *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < book->n && n < FIGURE_GPUS_MAX; i++) {
        const struct gpu_card *c = &book->v[i];
        if (!c->is_ours && !(leased >> c->index & 1))
            continue;
        struct gpurow *row = &ret[n++];
        *row = (struct gpurow){.gpu = c->index,
                               .attempt = attempt,
                               .rank = -1,
                               .watched_s = c->watched_s,
                               .busy_s = c->busy_s,
                               .used_joules = c->used_joules,
                               .mem_peak_bytes = c->mem_peak_bytes};
        text_copy(row->node, node);
        text_copy(row->uuid, c->uuid);
        if (c->is_ours)
            gpurow_take_ours(c, row);
    }
    return n;
}

bool gpurow_find(const json_t *rows, const char *node, int gpu, struct gpurow *ret)
{
    size_t i;
    json_t *item;
    json_array_foreach (rows, i, item) {
        struct gpurow row = {.rank = -1};
        field_from_json(&gpurow_table, item, FIELD_ALL, &row);
        if (row.gpu == gpu && !strcmp(row.node, node)) {
            *ret = row;
            return true;
        }
    }
    return false;
}
