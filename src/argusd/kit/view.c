/* SPDX-License-Identifier: Apache-2.0 */
/* view.c - jobs as JSON; see view.h. */
#include "argusd/kit/view.h"

#include "argusd/content/code.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/archive/archives.h"
#include "argusd/checkpoints/checkpoints.h"
#include "argusd/figures/figures.h"
#include "argusd/kit/api.h"
#include "argusd/kit/saying.h"
#include "base/field.h"
#include "base/str.h"
#include "core/metric/goodput.h"
#include "fsroot/fsroot.h"

enum { METRICS_MAX = 256 << 10 };

/* ---- the list item ---- */

static const struct field eta_rows[] = {
    FIELD_AT(view_eta, "p50", FIELD_TIME, p50, .flags = FIELD_ALWAYS),
    FIELD_AT(view_eta, "p90", FIELD_TIME, p90, .flags = FIELD_ALWAYS),
};
const struct field_table view_eta_table = FIELD_TABLE("Eta", eta_rows, view_eta);

/* Texts are borrowed for one answer, but for those of `reason`. */
struct job_item {
    struct store_job row;
    uint64_t flags;
    usec_t unknown_since;
    struct reason now; /* of a live job: what `reason` borrows from */
    struct said reason;
    int position;
    const struct view_eta *eta;
    struct view_eta expected;
    double gpus, gpu_util;
};

static const char *const flag_names[] = {"UNKNOWN", "HELD", "RESTARTING", "HOLDING", "HUNG", NULL};
static_assert(JOB_FLAG_HUNG == 1 << (array_len(flag_names) - 2), "each flag has its word");

#define ITEM(key, ftype, member, ...) FIELD_AT(job_item, key, ftype, member, __VA_ARGS__)
static const struct field item_rows[] = {
    ITEM("id", FIELD_STR, row.id, .flags = FIELD_ALWAYS),
    ITEM("name", FIELD_STR, row.name),
    ITEM("user", FIELD_STR, row.user, .flags = FIELD_ALWAYS),
    ITEM("project", FIELD_STR, row.project, .flags = FIELD_ALWAYS),
    ITEM("workload", FIELD_STR, row.workload, .flags = FIELD_ALWAYS),
    ITEM("cluster", FIELD_STR, row.cluster, .flags = FIELD_ALWAYS),
    ITEM("state", FIELD_STR, row.state, .flags = FIELD_ALWAYS, .schema = "JobState"),
    ITEM("flags", FIELD_BITS, flags, .names = flag_names),
    ITEM("unknown_since", FIELD_TIME, unknown_since, .flags = FIELD_OMIT),
    ITEM("reason", FIELD_OBJECT, reason, .of = &said_table),
    ITEM("position", FIELD_INT32, position, .flags = FIELD_OMIT),
    ITEM("eta", FIELD_PART, eta, .of = &view_eta_table),
    ITEM("pool", FIELD_STR, row.pool),
    ITEM("priority", FIELD_INT, row.priority),
    ITEM("nnodes", FIELD_INT, row.nnodes),
    ITEM("n_gpus_per_node", FIELD_REAL, row.n_gpus_per_node),
    ITEM("gpus", FIELD_REAL, gpus),
    ITEM("queued_at", FIELD_TIME, row.queued_at),
    ITEM("started_at", FIELD_TIME, row.started_at),
    ITEM("ended_at", FIELD_TIME, row.ended_at),
    ITEM("attempt", FIELD_INT, row.attempt),
    ITEM("restarts", FIELD_INT, row.restarts),
    ITEM("step", FIELD_INT, row.step, .flags = FIELD_NO_LIMIT),
    ITEM("gpu_util", FIELD_REAL, gpu_util, .flags = FIELD_NO_LIMIT),
};
#undef ITEM
const struct field_table view_item_table = FIELD_TABLE("JobItem", item_rows, job_item);

const struct view_eta *view_eta_known(const struct view_eta *eta)
{
    return eta->p50 ? eta : NULL;
}

/* Percent, of all GPUs of its lease over the last minutes; -1 while not half of it is known. A
 * whole number: a page that is the same keeps its ETag. */
