/* SPDX-License-Identifier: Apache-2.0 */
/* trackers.c - the table of runs, what is decided before a start and what is owed after an end; see
 * trackers.h. A run is stored when it is decided, and again when it changes: a kill repeats a
 * request that can be repeated. */
#include "argusd/trackers/trackers.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/ground/jobspec.h"
#include "argusd/launch/launchplan.h"
#include "argusd/trackers/oldruns.h"
#include "argusd/trackers/trackers_state.h"
#include "base/digest/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "base/text.h"
#include "base/version.h"

enum { TRACKERS_TICK_MS = 1000, RUNS_MAX = 20000 };
static const usec_t OWED_FIRST = 5 * USEC_SEC, OWED_MOST = 10 * USEC_MIN;
static const usec_t OWED_GIVE_UP = 7 * USEC_DAY;

static const char *const state_words[] = {"running", "owed",     "syncing", "complete",
                                          "kept",    "given_up", NULL};
static const char *const end_words[] = {"finished", "failed", "killed", NULL};

#define RUN(key, ftype, member, ...) FIELD_AT(tracker_run, key, ftype, member, __VA_ARGS__)
enum { RUN_WHOLE = FIELD_STORED | FIELD_SHOWN };
static const struct field run_rows[] = {
    RUN("attempt", FIELD_INT32, attempt, .flags = RUN_WHOLE),
    RUN("tracker", FIELD_ENUM, kind, .names = tracker_kind_words, .flags = RUN_WHOLE),
    RUN("mode",
        FIELD_ENUM,
        mode,
        .names = tracker_mode_words,
        .flags = RUN_WHOLE,
        .doc = "how the attempt uses it, as decided before its start"),
    RUN("state",
        FIELD_ENUM,
        state,
        .names = state_words,
        .flags = RUN_WHOLE,
        .doc = "complete: it has all of the attempt; owed: what it lacks is sent; kept: only files "
               "of the job have it"),
    RUN("project", FIELD_STR, project, .flags = RUN_WHOLE),
    RUN("name", FIELD_STR, name, .flags = RUN_WHOLE),
    RUN("run", FIELD_STR, run, .flags = RUN_WHOLE, .doc = "id of the run in the tracker"),
    RUN("link", FIELD_STR, link, .flags = RUN_WHOLE, .doc = "a page, or a directory of the job"),
    RUN("problem", FIELD_STR, why, .flags = RUN_WHOLE, .doc = "why it is not online or complete"),
    RUN("sync_job", FIELD_STR, sync_job, .flags = RUN_WHOLE, .doc = "the job that sends it"),
    RUN("url", FIELD_STR, url, .flags = FIELD_STORED),
    RUN("job", FIELD_STR, job, .flags = FIELD_STORED),
    RUN("user", FIELD_STR, user, .flags = FIELD_STORED),
    RUN("group", FIELD_STR, group, .flags = FIELD_STORED),
    RUN("pool", FIELD_STR, pool, .flags = FIELD_STORED),
    RUN("experiment", FIELD_STR, experiment, .flags = FIELD_STORED),
    RUN("python", FIELD_STR, python, .flags = FIELD_STORED),
    RUN("path", FIELD_STRV, path, .flags = FIELD_STORED),
    RUN("end", FIELD_ENUM, end, .names = end_words, .flags = FIELD_STORED),
    RUN("outcome", FIELD_STR, outcome, .flags = FIELD_STORED),
    RUN("finding", FIELD_STR, finding, .flags = FIELD_STORED),
    RUN("advice", FIELD_STR, advice, .flags = FIELD_STORED),
    RUN("pipeline", FIELD_STR, pipeline, .flags = FIELD_STORED),
    RUN("pipeline_step", FIELD_STR, pipeline_step, .flags = FIELD_STORED),
    RUN("pipeline_end", FIELD_STR, pipeline_end, .flags = FIELD_STORED),
    RUN("is_more", FIELD_BOOL, is_more, .flags = FIELD_STORED),
    RUN("tries", FIELD_INT32, tries, .flags = FIELD_STORED),
    RUN("started_at", FIELD_TIME, started_at, .flags = FIELD_STORED),
    RUN("ended_at", FIELD_TIME, ended_at, .flags = FIELD_STORED),
    RUN("owed_at", FIELD_TIME, owed_at, .flags = FIELD_STORED),
};
#undef RUN
const struct field_table tracker_run_table = FIELD_TABLE("TrackerRun", run_rows, tracker_run);

