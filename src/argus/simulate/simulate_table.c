/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_table.c - see simulate_table.h. Policies of one pool stand below each other, the
 * simplest first. */
#include "argus/simulate/simulate_table.h"

#include "argus/show/table.h"
#include "core/sched/sched.h"

static const struct column POOLS[] = {
    {.title = "say_pool", .flags = COLUMN_FLEX, .least = 6},
    {.title = "say_gang", .flags = COLUMN_RIGHT, .rank = 5},
    {.title = "say_jobs", .flags = COLUMN_RIGHT, .rank = 6},
    {.title = "say_load", .flags = COLUMN_RIGHT, .rank = 7},
    {.title = "say_policy"},
    {.title = "say_util", .flags = COLUMN_RIGHT},
    {.title = "say_mean_wait", .flags = COLUMN_RIGHT},
    {.title = "say_p50", .flags = COLUMN_RIGHT, .rank = 4},
    {.title = "say_p95", .flags = COLUMN_RIGHT},
    {.title = "say_max", .flags = COLUMN_RIGHT, .rank = 3},
    {.title = "say_slowdown", .flags = COLUMN_RIGHT, .rank = 9},
    {.title = "say_fragmented", .flags = COLUMN_RIGHT, .rank = 8},
    {.title = "say_starved", .flags = COLUMN_RIGHT, .rank = 10},
    {.title = "say_never", .flags = COLUMN_RIGHT | COLUMN_WIDE},
    {.title = "say_eta_p90", .flags = COLUMN_RIGHT, .rank = 2},
};

static const struct column GANGS[] = {
    {.title = "say_gang_gpus"},
    {.title = "say_policy"},
    {.title = "say_jobs", .flags = COLUMN_RIGHT, .rank = 1},
    {.title = "say_mean_wait", .flags = COLUMN_RIGHT},
    {.title = "say_p50", .flags = COLUMN_RIGHT},
    {.title = "say_p95", .flags = COLUMN_RIGHT},
    {.title = "say_max", .flags = COLUMN_RIGHT},
};

static void add_share(struct table *t, const json_t *v)
{
    if (json_is_number(v))
        table_addf(t, STYLE_PLAIN, "%.1f%%", 100 * json_number_value(v));
    else
        table_add(t, STYLE_PLAIN, NULL);
}

static void add_span(struct table *t, const json_t *waits, const char *key)
{
    char text[CLOCK_TEXT_MAX];
    double seconds = json_get_real(waits, key, 0);
    table_add(t, STYLE_PLAIN, span_to_string((usec_t)(seconds + 0.5) * USEC_SEC, text));
}

static void add_count(struct table *t, const json_t *of, const char *key)
{
    table_addf(t, STYLE_PLAIN, "%lld", (long long)json_get_int(of, key, 0));
}

static void add_waits(struct table *t, const json_t *waits)
{
    add_span(t, waits, "mean");
    add_span(t, waits, "p50");
    add_span(t, waits, "p95");
    add_span(t, waits, "max");
}

static void add_numbers(struct table *t, const json_t *part)
{
    add_share(t, json_object_get(part, "utilisation"));
    add_waits(t, json_object_get(part, "wait"));
    table_addf(t, STYLE_PLAIN, "%.1f", json_get_real(part, "bounded_slowdown", 0));
    add_share(t, json_object_get(part, "fragmentation"));
    add_count(t, json_object_get(part, "starvation"), "beyond");
    add_count(t, part, "never_started");
    add_share(t, json_object_get(json_object_get(part, "eta"), "p90_covers"));
}

/* The policies of the result, the simplest first; false after the last. */
static bool next_policy(const json_t *result, int *k, const char **ret_word, const json_t **ret)
{
    while (++*k < SCHED_POLICY_END) {
        *ret_word = sched_policy_to_string((enum sched_policy) * k);
        *ret = json_object_get(json_object_get(result, "policies"), *ret_word);
        if (*ret)
            return true;
    }
    return false;
}

static void simulate_table_add_pool(struct table *t, const json_t *result, const char *name)
{
    const char *word;
    const json_t *policy;
    int64_t gpus = json_get_int(json_object_get(result, "options"), "gpus_per_node", 0);
    for (int k = -1; next_policy(result, &k, &word, &policy);) {
        const json_t *pool = json_object_get(json_object_get(policy, "pools"), name);
        table_add(t, STYLE_BOLD, name);
        table_addf(t, STYLE_PLAIN, "%lld×%lld", (long long)json_get_int(pool, "nodes", 0),
                   (long long)gpus);
        add_count(t, pool, "jobs");
        table_addf(t, STYLE_PLAIN, "%.2f", json_get_real(pool, "load", 0));
        table_add(t, STYLE_PLAIN, word);
        add_numbers(t, pool);
    }
}

static void simulate_table_add_all(struct table *t, const json_t *result)
{
    const char *word;
    const json_t *policy;
    for (int k = -1; next_policy(result, &k, &word, &policy);) {
        table_add(t, STYLE_BOLD, "all");
        add_count(t, policy, "gpus");
        add_count(t, policy, "jobs");
        table_add(t, STYLE_PLAIN, NULL);
        table_add(t, STYLE_PLAIN, word);
        add_numbers(t, policy);
    }
}

static void add_gang(struct table *t, const json_t *result, const char *class)
{
    const char *word;
    const json_t *policy;
    for (int k = -1; next_policy(result, &k, &word, &policy);) {
        const json_t *waits = json_object_get(json_object_get(policy, "gangs"), class);
        if (!json_get_int(waits, "jobs", 0))
            continue;
        table_add(t, STYLE_BOLD, class);
        table_add(t, STYLE_PLAIN, word);
        add_count(t, waits, "jobs");
        add_waits(t, waits);
    }
}

void simulate_table(const json_t *result, const struct term *term, bool wide, FILE *out)
{
    _cleanup_(table_freep) struct table *pools = table_new(POOLS, array_len(POOLS));
    _cleanup_(table_freep) struct table *gangs = table_new(GANGS, array_len(GANGS));
    const char *word, *name;
    const json_t *first = NULL, *its_pools;
    json_t *of;
    int k = -1;
    (void)next_policy(result, &k, &word, &first); /* there is one */
    its_pools = json_object_get(first, "pools");
    json_object_foreach ((json_t *)(uintptr_t)its_pools, name, of)
        simulate_table_add_pool(pools, result, name);
    if (json_object_size(its_pools) > 1)
        simulate_table_add_all(pools, result);
    json_object_foreach (json_object_get(first, "gangs"), name, of)
        add_gang(gangs, result, name);
    (void)table_print(pools, term, wide, out); /* -o wide has them all */
    (void)fputs("\n", out);
    (void)table_print(gangs, term, wide, out);
    (void)fprintf(out, "\nhash %s\n", json_get_str(result, "hash", ""));
}