static double view_gpu_util(const struct live *l, const struct api_eyes *eyes)
{
    static const usec_t window = 5 * USEC_MIN, begun = 2 * FIGURE_EVERY;
    if (!l || !eyes || !l->job->gang.n || l->job->state != JOB_RUNNING)
        return -1;
    usec_t ran = jobs_in_state(l);
    usec_t span = ran < begun ? begun : ran < window ? ran : window;
    struct figures_window w = figures_gang(eyes->a->figures, &l->job->gang, FIGURE_GPU_UTIL, span);
    return w.n > 0 && 2 * w.n >= w.of ? round(100 * w.mean) : -1;
}

static void view_fill_item(struct job_item *item,
                           const struct store_job *row,
                           const struct live *l,
                           const struct api_eyes *eyes)
{
    int64_t step = l ? l->extra.step : row->step;
    *item = (struct job_item){.row = *row,
                              .flags = record_flags_from_string(row->flags),
                              .unknown_since = l ? l->job->unknown_since : 0,
                              .gpus = (double)row->nnodes * row->n_gpus_per_node,
                              .gpu_util = view_gpu_util(l, eyes)};
    item->row.name = row->name && *row->name ? row->name : NULL;
    item->row.pool = row->pool && *row->pool ? row->pool : NULL;
    item->row.step = step > 0 ? step : -1;
    if (l)
        jobs_reason(l, &item->now, &item->position);
    if (l && l->job->state == JOB_QUEUED)
        jobs_eta(l, &item->expected.p50, &item->expected.p90);
    item->eta = view_eta_known(&item->expected);
    saying_say(eyes, row->id, l ? item->now.code : row->reason_code,
               l ? item->now.text : row->reason_text, &item->reason);
}

void view_item(struct jout *j,
               const struct store_job *row,
               const struct live *l,
               const struct api_eyes *eyes)
{
    struct job_item item;
    view_fill_item(&item, row, l, eyes);
    field_to_json(&view_item_table, &item, FIELD_ALL, FIELD_PAGE, j, NULL);
    said_release(&item.reason);
}

/* ---- the whole job ---- */

#define X(word) [ATTEMPT_##word] = #word,
static const char *const phase_words[] = {ATTEMPT_PHASE_TABLE(X) NULL};
#undef X
static const struct field attempt_rows[] = {
    FIELD_AT(attempt, "k", FIELD_INT32, k),
    FIELD_AT(attempt, "ray_id", FIELD_STR, ray_id, .flags = FIELD_ALWAYS),
    FIELD_AT(attempt, "state", FIELD_ENUM, phase, .names = phase_words),
    FIELD_AT(attempt, "accepted_at", FIELD_TIME, accepted_at),
    FIELD_AT(attempt, "started_at", FIELD_TIME, started_at),
    FIELD_AT(attempt, "ended_at", FIELD_TIME, ended_at),
    FIELD_AT(attempt, "end", FIELD_STR, end_text),
};
const struct field_table view_attempt_table = FIELD_TABLE("Attempt", attempt_rows, attempt);

/* What a page says of one attempt's steps: more is in its metrics. */
static const struct field brief_attempt_rows[] = {
    FIELD_AT(goodput_attempt, "k", FIELD_INT32, k),
    FIELD_AT(goodput_attempt, "steps", FIELD_COUNT, steps),
    FIELD_AT(goodput_attempt, "steps_lost", FIELD_COUNT, lost),
};
static const struct field_table brief_attempt_table =
    FIELD_TABLE(NULL, brief_attempt_rows, goodput_attempt);

struct goodput_page {
    struct goodput g;
    int failures;
    struct field_list attempts; /* borrowed */
};
static const struct field goodput_rows[] = {
    FIELD_AT(goodput_page, "ratio", FIELD_REAL, g.ratio, .flags = FIELD_NO_LIMIT),
    FIELD_AT(goodput_page, "productive_s", FIELD_REAL, g.good_s, .flags = FIELD_NO_LIMIT),
    FIELD_AT(goodput_page, "held_s", FIELD_REAL, g.held_s, .flags = FIELD_NO_LIMIT),
    FIELD_AT(goodput_page, "steps", FIELD_COUNT, g.steps),
    FIELD_AT(goodput_page, "steps_lost", FIELD_COUNT, g.lost),
    FIELD_AT(goodput_page, "lost_s", FIELD_REAL, g.lost_s, .flags = FIELD_NO_LIMIT),
    FIELD_AT(goodput_page, "save_s", FIELD_REAL, g.save_s, .flags = FIELD_NO_LIMIT),
    FIELD_AT(goodput_page, "mtbf_s", FIELD_REAL, g.mtbf_s, .flags = FIELD_NO_LIMIT),
    FIELD_AT(goodput_page, "failures", FIELD_INT32, failures),
    FIELD_AT(goodput_page, "save_freq", FIELD_INT, g.save_freq, .flags = FIELD_NO_LIMIT),
    FIELD_AT(goodput_page, "attempts", FIELD_LIST, attempts, .of = &brief_attempt_table),
};
const struct field_table view_goodput_table = FIELD_TABLE("Goodput", goodput_rows, goodput_page);

