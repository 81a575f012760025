/* SPDX-License-Identifier: Apache-2.0 */
/* listsort.c - see listsort.h.
 *
 * A place in an order is a row of three values, (is it known, value, seq), of which SQLite compares
 * whole rows. A cursor names the last job by its seq alone: the place is read from its row. */
#include "store/listsort.h"

#include <assert.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

/* Columns have no alias: inside the cursor's SELECT they are those of its own job. */
static const struct {
    const char *word;
    const char *value; /* %d: the parameter of the clock */
    const char *known;
} sorts[] = {
    [STORE_SORT_NEWEST] = {"queued_at", "queued_at", "seq>0"},
    [STORE_SORT_ID] = {"id", "id", "seq>0"},
    [STORE_SORT_NAME] = {"name", "lower(coalesce(name, id))", "seq>0"},
    [STORE_SORT_USER] = {"user", "lower(coalesce(user, ''))", "coalesce(user, '')<>''"},
    [STORE_SORT_PROJECT] = {"project", "lower(coalesce(project, ''))", "coalesce(project, '')<>''"},
    [STORE_SORT_WORKLOAD] = {"workload", "coalesce(workload, '')", "coalesce(workload, '')<>''"},
    [STORE_SORT_CLUSTER] = {"cluster", "coalesce(cluster, '')", "coalesce(cluster, '')<>''"},
    [STORE_SORT_POOL] = {"pool", "coalesce(pool, '')", "coalesce(pool, '')<>''"},
    [STORE_SORT_STATE] = {"state", "state", "seq>0"},
    [STORE_SORT_PRIORITY] = {"priority", "priority", "seq>0"},
    [STORE_SORT_NNODES] = {"nnodes", "nnodes", "seq>0"},
    [STORE_SORT_GPUS] = {"gpus", "nnodes*n_gpus_per_node", "seq>0"},
    [STORE_SORT_STARTED] = {"started_at", "started_at", "started_at>0"},
    [STORE_SORT_ENDED] = {"ended_at", "ended_at", "ended_at>0"},
    [STORE_SORT_RAN] = {"ran", "CASE WHEN ended_at>0 THEN ended_at ELSE ?%d END-started_at",
                        "started_at>0"},
    [STORE_SORT_RESTARTS] = {"restarts", "restarts", "seq>0"},
    [STORE_SORT_STEP] = {"step", "step", "step>0"},
    [STORE_SORT_GPU_HOURS] = {"gpu_hours", "gpu_held", "gpu_held>0"},
};
static_assert(array_len(sorts) == STORE_SORTS, "each has its word");

const char *store_job_sort_to_string(enum store_job_sort by)
{
    return sorts[by].word;
}

enum store_job_sort store_job_sort_from_string(const char *word)
{
    enum store_job_sort by = 0;
    while (by < STORE_SORTS && strcmp(sorts[by].word, word) != 0)
        by++;
    return by;
}

/* "known, value, seq", so that all three fall, or all three grow. */
static void listsort_add_place(const struct store_job_query *q,
                               struct listsort_params params,
                               const char *after_each,
                               struct buf *sql)
{
    const char *value = sorts[q->sort].value, *number = strstr(value, "%d");
    (void)buf_addf(sql, "%s(%s)%s, ", q->ascending ? "NOT " : "", sorts[q->sort].known, after_each);
    if (number)
        (void)buf_addf(sql, "%.*s%d%s", (int)(number - value), value, params.now, number + 2);
    else
        (void)buf_adds(sql, value);
    (void)buf_addf(sql, "%s, %sseq%s", after_each, q->ascending ? "-" : "", after_each);
}

void listsort_add_after(const struct store_job_query *q,
                        struct listsort_params params,
                        struct buf *sql)
{
    (void)buf_adds(sql, " AND (");
    listsort_add_place(q, params, "", sql);
    (void)buf_addf(sql, ")%s(SELECT ", q->ascending ? ">" : "<");
    listsort_add_place(q, params, "", sql);
    (void)buf_addf(sql, " FROM job WHERE seq=?%d)", params.cursor);
}

void listsort_add_order(const struct store_job_query *q,
                        struct listsort_params params,
                        struct buf *sql)
{
    (void)buf_adds(sql, " ORDER BY ");
    listsort_add_place(q, params, q->ascending ? "" : " DESC", sql);
}
