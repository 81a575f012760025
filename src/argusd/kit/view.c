/* SPDX-License-Identifier: Apache-2.0 */
/* view.c - jobs as JSON; see view.h. */
#include "argusd/kit/view.h"

#include "argusd/content/code.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/archive/archives.h"
#include "argusd/checkpoints/checkpoints.h"
#include "argusd/figures/figures.h"
#include "argusd/kit/api.h"
#include "argusd/kit/saying.h"
#include "argusd/kit/view_item.h"
#include "argusd/trackers/trackers.h"
#include "base/field.h"
#include "base/said.h"
#include "base/str.h"
#include "core/account/recovery_job.h"
#include "core/metric/goodput.h"
#include "fsroot/attempt/proof.h"
#include "fsroot/tree/paths.h"

/* ---- the whole job ---- */

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

/* What its interruptions cost, as of the newest record. False before its first attempt. */
static bool view_fill_recovery(const struct job *job,
                               const struct goodput_sums *sums,
                               usec_t at,
                               struct recovery_page *ret)
{
    struct recovery_attempt *v;
    struct recovery_job told;
    struct recovery r;
    if (!job->n_attempts)
        return false;
    recovery_of_job(job, sums, at, &told, &v);
    recovery_judge(&told, &r);
    recovery_to_page(&r, ret);
    free(v);
    return true;
}

/* How much of the held time went into steps that counted, as of the newest record: between two it
 * does not change. False for a job that told of none. attempts are borrowed from sums. */
static bool view_fill_goodput(const struct job *job,
                              struct goodput_sums *sums,
                              usec_t at,
                              struct goodput_page *ret)
{
    *ret = (struct goodput_page){.failures = job->restart.failures + (job->state == JOB_FAILED),
                                 .attempts = {.v = sums->v, .n = sums->n}};
    if (!sums->n)
        return false;
    goodput_judge(sums, (double)job_held(job, at) / (double)USEC_SEC, ret->failures, &ret->g);
    if (!ret->g.save_freq)
        ret->g.save_freq = -1; /* null */
    return true;
}

