/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_remedy.c - puts right on a machine what it may; see nodes_run.h, core/job/remedy.h for
 * limits, docs/remedies.md for people.
 *
 * Decide, commit, act: an act is first in the node's book and told with its evidence, and begins
 * once that is on disk. One at a time on a node. A job is over where the store says so, not where
 * nobody knows it: a store that came from a backup lacks jobs that run. */
#include <math.h>
#include <string.h>

#include "argusd/machines/nodes_run.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

static const usec_t STRAY_LIMIT = 60 * USEC_SEC;
static const usec_t SESSIONS_LIMIT = 5 * USEC_MIN;  /* many small files on a slow disk */
static const usec_t STRAY_PATIENCE = 60 * USEC_SEC; /* after a job's end: it may be cleaning up */
static const usec_t ASK_AGAIN = 5 * USEC_SEC;
static const double REMEDY_GIB = 1 << 30;

/* ---- whether it may be, and the book ---- */

static bool remedy_is_on(const struct noderun *nr, enum remedy what)
{
    return nr->nodes->p.settings->remedies[what] == REMEDY_IS_ON;
}

static void remedy_tell_spent(struct noderun *nr, enum remedy what)
{
    char text[200];
    if (nr->heal.spent & 1u << what)
        return;
    nr->heal.spent |= 1u << what;
    message_write(text, sizeof(text),
                  MESSAGE_ARGS(MESSAGE_STR("remedy", remedy_to_string(what)),
                               MESSAGE_NUM("limit", remedy_limit(what))));
    nodes_tell(nr, "node_remedy", "remedy_spent", text);
}

static bool remedy_may(struct noderun *nr, enum remedy what)
{
    if (!remedy_is_on(nr, what))
        return false;
    enum remedy_leave leave = remedy_ask(nr->row->remedies, what, clock_wall());
    if (leave == REMEDY_SPENT)
        remedy_tell_spent(nr, what);
    else if (!remedy_times(nr->row->remedies, what, clock_wall()))
        nr->heal.spent &= ~(1u << what); /* or it would be told after each act from then on */
    return leave == REMEDY_MAY;
}

/* Into the book and the audit; what follows waits for ret. */
static uint64_t remedy_write(struct noderun *nr,
                             enum remedy what,
                             const char *code,
                             const char *text)
{
    remedy_note(nr->row->remedies, what, clock_wall());
    nodes_save(nr);
    nodes_tell(nr, "node_remedy", code, text);
    return store_batch(nr->nodes->p.store);
}

static void remedy_decide(struct noderun *nr, enum remedy what, const char *code, const char *text)
{
    nr->heal.what = what;
    nr->heal.batch = remedy_write(nr, what, code, text);
    nr->heal.is_decided = true;
}

/* ---- the act ---- */

static void remedy_tell_done(struct noderun *nr, const struct remedycall_found *f)
{
    char text[NODE_TEXT_MAX];
    const char *why = f->trouble == SSH_OK ? "" : ssh_trouble_to_string(f->trouble);
    if (f->trouble != SSH_OK || !f->is_whole) {
        message_write(text, sizeof(text),
                      MESSAGE_ARGS(MESSAGE_STR("remedy", remedy_to_string(nr->heal.what)),
                                   MESSAGE_OF("why", why, f->text)));
        nodes_tell(nr, "node_remedied", "remedy_failed", text);
    } else if (nr->heal.what == REMEDY_STRAY) {
        message_write(text, sizeof(text),
                      MESSAGE_ARGS(MESSAGE_STR("job", nr->heal.stray.id),
                                   MESSAGE_NUM("strays", f->processes),
                                   MESSAGE_NUM("killed", f->killed), MESSAGE_NUM("left", f->left)));
        nodes_tell(nr, "node_remedied", "remedy_stray_done", text);
    } else {
        double gib = round((double)f->bytes / REMEDY_GIB * 10) / 10;
        message_write(text, sizeof(text),
                      MESSAGE_ARGS(MESSAGE_NUM("sessions", f->sessions), MESSAGE_NUM("free", gib)));
        nodes_tell(nr, "node_remedied", "remedy_sessions_done", text);
    }
}

