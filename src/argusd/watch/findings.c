/* SPDX-License-Identifier: Apache-2.0 */
/* findings.c - the lines of findings to be made; see findings.h.
 *
 * A task is in its user's line, then in the worker pool, then gone. Those that somebody waits for
 * are in lines of their own, which go first. While somebody waits for it (done)
 * its job is held busy; later it knows the job only by its id. */
#include "argusd/watch/findings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/evidence/diagnosis.h"
#include "argusd/evidence/rayview.h"
#include "argusd/ground/userlines.h"
#include "argusd/ground/work.h"
#include "argusd/watch/ending.h"
#include "base/log.h"
#include "base/str.h"
#include "core/finding/rules/finding_rules.h"

enum { OWED_MAX = DIAGNOSIS_BODY_MAX + 4096 };

struct task {
    struct findings *fs;
    struct task *next;
    struct diagnosis d;
    char *given_word; /* the class that is given, in the row; of a newer Argus any word */
    int64_t job_seq;
    struct live *l; /* while somebody waits */
    findings_f done;
    void *arg;    /* owned */
    usec_t until; /* mono: so long somebody waits */
    struct userlines_place place;
    struct userlines *line; /* where the place is, or was */
    bool is_lost;           /* made; the row of its job could not be read, and is asked for again */
    bool is_note;           /* of an attempt that runs: done is NULL */
};

struct findings {
    struct findings_parts p;
    struct finding_rules *rules;
    struct task *first; /* all */
    struct userlines awaited, late;
    bool closed;
};

int findings_new(const struct findings_parts *parts, struct findings **ret, struct err *err)
{
    struct findings *fs = xcalloc(1, sizeof(*fs));
    fs->p = *parts;
    fs->awaited.most_of_one = FINDINGS_OF_USER_MAX;
    int r = finding_rules_built_in(&fs->rules, err);
    if (r < 0) {
        free(fs);
        return r;
    }
    *ret = fs;
    return 0;
}

static void findings_task_free(struct task *t)
{
    diagnosis_release(&t->d);
    free(t->given_word);
    free(t->arg);
    free(t);
}

void findings_close(struct findings *fs)
{
    if (fs)
        fs->closed = true;
}

void findings_free(struct findings *fs)
{
    if (!fs)
        return;
    for (struct task *t = fs->first, *next; t; t = next) {
        next = t->next;
        findings_task_free(t);
    }
    userlines_release(&fs->awaited);
    userlines_release(&fs->late);
    finding_rules_free(fs->rules);
    free(fs);
}

static void remove_task(struct task *t)
{
    struct task **p = &t->fs->first;
    while (*p != t)
        p = &(*p)->next;
    *p = t->next;
    if (t->line)
        userlines_leave(t->line, &t->place);
    findings_task_free(t);
}

/* A row does not tell whose it is. */
static void findings_join(struct task *t, struct userlines *line)
{
    if (t->line)
        userlines_leave(t->line, &t->place);
    t->line = line;
    userlines_join(line, &t->place, t->l ? t->l->job->user : NULL);
}

static void findings_append(struct task *t)
{
    struct task **p = &t->fs->first;
    while (*p)
        p = &(*p)->next;
    *p = t;
    findings_join(t, t->l ? &t->fs->awaited : &t->fs->late);
}

/* ---- what is owed, as rows ---- */