/* ---- the table ---- */

static void run_free(struct tracker_run *r)
{
    talk_end(r);
    field_release(&tracker_run_table, r);
    free(r);
}

/* The name of its row in the store; yours. */
static char *run_row_name(const struct tracker_run *r)
{
    return xasprintf("%s-%d/%s", r->job, r->attempt,
                     tracker_kind_to_string((enum tracker_kind)r->kind));
}

static void run_save(struct tracker_run *r)
{
    _cleanup_(freep) char *body = field_to_text(&tracker_run_table, r, FIELD_STORED, FIELD_ROW);
    _cleanup_(freep) char *name = run_row_name(r);
    struct store_entry row = {
        .kind = TRACKERS_ENTRY, .name = name, .body = body, .at = r->started_at};
    store_put_entry(r->ts->p.store, &row);
    r->deciding = false;
}

static void run_add(struct trackers *ts, struct tracker_run *r)
{
    struct tracker_run *first = map_find(ts->by_job, r->job);
    r->ts = ts;
    ts->n_runs++;
    if (!first) {
        (void)map_set(ts->by_job, r->job, r); /* there was none */
        return;
    }
    while (first->next)
        first = first->next;
    first->next = r;
}

static struct tracker_run *run_find(const struct trackers *ts,
                                    const char *job,
                                    int attempt,
                                    enum tracker_kind kind)
{
    for (struct tracker_run *r = map_find(ts->by_job, job); r; r = r->next)
        if (r->attempt == attempt && r->kind == (int)kind)
            return r;
    return NULL;
}

void trackers_restore(struct trackers *ts, const struct store_entry *row)
{
    struct tracker_run *r = xcalloc(1, sizeof(*r));
    if (!field_from_text(&tracker_run_table, row->body, FIELD_STORED, r) || !r->job || !r->user ||
        !r->project) {
        log_err("store", "the row of a tracker's run cannot be read: ignoring %s", row->name);
        field_release(&tracker_run_table, r);
        free(r);
        return;
    }
    run_add(ts, r);
}

/* ---- before a start ---- */

static const char *server_of(const struct settings *s,
                             const struct spec *spec,
                             const char *user,
                             enum tracker_kind kind,
                             char **ret_own)
{
    static const char *const names[] = {[TRACKER_WANDB] = "WANDB_BASE_URL",
                                        [TRACKER_MLFLOW] = "MLFLOW_TRACKING_URI",
                                        [TRACKER_TENSORBOARD] = "TENSORBOARD_DIR",
                                        [TRACKER_SWANLAB] = "SWANLAB_API_HOST"};
    const char *const urls[] = {s->tracker_wandb, s->tracker_mlflow, NULL, s->tracker_swanlab};
    if (kind == TRACKER_TENSORBOARD)
        return NULL;
    if (kind == TRACKER_MLFLOW && spec->tracking_uri)
        return spec->tracking_uri;
    *ret_own = launchplan_env(s, spec, user, names[kind]);
    return *ret_own && tracker_is_url(*ret_own) ? *ret_own : urls[kind];
}

static struct tracker_run *run_new(struct trackers *ts, struct live *l, enum tracker_kind kind)
{
    const struct settings *s = ts->p.settings;
    const struct spec *spec = jobspec_of(s, l->job);
    const int k = job_attempt(l->job)->k;
    struct tracker_run *r = xcalloc(1, sizeof(*r));
    _cleanup_(freep) char *own = NULL;
    const char *url = server_of(s, spec, l->job->user, kind, &own);
    *r = (struct tracker_run){.job = xstrdup(l->job->id),
                              .user = xstrdup(l->job->user),
                              .group = xstrdup(str_or(l->job->project, "")),
                              .pool = xstrdup(str_or(l->job->pool, "")),
                              .attempt = k,
                              .kind = (int)kind,
                              .mode = (int)tracker_mode_of_spec(spec, kind),
                              .url = xstrdup(url),
                              .project = xstrdup(str_or(tracker_project(spec), "argus")),
                              .name = xstrdup(tracker_run_name(spec)),
                              .python = xstrdup(spec->py_executable),
                              .started_at = clock_wall(),
                              .deciding = true};
    for (size_t i = 0; i < spec->extra_pythonpath.n; i++)
        strv_add(&r->path, spec->extra_pythonpath.v[i]);
    run_add(ts, r);
    return r;
}

