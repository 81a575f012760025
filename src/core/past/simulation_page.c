/* SPDX-License-Identifier: Apache-2.0 */
/* simulation_page.c - the result of a simulation as a page, from tables: what its schema in
 * openapi.json is made of. Spans are seconds. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/str.h"
#include "base/text.h"
#include "core/past/simulation.h"

#define MAP_OF(name)                                                                               \
    "{\"type\":\"object\",\"additionalProperties\":{\"$ref\":\"#/components/schemas/" name "\"}}"

/* ---- waits ---- */

struct waits_page {
    int64_t jobs;
    double mean, p50, p95, max;
};
#define WAITS(member, ftype, ...) FIELD_AT(waits_page, #member, ftype, member, __VA_ARGS__)
static const struct field waits_rows[] = {
    WAITS(jobs, FIELD_INT, .doc = "jobs that started"),
    WAITS(mean, FIELD_REAL, .doc = "seconds, as all others here"),
    WAITS(p50, FIELD_REAL),
    WAITS(p95, FIELD_REAL),
    WAITS(max, FIELD_REAL),
};
const struct field_table simulation_waits_table =
    FIELD_TABLE("SimulationWaits", waits_rows, waits_page);

/* ---- one pool, or all, under one policy ---- */

struct part_page {
    double utilisation;
    struct waits_page wait;
    char *gangs;
    int64_t jobs, never, gpus;
    double under_load, fragmentation, slowdown, last_end;
    double max_wait, bound;
    int64_t beyond, samples, unforeseen;
    double covers, error;
    int64_t broken, preempted, set_backs;
    double away, wasted;
};
#define PART(key, ftype, member, ...) FIELD_AT(part_page, key, ftype, member, __VA_ARGS__)
static const struct field part_rows[] = {
    PART("utilisation",
         FIELD_REAL,
         utilisation,
         .doc = "GPU-seconds used of those offered, 0 to 1"),
    PART("wait", FIELD_OBJECT, wait, .of = &simulation_waits_table),
    PART("gangs",
         FIELD_JSON,
         gangs,
         .flags = FIELD_ALWAYS,
         .schema = MAP_OF("SimulationWaits"),
         .doc = "waits by the GPUs of a job: 1, 2-4, 5-8, 9-16, >16"),
    PART("jobs", FIELD_INT, jobs),
    PART("never_started", FIELD_INT, never, .doc = "larger than the pool"),
    PART("gpus", FIELD_INT, gpus),
    PART("utilisation_while_waiting",
         FIELD_REAL,
         under_load,
         .flags = FIELD_MAYBE,
         .doc = "while at least one job waited; null: none ever did"),
    PART("fragmentation",
         FIELD_REAL,
         fragmentation,
         .doc = "GPU-time free while a waiting job needed no more than was free"),
    PART("bounded_slowdown", FIELD_REAL, slowdown),
    PART("last_end", FIELD_REAL, last_end, .doc = "end of the last job, after the start"),
    PART("starvation.max_wait", FIELD_REAL, max_wait),
    PART("starvation.bound", FIELD_REAL, bound),
    PART("starvation.beyond", FIELD_INT, beyond, .doc = "jobs that waited longer than the bound"),
    PART("eta.samples", FIELD_INT, samples, .doc = "jobs whose start was foretold"),
    PART("eta.unforeseen", FIELD_INT, unforeseen),
    PART("eta.p90_covers",
         FIELD_REAL,
         covers,
         .flags = FIELD_MAYBE,
         .doc = "share that had started by the time foretold with 90 %"),
    PART("eta.median_error", FIELD_REAL, error),
    PART("promises_broken", FIELD_INT, broken),
    PART("preemptions", FIELD_INT, preempted),
    PART("set_backs.most", FIELD_INT, set_backs, .doc = "times that one job gave way under flow"),
    PART("set_backs.longest",
         FIELD_REAL,
         away,
         .doc = "longest time that one job then waited to go on"),
    PART("set_backs.cost",
         FIELD_REAL,
         wasted,
         .doc = "share of the GPU-time in use that saving and starting again took"),
};
const struct field_table simulation_part_table =
    FIELD_TABLE("SimulationPart", part_rows, part_page);