/* What of a late finding is still needed when argusd starts anew. */
#define OWED(key, ftype, member) FIELD_AT(task, key, ftype, member, .flags = 0)
#define FACT(member, ftype) OWED(#member, ftype, d.facts.member)
#define TOLD(member, ftype) OWED(#member, ftype, d.member)
static const struct field owed_rows[] = {
    OWED("seq", FIELD_INT, job_seq),
    TOLD(job, FIELD_STR),
    TOLD(k, FIELD_INT32),
    FACT(exit_known, FIELD_BOOL),
    FACT(shepherd_killed, FIELD_BOOL),
    FACT(metrics_nan, FIELD_BOOL),
    FACT(stopped, FIELD_BOOL),
    FACT(preempted, FIELD_BOOL),
    FACT(timed_out, FIELD_BOOL),
    FACT(hung, FIELD_BOOL),
    FACT(not_started, FIELD_BOOL),
    FACT(head_lost, FIELD_BOOL),
    FACT(import_mismatch, FIELD_BOOL),
    FACT(exit_code, FIELD_INT32),
    FACT(signal, FIELD_INT32),
    FACT(oom_kills, FIELD_INT),
    FACT(oom_unsure, FIELD_BOOL),
    TOLD(no_logs, FIELD_BOOL),
    TOLD(no_file, FIELD_BOOL),
    TOLD(whole, FIELD_JSON),
    OWED("given", FIELD_STR, given_word),
    TOLD(lost_node, FIELD_STR),
    TOLD(odd_node, FIELD_STR),
    TOLD(odd_rank, FIELD_STR),
    TOLD(stopped_reason, FIELD_STR),
    TOLD(start_says, FIELD_STR),
    TOLD(oom_line, FIELD_STR),
    TOLD(nan_text, FIELD_STR),
    TOLD(node, FIELD_STR),
};
static const struct field_table owed_table = FIELD_TABLE(NULL, owed_rows, task);

static void put_owed(struct task *t)
{
    _cleanup_(freep) char *name = xasprintf("%s/%d", t->d.job, t->d.k);
    struct buf body = BUF_INIT(OWED_MAX);
    struct jout j = jout_begin(&body);
    set_str(&t->given_word, t->d.is_given ? finding_class_to_string(t->d.given) : NULL);
    field_to_json(&owed_table, t, FIELD_ALL, FIELD_ROW, &j, NULL);
    struct store_entry row = {
        .kind = FINDINGS_ENTRY, .name = name, .body = buf_str(&body), .at = clock_wall()};
    if (!body.failed) /* its texts have ceilings: it fits */
        store_put_entry(t->fs->p.store, &row);
    buf_release(&body);
}

static void drop_owed(const struct task *t)
{
    _cleanup_(freep) char *name = xasprintf("%s/%d", t->d.job, t->d.k);
    store_remove_entry(t->fs->p.store, FINDINGS_ENTRY, name);
}

/* A class of a newer Argus: whatever it is, somebody or something stopped the job for it. */
static void findings_read_given(const char *word, struct diagnosis *d)
{
    int class = finding_class_from_string(word);
    d->is_given = word;
    d->given = class < 0 ? FINDING_PREEMPTED_OR_STOPPED : (enum finding_class) class;
}

static void read_owed(const json_t *o, struct task *t)
{
    field_from_json(&owed_table, o, FIELD_ALL, t);
    if (!t->d.job)
        t->d.job = xstrdup("");
    findings_read_given(t->given_word, &t->d);
}

static struct task *findings_task_new(struct findings *fs)
{
    struct task *t = xcalloc(1, sizeof(*t));
    t->fs = fs;
    t->d.root = xstrdup(fs->p.settings->shared_root);
    t->d.rules = fs->rules;
    return t;
}

void findings_restore(struct findings *fs, const struct store_entry *row)
{
    _cleanup_(json_unrefp) json_t *o = NULL;
    if (json_parse(row->body, strlen(row->body), OWED_MAX, &o, NULL) < 0) {
        log_err("findings", "the store's row of the finding '%s' cannot be read", row->name);
        return;
    }
    struct task *t = findings_task_new(fs);
    read_owed(o, t);
    findings_append(t);
}

/* ---- what is made ---- */

static void findings_put_row(const struct task *t)
{
    const struct finding *f = &t->d.found;
    struct store_finding row = {.job_seq = t->job_seq,
                                .k = t->d.k,
                                .class = finding_class_to_string(f->class),
                                .rule = f->rule,
                                .node = f->node          ? f->node
                                        : t->d.lost_node ? t->d.lost_node
                                                         : t->d.node,
                                .rank = f->rank,
                                .at = t->d.at,
                                .confidence = f->confidence,
                                .body = t->d.body};
    store_put_finding(t->fs->p.store, &row);
}