/* Where its files are. */
static char *run_files(const struct tracker_run *r)
{
    const struct settings *s = r->ts->p.settings;
    const char *kind = tracker_kind_to_string((enum tracker_kind)r->kind);
    if (r->kind == TRACKER_WANDB)
        return xasprintf("%s/jobs/%s/attempts/%d/wandb", s->shared_root, r->job, r->attempt);
    const struct live *l = jobs_find_any(r->ts->p.jobs, r->job);
    const struct spec *spec = l ? jobspec_of(s, l->job) : NULL;
    const char *given = spec ? spec->tracking_uri : NULL;
    return given ? xasprintf("%s/%s-%d", given, r->job, r->attempt)
                 : xasprintf("%s/jobs/%s/metrics/%s/%s-%d", s->shared_root, r->job, kind, r->job,
                             r->attempt);
}

static void run_decided(struct tracker_run *r, enum tracker_mode mode, const char *why)
{
    static const char *const codes[] = {"tracker_none", "tracker_offline", "tracker_online"};
    struct live *l = jobs_find_id(r->ts->p.jobs, r->job);
    char text[JOB_REASON_TEXT_MAX];
    r->mode = (int)mode;
    set_str(&r->why, why);
    if (mode == TRACKER_OFFLINE && !r->link)
        r->link = run_files(r);
    run_save(r);
    message_write(
        text, sizeof(text),
        MESSAGE_ARGS(MESSAGE_STR("kind", tracker_kind_to_string((enum tracker_kind)r->kind)),
                     MESSAGE_STR("url", str_or(r->url, "")), MESSAGE_STR("why", str_or(why, ""))));
    if (l)
        jobs_note(l, "tracker", codes[mode], text, clock_wall());
}

static void on_begun(struct tracker_run *r, const char *why)
{
    enum tracker_mode away = r->kind == TRACKER_MLFLOW ? TRACKER_NONE : TRACKER_OFFLINE;
    run_decided(r, why ? away : TRACKER_ONLINE, why);
}

static void run_decide(struct tracker_run *r)
{
    bool asks = r->mode == TRACKER_ONLINE || (r->kind == TRACKER_SWANLAB && r->url);
    if (asks && r->url)
        talk_begin(r, on_begun);
    else if (asks)
        run_decided(r, r->kind == TRACKER_MLFLOW ? TRACKER_NONE : TRACKER_OFFLINE,
                    "no address is configured for it");
    else
        run_decided(r, (enum tracker_mode)r->mode, NULL);
}

bool trackers_decide(struct trackers *ts, struct live *l)
{
    enum tracker_kind kinds[2] = {0};
    const struct spec *spec = jobspec_of(ts->p.settings, l->job);
    size_t n = spec ? tracker_of_spec(spec, kinds) : 0;
    bool decided = true;
    for (size_t i = 0; i < n; i++) {
        struct tracker_run *r = run_find(ts, l->job->id, job_attempt(l->job)->k, kinds[i]);
        if (!r) {
            r = run_new(ts, l, kinds[i]);
            run_decide(r);
        }
        decided &= !r->deciding;
    }
    return decided || ts->closed;
}

size_t trackers_of(const struct trackers *ts,
                   const char *job,
                   int attempt,
                   struct tracker ret[static 2])
{
    size_t n = 0;
    for (struct tracker_run *r = map_find(ts->by_job, job); r && n < 2; r = r->next)
        if (r->attempt == attempt)
            ret[n++] = (struct tracker){.kind = (enum tracker_kind)r->kind,
                                        .mode = (enum tracker_mode)r->mode,
                                        .url = r->url,
                                        .run = r->run};
    return n;
}

void trackers_add_secrets(const struct trackers *ts, const struct live *l, struct pairs *ret)
{
    struct tracker found[2];
    size_t n = trackers_of(ts, l->job->id, job_attempt(l->job)->k, found);
    for (size_t i = 0; i < n; i++) {
        struct strv names = {0};
        for (const char *const *name = tracker_secrets(found[i].kind);
             *name && found[i].mode == TRACKER_ONLINE; name++)
            if (!pairs_find(ret, *name))
                strv_add(&names, *name);
        secrets_reveal(ts->p.secrets, l->job->user, l->job->project, &names, ret);
        strv_release(&names);
    }
}