struct pool_page {
    int64_t nodes;
    double load;
    struct part_page part;
};
static const struct field pool_rows[] = {
    FIELD_AT(pool_page, "nodes", FIELD_INT, nodes),
    FIELD_AT(pool_page, "load", FIELD_REAL, load, .doc = "GPU-time wanted by that offered"),
    FIELD_AT(pool_page, "", FIELD_INLINE, part, .of = &simulation_part_table),
};
const struct field_table simulation_pool_table =
    FIELD_TABLE("SimulationPool", pool_rows, pool_page);

struct policy_page {
    struct part_page part;
    char *pools;
    struct field_list used, queue;
};
static const struct field policy_rows[] = {
    FIELD_AT(policy_page, "", FIELD_INLINE, part, .of = &simulation_part_table),
    FIELD_AT(policy_page,
             "pools",
             FIELD_JSON,
             pools,
             .flags = FIELD_ALWAYS,
             .schema = MAP_OF("SimulationPool")),
    FIELD_AT(policy_page, "used", FIELD_REALS, used, .doc = "GPUs in use, the mean of each bucket"),
    FIELD_AT(policy_page, "queue", FIELD_REALS, queue, .doc = "jobs that waited, likewise"),
};
const struct field_table simulation_policy_table =
    FIELD_TABLE("SimulationPolicy", policy_rows, policy_page);

/* ---- the whole ---- */

struct simulation_whole {
    const char *trace;
    int64_t nodes;
    double load;
    int64_t gpus_per_node, seed;
    double guess[2];
    struct field_list its_guess;
    bool learner;
    usec_t start;
    double span, bucket;
    char *policies;
    char hash[17];
};
#define WHOLE(key, ftype, member, ...) FIELD_AT(simulation_whole, key, ftype, member, __VA_ARGS__)
static const struct field whole_rows[] = {
    WHOLE("options.trace", FIELD_STR, trace, .flags = FIELD_ALWAYS),
    WHOLE("options.nodes", FIELD_INT, nodes, .flags = FIELD_OMIT, .doc = "nodes of each pool"),
    WHOLE("options.load",
          FIELD_REAL,
          load,
          .flags = FIELD_OMIT,
          .doc = "where nodes are not given"),
    WHOLE("options.gpus_per_node", FIELD_INT, gpus_per_node),
    WHOLE("options.seed", FIELD_INT, seed),
    WHOLE("options.guess",
          FIELD_REALS,
          its_guess,
          .doc = "a job's limit is its run times a factor between these two"),
    WHOLE("options.learner", FIELD_BOOL, learner),
    WHOLE("start", FIELD_TIME, start, .flags = FIELD_ALWAYS, .doc = "time of the first submission"),
    WHOLE("span", FIELD_REAL, span, .doc = "to the last submission"),
    WHOLE("bucket", FIELD_REAL, bucket, .doc = "width of a step of the curves"),
    WHOLE("policies",
          FIELD_JSON,
          policies,
          .flags = FIELD_ALWAYS,
          .schema = MAP_OF("SimulationPolicy")),
    WHOLE("hash", FIELD_TEXT, hash, .size = 17, .doc = "a digest of every decision"),
};
const struct field_table simulation_table =
    FIELD_TABLE("SimulationResult", whole_rows, simulation_whole);

static struct waits_page waits_of(const struct tally_waits *w)
{
    return (struct waits_page){
        .jobs = (int64_t)w->jobs, .mean = w->mean, .p50 = w->p50, .p95 = w->p95, .max = w->max};
}

/* An object that is written member by member, as text. */
static char *object_taken(struct jout *j, struct buf *out)
{
    jout_close(j, '}');
    return buf_take(out);
}