/* What a program needs to go on from the event: the rest is in GET /v1/jobs/{id}/findings. */
struct finding_news {
    int attempt;
    const char *class, *rule, *node, *rank, *scene;
    double confidence;
};
#define NEWS(key, ftype, member) FIELD_AT(finding_news, key, ftype, member, .flags = 0)
static const struct field news_rows[] = {
    NEWS("attempt", FIELD_INT32, attempt),
    NEWS("class", FIELD_STR, class),
    NEWS("confidence", FIELD_REAL, confidence),
    NEWS("rule", FIELD_STR, rule),
    NEWS("node", FIELD_STR, node),
    NEWS("rank", FIELD_STR, rank),
    NEWS("scene", FIELD_STR, scene),
};
static const struct field_table news_table = FIELD_TABLE(NULL, news_rows, finding_news);

static char *findings_news(const struct task *t)
{
    const struct finding *f = &t->d.found;
    _cleanup_(freep) char *scene = xasprintf("jobs/%s/attempts/%d/scene", t->d.job, t->d.k);
    const struct finding_news news = {.attempt = t->d.k,
                                      .class = finding_class_to_string(f->class),
                                      .confidence = f->confidence,
                                      .rule = f->rule,
                                      .node = f->node          ? f->node
                                              : t->d.lost_node ? t->d.lost_node
                                                               : t->d.node,
                                      .rank = f->rank,
                                      .scene = scene};
    return field_to_text(&news_table, &news, FIELD_ALL, FIELD_PAGE);
}

static void findings_tell(const struct task *t)
{
    _cleanup_(freep) char *news = findings_news(t);
    struct events_note note = {.kind = "finding",
                               .data = news,
                               .actor = "argusd",
                               .job_seq = t->job_seq,
                               .job = t->d.job,
                               .code = finding_class_to_string(t->d.found.class),
                               .text = t->d.sentence};
    events_add(t->fs->p.events, &note, clock_wall());
    log_info("findings", "%s job=%s attempt=%d", t->d.sentence, t->d.job, t->d.k);
    if (t->d.wrote.code < 0)
        log_warn("findings", "%s job=%s", t->d.wrote.text, t->d.job);
}

static void findings_keep(struct record_extra *x, const struct task *t)
{
    record_finding_set(&x->finding, t->d.body, t->d.found.rule, t->d.k);
}

/* The row of a job that is over, with its finding. */
static void findings_complete(const struct task *t, struct job *job, struct record_extra *extra)
{
    struct store_job row;
    struct buf detail = BUF_INIT(RECORD_DETAIL_MAX);
    findings_keep(extra, t);
    if (job->state == JOB_FAILED && !t->d.found.is_vague)
        job->finding = t->d.found.class;
    record_detail(job, extra, &detail);
    record_job_row(job, extra, detail.failed ? NULL : buf_str(&detail), &row);
    store_update_job(t->fs->p.store, &row);
    buf_release(&detail);
}

/* What is owed goes in the batch that brings it, and not before. */
static void findings_settle(const struct task *t)
{
    findings_put_row(t);
    findings_tell(t);
    drop_owed(t);
}

static void take_job(const struct task *t, const struct store_result *r)
{
    struct record_extra extra = {0};
    struct job *job = NULL;
    findings_settle(t);
    if (record_to_job(&r->jobs[0], &job, &extra, NULL) == 0) {
        for (size_t i = 0; i < r->nattempts; i++)
            record_add_attempt(job, &r->attempts[i]);
        if (job->n_attempts == t->d.k && job_state_is_terminal(job->state)) {
            findings_complete(t, job, &extra);
            metas_amend(t->fs->p.metas, job);
        }
    }
    record_extra_release(&extra);
    job_free(job);
}

static void findings_on_row(const struct store_result *r, void *arg)
{
    struct task *t = arg;
    if (!t->fs->closed && r->err.code && r->err.code != ERR_NOT_FOUND) {
        t->is_lost = true;
        return;
    }
    if (!t->fs->closed && r->err.code)
        drop_owed(t); /* nobody is left to be told of it */
    else if (!t->fs->closed)
        take_job(t, r);
    remove_task(t);
}

