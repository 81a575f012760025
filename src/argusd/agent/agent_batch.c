/* SPDX-License-Identifier: Apache-2.0 */
/* agent_batch.c - one message to the ops agent: events, figures, or both; see agent_run.h.
 *
 * Events are those of GET /v1/events, for the eyes of the agent's token. Figures are of now, and of
 * running jobs alone: what each training says, and what the nodes and GPUs of its lease do. Where
 * the figures of all do not fit, those that were left out come first in the next batch. */
#include <math.h>
#include <string.h>

#include "argusd/agent/agent_run.h"
#include "argusd/api/events.h"
#include "argusd/api/routes.h"
#include "argusd/figures/figures.h"
#include "base/digest/hash.h"
#include "base/log.h"
#include "base/text.h"

/* ---- what a message looks like ---- */

struct agent_gpu_page {
    int gpu;
    const char *uuid;
    double util, mem_used, mem_total, power, temperature;
};
#define GPU(key, member) FIELD_AT(agent_gpu_page, key, FIELD_REAL, member, .flags = FIELD_MAYBE)
static const struct field agent_gpu_rows[] = {
    FIELD_AT(agent_gpu_page, "gpu", FIELD_INT32, gpu),
    FIELD_AT(agent_gpu_page, "uuid", FIELD_STR, uuid, .doc = "null where it was not told"),
    GPU("gpu_util_ratio", util),
    GPU("gpu_mem_used_bytes", mem_used),
    GPU("gpu_mem_total_bytes", mem_total),
    GPU("gpu_power_watts", power),
    GPU("gpu_temperature_celsius", temperature),
};
static const struct field_table agent_gpu_table = FIELD_TABLE(NULL, agent_gpu_rows, agent_gpu_page);

struct agent_node_page {
    const char *node;
    double cpu_util, mem_used, mem_total, net_sent, net_received, rdma_sent, rdma_received;
    struct field_list gpus;
};
#define NODE(key, member) FIELD_AT(agent_node_page, key, FIELD_REAL, member, .flags = FIELD_MAYBE)
static const struct field agent_node_rows[] = {
    FIELD_AT(agent_node_page, "node", FIELD_STR, node, .flags = FIELD_ALWAYS),
    NODE("cpu_util_ratio", cpu_util),
    NODE("mem_used_bytes", mem_used),
    NODE("mem_total_bytes", mem_total),
    NODE("net_sent_bytes_per_second", net_sent),
    NODE("net_received_bytes_per_second", net_received),
    NODE("net_rdma_sent_bytes_per_second", rdma_sent),
    NODE("net_rdma_received_bytes_per_second", rdma_received),
    FIELD_AT(agent_node_page, "gpus", FIELD_LIST, gpus, .of = &agent_gpu_table),
};
static const struct field_table agent_node_table =
    FIELD_TABLE(NULL, agent_node_rows, agent_node_page);

struct agent_figures_page {
    const char *job, *user, *project, *state;
    int attempt;
    usec_t at;
    const char *training;
    struct field_list nodes;
};
#define JOB(key, ftype, member, ...) FIELD_AT(agent_figures_page, key, ftype, member, __VA_ARGS__)
static const struct field agent_figures_rows[] = {
    JOB("job", FIELD_STR, job, .flags = FIELD_ALWAYS),
    JOB("user", FIELD_STR, user, .flags = FIELD_ALWAYS),
    JOB("project", FIELD_STR, project, .flags = FIELD_ALWAYS),
    JOB("state", FIELD_STR, state, .flags = FIELD_ALWAYS, .schema = "JobState"),
    JOB("attempt", FIELD_INT32, attempt),
    JOB("at", FIELD_TIME, at, .flags = FIELD_ALWAYS),
    JOB("training",
        FIELD_JSON,
        training,
        .schema = REF_OR_NULL("Training"),
        .doc = "null until it tells of a step"),
    JOB("nodes", FIELD_LIST, nodes, .of = &agent_node_table, .doc = "nodes of the job's lease"),
};
const struct field_table agent_figures_table =
    FIELD_TABLE("AgentFigures", agent_figures_rows, agent_figures_page);

static const struct field agent_gap_rows[] = {
    FIELD_AT(agent_gap, "since", FIELD_INT, since),
    FIELD_AT(agent_gap, "next", FIELD_INT, next),
};
const struct field_table agent_gap_table = FIELD_TABLE(NULL, agent_gap_rows, agent_gap);

