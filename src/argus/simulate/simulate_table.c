/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_table.c - see simulate_table.h. Policies of one pool stand below each other. */
#include "argus/simulate/simulate_table.h"

#include <inttypes.h>
#include <math.h>

#include "argus/show/table.h"

static const struct column POOLS[] = {
    {.title = MSG_POOL, .flags = COLUMN_FLEX, .least = 6},
    {.title = MSG_GANG, .flags = COLUMN_RIGHT, .rank = 5},
    {.title = MSG_JOBS, .flags = COLUMN_RIGHT, .rank = 6},
    {.title = MSG_LOAD, .flags = COLUMN_RIGHT, .rank = 7},
    {.title = MSG_POLICY},
    {.title = MSG_UTIL, .flags = COLUMN_RIGHT},
    {.title = MSG_MEAN_WAIT, .flags = COLUMN_RIGHT},
    {.title = MSG_P50, .flags = COLUMN_RIGHT, .rank = 4},
    {.title = MSG_P95, .flags = COLUMN_RIGHT},
    {.title = MSG_MAX, .flags = COLUMN_RIGHT, .rank = 3},
    {.title = MSG_SLOWDOWN, .flags = COLUMN_RIGHT, .rank = 9},
    {.title = MSG_FRAGMENTED, .flags = COLUMN_RIGHT, .rank = 8},
    {.title = MSG_STARVED, .flags = COLUMN_RIGHT, .rank = 10},
    {.title = MSG_NEVER, .flags = COLUMN_RIGHT | COLUMN_WIDE},
    {.title = MSG_ETA_P90, .flags = COLUMN_RIGHT, .rank = 2},
};

static const struct column GANGS[] = {
    {.title = MSG_GANG_GPUS},
    {.title = MSG_POLICY},
    {.title = MSG_JOBS, .flags = COLUMN_RIGHT, .rank = 1},
    {.title = MSG_MEAN_WAIT, .flags = COLUMN_RIGHT},
    {.title = MSG_P50, .flags = COLUMN_RIGHT},
    {.title = MSG_P95, .flags = COLUMN_RIGHT},
    {.title = MSG_MAX, .flags = COLUMN_RIGHT},
};

static void add_share(struct table *t, double v)
{
    if (isnan(v))
        table_add(t, STYLE_PLAIN, NULL);
    else
        table_addf(t, STYLE_PLAIN, "%.1f%%", 100 * v);
}

static void add_span(struct table *t, double seconds)
{
    char text[CLOCK_TEXT_MAX];
    table_add(t, STYLE_PLAIN, span_to_string((usec_t)(seconds + 0.5) * USEC_SEC, text));
}

static void add_numbers(struct table *t, const struct tally_report *r)
{
    add_share(t, r->utilisation);
    add_span(t, r->wait.mean);
    add_span(t, r->wait.p50);
    add_span(t, r->wait.p95);
    add_span(t, r->wait.max);
    table_addf(t, STYLE_PLAIN, "%.1f", r->slowdown);
    add_share(t, r->fragmentation);
    table_addf(t, STYLE_PLAIN, "%zu", r->beyond);
    table_addf(t, STYLE_PLAIN, "%zu", r->never);
    add_share(t, r->covered);
}

static void simulate_table_add_pool(struct table *t, const struct simulation *s, size_t i)
{
    const struct simulate_pool *p = &s->pools[i];
    for (int k = 0; k < SCHED_POLICY_END; k++) {
        if (!s->runs[k].tally)
            continue;
        table_add(t, STYLE_BOLD, p->name);
        table_addf(t, STYLE_PLAIN, "%d×%d", p->nodes, p->gpus_per_node);
        table_addf(t, STYLE_PLAIN, "%zu", p->n);
        table_addf(t, STYLE_PLAIN, "%.2f", simulate_load(s, p));
        table_add(t, STYLE_PLAIN, sched_policy_to_string((enum sched_policy)k));
        add_numbers(t, &s->runs[k].pools[i]);
    }
}

static void simulate_table_add_all(struct table *t, const struct simulation *s)
{
    for (int k = 0; k < SCHED_POLICY_END; k++) {
        const struct simulate_run *run = &s->runs[k];
        if (!run->tally)
            continue;
        table_add(t, STYLE_BOLD, "all");
        table_addf(t, STYLE_PLAIN, "%d", run->report.gpus);
        table_addf(t, STYLE_PLAIN, "%zu", run->report.jobs);
        table_add(t, STYLE_PLAIN, NULL);
        table_add(t, STYLE_PLAIN, sched_policy_to_string((enum sched_policy)k));
        add_numbers(t, &run->report);
    }
}

static void add_gangs(struct table *t, const struct simulation *s)
{
    for (size_t c = 0; c < TALLY_CLASSES; c++)
        for (int k = 0; k < SCHED_POLICY_END; k++) {
            const struct tally_waits *w = &s->runs[k].report.classes[c];
            if (!s->runs[k].tally || !w->jobs)
                continue;
            table_add(t, STYLE_BOLD, tally_class_name(c));
            table_add(t, STYLE_PLAIN, sched_policy_to_string((enum sched_policy)k));
            table_addf(t, STYLE_PLAIN, "%zu", w->jobs);
            add_span(t, w->mean);
            add_span(t, w->p50);
            add_span(t, w->p95);
            add_span(t, w->max);
        }
}

void simulate_table(const struct simulation *s, const struct term *term, bool wide, FILE *out)
{
    _cleanup_(table_freep) struct table *pools = table_new(POOLS, array_len(POOLS));
    _cleanup_(table_freep) struct table *gangs = table_new(GANGS, array_len(GANGS));
    for (size_t i = 0; i < s->n_pools; i++)
        simulate_table_add_pool(pools, s, i);
    if (s->n_pools > 1)
        simulate_table_add_all(pools, s);
    add_gangs(gangs, s);
    (void)table_print(pools, term, wide, out); /* -o wide has them all */
    (void)fputs("\n", out);
    (void)table_print(gangs, term, wide, out);
    (void)fprintf(out, "\nhash %016" PRIx64 "\n", s->digest);
}
