/* SPDX-License-Identifier: Apache-2.0 */
/* serving_units.c - a replica: its lease is a job, submitted as whoever deployed the version would
 * submit it. Once the job runs, the replica's place is known, and with it the application that Ray
 * Serve is given for it. Whatever ends the job (a drain, a preemption, its machine, its user) ends
 * the replica, and one that is still wanted gets another lease. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/ground/work.h"
#include "argusd/kit/view.h"
#include "argusd/services/serving_state.h"
#include "argusd/submit/submit.h"
#include "base/log.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/job/share.h"
#include "core/serve/serve_doc.h"
#include "fsroot/attempt/install.h"
#include "fsroot/tree/rootfile.h"

enum { UNIT_SPEC_MAX = 64 << 10, UNIT_FOUND_MAX = 64 << 10, GRACE_MORE_S = 30 };

static const struct serve_spec *unit_spec(const struct service_unit *u)
{
    return &u->of->spec;
}

static struct serving *unit_serving(const struct service_unit *u)
{
    return u->of->of->serving;
}

static const char *unit_app(const struct service_unit *u, char ret[static SERVE_APP_MAX])
{
    return serve_app_name(u->of->of->name, u->of->n, u->k, ret);
}

static char *unit_found_path(const char *job)
{
    return xasprintf("jobs/%s/serve.json", job);
}

/* ---- its lease ---- */

static void unit_put_command(const struct service_unit *u, struct jout *j)
{
    char app[SERVE_APP_MAX];
    const struct serve_spec *s = unit_spec(u);
    _cleanup_(freep) char *lib = fsroot_lib_dir(unit_serving(u)->a->settings->shared_root);
    _cleanup_(freep) char *tool = xasprintf("%s/argus_serve.py", lib);
    jout_open(j, "entrypoint", '[');
    jout_str(j, NULL, "python3");
    jout_str(j, NULL, tool);
    jout_str(j, NULL, "--app");
    jout_str(j, NULL, unit_app(u, app));
    if (s->app) {
        jout_str(j, NULL, "--inspect");
        jout_str(j, NULL, s->app);
        jout_str(j, NULL, "--args");
        jout_str(j, NULL, str_or(s->args, "{}"));
    }
    jout_close(j, ']');
}

static char *unit_job_spec(const struct service_unit *u)
{
    const struct serve_spec *s = unit_spec(u);
    const struct served *of = u->of->of;
    struct buf out = BUF_INIT(UNIT_SPEC_MAX);
    struct jout j = jout_begin(&out);
    char span[32], app[SERVE_APP_MAX];
    text_printf(span, "%" PRIu64 "s", s->graceful / USEC_SEC + GRACE_MORE_S);
    jout_open(&j, NULL, '{');
    jout_str(&j, "workload", "serve");
    jout_str(&j, "name", unit_app(u, app));
    jout_str(&j, "project", of->project);
    jout_int(&j, "priority", s->priority);
    if (s->pool.n) {
        jout_open(&j, "pool", '[');
        for (size_t i = 0; i < s->pool.n; i++)
            jout_str(&j, NULL, s->pool.v[i]);
        jout_close(&j, ']');
    }
    jout_int(&j, "nnodes", 1);
    jout_real(&j, "n_gpus_per_node", serve_spec_gpus(s));
    jout_real(&j, "n_cpus_per_node", serve_spec_cpus(s));
    if (s->memory)
        jout_int(&j, "memory_per_node", (int64_t)s->memory);
    jout_int(&j, "entrypoint_num_cpus", 0);
    if (s->code)
        jout_str(&j, "working_dir", s->code);
    unit_put_command(u, &j);
    jout_str(&j, "stop_grace", span);
    jout_open(&j, "restart", '{');
    jout_int(&j, "max", 1000);
    jout_str(&j, "backoff", "5s");
    jout_close(&j, '}');
    jout_close(&j, '}');
    return buf_take(&out);
}

static void unit_set_reason(struct service_unit *u, const char *code, const char *text)
{
    text_copy(u->reason.code, str_or(code, ""));
    text_copy(u->reason.text, str_or(text, ""));
}

static void unit_failed(struct service_unit *u, usec_t now)
{
    u->failures++;
    u->again_at = now + serve_unit_pause((int)u->failures);
    serving_save_version(u->of);
}

static void unit_on_submitted(struct live *l, const struct err *err, void *arg)
{
    struct service_unit *u = arg;
    u->submit = NULL;
    if (l) {
        set_str(&u->job, l->job->id);
        u->attempt = 0;
        serving_save_version(u->of); /* in the batch of the job's own row */
        return;
    }
    unit_set_reason(u, err->message ? err->message : "serve_said",
                    err->message ? err->args : err->text);
    if (err->code == ERR_BUSY || err->code == ERR_UNAVAILABLE || err->code == ERR_NOT_YET ||
        err->code == ERR_STORE)
        u->again_at = clock_mono() + 5 * USEC_SEC;
    else
        unit_failed(u, clock_mono());
}

