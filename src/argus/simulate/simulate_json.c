/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_json.c - the result of a simulation as one JSON object. Spans are seconds. */
#include <inttypes.h>

#include "argus/simulate/simulate.h"
#include "base/json.h"
#include "base/text.h"

static void add_waits(struct jout *j, const char *key, const struct tally_waits *w, bool jobs)
{
    jout_open(j, key, '{');
    if (jobs)
        jout_int(j, "jobs", (int64_t)w->jobs);
    jout_real(j, "mean", w->mean);
    jout_real(j, "p50", w->p50);
    jout_real(j, "p95", w->p95);
    jout_real(j, "max", w->max);
    jout_close(j, '}');
}

static void add_members(struct jout *j, const struct tally_report *r)
{
    jout_real(j, "utilisation", r->utilisation);
    add_waits(j, "wait", &r->wait, false);
    jout_open(j, "gangs", '{');
    for (size_t i = 0; i < TALLY_CLASSES; i++)
        add_waits(j, tally_class_name(i), &r->classes[i], true);
    jout_close(j, '}');
    jout_int(j, "jobs", (int64_t)r->jobs);
    jout_int(j, "never_started", (int64_t)r->never);
    jout_int(j, "gpus", r->gpus);
    jout_real(j, "utilisation_while_waiting", r->under_load);
    jout_real(j, "fragmentation", r->fragmentation);
    jout_real(j, "bounded_slowdown", r->slowdown);
    jout_real(j, "last_end", r->last_end);
    jout_open(j, "starvation", '{');
    jout_real(j, "max_wait", r->wait.max);
    jout_real(j, "bound", (double)simulate_bound() / 1e6);
    jout_int(j, "beyond", (int64_t)r->beyond);
    jout_close(j, '}');
    jout_open(j, "eta", '{');
    jout_int(j, "samples", (int64_t)r->forecasts);
    jout_int(j, "unforeseen", (int64_t)r->unforeseen);
    jout_real(j, "p90_covers", r->covered);
    jout_real(j, "median_error", r->error);
    jout_close(j, '}');
    jout_int(j, "promises_broken", (int64_t)r->broken);
    jout_int(j, "preemptions", (int64_t)r->preempted);
}

static void simulate_json_add_pool(struct jout *j,
                                   const struct simulation *s,
                                   const struct simulate_pool *p,
                                   const struct tally_report *r)
{
    jout_open(j, p->name, '{');
    jout_int(j, "nodes", p->nodes);
    jout_real(j, "load", simulate_load(s, p));
    add_members(j, r);
    jout_close(j, '}');
}

static void add_options(struct jout *j, const struct simulation *s)
{
    const struct simulate_opts *o = &s->opts;
    jout_open(j, "options", '{');
    jout_str(j, "trace", o->file);
    if (o->nodes)
        jout_int(j, "nodes", o->nodes);
    else
        jout_real(j, "load", o->load);
    jout_int(j, "gpus_per_node", o->gpus_per_node);
    jout_int(j, "seed", (int64_t)o->seed);
    jout_open(j, "guess", '[');
    jout_real(j, NULL, o->guess_low);
    jout_real(j, NULL, o->guess_high);
    jout_close(j, ']');
    jout_bool(j, "learner", o->learner);
    jout_close(j, '}');
    jout_time(j, "start", s->start);
    jout_real(j, "span", (double)s->span / 1e6);
}

void simulate_json(const struct simulation *s, struct buf *out)
{
    char hash[17];
    struct jout j = jout_begin(out);
    jout_open(&j, NULL, '{');
    add_options(&j, s);
    jout_open(&j, "policies", '{');
    for (int p = SCHED_POLICY_END - 1; p >= 0; p--) {
        const struct simulate_run *run = &s->runs[p];
        if (!run->tally)
            continue;
        jout_open(&j, sched_policy_to_string((enum sched_policy)p), '{');
        add_members(&j, &run->report);
        jout_open(&j, "pools", '{');
        for (size_t i = 0; i < s->n_pools; i++)
            simulate_json_add_pool(&j, s, &s->pools[i], &run->pools[i]);
        jout_close(&j, '}');
        jout_close(&j, '}');
    }
    jout_close(&j, '}');
    text_printf(hash, "%016" PRIx64, s->digest);
    jout_str(&j, "hash", hash);
    jout_close(&j, '}');
    (void)buf_addc(out, '\n'); /* overflow: the caller looks at out->failed */
}