/* ---- after an end ---- */

static bool has_server(const struct tracker_run *r)
{
    return r->url && (r->kind == TRACKER_MLFLOW || r->kind == TRACKER_WANDB);
}

/* What its tracker is told of an attempt that is over: the words of the job's page. The finding is
 * there by now, but where it took longer than its end waits for it. */
static void run_note(struct tracker_run *r, const struct live *l, const char *outcome)
{
    const struct record_finding *f = &l->extra.finding;
    struct finding found;
    set_str(&r->outcome, outcome);
    if (!f->json || f->attempt != r->attempt)
        return;
    if (record_finding_read(f, &found, NULL) == 0 && found.class != FINDING_NONE) {
        const char *own = found.class == FINDING_UNKNOWN ? l->extra.finding_word : NULL;
        set_str(&r->finding, own ? own : finding_class_to_string(found.class));
        set_str(&r->advice, found.advice);
    }
    finding_release(&found);
}

static void run_ended(struct tracker_run *r, enum tracker_end end, usec_t at)
{
    bool is_whole = r->kind == TRACKER_TENSORBOARD || r->mode == TRACKER_ONLINE;
    r->end = (int)end;
    r->ended_at = at;
    r->owed_at = clock_wall();
    r->state = has_server(r) ? TRACKER_OWED : is_whole ? TRACKER_COMPLETE : TRACKER_KEPT;
    if (r->kind == TRACKER_WANDB && r->mode == TRACKER_NONE)
        r->state = TRACKER_KEPT; /* the spec wants it disabled */
    run_save(r);
}

static enum tracker_end end_of_state(enum job_state s)
{
    return s == JOB_SUCCEEDED ? TRACKER_FINISHED
           : s == JOB_FAILED  ? TRACKER_FAILED
                              : TRACKER_KILLED;
}

static bool attempt_is_over(const struct job *j, int k)
{
    if (k < 1 || k > j->n_attempts)
        return true;
    enum attempt_phase phase = j->attempts[k - 1].phase;
    return k < j->n_attempts || phase == ATTEMPT_ENDED || phase == ATTEMPT_ABANDONED;
}

static usec_t attempt_end(const struct job *j, int k)
{
    usec_t at = k >= 1 && k <= j->n_attempts ? j->attempts[k - 1].ended_at : 0;
    return at ? at : clock_wall();
}

/* Its slots were taken: it did nothing wrong. */
static bool attempt_was_preempted(const struct job *j, int k)
{
    return k >= 1 && k <= j->n_attempts && j->attempts[k - 1].outcome == ATTEMPT_PREEMPTED;
}

void trackers_act(struct trackers *ts, const struct live *l)
{
    for (struct tracker_run *r = map_find(ts->by_job, l->job->id); r; r = r->next)
        if (!l->over && !r->deciding && r->state == TRACKER_RUNNING &&
            attempt_is_over(l->job, r->attempt)) {
            bool preempted = attempt_was_preempted(l->job, r->attempt);
            run_note(r, l, preempted ? "PREEMPTED" : "RESTARTED");
            run_ended(r, preempted ? TRACKER_KILLED : TRACKER_FAILED,
                      attempt_end(l->job, r->attempt));
        }
}

/* It has been owed for so long that the next failure is the last one. */
static bool run_is_late(const struct tracker_run *r)
{
    usec_t since = r->owed_at ? r->owed_at : r->ended_at;
    return clock_wall() > since + OWED_GIVE_UP;
}

static void sync_ended(struct tracker_run *r, const struct job *j)
{
    bool done = j->state == JOB_SUCCEEDED;
    if (done && !r->is_more)
        r->state = TRACKER_COMPLETE;
    else
        r->state = !done && run_is_late(r) ? TRACKER_GIVEN_UP : TRACKER_OWED;
    set_str(&r->why, done ? NULL : "the job that sends it has failed");
    r->tries++;
    r->after = clock_mono() + (done ? 0 : OWED_MOST);
    run_save(r);
}