struct driver_page {
    const char *node, *ip;
    int64_t pid; /* -1 = not known */
};
static const struct field driver_rows[] = {
    FIELD_AT(driver_page, "node", FIELD_STR, node, .flags = FIELD_ALWAYS),
    FIELD_AT(driver_page, "ip", FIELD_STR, ip, .flags = FIELD_ALWAYS),
    FIELD_AT(driver_page, "pid", FIELD_INT, pid, .flags = FIELD_NO_LIMIT),
};
static const struct field_table driver_table = FIELD_TABLE(NULL, driver_rows, driver_page);

/* Where its driver runs, and what its processes imported. */
struct proof_page {
    const char *on_worker, *node, *node_ip, *head_ip, *imports;
    usec_t checked_at;
};
static const struct field proof_rows[] = {
    FIELD_AT(proof_page,
             "driver_on_worker",
             FIELD_JSON,
             on_worker,
             .flags = FIELD_ALWAYS,
             .schema = "{\"type\":[\"boolean\",\"null\"]}"),
    FIELD_AT(proof_page, "driver_node", FIELD_STR, node),
    FIELD_AT(proof_page, "driver_node_ip", FIELD_STR, node_ip),
    FIELD_AT(proof_page, "head_ip", FIELD_STR, head_ip),
    FIELD_AT(proof_page, "checked_at", FIELD_TIME, checked_at),
    FIELD_AT(proof_page, "imports", FIELD_JSON, imports, .schema = "Imports"),
};
const struct field_table view_proof_table = FIELD_TABLE("Proof", proof_rows, proof_page);

struct restart_page {
    int max, failures, preemptions;
    bool preemptible;
    struct strv avoid;
};
static const struct field restart_rows[] = {
    FIELD_AT(restart_page, "max", FIELD_INT32, max),
    FIELD_AT(restart_page, "failures", FIELD_INT32, failures),
    FIELD_AT(restart_page, "preemptions", FIELD_INT32, preemptions),
    FIELD_AT(restart_page, "preemptible", FIELD_BOOL, preemptible),
    FIELD_AT(restart_page, "avoid", FIELD_STRV, avoid),
};
static const struct field_table restart_table = FIELD_TABLE(NULL, restart_rows, restart_page);

struct exit_page {
    const char *cause, *signal;
    int64_t code; /* -1 = none */
};
static const struct field exit_rows[] = {
    FIELD_AT(exit_page, "cause", FIELD_STR, cause, .flags = FIELD_ALWAYS),
    FIELD_AT(exit_page, "code", FIELD_INT, code, .flags = FIELD_NO_LIMIT),
    FIELD_AT(exit_page, "signal", FIELD_STR, signal),
};
static const struct field_table exit_table = FIELD_TABLE(NULL, exit_rows, exit_page);

/* Of what was found before an attempt. */
struct brief_page {
    const char *class, *sentence, *node, *advice;
};
static const struct field brief_rows[] = {
    FIELD_AT(brief_page, "class", FIELD_STR, class, .flags = FIELD_ALWAYS),
    FIELD_AT(brief_page, "sentence", FIELD_STR, sentence, .flags = FIELD_ALWAYS),
    FIELD_AT(brief_page, "node", FIELD_STR, node),
    FIELD_AT(brief_page, "advice", FIELD_STR, advice),
};
const struct field_table view_brief_table = FIELD_TABLE("FindingBrief", brief_rows, brief_page);