static void remedy_on_done(const struct remedycall_found *f, void *arg)
{
    struct noderun *nr = arg;
    nr->heal.call = NULL;
    remedy_tell_done(nr, f);
    nr->heal.batch = store_batch(nr->nodes->p.store);
    nr->look_after = 0; /* what it has changed is looked at now */
    if (nr->row->step == NODE_STEP_PROBE)
        nr->act_after = 0;
    nodes_pass(nr->nodes);
}

static void remedy_begin(struct noderun *nr)
{
    struct nodes *ns = nr->nodes;
    bool of_job = nr->heal.what == REMEDY_STRAY;
    struct ssh_target t;
    struct remedycall_want want = {.owner = ns->p.instance,
                                   .node = nr->row->spec.name,
                                   .job = of_job ? nr->heal.stray.id : NULL,
                                   .temp_dir = ns->p.settings->ray_temp_dir};
    nr->heal.is_decided = false;
    if (of_job && nodes_is_leased(nr, nr->heal.stray.id))
        return;
    nodes_target(nr, &t);
    nr->heal.call = remedycall_new(ns->p.loop, &t, &want, of_job ? STRAY_LIMIT : SESSIONS_LIMIT,
                                   remedy_on_done, nr);
}

/* ---- processes of a job that is over ---- */

static void remedy_find_stray(struct noderun *nr);

static bool remedy_is_over(const struct store_result *r, const char *id)
{
    const struct store_job *j = r->err.code == 0 && r->njobs == 1 ? &r->jobs[0] : NULL;
    return j && str_eq(j->id, id) && !j->live && j->ended_at &&
           j->ended_at + STRAY_PATIENCE <= clock_wall();
}

static void remedy_on_found(const struct store_result *r, void *arg)
{
    char text[200];
    struct noderun *nr = arg;
    struct raylet_job *job = &nr->heal.suspects[--nr->heal.n];
    nr->heal.read = NULL;
    if (!remedy_is_over(r, job->id)) {
        remedy_find_stray(nr);
        return;
    }
    nr->heal.stray = *job;
    nr->heal.n = 0; /* the others are in the next look */
    message_write(text, sizeof(text),
                  MESSAGE_ARGS(MESSAGE_STR("job", job->id), MESSAGE_NUM("strays", job->processes)));
    remedy_decide(nr, REMEDY_STRAY, "remedy_stray_process", text);
}

/* Asks the store about the last suspect that memory does not know as alive, or whose end is not on
 * disk. */
static void remedy_find_stray(struct noderun *nr)
{
    struct nodes *ns = nr->nodes;
    const struct store_then then = {.done = remedy_on_found, .arg = nr};
    while (nr->heal.n && jobs_find_any(ns->p.jobs, nr->heal.suspects[nr->heal.n - 1].id))
        nr->heal.n--;
    if (!nr->heal.n)
        return;
    const struct store_job_ref ref = {.ref = nr->heal.suspects[nr->heal.n - 1].id, .is_id = true};
    nr->heal.read = store_find_job(ns->p.store, &ref, &then);
    if (!nr->heal.read)
        nr->heal.n = 0; /* the store is closing */
}

bool nodes_is_mending(const struct noderun *nr)
{
    return nr->heal.is_decided || nr->heal.call ||
           store_durable(nr->nodes->p.store) < nr->heal.batch;
}

/* ---- what was seen ---- */

void nodes_remedy_take(struct noderun *nr, const struct raylet_look *r)
{
    nr->heal.disk_full = r->has_disk && r->disk_free < nr->nodes->p.settings->min_disk_bytes / 4;
    if (nr->heal.read || nr->row->is_head)
        return;
    nr->heal.n = 0;
    for (size_t i = 0; i < r->n_jobs && nr->heal.n < NODES_SUSPECTS_MAX; i++)
        if (!r->jobs[i].is_live && !nodes_is_leased(nr, r->jobs[i].id))
            nr->heal.suspects[nr->heal.n++] = r->jobs[i];
}

