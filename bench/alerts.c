/* SPDX-License-Identifier: Apache-2.0 */
/* alerts.c - one look of the shipped alert rules at a large cluster.
 *
 *   bench-alerts NODES GPUS JOBS
 *
 * So many nodes with so many GPUs each, and live jobs, with the facts that argusd makes of them;
 * all rules are asked about all of them, ROUNDS times each: while everything is well, while one GPU
 * in HOT_EVERY is too hot (its alert is open already), and the look at which all of those are new.
 * Prints lines of JSON: n is the number of subjects, each of which has the facts of its kind. */
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "base/text.h"
#include "bench.h"
#include "core/alert/alert_table.h"

enum { ROUNDS = 20, HOT_EVERY = 100, NAME_MAX_BYTES = 48 };
static const usec_t BEGIN = 1767225600 * USEC_SEC;

struct world {
    struct alert_table *table;
    struct alert_rules rules;
    size_t nodes, gpus, jobs;
    char (*names)[NAME_MAX_BYTES];  /* of nodes, GPUs and jobs */
    struct strv suspects, *of_node; /* of a node; of its GPUs */
    bool is_hot;
};

static void bench_name_all(struct world *w)
{
    char(*name)[NAME_MAX_BYTES] = w->names;
    strv_add(&w->suspects, "cluster/default");
    for (size_t i = 0; i < w->nodes; i++) {
        text_printf(*name++, "node%04zu", i);
        strv_addf(&w->of_node[i], "node/node%04zu", i);
        strv_add(&w->of_node[i], "cluster/default");
    }
    for (size_t i = 0; i < w->nodes * w->gpus; i++)
        text_printf(*name++, "node%04zu/%zu", i / w->gpus, i % w->gpus);
    for (size_t i = 0; i < w->jobs; i++)
        text_printf(*name++, "grpo-20260101-%06zu", i);
}

static void bench_see_nodes(struct world *w, usec_t now)
{
    static const struct alert_fact facts[] = {
        {"state", 0, "online"},    {"want", 0, "up"},       {"wanted", 0, "yes"},
        {"head", 0, "no"},         {"alive", 0, "yes"},     {"unhealthy", 0, "no"},
        {"ssh_away", 0, "no"},     {"reason", 0, "none"},   {"clock_skew", 0.01, NULL},
        {"disk_free", 5e11, NULL}, {"shm_free", 3e11, NULL}};
    for (size_t i = 0; i < w->nodes; i++) {
        const struct alert_subject s = {.of = ALERT_OF_NODE,
                                        .name = w->names[i],
                                        .v = facts,
                                        .n = array_len(facts),
                                        .suspects = &w->suspects,
                                        .gpus = (double)w->gpus};
        alert_table_see(w->table, &w->rules, &s, now);
    }
    alert_table_round(w->table, ALERT_OF_NODE, now);
}

static void bench_see_gpus(struct world *w, usec_t now)
{
    for (size_t i = 0; i < w->nodes * w->gpus; i++) {
        const struct alert_fact facts[] = {
            {"node", 0, w->names[i / w->gpus]},
            {"uuid", 0, "GPU-5b5b5b5b-0000-1111-2222-333344445555"},
            {"index", (double)(i % w->gpus), NULL},
            {"use", 0.93, NULL},
            {"temperature", w->is_hot && i % HOT_EVERY == 0 ? 91 : 64, NULL},
            {"xid", 0, NULL},
            {"ecc_uncorrected", 0, NULL},
            {"nvlinks", 18, NULL},
            {"rows_failed", 0, NULL},
            {"slowdown_temperature", 92, NULL}};
        const struct alert_subject s = {.of = ALERT_OF_GPU,
                                        .name = w->names[w->nodes + i],
                                        .v = facts,
                                        .n = array_len(facts),
                                        .suspects = &w->of_node[i / w->gpus],
                                        .gpus = 1};
        alert_table_see(w->table, &w->rules, &s, now);
    }
    alert_table_round(w->table, ALERT_OF_GPU, now);
}