static void unit_submit(struct service_unit *u, usec_t now)
{
    if (u->submit || now < u->again_at)
        return;
    struct submit_own own = {.spec = unit_job_spec(u), .done = unit_on_submitted, .arg = u};
    own.who.role = HTTP_ROLE_USER;
    text_copy(own.who.user, u->of->user); /* whose code runs is whose right and quota it is */
    submit_own(unit_serving(u)->a, &own, &u->submit); /* it may be done already */
}

static enum serve_lease unit_lease(const struct service_unit *u, struct live **ret)
{
    struct live *l = u->job ? jobs_find_any(unit_serving(u)->a->jobs, u->job) : NULL;
    *ret = l;
    if (!l || l->over)
        return SERVE_LEASE_NONE;
    if (l->job->state == JOB_STOPPING)
        return SERVE_LEASE_ENDS;
    return l->job->state == JOB_RUNNING && l->job->gang.n ? SERVE_LEASE_HELD : SERVE_LEASE_WAITS;
}

/* Its job has ended. */
static void unit_lease_ended(struct service_unit *u, const struct live *l, usec_t now)
{
    if (l && !u->leaves) {
        char state[16];
        text_copy(state, job_state_to_string(l->job->state));
        message_write(u->reason.text, sizeof(u->reason.text),
                      MESSAGE_ARGS(MESSAGE_STR("job", u->job), MESSAGE_STR("state", state)));
        text_copy(u->reason.code, "serve_job_ended");
    }
    set_str(&u->job, NULL);
    service_unit_forget(u);
    if (!u->leaves)
        unit_failed(u, now);
}

static void unit_stop_job(struct service_unit *u, const char *code, const char *text)
{
    struct live *l = u->job ? jobs_find_id(unit_serving(u)->a->jobs, u->job) : NULL;
    struct job_event e = {.kind = JOB_EV_STOP, .cause = STOP_USER, .code = code, .text = text};
    if (l)
        (void)jobs_apply(l, &e, "argusd", clock_wall()); /* it may be stopping already */
}

void serving_release(struct service_unit *u)
{
    u->leaves = true;
    serving_save_version(u->of);
}

/* ---- what the code is made of ---- */

struct unit_reading {
    struct serving *sv;
    char *service, *job, *root, *path;
    int64_t version, k;
    struct buf text;
    int r;
};

static void unit_run_read(void *arg)
{
    struct unit_reading *x = arg;
    x->r = rootfile_read(x->root, x->path, &x->text, NULL);
}

/* The one that asked, if it is still there. */
static struct service_unit *unit_of_reading(const struct unit_reading *x)
{
    const struct served *s = map_find(x->sv->by_name, x->service);
    const struct service_version *v = s ? service_find_version(s, x->version) : NULL;
    for (size_t i = 0; v && i < v->n_units; i++)
        if (v->units[i]->k == x->k)
            return v->units[i];
    return NULL;
}

static void unit_take_found(struct service_unit *u, const struct buf *text)
{
    struct err err = {0};
    _cleanup_(json_unrefp) json_t *root = NULL;
    struct buf whole = *text;
    if (json_parse(buf_str(&whole), whole.len, UNIT_FOUND_MAX, &root, &err) < 0)
        return; /* it is looked at again */
    const char *dir = json_get_str(root, "dir", "");
    if (serve_spec_merge(unit_spec(u), json_get_array(root, "deployments"), &u->deployments, &err) <
            0 ||
        *dir != '/') {
        unit_set_reason(u, str_or(err.message, "serve_no_answer"), err.message ? err.args : "{}");
        u->failures = SERVE_FAILURES_MAX; /* another try would say the same */
        serving_save_version(u->of);
        unit_stop_job(u, u->reason.code, u->reason.text);
        return;
    }
    set_str(&u->dir, dir);
    u->inspected = true;
}

static void unit_on_read(void *arg)
{
    struct unit_reading *x = arg;
    struct serving *sv = x->sv;
    struct service_unit *u = sv->closing ? NULL : unit_of_reading(x);
    if (u) {
        u->inspecting = false;
        if (x->r == 0 && u->held_at && str_eq(u->job, x->job))
            unit_take_found(u, &x->text);
    }
    buf_release(&x->text);
    free(x->service);
    free(x->job);
    free(x->root);
    free(x->path);
    free(x);
}