struct agent_batch_page {
    const char *schema, *type, *id, *cluster, *events, *figures;
    usec_t sent_at;
    int64_t since, next, figures_left;
    const struct agent_gap *gap;
};
#define BATCH(key, ftype, member, ...) FIELD_AT(agent_batch_page, key, ftype, member, __VA_ARGS__)
static const struct field agent_batch_rows[] = {
    BATCH("schema", FIELD_STR, schema, .schema = WORDS("\"" AGENT_SCHEMA "\"")),
    BATCH("type", FIELD_STR, type, .schema = WORDS("\"batch\"")),
    BATCH("id", FIELD_STR, id, .flags = FIELD_ALWAYS, .doc = "id of this message"),
    BATCH("cluster", FIELD_STR, cluster, .flags = FIELD_ALWAYS),
    BATCH("sent_at", FIELD_TIME, sent_at, .flags = FIELD_ALWAYS),
    BATCH("since", FIELD_INT, since, .doc = "its events have a higher seq than this"),
    BATCH("next", FIELD_INT, next, .doc = "and none higher than this: the next batch's since"),
    BATCH("gap",
          FIELD_PART,
          gap,
          .of = &agent_gap_table,
          .doc = "events after gap.since up to gap.next are not pushed: ask GET /v1/events"),
    BATCH("events", FIELD_JSON, events, .flags = FIELD_ALWAYS, .schema = LIST(REF("Event"))),
    BATCH("figures",
          FIELD_JSON,
          figures,
          .flags = FIELD_ALWAYS,
          .schema = LIST(REF("AgentFigures"))),
    BATCH("figures_left",
          FIELD_INT,
          figures_left,
          .doc = "running jobs that did not fit: they come first in the next batch"),
};
const struct field_table agent_batch_table =
    FIELD_TABLE("AgentBatch", agent_batch_rows, agent_batch_page);

/* ---- figures ---- */

static double agent_figure(const struct agent *g, const char *node, enum figure f, int gpu)
{
    return figures_now(g->a->figures, node, f, gpu);
}

static void fill_gpu(const struct agent *g, const char *node, int gpu, struct agent_gpu_page *ret)
{
    const char *uuid = figures_uuid(g->a->figures, node, gpu);
    *ret =
        (struct agent_gpu_page){.gpu = gpu,
                                .uuid = *uuid ? uuid : NULL,
                                .util = agent_figure(g, node, FIGURE_GPU_UTIL, gpu),
                                .mem_used = agent_figure(g, node, FIGURE_GPU_MEM_USED, gpu),
                                .mem_total = agent_figure(g, node, FIGURE_GPU_MEM_TOTAL, gpu),
                                .power = agent_figure(g, node, FIGURE_GPU_POWER, gpu),
                                .temperature = agent_figure(g, node, FIGURE_GPU_TEMPERATURE, gpu)};
}

/* gpus has room for GANG_GPUS_MAX. */
static void fill_node(const struct agent *g,
                      const struct gang_node *of,
                      struct agent_gpu_page *gpus,
                      struct agent_node_page *ret)
{
    size_t n = 0;
    for (int i = 0; i < GANG_GPUS_MAX; i++)
        if (of->gpus >> i & 1)
            fill_gpu(g, of->name, i, &gpus[n++]);
    *ret = (struct agent_node_page){
        .node = of->name,
        .cpu_util = agent_figure(g, of->name, FIGURE_CPU_UTIL, -1),
        .mem_used = agent_figure(g, of->name, FIGURE_MEM_USED, -1),
        .mem_total = agent_figure(g, of->name, FIGURE_MEM_TOTAL, -1),
        .net_sent = agent_figure(g, of->name, FIGURE_NET_SENT, -1),
        .net_received = agent_figure(g, of->name, FIGURE_NET_RECEIVED, -1),
        .rdma_sent = agent_figure(g, of->name, FIGURE_RDMA_SENT, -1),
        .rdma_received = agent_figure(g, of->name, FIGURE_RDMA_RECEIVED, -1),
        .gpus = {.v = gpus, .n = n}};
}