static void find_job(struct task *t)
{
    struct store_job_ref ref = {.ref = t->d.job, .is_id = true};
    struct store_then then = {.done = findings_on_row, .arg = t};
    t->is_lost = false;
    (void)store_find_job(t->fs->p.store, &ref, &then); /* t stays in the line until then */
}

/* Nobody waited any longer: the past stays as it is, and what is shown of it is completed. */
static void findings_take_late(struct task *t)
{
    struct live *l = jobs_find_any(t->fs->p.jobs, t->d.job);
    if (!l) { /* it is over and in memory no more */
        find_job(t);
        return;
    }
    findings_settle(t);
    if (l->job->n_attempts == t->d.k) {
        findings_keep(&l->extra, t);
        if (l->job->state == JOB_FAILED && !t->d.found.is_vague)
            l->job->finding = t->d.found.class;
    }
    jobs_amend(l);
    if (l->over)
        metas_owe(t->fs->p.store, l->job);
    metas_write(t->fs->p.metas, l);
    remove_task(t);
}

static void findings_answer(struct task *t, const struct finding *found)
{
    struct live *l = t->l;
    t->l = NULL;
    t->done(l, found, t->arg);
    jobs_idle(l);
}

/* It was stopped while the finding of its trial was made: that is how it ended. */
static bool findings_is_moot(const struct task *t)
{
    return t->l && t->l->over;
}

/* The attempt may be over by now: then its end has a finding of its own. */
static void take_note(struct task *t)
{
    struct live *l = t->l;
    const struct attempt *a = job_attempt(l->job);
    if (!l->over && !ending_is_awaited(l) && a && a->k == t->d.k && a->phase == ATTEMPT_RUNNING) {
        findings_put_row(t);
        findings_tell(t);
        findings_keep(&l->extra, t);
        if (t->d.found.class == FINDING_NONE)
            record_finding_release(
                &l->extra.finding); /* the page of a job that is well shows none */
        jobs_save(l);
    }
    jobs_idle(l);
    remove_task(t);
}

/* ---- the line ---- */

static void findings_run(void *arg)
{
    struct task *t = arg;
    diagnosis_run(&t->d);
}

static void findings_begin_next(struct findings *fs);

static void findings_done(void *arg)
{
    struct task *t = arg;
    struct findings *fs = t->fs;
    userlines_leave(t->line, &t->place);
    if (fs->closed) {
        if (t->l)
            jobs_idle(t->l);
        remove_task(t);
        return;
    }
    if (t->is_note) {
        take_note(t);
        findings_begin_next(fs);
        return;
    }
    if (findings_is_moot(t)) {
        findings_answer(t, NULL);
        remove_task(t);
    } else if (t->l) {
        findings_put_row(t);
        findings_tell(t);
        findings_keep(&t->l->extra, t);
        findings_answer(t, &t->d.found);
        remove_task(t);
    } else {
        findings_take_late(t);
    }
    findings_begin_next(fs);
}

static bool can_begin(const struct findings *fs)
{
    return !fs->closed && fs->awaited.going_on + fs->late.going_on < FINDINGS_AT_ONCE &&
           !cluster_root_hangs(fs->p.cluster) && !store_is_failing(fs->p.store);
}

/* What somebody waits for goes first; of the others one at a time. */
static struct task *next_task(struct findings *fs)
{
    struct userlines_place *next = userlines_next(&fs->awaited, FINDINGS_AT_ONCE);
    next = next ? next : userlines_next(&fs->late, 1);
    return next ? container_of(next, struct task, place) : NULL;
}

/* Each of those that wait for one user reads a part of what one alone would: they are no slower
 * together. */
static void findings_set_budget(struct task *t)
{
    uint64_t parts = userlines_waiting(&t->place) + 1;
    parts = parts < FINDINGS_PARTS_MAX ? parts : FINDINGS_PARTS_MAX;
    t->d.head = DIAGNOSIS_HEAD / parts;
    t->d.tail = DIAGNOSIS_TAIL / parts;
}

static void findings_begin_next(struct findings *fs)
{
    struct task *t;
    while (can_begin(fs) && (t = next_task(fs))) {
        t->d.at = clock_wall();
        findings_set_budget(t);
        work_start(fs->p.loop, findings_run, findings_done, t);
    }
}