void nodes_remedy_take_probe(struct noderun *nr)
{
    nr->heal.disk_full = false;
    for (size_t i = 0; i < nr->n_findings; i++)
        nr->heal.disk_full |= !strcmp(nr->findings[i].code, probe_code_to_string(PROBE_DISK_FULL));
}

/* ---- what is due ---- */

static void remedy_clear_sessions(struct noderun *nr)
{
    char text[NODE_TEXT_MAX];
    nr->heal.disk_full = false; /* until the next look says so */
    if (!remedy_may(nr, REMEDY_SESSIONS))
        return;
    message_write(
        text, sizeof(text),
        MESSAGE_ARGS(MESSAGE_STR("at", str_or(nr->nodes->p.settings->ray_temp_dir, "/tmp/ray"))));
    remedy_decide(nr, REMEDY_SESSIONS, "remedy_dead_sessions", text);
}

void nodes_remedy(struct noderun *nr, usec_t now)
{
    enum node_step step = nr->row->step;
    if (step == NODE_STEP_IN)
        nr->heal.may_rejoin = false; /* the next one is written anew */
    if (nr->heal.read || nr->heal.call || (step != NODE_STEP_IN && step != NODE_STEP_PROBE))
        return;
    if (nr->heal.is_decided) {
        if (store_durable(nr->nodes->p.store) >= nr->heal.batch)
            remedy_begin(nr);
    } else if (nr->heal.disk_full) {
        remedy_clear_sessions(nr);
    } else if (nr->heal.n && step == NODE_STEP_IN && now >= nr->heal.after) {
        nr->heal.after = now + ASK_AGAIN;
        if (remedy_may(nr, REMEDY_STRAY))
            remedy_find_stray(nr);
    }
}

/* ---- a raylet that died ---- */

bool nodes_remedy_keeps_out(const struct noderun *nr)
{
    return !strcmp(nr->row->reason.code, "raylet_rests");
}

static bool remedy_keep_out(struct noderun *nr, const char *text)
{
    if (!nodes_remedy_keeps_out(nr) || strcmp(nr->row->reason.text, text) != 0)
        nodes_fail(nr, "raylet_rests", text);
    return false;
}

bool nodes_remedy_lets_join(struct noderun *nr)
{
    char text[200];
    bool died = !strcmp(nr->row->reason.code, "raylet_died") || nodes_remedy_keeps_out(nr);
    int limit = remedy_limit(REMEDY_RAYLET);
    if (!died || nr->row->is_head || nr->heal.may_rejoin)
        return true;
    if (!remedy_is_on(nr, REMEDY_RAYLET))
        return remedy_keep_out(nr, "{}");
    if (remedy_ask(nr->row->remedies, REMEDY_RAYLET, clock_wall()) == REMEDY_SPENT) {
        message_write(text, sizeof(text), MESSAGE_ARGS(MESSAGE_NUM("limit", limit)));
        return remedy_keep_out(nr, text);
    }
    int times = 1 + remedy_times(nr->row->remedies, REMEDY_RAYLET, clock_wall());
    message_write(text, sizeof(text),
                  MESSAGE_ARGS(MESSAGE_NUM("times", times), MESSAGE_NUM("limit", limit)));
    nr->heal.may_rejoin = true;
    nr->act_batch = remedy_write(nr, REMEDY_RAYLET, "remedy_raylet", text);
    return false; /* once that is on disk */
}

void nodes_remedy_cancel(struct noderun *nr)
{
    if (nr->heal.read)
        store_read_cancel(nr->heal.read);
    remedycall_free(nr->heal.call);
    nr->heal.read = NULL;
    nr->heal.call = NULL;
}