static void put_figures(const struct agent *g, const struct live *l, usec_t now, struct jout *j)
{
    const struct job *job = l->job;
    size_t n = job->gang.n;
    struct agent_node_page *nodes = xcalloc(n ? n : 1, sizeof(*nodes));
    struct agent_gpu_page *gpus = xcalloc((n ? n : 1) * GANG_GPUS_MAX, sizeof(*gpus));
    for (size_t i = 0; i < n; i++)
        fill_node(g, &job->gang.v[i], &gpus[i * GANG_GPUS_MAX], &nodes[i]);
    const struct agent_figures_page page = {.job = job->id,
                                            .user = job->user,
                                            .project = job->project,
                                            .state = job_state_to_string(job->state),
                                            .attempt = job->n_attempts,
                                            .at = now,
                                            .training = l->extra.metrics,
                                            .nodes = {.v = nodes, .n = n}};
    field_to_json(&agent_figures_table, &page, FIELD_ALL, FIELD_PAGE, j, NULL);
    free(gpus);
    free(nodes);
}

/* Jobs in two rounds: those from the first one that was left out on, then those before it. The
 * walk gives them in no order, so each round takes those of its side. */
static int64_t put_round(struct agent *g, bool after, int64_t from, struct jout *j, bool *any)
{
    struct live *l;
    int64_t left = 0;
    for (size_t pos = 0; (l = jobs_next_placed(g->a->jobs, &pos));) {
        const struct job *job = l->job;
        if (job->state != JOB_RUNNING || (job->seq >= from) != after ||
            people_check_job(g->a->people, &g->who, ACCESS_JOB_SEE, "see", job, NULL) < 0)
            continue;
        if (j->out->len > AGENT_FIGURE_BYTES) {
            left++;
            if (!g->first_left || job->seq < g->first_left)
                g->first_left = job->seq;
            continue;
        }
        put_figures(g, l, clock_wall(), j);
        *any = true;
    }
    return left;
}

static int64_t put_all_figures(struct agent *g, struct jout *j, bool *any)
{
    int64_t from = g->first_left;
    g->first_left = 0;
    if (!g->a->settings->agent_figures)
        return 0;
    int64_t left = put_round(g, true, from, j, any);
    return left + put_round(g, false, from, j, any);
}

/* ---- the message ---- */

static void put_events(struct agent *g,
                       const struct store_result *r,
                       struct agent_batch *b,
                       struct buf *out)
{
    struct jout j = jout_begin(out);
    const struct api_eyes eyes = {.a = g->a, .p = &g->who};
    size_t i = 0;
    jout_open(&j, NULL, '[');
    for (; i < r->nevents && (i == 0 || out->len < AGENT_EVENT_BYTES); i++) {
        api_event_put(&eyes, &r->events[i], &j);
        b->next = r->events[i].seq;
    }
    jout_close(&j, ']');
    b->more = i < r->nevents || r->nevents == AGENT_EVENTS_MAX;
    if (!b->more && g->through > b->next)
        b->next = g->through;
}

static void new_id(char ret[static AGENT_ID_MAX])
{
    char hex[2 * 12 + 1];
    text_printf_to(ret, AGENT_ID_MAX, "agt_%s", random_hex(hex));
}

bool agent_batch_make(struct agent *g,
                      const struct store_result *r,
                      struct agent_batch *ret,
                      struct buf *out)
{
    struct buf events = BUF_INIT(AGENT_BATCH_BYTES), figures = BUF_INIT(AGENT_BATCH_BYTES);
    struct jout j = jout_begin(out), list = jout_begin(&figures);
    bool any = false;
    *ret = (struct agent_batch){.since = g->taken, .next = g->taken, .has_gap = g->gap.next > 0};
    put_events(g, r, ret, &events);
    jout_open(&list, NULL, '[');
    int64_t left = ret->more ? 0 : put_all_figures(g, &list, &any);
    jout_close(&list, ']');
    new_id(ret->id);
    const struct agent_batch_page page = {.schema = AGENT_SCHEMA,
                                          .type = "batch",
                                          .id = ret->id,
                                          .cluster = g->a->settings->cluster,
                                          .events = buf_str(&events),
                                          .figures = buf_str(&figures),
                                          .sent_at = clock_wall(),
                                          .since = ret->since,
                                          .next = ret->next,
                                          .figures_left = left,
                                          .gap = ret->has_gap ? &g->gap : NULL};
    field_to_json(&agent_batch_table, &page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    if (out->failed) /* an event is at most as large as a row of the store may be */
        log_err("agent", "a batch of the ops agent is too large: its events are left out");
    any = !out->failed && (any || r->nevents || ret->has_gap);
    buf_release(&events);
    buf_release(&figures);
    return any;
}