static void unit_inspect(struct service_unit *u)
{
    struct serving *sv = unit_serving(u);
    if (u->inspecting || !cluster_root_is_ok(sv->a->cluster) || cluster_root_hangs(sv->a->cluster))
        return;
    struct unit_reading *x = xcalloc(1, sizeof(*x));
    *x = (struct unit_reading){.sv = sv,
                               .service = xstrdup(u->of->of->name),
                               .job = xstrdup(u->job),
                               .root = xstrdup(sv->a->settings->shared_root),
                               .path = unit_found_path(u->job),
                               .version = u->of->n,
                               .k = u->k,
                               .text = BUF_INIT(UNIT_FOUND_MAX)};
    u->inspecting = true;
    work_start(sv->a->loop, unit_run_read, unit_on_read, x);
}

/* ---- its application ---- */

static void unit_write_doc(struct service_unit *u,
                           const struct live *l,
                           const struct cluster_node *n)
{
    char app[SERVE_APP_MAX], share[SHARE_NAME_MAX];
    const struct serve_spec *s = unit_spec(u);
    bool by_name = n->label == CLUSTER_LABEL_NAME;
    bool has_share = l->job->share >= 0 && l->job->share < n->shares;
    _cleanup_(freep) char *lib = fsroot_lib_dir(unit_serving(u)->a->settings->shared_root);
    const struct serve_app a = {.name = unit_app(u, app),
                                .service = u->of->of->name,
                                .spec = s,
                                .deployments = &u->deployments,
                                .label = by_name ? "argus.node" : "ray.io/node-id",
                                .node = by_name ? n->name : n->node_id,
                                .share = has_share ? share_name(l->job->share, share) : NULL,
                                .lib = lib,
                                .code = s->app ? u->dir : NULL};
    free(u->doc);
    json_decref(u->sent);
    u->doc = serve_doc_app(&a);
    u->sent = u->doc ? json_loads(u->doc, 0, NULL) : NULL;
    set_str(&u->node, n->name);
}

/* Its job runs: it belongs into the list. */
static void unit_place(struct service_unit *u, const struct live *l, usec_t now)
{
    const struct cluster_node *n =
        cluster_find_name(unit_serving(u)->a->cluster, gang_driver(&l->job->gang));
    if (u->attempt != l->job->n_attempts) { /* perhaps elsewhere than before */
        service_unit_forget(u);
        u->attempt = l->job->n_attempts;
    }
    if (!u->held_at)
        u->held_at = now;
    if (!n)
        return;
    if (unit_spec(u)->app && !u->inspected) {
        unit_inspect(u);
        unit_set_reason(u, "serve_inspecting", "{}");
        return;
    }
    if (!u->doc)
        unit_write_doc(u, l, n);
}

/* Why it is not ready, as far as Ray Serve says. */
static void unit_say_loading(struct service_unit *u, const struct serve_seen *seen, bool failed)
{
    const struct serving *sv = unit_serving(u);
    char says[200];
    if (sv->code[0]) {
        unit_set_reason(u, sv->code, sv->text);
        return;
    }
    text_copy(says, seen ? str_or(seen->message, "") : "");
    const char *status = seen ? serve_status_to_string(seen->status) : "-";
    message_write(u->reason.text, sizeof(u->reason.text),
                  MESSAGE_ARGS(MESSAGE_STR("status", status), MESSAGE_STR("says", says)));
    text_copy(u->reason.code, failed ? "serve_deploy_failed" : "serve_loading");
}

static bool unit_is_running(const struct service_unit *u, const struct serve_seen *seen)
{
    return seen && (serve_seen_is_ready(seen, u->sent) ||
                    (u->is_running && serve_seen_goes_on(seen, u->sent)));
}

/* Ray has given up this very configuration, after several tries. */
static bool unit_has_failed(const struct service_unit *u, const struct serve_seen *seen)
{
    return seen && seen->status == SERVE_STATUS_DEPLOY_FAILED && seen->config &&
           serve_doc_has(u->sent, seen->config);
}

static void unit_see_app(struct service_unit *u)
{
    const struct serving *sv = unit_serving(u);
    char app[SERVE_APP_MAX];
    if (!u->doc) {
        u->is_running = u->passed = u->has_door = false;
        return;
    }
    if (!sv->has_look)
        return; /* a list has just been put: what was so, is */
    const struct serve_seen *seen = serve_look_find(&sv->look, unit_app(u, app));
    bool failed = unit_has_failed(u, seen);
    u->is_running = unit_is_running(u, seen);
    if (u->is_running)
        return;
    u->passed = u->has_door = false;
    unit_say_loading(u, seen, failed);
    if (!failed || u->leaves)
        return;
    unit_stop_job(u, u->reason.code, u->reason.text);
    if (service_may_give_up(u->of))
        u->failures = SERVE_FAILURES_MAX; /* Ray has tried it again and again */
}