void trackers_ended(struct trackers *ts, const struct live *l)
{
    size_t pos = 0;
    for (struct tracker_run *r = map_find(ts->by_job, l->job->id); r; r = r->next)
        if (r->state == TRACKER_RUNNING) {
            talk_end(r);
            run_note(r, l, job_state_to_string(l->job->state));
            run_ended(r, end_of_state(l->job->state), attempt_end(l->job, r->attempt));
        }
    for (struct tracker_run *r; (r = map_next(ts->by_job, &pos, NULL));)
        for (; r; r = r->next)
            if (r->state == TRACKER_SYNCING && str_eq(r->sync_job, l->job->id))
                sync_ended(r, l->job);
}

void trackers_tell_pipeline(struct trackers *ts,
                            const char *job,
                            const char *run,
                            const char *step,
                            const char *end)
{
    for (struct tracker_run *r = map_find(ts->by_job, job); r; r = r->next) {
        if (!has_server(r) || r->deciding)
            continue;
        set_str(&r->pipeline, run);
        set_str(&r->pipeline_step, step);
        set_str(&r->pipeline_end, end);
        r->owed_at = clock_wall();
        /* What is sent now may be without this; the order of a job is made after its talk. */
        r->is_more = r->kind == TRACKER_WANDB ? r->state == TRACKER_SYNCING : r->talk != NULL;
        if (r->state == TRACKER_COMPLETE || r->state == TRACKER_GIVEN_UP) {
            r->state = TRACKER_OWED;
            r->tries = 0;
            r->after = 0;
        }
        run_save(r);
    }
}

static void run_failed(struct tracker_run *r, const char *why)
{
    usec_t wait = OWED_FIRST;
    for (int i = 0; i < r->tries && wait < OWED_MOST; i++)
        wait *= 2;
    r->after = clock_mono() + (wait < OWED_MOST ? wait : OWED_MOST);
    if (!r->tries++ || !str_eq(r->why, why))
        log_warn("trackers", "%s does not have all of attempt %d yet: %s job=%s",
                 tracker_kind_to_string((enum tracker_kind)r->kind), r->attempt, why, r->job);
    set_str(&r->why, why);
    if (run_is_late(r))
        r->state = TRACKER_GIVEN_UP;
    run_save(r);
}

static void on_completed(struct tracker_run *r, const char *why)
{
    if (why) {
        run_failed(r, why);
        return;
    }
    r->state = r->is_more ? TRACKER_OWED : TRACKER_COMPLETE;
    r->is_more = false;
    set_str(&r->why, NULL);
    run_save(r);
}

/* Its server answers, and knows the key. */
static void on_seen(struct tracker_run *r, const char *why)
{
    if (why)
        run_failed(r, why);
    else if (!trackers_sync(r))
        run_failed(r, str_or(r->why, "no job can be made for it now"));
    else {
        r->state = TRACKER_SYNCING;
        r->is_more = false; /* this job has all that there is to tell */
        run_save(r);
    }
}

static void run_settle(struct tracker_run *r)
{
    const struct live *l;
    if (r->state == TRACKER_RUNNING && !r->deciding && !jobs_find_any(r->ts->p.jobs, r->job))
        run_ended(r, TRACKER_KILLED, clock_wall());
    if (r->state == TRACKER_SYNCING && !jobs_find_any(r->ts->p.jobs, r->sync_job))
        r->state = TRACKER_OWED; /* its end came to nobody */
    l = jobs_find_any(r->ts->p.jobs, r->job);
    if (r->state != TRACKER_OWED || r->talk || (l && l->over))
        return;
    if (r->kind == TRACKER_MLFLOW)
        talk_complete(r, on_completed);
    else
        talk_begin(r, on_seen);
}

/* ---- what is forgotten ---- */

/* Its job is over for good, and nobody is at it. What its tracker still lacks the job's files
 * have. */
static bool run_may_go(const struct tracker_run *r)
{
    return !r->deciding && !r->talk && r->state != TRACKER_RUNNING && r->state != TRACKER_SYNCING &&
           !jobs_find_any(r->ts->p.jobs, r->job);
}

static void run_forget(struct tracker_run *r)
{
    struct trackers *ts = r->ts;
    struct tracker_run *at = map_find(ts->by_job, r->job);
    _cleanup_(freep) char *name = run_row_name(r);
    while (at != r && at->next != r)
        at = at->next;
    if (at != r)
        at->next = r->next;
    else if (r->next)
        (void)map_set(ts->by_job, r->job, r->next); /* in its own place */
    else
        (void)map_remove(ts->by_job, r->job); /* it was the only one */
    ts->n_runs--;
    store_remove_entry(ts->p.store, TRACKERS_ENTRY, name);
    run_free(r);
}