bool findings_shows(const struct live *l, const char *rule)
{
    const struct record_finding *f = &l->extra.finding;
    return f->json && f->attempt == l->job->n_attempts && str_eq(f->rule, rule);
}

static char *copy(const char *s)
{
    return s && *s ? xstrdup(s) : NULL;
}

/* True when all have an address. */
static bool note_names(const struct cluster *c, const struct gang *gang, struct pairs *ret)
{
    size_t left = 0;
    for (size_t i = 0; i < gang->n; i++) {
        const struct cluster_node *node = cluster_find_name(c, gang->v[i].name);
        if (node && node->ip)
            pairs_set(ret, node->ip, gang->v[i].name);
        else
            left++;
    }
    return ret->n && !left;
}

void findings_ask(struct findings *fs,
                  struct live *l,
                  const struct findings_end *end,
                  findings_f done_f,
                  void *arg)
{
    struct task *t = findings_task_new(fs);
    const struct job *j = l->job;
    t->job_seq = j->seq;
    t->l = l;
    t->done = done_f;
    t->arg = arg;
    t->until = clock_mono() + FINDINGS_PATIENCE;
    t->d.job = xstrdup(j->id);
    t->d.k = j->n_attempts;
    t->d.facts = end->facts;
    t->d.lost_node = copy(end->facts.lost_node);
    t->d.odd_node = copy(end->facts.odd_node);
    t->d.odd_rank = copy(end->facts.odd_rank);
    t->d.stopped_reason = copy(end->facts.stopped_reason);
    t->d.start_says = copy(end->facts.start_says);
    t->d.oom_line = copy(end->facts.oom_line);
    t->d.nan_text = copy(end->facts.nan_text);
    t->d.node = copy(*job_proof(j)->node ? job_proof(j)->node : gang_driver(&j->gang));
    t->d.is_given = end->given != FINDING_NONE;
    t->d.given = end->given;
    t->d.whole = copy(end->whole);
    t->d.no_logs = end->no_logs;
    t->d.no_file = end->no_file;
    if (!end->no_logs) { /* it failed: the scene gets Ray's view */
        t->d.ray_nodes = rayview_nodes(fs->p.cluster, j);
        t->d.ray_actors = rayview_actors(&l->extra);
    }
    t->d.all_named = note_names(fs->p.cluster, &j->gang, &t->d.names);
    jobs_busy(l);
    findings_append(t);
    findings_begin_next(fs);
}

void findings_note(struct findings *fs, struct live *l, const struct finding *found)
{
    struct task *t = findings_task_new(fs);
    struct buf text = BUF_INIT(DIAGNOSIS_BODY_MAX);
    struct jout j = jout_begin(&text);
    finding_to_json(found, &j, NULL);
    t->is_note = true;
    t->job_seq = l->job->seq;
    t->l = l;
    t->d.job = xstrdup(l->job->id);
    t->d.k = l->job->n_attempts;
    t->d.whole = text.failed ? NULL : xstrdup(buf_str(&text));
    t->d.is_given = true;
    t->d.given = found->class;
    t->d.no_file = cluster_root_hangs(fs->p.cluster);
    buf_release(&text);
    jobs_busy(l);
    findings_append(t);
    if (t->d.no_file) { /* nothing of it is for the worker pool */
        t->d.at = clock_wall();
        diagnosis_run(&t->d);
        take_note(t);
        return;
    }
    findings_begin_next(fs);
}

void findings_tick(struct findings *fs, usec_t mono)
{
    if (fs->closed)
        return;
    for (struct task *t = fs->first; t; t = t->next)
        if (t->l && !t->is_note && !findings_is_moot(t) && mono >= t->until) {
            put_owed(t); /* in the batch of the end that goes on without it */
            if (!t->place.goes_on)
                findings_join(t, &fs->late);
            findings_answer(t, NULL);
        } else if (t->is_lost && !store_is_failing(fs->p.store)) {
            find_job(t);
        }
    findings_begin_next(fs);
}