static char *gangs_of(const struct tally_report *r)
{
    struct buf out = BUF_INIT(SIMULATION_OUT_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    for (size_t i = 0; i < TALLY_CLASSES; i++) {
        struct waits_page waits = waits_of(&r->classes[i]);
        field_to_json(&simulation_waits_table, &waits, FIELD_ALL, FIELD_PAGE, &j,
                      tally_class_name(i));
    }
    return object_taken(&j, &out);
}

/* part->gangs is heap. */
static void fill_part(const struct tally_report *r, struct part_page *ret)
{
    *ret = (struct part_page){.utilisation = r->utilisation,
                              .wait = waits_of(&r->wait),
                              .gangs = gangs_of(r),
                              .jobs = (int64_t)r->jobs,
                              .never = (int64_t)r->never,
                              .gpus = r->gpus,
                              .under_load = r->under_load,
                              .fragmentation = r->fragmentation,
                              .slowdown = r->slowdown,
                              .last_end = r->last_end,
                              .max_wait = r->wait.max,
                              .bound = (double)simulation_bound() / 1e6,
                              .beyond = (int64_t)r->beyond,
                              .samples = (int64_t)r->forecasts,
                              .unforeseen = (int64_t)r->unforeseen,
                              .covers = r->covered,
                              .error = r->error,
                              .broken = (int64_t)r->broken,
                              .preempted = (int64_t)r->preempted,
                              .set_backs = (int64_t)r->set_backs,
                              .away = r->away,
                              .wasted = r->wasted};
}

static char *pools_of(const struct simulation *s, const struct simulation_run *run)
{
    struct buf out = BUF_INIT(SIMULATION_OUT_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    for (size_t i = 0; i < s->n_pools; i++) {
        struct pool_page page = {.nodes = s->pools[i].nodes,
                                 .load = simulation_load(s, &s->pools[i])};
        fill_part(&run->pools[i], &page.part);
        field_to_json(&simulation_pool_table, &page, FIELD_ALL, FIELD_PAGE, &j, s->pools[i].name);
        free(page.part.gangs);
    }
    return object_taken(&j, &out);
}

/* To three digits behind the point: what a picture shows. */
static void round_curve(const double *from, double to[static TALLY_BUCKETS])
{
    for (size_t i = 0; i < TALLY_BUCKETS; i++)
        to[i] = round(from[i] * 1000) / 1000;
}

static void put_policy(const struct simulation *s,
                       const struct simulation_run *run,
                       struct jout *j,
                       const char *key)
{
    double used[TALLY_BUCKETS], queue[TALLY_BUCKETS];
    struct policy_page page = {
        .pools = pools_of(s, run), .used = {used, TALLY_BUCKETS}, .queue = {queue, TALLY_BUCKETS}};
    round_curve(tally_used(run->tally), used);
    round_curve(tally_queue(run->tally), queue);
    fill_part(&run->report, &page.part);
    field_to_json(&simulation_policy_table, &page, FIELD_ALL, FIELD_PAGE, j, key);
    free(page.part.gangs);
    free(page.pools);
}

static char *policies_of(const struct simulation *s)
{
    struct buf out = BUF_INIT(SIMULATION_OUT_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    for (int p = SCHED_POLICY_END - 1; p >= 0; p--)
        if (s->runs[p].tally)
            put_policy(s, &s->runs[p], &j, sched_policy_to_string((enum sched_policy)p));
    return object_taken(&j, &out);
}

void simulation_page(const struct simulation *s, struct buf *out)
{
    const struct simulation_opts *o = &s->opts;
    struct jout j = jout_begin(out);
    struct simulation_whole page = {.trace = o->name,
                                    .nodes = o->nodes,
                                    .load = o->nodes ? 0 : o->load,
                                    .gpus_per_node = o->gpus_per_node,
                                    .seed = (int64_t)o->seed,
                                    .guess = {o->guess_low, o->guess_high},
                                    .learner = o->learner,
                                    .start = s->start,
                                    .span = (double)s->span / 1e6,
                                    .bucket = (double)(s->span / TALLY_BUCKETS) / 1e6,
                                    .policies = policies_of(s)};
    page.its_guess = (struct field_list){page.guess, 2};
    text_printf(page.hash, "%016" PRIx64, s->digest);
    field_to_json(&simulation_table, &page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    free(page.policies);
    (void)buf_addc(out, '\n'); /* overflow: the caller looks at out->failed */
}