/* It takes too long: another lease, perhaps on another machine. */
static void unit_watch_start(struct service_unit *u, usec_t now)
{
    usec_t limit = unit_spec(u)->start_timeout;
    bool starts = u->state == SERVE_UNIT_LOADING || u->state == SERVE_UNIT_CHECKING;
    if (!starts || !u->held_at || !u->late_from)
        u->late_from = now;
    if (now - u->late_from < limit || unit_serving(u)->code[0])
        return;
    unit_stop_job(u, "serve_too_slow", "{}");
}

/* Only what was seen from its lease on is a measure: not after a restart of argusd in between. */
static void unit_measure(struct service_unit *u, usec_t now)
{
    if (u->state < SERVE_UNIT_LOADING)
        u->is_timed = true;
    if (u->state != SERVE_UNIT_READY || !u->is_timed || !u->held_at)
        return;
    u->is_timed = false;
    u->of->load_took = now > u->held_at ? now - u->held_at : 1;
    serving_save_version(u->of);
}

static void unit_show_wait(struct service_unit *u, const struct live *l)
{
    int position;
    if (l && u->state == SERVE_UNIT_WAITING)
        jobs_reason(l, &u->reason, &position);
    if (u->state == SERVE_UNIT_READY)
        unit_set_reason(u, NULL, NULL);
}

static void unit_leave(struct service_unit *u)
{
    if (u->state == SERVE_UNIT_LEAVING && u->leaves && !u->requests)
        unit_stop_job(u, "serve_released", "{}");
}

void serving_turn_unit(struct service_unit *u, usec_t now)
{
    struct live *l;
    enum serve_lease lease = unit_lease(u, &l);
    if (u->job && lease == SERVE_LEASE_NONE)
        unit_lease_ended(u, l, now);
    if (lease == SERVE_LEASE_HELD)
        unit_place(u, l, now);
    else if (lease == SERVE_LEASE_WAITS)
        service_unit_forget(u);
    unit_see_app(u);
    if (u->is_running)
        serving_turn_door(u, now);
    const struct serve_unit_seen seen = {.leaves = u->leaves,
                                         .lease = lease,
                                         .is_running = u->is_running,
                                         .has_door = u->has_door,
                                         .passed = u->passed};
    u->state = serve_unit_state(&seen);
    if (u->state == SERVE_UNIT_READY && u->failures) {
        u->failures = 0;
        serving_save_version(u->of);
    }
    unit_measure(u, now);
    unit_show_wait(u, l);
    unit_watch_start(u, now);
    unit_leave(u);
    if (u->state == SERVE_UNIT_NEW && !u->of->failed)
        unit_submit(u, now);
    if (u->state == SERVE_UNIT_GONE && !u->submit) {
        struct service_version *v = u->of;
        serving_drop_unit(u);
        serving_save_version(v);
    }
}

/* ---- what is told of them ---- */

/* How many requests it works on at once; of an application those of its widest deployment, for
 * which of them has the requests first only its code knows. */
static int64_t unit_takes(const struct service_unit *u)
{
    const struct serve_spec *spec = &u->of->spec;
    const struct serve_deployment *d = u->deployments.v;
    int64_t most = spec->max_ongoing_requests;
    for (size_t i = 0; i < u->deployments.n; i++) {
        int64_t each =
            d[i].max_ongoing_requests ? d[i].max_ongoing_requests : spec->max_ongoing_requests;
        int64_t all = each * (d[i].num_replicas > 1 ? d[i].num_replicas : 1);
        most = i && most > all ? most : all;
    }
    return most;
}

int64_t service_version_waiting(const struct service_version *v)
{
    int64_t waiting = 0;
    for (size_t i = 0; i < v->n_units; i++) {
        int64_t more = v->units[i]->requests - unit_takes(v->units[i]);
        waiting += more > 0 ? more : 0;
    }
    return waiting;
}

static bool service_has_lease(const struct served *s, const char *job)
{
    for (size_t i = 0; i < s->n_versions; i++)
        for (size_t k = 0; k < s->versions[i]->n_units; k++)
            if (str_eq(s->versions[i]->units[k]->job, job))
                return true;
    return false;
}

void serving_lease_ended(struct serving *sv, const struct live *l)
{
    struct served *s;
    for (size_t pos = 0; (s = map_next(sv->by_name, &pos, NULL));) {
        if (!service_has_lease(s, l->job->id))
            continue;
        s->spent_gpu_hours += view_gpu_hours(0, l);
        serving_save(s);
    }
}

double service_gpu_hours(const struct served *s)
{
    double hours = s->spent_gpu_hours;
    for (size_t i = 0; i < s->n_versions; i++)
        for (size_t k = 0; k < s->versions[i]->n_units; k++) {
            const char *job = s->versions[i]->units[k]->job;
            const struct live *l = job ? jobs_find_id(s->serving->a->jobs, job) : NULL;
            hours += l ? view_gpu_hours(0, l) : 0;
        }
    return hours;
}