/* Texts are borrowed for one answer, but for those that view_release_page() frees. */
struct job_page {
    struct job_item item;
    char *warnings; /* owned */
    const struct paths_page *paths;
    const struct driver_page *driver;
    const struct proof_page *proof;
    const struct goodput_page *goodput;
    const struct recovery_page *recovery;
    const struct exit_page *exit;
    const char *held_by, *retry_of, *verl, *placement, *argv, *snapshots, *inputs, *metrics;
    char *trial, *verdict, *metric_alerts, *slow_rank; /* owned */
    struct field_list attempts;                        /* of view_fill_attempts() */
    usec_t deadline, idle_until;
    const char *idle_reason;
    struct {
        double seconds, idle, unknown, redone;
    } held;
    double mem_max, mem_total, joules; /* NaN: nobody told */
    char *snapshot, *spec, *resolved, *checkpoints, *archived, *trackers, *finding; /* owned */
    struct restart_page restart;
    /* What the pointers above point at. */
    struct paths_page its_paths;
    struct driver_page its_driver;
    struct proof_page its_proof;
    struct goodput_page its_goodput;
    struct recovery_page its_recovery;
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
    PAGE("verdict", FIELD_JSON, verdict, .schema = "Verdict"),
    PAGE("metric_alerts",
         FIELD_JSON,
         metric_alerts,
         .schema = LIST_OF_SCHEMA("[\"array\",\"null\"]", "MetricAlert"),
         .flags = FIELD_ALWAYS,
         .doc =
             "what the alerts of its spec and its project came to; null: none was asked for, or no "
             "step was told"),
    PAGE("slow_rank",
         FIELD_JSON,
         slow_rank,
         .schema = "SlowRank",
         .doc = "the rank for which the others wait now; null: there is none, or nobody can tell"),
    PAGE("gpu_seconds", FIELD_REAL, held.seconds, .doc = "gpu_hours, in seconds"),
    PAGE("gpu_idle_hours", FIELD_REAL, held.idle, .doc = "hours of these that were measured idle"),
    PAGE("gpu_unknown_hours",
         FIELD_REAL,
         held.unknown,
         .doc = "hours of these that nobody measured"),
    PAGE("gpu_redone_hours",
         FIELD_REAL,
         held.redone,
         .doc =
             "hours of these, none of them idle, while steps ran that an earlier attempt had run"),
    PAGE(
        "gpu_mem_max_bytes",
        FIELD_REAL,
        mem_max,
        .flags = FIELD_MAYBE,
        .doc =
            "on the fullest of its GPUs: in the last 5 minutes of a live job, else in all its time"),
    PAGE("gpu_mem_total_bytes",
         FIELD_REAL,
         mem_total,
         .flags = FIELD_MAYBE,
         .doc = "memory that one GPU of a live job has"),
    PAGE("gpu_joules",
         FIELD_REAL,
         joules,
         .flags = FIELD_MAYBE,
         .doc = "energy of its GPUs over all attempts, of a GPU that it shares its own part; of a "
                "live job in three digits"),
    PAGE("idle_until",
         FIELD_TIME,
         idle_until,
         .doc = "up to then its owner has said why its GPUs rest"),
    PAGE("idle_reason", FIELD_STR, idle_reason, .doc = "what the owner said"),
    PAGE("goodput", FIELD_PART, goodput, .of = &view_goodput_table),
    PAGE("recovery",
         FIELD_PART,
         recovery,
         .of = &recovery_page_table,
         .doc = "where its time went, as of the newest step that it told of"),
    PAGE("checkpoints",
         FIELD_JSON,
         checkpoints,
         .flags = FIELD_ALWAYS,
         .schema = LIST_OF_SCHEMA("[\"array\",\"null\"]", "Checkpoint")),
    PAGE("trackers",
         FIELD_JSON,
         trackers,
         .flags = FIELD_ALWAYS,
         .schema = LIST_OF_SCHEMA("[\"array\",\"null\"]", "TrackerRun"),
         .doc = "the runs of its attempts in W&B, MLflow and their like"),
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

/* What its processes imported, as it is stored, with what is wrong in the reader's language. Heap;
 * NULL: nothing is known. */
static char *view_imports(const char *stored, const struct api_eyes *eyes)
{
    struct proof_summary s = {0};
    const struct message_listener to = {.language = eyes ? eyes->p->language : MESSAGE_ENGLISH};
    if (!field_from_text(&proof_summary_table, stored, FIELD_ALL, &s) || !s.mismatch) {
        proof_summary_release(&s);
        return stored ? xstrdup(stored) : NULL;
    }
    char *said = message_kept_say(s.mismatch, &to);
    free(s.mismatch);
    s.mismatch = said;
    char *text = field_to_text(&proof_summary_table, &s, FIELD_ALL, FIELD_PAGE);
    proof_summary_release(&s);
    return text;
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
        return said_in_text(extra->finding.json, eyes ? eyes->p->language : MESSAGE_ENGLISH);
    struct said said;
    const struct reason *why = job_state_reason(job);
    saying_say(eyes, job->id, why->code, why->text, &said);
    const struct view_brief brief = {.class = record_finding_word(job, extra),
                                     .sentence = said.text,
                                     .node = *job_proof(job)->node ? job_proof(job)->node : NULL};
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
    enum message_language language = eyes ? eyes->p->language : MESSAGE_ENGLISH;
    p->held_by = job->held_by;
    p->retry_of = extra->retry_of;
    p->verl = extra->verl;
    p->idle_until = extra->idle_until;
    p->idle_reason = extra->idle_why;
    p->trial = said_in_text(extra->trial, language);
    p->placement = extra->placement;
    p->argv = extra->argv;
    p->snapshots = str_or(extra->snapshots, "[]");
    p->inputs = str_or(extra->inputs, "[]");
    p->warnings = problems_stored_say(extra->warnings, language);
    p->metrics = extra->metrics;
    p->verdict = said_in_text(extra->verdict, language);
    p->metric_alerts = said_in_text(extra->metric_alerts, language);
    p->slow_rank = job->state == JOB_RUNNING ? said_in_text(extra->slow_rank, language) : NULL;
    p->snapshot = code_of_verl(extra->snapshots);
    p->spec = view_mask_spec(job->spec);
    p->resolved = view_resolved(settings, job, extra->inputs, extra->snapshots);
    /* NULL where the page is written down: the files themselves are there. */
    struct saying_to to = {.eyes = eyes, .about = job->id};
    const struct message_listener listener = saying_listener(&to);
    p->checkpoints = eyes ? checkpoints_text(eyes->a->checkpoints, job->id, &listener) : NULL;
    p->archived =
        eyes ? archives_text(eyes->a->archives, job->id, &listener) : NULL; /* and archived.json */
    p->trackers = eyes ? trackers_text(eyes->a->trackers, job->id) : NULL;
    p->finding = view_finding(job, extra, eyes);
}

static void view_release_page(struct job_page *p)
{
    view_release_attempts(&p->attempts);
    said_release(&p->item.reason);
    field_release(&paths_table, &p->its_paths);
    field_release(&restart_table, &p->restart);
    free(p->snapshot);
    free(p->trial);
    free(p->verdict);
    free(p->metric_alerts);
    free(p->slow_rank);
    free(p->warnings);
    free(p->spec);
    free(p->resolved);
    free(p->checkpoints);
    free(p->archived);
    free(p->trackers);
    free(p->finding);
}

/* The most that its scouts' books say of one of its GPUs. */
static double view_mem_peak(const char *gpus)
{
    _cleanup_(json_unrefp) json_t *rows = NULL;
    const json_t *row;
    double peak = -1;
    size_t i;
    if (!gpus || json_parse(gpus, strlen(gpus), RECORD_DETAIL_MAX, &rows, NULL) < 0)
        return (double)NAN;
    json_array_foreach (rows, i, row)
        peak = fmax(peak, json_get_real(row, "mem_peak_bytes", -1));
    return peak > 0 ? peak : (double)NAN;
}

/* In steps of 64 MiB: a page that is the same keeps its ETag. */
static void view_fill_memory(struct job_page *p,
                             const struct record_extra *extra,
                             const struct live *l,
                             const struct api_eyes *eyes)
{
    const double step = 64 << 20;
    p->mem_max = p->mem_total = (double)NAN;
    if (!l || !eyes || !l->job->gang.n) {
        p->mem_max = view_mem_peak(extra->gpus);
        return;
    }
    const struct figures *fs = eyes->a->figures;
    p->mem_max = figures_gang(fs, &l->job->gang, FIGURE_GPU_MEM_USED, 5 * USEC_MIN).max;
    p->mem_total = figures_gang(fs, &l->job->gang, FIGURE_GPU_MEM_TOTAL, 5 * USEC_MIN).max;
    p->mem_max = ceil(p->mem_max / step) * step;
}

/* A live job has three digits: a page that is the same keeps its ETag. */
static double view_joules(double joules, const struct live *l)
{
    if (joules <= 0)
        return (double)NAN;
    double scale = pow(10, floor(log10(joules)) - 2);
    return l ? round(joules / scale) * scale : joules;
}

static void view_fill_held(struct job_page *p,
                           const struct record_extra *extra,
                           const struct live *l)
{
    struct slotbook_held held = view_held(extra->held, l);
    p->held.seconds = (double)held.held / ((double)SLOTBOOK_GPU * 1000);
    p->held.idle = view_hours(held.idle);
    p->held.unknown = view_hours(held.unknown);
    p->held.redone = view_hours(held.redone);
    p->joules = view_joules(extra->gpu_joules, l);
}

void view_job(struct jout *j,
              const struct settings *settings,
              const struct job *job,
              const struct record_extra *extra,
              const struct live *l,
              const struct api_eyes *eyes)
{
    struct store_job row;
    _cleanup_(freep) char *imports = view_imports(extra->imports, eyes);
    struct job_page p = {0};
    struct moment now = l ? jobs_moment(l->jobs) : (struct moment){0};
    record_job_row(job, extra, NULL, &row);
    view_fill_item(&p.item, &row, l, eyes);
    p.item.nodes = (struct field_list){.v = job->gang.v, .n = job->gang.n};
    const struct slotbook_held leased = view_held((struct slotbook_held){0}, l);
    const struct view_attempts_ask attempts = {.job = job,
                                               .extra = extra,
                                               .eyes = eyes,
                                               .gpus = p.item.gpus,
                                               .leased = l && !l->over ? &leased : NULL};
    view_fill_attempts(&attempts, &p.attempts);
    view_fill_paths(&p, settings, job);
    view_fill_proof(&p, job_proof(job), imports);
    view_fill_restart(&p.restart, &job->restart);
    view_fill_exit(&p, job);
    view_fill_texts(&p, settings, job, extra, eyes);
    usec_t told_at = record_steps(extra->metrics, &p.sums);
    p.goodput = view_fill_goodput(job, &p.sums, told_at, &p.its_goodput) ? &p.its_goodput : NULL;
    p.recovery =
        view_fill_recovery(job, &p.sums, told_at, &p.its_recovery) ? &p.its_recovery : NULL;
    view_fill_held(&p, extra, l);
    view_fill_memory(&p, extra, l, eyes);
    p.deadline = l ? job_deadline(job, settings->start_deadline, &now) : 0;
    field_to_json(&view_job_table, &p, FIELD_ALL, FIELD_PAGE, j, NULL);
    view_release_page(&p);
}