static void trackers_forget(struct trackers *ts)
{
    size_t n = 0, pos = 0;
    if (ts->n_runs <= RUNS_MAX)
        return;
    struct oldrun *v = xcalloc(ts->n_runs, sizeof(*v));
    for (struct tracker_run *r; (r = map_next(ts->by_job, &pos, NULL));)
        for (; r; r = r->next)
            if (run_may_go(r))
                v[n++] = (struct oldrun){.user = r->user, .ended_at = r->ended_at, .run = r};
    size_t gone = oldruns_choose(v, n, ts->n_runs - RUNS_MAX);
    for (size_t i = 0; i < gone; i++)
        run_forget(v[i].run);
    free(v);
}

static void on_tick(uv_timer_t *timer)
{
    struct trackers *ts = timer->data;
    size_t pos = 0;
    usec_t now = clock_mono();
    for (struct tracker_run *r; (r = map_next(ts->by_job, &pos, NULL));)
        for (; r; r = r->next) {
            talk_look(r, now);
            if (r->state < TRACKER_COMPLETE && now >= r->after)
                run_settle(r);
        }
    talks_take_turns(ts);
    trackers_forget(ts);
}

/* ---- the whole ---- */

int trackers_new(const struct trackers_parts *parts, struct trackers **ret, struct err *err)
{
    unsigned char seed[16];
    random_bytes(seed, sizeof(seed));
    struct trackers *ts = xcalloc(1, sizeof(*ts));
    struct wire_options opt = {.loop = parts->loop,
                               .user_agent = "argus/" ARGUS_VERSION,
                               .connect_timeout = 5 * USEC_SEC,
                               .parallel_max =
                                   STARTS_MOST + ENDS_MOST, /* no turn waits for another */
                               .reach = REACH_NAMED,
                               .networks = &parts->settings->call_networks};
    *ts = (struct trackers){.p = *parts,
                            .starts = {.most_of_one = STARTS_OF_ONE},
                            .ends = {.most_of_one = ENDS_OF_ONE}};
    int r = wire_new(&opt, &ts->wire, err);
    if (r < 0) {
        free(ts);
        return r;
    }
    ts->by_job = map_new(seed);
    *ret = ts;
    return 0;
}

void trackers_start(struct trackers *ts)
{
    ts->timer.data = ts;
    (void)uv_timer_init(ts->p.loop, &ts->timer);                                   /* cannot fail */
    (void)uv_timer_start(&ts->timer, on_tick, TRACKERS_TICK_MS, TRACKERS_TICK_MS); /* the same */
    ts->turn.data = ts;
    (void)uv_timer_init(ts->p.loop, &ts->turn);
}

void trackers_close(struct trackers *ts)
{
    size_t pos = 0;
    if (!ts || ts->closed)
        return;
    ts->closed = true;
    if (ts->timer.data) {
        uv_close((uv_handle_t *)&ts->timer, NULL);
        uv_close((uv_handle_t *)&ts->turn, NULL);
    }
    for (struct tracker_run *r; (r = map_next(ts->by_job, &pos, NULL));)
        for (; r; r = r->next)
            talk_end(r);
    wire_free(ts->wire);
    ts->wire = NULL;
    trackers_look_over(ts);
}

void trackers_free(struct trackers *ts)
{
    size_t pos = 0;
    if (!ts)
        return;
    for (struct tracker_run *r, *next; (r = map_next(ts->by_job, &pos, NULL));)
        for (; r; r = next) {
            next = r->next;
            run_free(r);
        }
    userlines_release(&ts->starts);
    userlines_release(&ts->ends);
    map_free(ts->by_job);
    free(ts);
}

char *trackers_text(const struct trackers *ts, const char *job)
{
    const struct tracker_run *r = map_find(ts->by_job, job);
    struct buf out = BUF_INIT(1 << 20);
    struct jout j = jout_begin(&out);
    if (!r)
        return NULL;
    jout_open(&j, NULL, '[');
    for (; r; r = r->next)
        if (!r->deciding)
            field_to_json(&tracker_run_table, r, FIELD_SHOWN, FIELD_PAGE, &j, NULL);
    jout_close(&j, ']');
    if (out.failed)
        buf_reset(&out); /* more attempts than any job has */
    return out.len ? buf_take(&out) : NULL;
}