static void bench_see_jobs(struct world *w, usec_t now)
{
    static const struct alert_fact facts[] = {
        {"user", 0, "alice"},        {"project", 0, "rlhf"},      {"workload", 0, "grpo"},
        {"state", 0, "RUNNING"},     {"gpus", 8, NULL},           {"gpu_use", 0.93, NULL},
        {"gpu_use_min", 0.9, NULL},  {"gpu_use_max", 0.97, NULL}, {"hung", 0, "no"},
        {"idle", 0, "no"},           {"held", 0, "no"},           {"unknown", 0, "no"},
        {"running_for", 7200, NULL}, {"attempts", 1, NULL}};
    for (size_t i = 0; i < w->jobs; i++) {
        const struct alert_subject s = {.of = ALERT_OF_JOB,
                                        .name = w->names[w->nodes * (w->gpus + 1) + i],
                                        .v = facts,
                                        .n = array_len(facts),
                                        .owner = "alice",
                                        .project = "rlhf",
                                        .suspects = &w->suspects,
                                        .gpus = 8};
        alert_table_see(w->table, &w->rules, &s, now);
    }
}

static uint64_t bench_look(struct world *w, usec_t now)
{
    uint64_t from = bench_now();
    bench_see_nodes(w, now);
    bench_see_gpus(w, now);
    bench_see_jobs(w, now);
    alert_table_tick(w->table, &w->rules, now);
    return bench_now() - from;
}

static size_t bench_open_alerts(const struct world *w)
{
    size_t open = 0;
    const struct incident *incident;
    for (size_t i = 0; (incident = incident_at(w->table, i)); i++)
        open += incident_open_alerts(incident);
    return open;
}

static void bench_rounds(struct world *w, const char *what, usec_t *now, int rounds)
{
    struct samples samples = {0};
    uint64_t start = bench_now();
    for (int i = 0; i < rounds; i++, *now += 2 * USEC_SEC)
        samples_add(&samples, bench_look(w, *now));
    bench_print(what, 1, w->nodes * (w->gpus + 1) + w->jobs, bench_now() - start, &samples);
    samples_release(&samples);
}

static size_t bench_number(const char *text)
{
    int64_t n = 0;
    if (str_to_int(text, 0, 1000000, &n, NULL) < 0)
        bench_die(text, "is no number");
    return (size_t)n;
}

int main(int argc, char **argv)
{
    static const unsigned char seed[16] = {7};
    usec_t now = BEGIN;
    if (argc != 4)
        bench_die("alerts", "bench-alerts NODES GPUS JOBS");
    struct world w = {.table = alert_table_new(seed),
                      .nodes = bench_number(argv[1]),
                      .gpus = bench_number(argv[2]),
                      .jobs = bench_number(argv[3])};
    w.names = xcalloc(w.nodes * (w.gpus + 1) + w.jobs + 1, sizeof(*w.names));
    w.of_node = xcalloc(w.nodes + 1, sizeof(*w.of_node));
    alert_rules_add_shipped(&w.rules);
    bench_name_all(&w);
    bench_rounds(&w, "all is well", &now, ROUNDS);
    w.is_hot = true;
    bench_rounds(&w, "GPUs are hot, pending", &now, 60); /* the rule waits 2 minutes */
    now += 2 * USEC_SEC;
    bench_rounds(&w, "the look that fires", &now, 1);
    if (bench_open_alerts(&w) < w.nodes * w.gpus / HOT_EVERY)
        bench_die("alerts", "the hot GPUs have no alerts");
    bench_rounds(&w, "GPUs are hot, told", &now, ROUNDS);
    for (size_t i = 0; i < w.nodes; i++)
        strv_release(&w.of_node[i]);
    strv_release(&w.suspects);
    alert_rules_release(&w.rules);
    alert_table_free(w.table);
    free(w.of_node);
    free(w.names);
    return 0;
}