static const struct field node_gpus_rows[] = {
    FIELD_AT(gang_node, "name", FIELD_STR, name, .flags = FIELD_ALWAYS),
    FIELD_AT(gang_node, "gpu_ids", FIELD_BITS, gpus),
};
const struct field_table view_node_gpus_table = FIELD_TABLE("NodeGpus", node_gpus_rows, gang_node);

/* Where its files are. */
struct paths_page {
    char *dir, *driver_log, *config, *checkpoints, *metrics;
};
#define PATH(member, below)                                                                        \
    FIELD_AT(paths_page, #member, FIELD_STR, member, .flags = FIELD_ALWAYS, .dflt = (below))
static const struct field paths_rows[] = {
    PATH(dir, ""),
    PATH(driver_log, "/logs/driver.log"),
    PATH(config, "/config"),
    PATH(checkpoints, "/checkpoints"),
    PATH(metrics, "/metrics/metrics.jsonl"),
};
#undef PATH
static const struct field_table paths_table = FIELD_TABLE(NULL, paths_rows, paths_page);

/* Time that its attempts held their slots, of one that runs until then (wall). */
static double held_seconds(const struct job *job, usec_t then)
{
    double s = 0;
    for (int i = 0; i < job->n_attempts; i++) {
        const struct attempt *a = &job->attempts[i];
        usec_t end = a->ended_at ? a->ended_at : then;
        s += end > a->planned_at ? (double)(end - a->planned_at) / (double)USEC_SEC : 0;
    }
    return s;
}

/* How much of that went into steps that counted, as of the newest record: between two it does not
 * change. False for a job that told of none. attempts are borrowed from sums. */
static bool view_fill_goodput(const struct job *job,
                              const char *metrics,
                              struct goodput_sums *sums,
                              struct goodput_page *ret)
{
    usec_t at = 0;
    _cleanup_(json_unrefp) json_t *page = NULL;
    if (!metrics || json_parse(metrics, strlen(metrics), METRICS_MAX, &page, NULL) < 0)
        page = NULL;
    goodput_from_json(json_get_array(page, "attempts"), sums);
    *ret = (struct goodput_page){.failures = job->restart.failures + (job->state == JOB_FAILED),
                                 .attempts = {.v = sums->v, .n = sums->n}};
    if (!sums->n)
        return false;
    if (clock_from_string(json_get_str(page, "updated_at", ""), &at, NULL) < 0)
        at = 0;
    goodput_judge(sums, held_seconds(job, at), ret->failures, &ret->g);
    if (!ret->g.save_freq)
        ret->g.save_freq = -1; /* null */
    return true;
}

/* Texts are borrowed for one answer, but for those that view_release_page() frees. */
struct job_page {
    struct job_item item;
    const struct paths_page *paths;
    const struct driver_page *driver;
    const struct proof_page *proof;
    const struct goodput_page *goodput;
    const struct exit_page *exit;
    const char *held_by, *retry_of, *verl, *trial, *placement, *argv, *snapshots, *inputs,
        *warnings, *metrics;
    struct field_list nodes, attempts; /* borrowed */
    usec_t deadline;
    char *snapshot, *spec, *resolved, *checkpoints, *archived, *finding; /* owned */
    struct restart_page restart;
    /* What the pointers above point at. */
    struct paths_page its_paths;
    struct driver_page its_driver;
    struct proof_page its_proof;
    struct goodput_page its_goodput;
    struct goodput_sums sums;
    struct exit_page its_exit;
};

#define LIST_OF_SCHEMA(type, name)                                                                 \
    "{\"type\":" type ",\"items\":{\"$ref\":\"#/components/schemas/" name "\"}}"
#define PAGE(key, ftype, member, ...) FIELD_AT(job_page, key, ftype, member, __VA_ARGS__)
static const struct field job_rows[] = {
    PAGE("", FIELD_INLINE, item, .of = &view_item_table),
    PAGE("submission_id", FIELD_STR, item.row.id, .flags = FIELD_ALWAYS),
    PAGE("output_dir", FIELD_STR, its_paths.dir, .flags = FIELD_ALWAYS),
    PAGE("paths", FIELD_PART, paths, .of = &paths_table),
    PAGE("driver", FIELD_PART, driver, .of = &driver_table),
    PAGE("proof", FIELD_PART, proof, .of = &view_proof_table),
    PAGE("trial", FIELD_JSON, trial, .schema = "TrialResult"),
    PAGE("nodes", FIELD_LIST, nodes, .of = &view_node_gpus_table),
    PAGE("restart", FIELD_OBJECT, restart, .of = &restart_table),
    PAGE("held_by", FIELD_STR, held_by),
    PAGE("retry_of", FIELD_STR, retry_of),
    PAGE("attempts", FIELD_LIST, attempts, .of = &view_attempt_table),
    PAGE("placement", FIELD_JSON, placement, .schema = "Placement"),
    PAGE("argv",
         FIELD_JSON,
         argv,
         .flags = FIELD_ALWAYS,
         .schema = "{\"type\":[\"array\",\"null\"],\"items\":{\"type\":\"string\"}}"),
    PAGE("verl", FIELD_STR, verl),
    PAGE("snapshot", FIELD_JSON, snapshot, .schema = "SnapshotUse"),
    PAGE("snapshots",
         FIELD_JSON,
         snapshots,
         .flags = FIELD_ALWAYS,
         .schema = LIST_OF_SCHEMA("\"array\"", "SnapshotUse")),
    PAGE("spec", FIELD_STR, spec, .flags = FIELD_ALWAYS),
    PAGE("inputs",
         FIELD_JSON,
         inputs,
         .flags = FIELD_ALWAYS,
         .schema = LIST_OF_SCHEMA("\"array\"", "InputUse")),
    PAGE("resolved_spec", FIELD_JSON, resolved, .schema = "ResolvedSpec"),
    PAGE("warnings",
         FIELD_JSON,
         warnings,
         .flags = FIELD_ALWAYS,
         .schema = LIST_OF_SCHEMA("\"array\"", "SpecProblem")),
    PAGE("metrics", FIELD_JSON, metrics, .schema = "Training"),
    PAGE("goodput", FIELD_PART, goodput, .of = &view_goodput_table),
    PAGE("checkpoints",
         FIELD_JSON,
         checkpoints,
         .flags = FIELD_ALWAYS,
         .schema = LIST_OF_SCHEMA("[\"array\",\"null\"]", "Checkpoint")),
    PAGE("archived", FIELD_JSON, archived, .schema = "JobArchive"),
    PAGE("exit", FIELD_PART, exit, .of = &exit_table),
    PAGE("finding",
         FIELD_JSON,
         finding,
         .flags = FIELD_ALWAYS,
         .schema = "{\"anyOf\":[{\"$ref\":\"#/components/schemas/Finding\"},{\"$ref\":\"#/"
                   "components/schemas/FindingBrief\"},{\"type\":\"null\"}]}"),
    PAGE("deadline", FIELD_TIME, deadline),
};
#undef PAGE
const struct field_table view_job_table = FIELD_TABLE("Job", job_rows, job_page);

/* null of the whole before it first leaves the queue: nothing is written then. */
static void view_fill_paths(struct job_page *p,
                            const struct settings *settings,
                            const struct job *job)
{
    _cleanup_(freep) char *dir = fsroot_job_dir(settings->shared_root, job->id);
    for (size_t i = 0; i < paths_table.n; i++)
        *(char **)((char *)&p->its_paths + paths_rows[i].offset) =
            xasprintf("%s%s", dir, paths_rows[i].dflt);
    p->paths = job->n_attempts ? &p->its_paths : NULL;
}

static void view_fill_proof(struct job_page *p, const struct proof *is, const char *imports)
{
    bool seen = is->checked_at != 0;
    p->its_driver =
        (struct driver_page){.node = is->node, .ip = is->driver_ip, .pid = is->pid ? is->pid : -1};
    p->its_proof = (struct proof_page){.on_worker = is->on_worker < 0 ? NULL
                                                    : is->on_worker   ? "true"
                                                                      : "false",
                                       .node = seen ? is->node : NULL,
                                       .node_ip = seen ? is->driver_ip : NULL,
                                       .head_ip = seen ? is->head_ip : NULL,
                                       .checked_at = is->checked_at,
                                       .imports = imports};
    p->driver = seen ? &p->its_driver : NULL;
    p->proof = seen || imports ? &p->its_proof : NULL;
}

static void view_fill_restart(struct restart_page *p, const struct restart *r)
{
    const char *item, *list = r->bad_nodes;
    size_t n;
    *p = (struct restart_page){.max = r->max,
                               .failures = r->failures,
                               .preemptions = r->preemptions,
                               .preemptible = r->preemptible};
    while ((item = str_item(&list, &n))) {
        _cleanup_(freep) char *name = xstrndup(item, n);
        strv_add(&p->avoid, name);
    }
}

static void view_fill_exit(struct job_page *p, const struct job *job)
{
    p->its_exit = (struct exit_page){.cause = job->exit_cause,
                                     .code = job->exit_code >= 0 ? job->exit_code : -1,
                                     .signal = *job->exit_signal ? job->exit_signal : NULL};
    p->exit = job->has_exit ? &p->its_exit : NULL;
}

/* Why its newest attempt ended badly; of what was found before an attempt, the class alone. NULL:
 * nothing was found. Heap. */
static char *view_finding(const struct job *job,
                          const struct record_extra *extra,
                          const struct api_eyes *eyes)
{
    bool is_its = extra->finding.json && extra->finding.attempt == job->n_attempts;
    if (job->state == JOB_SUCCEEDED || (!is_its && job->finding == FINDING_NONE))
        return NULL;
    if (is_its)
        return xstrdup(extra->finding.json);
    struct said said;
    saying_say(eyes, job->id, job->reason.code, job->reason.text, &said);
    const struct brief_page brief = {.class = record_finding_word(job, extra),
                                     .sentence = said.text,
                                     .node = *job->proof.node ? job->proof.node : NULL};
    char *text = field_to_text(&view_brief_table, &brief, FIELD_ALL, FIELD_PAGE);
    said_release(&said);
    return text;
}

static void view_fill_texts(struct job_page *p,
                            const struct settings *settings,
                            const struct job *job,
                            const struct record_extra *extra,
                            const struct api_eyes *eyes)
{
    p->held_by = job->held_by;
    p->retry_of = extra->retry_of;
    p->verl = extra->verl;
    p->trial = extra->trial;
    p->placement = extra->placement;
    p->argv = extra->argv;
    p->snapshots = str_or(extra->snapshots, "[]");
    p->inputs = str_or(extra->inputs, "[]");
    p->warnings = str_or(extra->warnings, "[]");
    p->metrics = extra->metrics;
    p->snapshot = code_of_verl(extra->snapshots);
    p->spec = view_mask_spec(job->spec);
    p->resolved = view_resolved(settings, job, extra->inputs, extra->snapshots);
    /* NULL where the page is written down: the files themselves are there. */
    p->checkpoints = eyes ? checkpoints_text(eyes->a->checkpoints, job->id) : NULL;
    p->archived = eyes ? archives_text(eyes->a->archives, job->id) : NULL; /* and archived.json */
    p->finding = view_finding(job, extra, eyes);
}

static void view_release_page(struct job_page *p)
{
    said_release(&p->item.reason);
    field_release(&paths_table, &p->its_paths);
    field_release(&restart_table, &p->restart);
    free(p->snapshot);
    free(p->spec);
    free(p->resolved);
    free(p->checkpoints);
    free(p->archived);
    free(p->finding);
}

void view_job(struct jout *j,
              const struct settings *settings,
              const struct job *job,
              const struct record_extra *extra,
              const struct live *l,
              const struct api_eyes *eyes)
{
    struct store_job row;
    struct job_page p = {.nodes = {.v = job->gang.v, .n = job->gang.n},
                         .attempts = {.v = job->attempts, .n = (size_t)job->n_attempts}};
    struct moment now = l ? jobs_moment(l->jobs) : (struct moment){0};
    record_job_row(job, NULL, &row);
    row.step = extra->step;
    view_fill_item(&p.item, &row, l, eyes);
    view_fill_paths(&p, settings, job);
    view_fill_proof(&p, &job->proof, extra->imports);
    view_fill_restart(&p.restart, &job->restart);
    view_fill_exit(&p, job);
    view_fill_texts(&p, settings, job, extra, eyes);
    p.goodput =
        view_fill_goodput(job, extra->metrics, &p.sums, &p.its_goodput) ? &p.its_goodput : NULL;
    p.deadline = l ? job_deadline(job, settings->start_deadline, &now) : 0;
    field_to_json(&view_job_table, &p, FIELD_ALL, FIELD_PAGE, j, NULL);
    view_release_page(&p);
}
