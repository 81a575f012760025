/* SPDX-License-Identifier: Apache-2.0 */
/* sender.c - brings an admitted job to Ray, exactly once; see sender.h.
 *
 *   model (nodes' caches) -> files (worker) -> POST -> accepted
 *        doubt, duplicate, or after a restart: GET -> ours: accepted
 *                                                  -> somebody's: next attempt id
 *                                                  -> none: POST again (same id, safe)
 * An attempt whose shepherd has started (driver.log is there) is never sent again:
 * the watcher judges it by its files. */
#include "argusd/watch/sender.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/checkpoints/checkpoints.h"
#include "argusd/ground/jobspec.h"
#include "argusd/ground/work.h"
#include "argusd/jobs/lease.h"
#include "argusd/launch/launchplan.h"
#include "argusd/launch/mark.h"
#include "argusd/launch/modelcopy.h"
#include "argusd/launch/notebooktoken.h"
#include "argusd/launch/secretcheck.h"
#include "argusd/machines/nodes.h"
#include "argusd/trackers/trackers.h"
#include "base/digest/seal.h"
#include "base/json.h"
#include "base/log.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/check/trial.h"
#include "core/job/network.h"
#include "core/spec/spec.h"
#include "fsroot/attempt/attempt.h"

struct sending;

struct sender {
    struct sender_parts p;
    struct sending *active; /* those under way, so that an end in the middle frees them */
    bool closed;            /* answers are still taken, nothing is sent */
};

struct sending {
    struct sending *next;
    struct sender *s;
    struct live *l;
    int k;
    struct launchplan plan;
    struct checkpoints_use use; /* of a checkpoint that it goes on from */
    char *used;
    struct modelcopy *model; /* its nodes are asked for the model; NULL: not now */
    int result;
    struct err err;
};

struct sender *sender_new(const struct sender_parts *parts)
{
    struct sender *s = xcalloc(1, sizeof(*s));
    s->p = *parts;
    return s;
}

void sender_close(struct sender *s)
{
    if (!s)
        return;
    s->closed = true;
    for (struct sending *g = s->active; g; g = g->next) {
        modelcopy_free(g->model);
        g->model = NULL;
    }
}

void sender_free(struct sender *s)
{
    for (struct sending *g = s ? s->active : NULL, *next; g; g = next) {
        next = g->next;
        launchplan_release(&g->plan);
        free(g->used);
        free(g);
    }
    free(s);
}

/* What is kept for a job. */
struct sent {
    bool busy;    /* its files are being written, or a POST is under way */
    int k;        /* the attempt that the rest is about */
    bool maybe;   /* Ray may have it: ask before sending */
    usec_t after; /* monotonic: not before */
    int tries;
};

/* Nobody knows whether an attempt from before this start of argusd was sent. */
static struct sent sent_of(const struct live *l)
{
    const struct sent *kept = live_kept(l, LIVE_SENDER);
    int k = l->job->n_attempts;
    if (kept && kept->k == k)
        return *kept;
    return (struct sent){
        .busy = kept && kept->busy, .k = k, .maybe = l->restored_attempts == k && k};
}

static struct sent *sent_change(struct live *l)
{
    struct sent now = sent_of(l), *kept = live_keep(l, LIVE_SENDER, sizeof(*kept));
    *kept = now;
    return kept;
}

bool sender_is_sending(const struct live *l)
{
    return sent_of(l).busy;
}

bool sender_may_have_sent(const struct live *l)
{
    return sent_of(l).maybe;
}

void sender_saw_none(struct live *l)
{
    sent_change(l)->maybe = false;
}

static void sending_free(struct sending *g)
{
    struct live *l = g->l;
    for (struct sending **p = &g->s->active; *p; p = &(*p)->next)
        if (*p == g) {
            *p = g->next;
            break;
        }
    checkpoints_unuse(&g->use);
    launchplan_release(&g->plan);
    free(g->used);
    free(g);
    sent_change(l)->busy = false;
    jobs_idle(l);
}

/* Still the attempt that we began with, and still to be sent? */
static bool sender_is_wanted(const struct sending *g)
{
    const struct attempt *a = job_attempt(g->l->job);
    return !g->s->closed && !g->l->over && a && a->k == g->k && job_act(g->l->job) == JOB_ACT_SEND;
}

/* ---- logs/submit.out ---- */

struct submit_note {
    char *root, *job, *text;
};

static void sender_run_note(void *arg)
{
    struct submit_note *n = arg;
    struct err err = {0};
    if (fsroot_submit_out_add(n->root, n->job, n->text, &err) < 0)
        log_debug("send", "%s job=%s", err.text, n->job);
}

static void sender_done_note(void *arg)
{
    struct submit_note *n = arg;
    free(n->root);
    free(n->job);
    free(n->text);
    free(n);
}

/* One line for people: what Ray said to this submission. */
static void note_answer(const struct sending *g, const char *outcome, const char *why)
{
    char at[CLOCK_TEXT_MAX];
    struct submit_note *n = xcalloc(1, sizeof(*n));
    n->root = xstrdup(g->s->p.settings->shared_root);
    n->job = xstrdup(g->l->job->id);
    n->text = xasprintf("%s %s to %s: %s%s%s\n", clock_to_string(clock_wall(), at), g->plan.ray_id,
                        g->s->p.settings->ray_address, outcome, *why ? ": " : "", why);
    work_start(g->s->p.loop, sender_run_note, sender_done_note, n);
}

static void sender_apply(struct sending *g,
                         enum job_event_kind kind,
                         const char *code,
                         const char *text)
{
    struct job_event e = {
        .kind = kind, .code = code, .text = text, .session = cluster_session(g->s->p.cluster)};
    (void)jobs_apply(g->l, &e, "argusd", clock_wall()); /* too late is harmless */
}

/* 1, 2, 4 … 30 seconds. */
static void again_later(struct sending *g, const struct err *err)
{
    struct live *l = g->l;
    const struct reason old = *job_state_reason(l->job);
    char why[JOB_REASON_TEXT_MAX];
    struct sent *sent = sent_change(l);
    assert(err); /* what is tried again has failed */
    int n = sent->tries < 5 ? sent->tries : 5;
    usec_t wait = USEC_SEC << n;
    sent->tries++;
    sent->after = clock_mono() + (wait > 30 * USEC_SEC ? 30 * USEC_SEC : wait);
    message_write(why, sizeof(why), MESSAGE_ARGS(MESSAGE_ERR("why", err)));
    job_set_reason(l->job, "submitting", NULL, why);
    log_warn("send", "it could not be sent to Ray yet: %s job=%s", err->text, l->job->id);
    if (strcmp(old.text, why) != 0)
        jobs_save(l);
}

static void sender_fail(struct sending *g, enum finding_class finding, const struct err *err)
{
    struct job_end end = {.cause = "refused",
                          .code = -1,
                          .signal = "",
                          .finding = finding,
                          .message = err->message,
                          .text = err->message ? err->args : err->text};
    struct job_event e = {.kind = JOB_EV_ENDED, .end = &end};
    (void)jobs_apply(g->l, &e, "argusd", clock_wall());
}

/* ---- asking Ray ---- */

static void sender_post(struct sending *g);

static void sender_on_asked(enum ray_found found,
                            const struct ray_job *rj,
                            const struct err *err,
                            void *arg)
{
    struct sending *g = arg;
    if (!sender_is_wanted(g)) {
        sending_free(g);
        return;
    }
    if (found == RAY_NOT_FOUND) {
        sent_change(g->l)->maybe = false;
        sender_post(g);
        return;
    }
    if (found == RAY_UNKNOWN)
        again_later(g, err);
    else if (mark_is_ours(g->s->p.instance, rj))
        sender_apply(g, JOB_EV_ACCEPTED, NULL, NULL);
    else
        sender_apply(g, JOB_EV_REQUEUED, "foreign_id", "{}");
    sending_free(g);
}

static void sender_ask(struct sending *g)
{
    (void)ray_get_job(g->s->p.ray, g->plan.ray_id, sender_on_asked, g); /* freed with the client */
}

/* ---- the POST ---- */

static void sender_on_posted(enum ray_submit_outcome outcome, const struct err *err, void *arg)
{
    struct sending *g = arg;
    note_answer(g, ray_submit_outcome_to_string(outcome), err ? err->text : "");
    switch (outcome) {
    case RAY_SUBMIT_ACCEPTED:
        sender_apply(g, JOB_EV_ACCEPTED, NULL, NULL);
        break;
    case RAY_SUBMIT_REFUSED:
        if (sender_is_wanted(g) && err) /* a refusal has its words */
            sender_fail(g, FINDING_RUNTIME_ENV_FAILED, err);
        break;
    case RAY_SUBMIT_DUPLICATE:
    case RAY_SUBMIT_DOUBT:
        sent_change(g->l)->maybe = true;
        if (sender_is_wanted(g)) {
            log_info("send", "doubtful answer, asking Ray: %s job=%s", err->text, g->l->job->id);
            sender_ask(g);
            return;
        }
        break;
    default: /* nothing was taken */
        sent_change(g->l)->maybe = false;
        if (sender_is_wanted(g))
            again_later(g, err);
    }
    sending_free(g);
}

static void sender_post(struct sending *g)
{
    const struct launchplan *p = &g->plan;
    struct buf runtime_env = BUF_INIT(16 << 10);
    struct jout j = jout_begin(&runtime_env);
    jout_open(&j, NULL, '{');
    if (p->py_executable)
        jout_str(&j, "py_executable", p->py_executable);
    jout_close(&j, '}');
    struct ray_submit what = {.submission_id = p->ray_id,
                              .entrypoint = p->entrypoint,
                              .runtime_env = buf_str(&runtime_env),
                              .env = &p->env,
                              .metadata = &p->metadata,
                              .num_cpus = p->demand.driver_cpus,
                              .num_gpus = p->demand.driver_gpus,
                              .resources = &p->resources};
    struct err err = {0};
    sent_change(g->l)->maybe = true; /* until an answer says otherwise */
    if (!ray_submit(g->s->p.ray, &what, sender_on_posted, g, &err)) {
        sender_fail(g, FINDING_CONFIG_ERROR, &err);
        sending_free(g);
    }
    buf_release(&runtime_env);
}

/* ---- the files ---- */

static void run_plan(void *arg)
{
    struct sending *g = arg;
    g->result = launchplan_make(&g->plan, &g->err);
}

static void keep_results(struct sending *g)
{
    struct live *l = g->l;
    set_str(&l->extra.argv, g->plan.argv);
    set_str(&l->extra.verl, g->plan.verl);
    jobs_save(l);
}

static void tell_resume(const struct sending *g)
{
    char text[JOB_REASON_TEXT_MAX], where[64] = "{}";
    const struct launchplan *p = &g->plan;
    const char *code = p->resume_step ? "resume_from" : "resume_anew";
    if (!p->torn.step && !p->resume_step)
        return;
    if (p->resume_step)
        message_write(where, sizeof(where), MESSAGE_ARGS(MESSAGE_NUM("step", p->resume_step)));
    if (p->torn.step)
        message_write(text, sizeof(text),
                      MESSAGE_ARGS(MESSAGE_OF("where", code, where),
                                   MESSAGE_NUM("step", p->torn.step),
                                   MESSAGE_KEPT("why", p->torn.why)));
    jobs_note(g->l, "resume", p->torn.step ? "checkpoint_torn" : code, p->torn.step ? text : where,
              clock_wall());
}

static void done_plan(void *arg)
{
    struct sending *g = arg;
    g->l->has_dir |= g->plan.made;
    if (!sender_is_wanted(g)) {
        sending_free(g);
        return;
    }
    tell_resume(g);
    for (size_t i = 0; i < g->plan.warnings.n; i++)
        jobs_note(g->l, "warning", str_or(g->plan.warnings.v[i].code, ""),
                  g->plan.warnings.v[i].text, clock_wall());
    if (g->result == -EEXIST) {
        sender_apply(g, JOB_EV_ACCEPTED, NULL, NULL); /* it runs or ran: its files will tell */
    } else if (g->plan.code_changed) {
        sender_fail(g, FINDING_IMPORT_ERROR, &g->err);
    } else if (g->result == ERR_BAD_SPEC || g->result == ERR_CONFLICT ||
               g->result == -ELOOP) { /* a link is in its directory, or that is another's */
        sender_fail(g, FINDING_CONFIG_ERROR, &g->err);
    } else if (g->result < 0) {
        again_later(g, &g->err); /* the shared root: it may come back */
    } else {
        keep_results(g);
        if (sent_of(g->l).maybe)
            sender_ask(g);
        else
            sender_post(g);
        return;
    }
    sending_free(g);
}

static char *status_text(const struct cluster *c)
{
    size_t n;
    const struct cluster_node *nodes = cluster_nodes(c, &n);
    struct buf out = BUF_INIT(1 << 20);
    (void)buf_addf(&out, "Ray %s, session %s\n", cluster_ray_version(c), cluster_session(c));
    for (size_t i = 0; i < n; i++) /* overflow: the rest is missing */
        (void)buf_addf(&out, "%-8s %-24s %-16s GPU %g  CPU %g  %s%s\n",
                       nodes[i].is_alive ? "ALIVE" : "DEAD", nodes[i].name, nodes[i].ip,
                       nodes[i].gpus, nodes[i].cpus, nodes[i].is_head ? "head" : "worker",
                       nodes[i].message ? nodes[i].message : "");
    return buf_take(&out);
}

static void aim_driver(struct sending *g)
{
    const struct cluster_node *n =
        cluster_find_name(g->s->p.cluster, gang_driver(&g->l->job->gang));
    if (!n)
        return; /* it is gone again: worker_node alone places the driver */
    g->plan.driver_resource = lease_node_resource(n);
    g->plan.driver_amount = n->has_own_resource ? 1 : 0.001;
}

/* Its lease's smallest: each of its processes may be there. */
static double smallest_cpus(const struct cluster *c, const struct gang *gang)
{
    double least = 0;
    for (size_t i = 0; i < gang->n; i++) {
        const struct cluster_node *n = cluster_find_name(c, gang->v[i].name);
        if (n && n->cpus > 0 && (least <= 0 || n->cpus < least))
            least = n->cpus;
    }
    return least;
}

/* argus.yaml's variables of the network, expanded as for this job. */
static void cluster_network(const struct sending *g, const struct spec *spec, struct pairs *ret)
{
    const struct settings *s = g->s->p.settings;
    for (size_t i = 0; i < s->env_vars.n; i++) {
        const char *name = s->env_vars.v[i].key;
        if (!network_is_variable(name) || pairs_find(&spec->env, name))
            continue;
        _cleanup_(freep) char *value = launchplan_env(s, spec, g->l->job->user, name);
        if (value)
            pairs_set(ret, name, value);
    }
}

/* What each node of its lease says of its network, and what argus.yaml must not say then.
 * ERR_BAD_SPEC: the nodes contradict each other. */
static int lease_nodes(struct sending *g)
{
    const struct job *j = g->l->job;
    const struct spec *spec = jobspec_of(g->s->p.settings, j);
    size_t n = j->gang.n;
    struct network_node *v = xcalloc(n ? n : 1, sizeof(*v));
    struct pairs *env = xcalloc(n ? n : 1, sizeof(*env)), cluster = {0};
    for (size_t i = 0; i < n; i++) {
        const struct noderun *nr = nodes_find(g->s->p.nodes, j->gang.v[i].name);
        const struct node_row *row = nr ? nodes_row(nr) : NULL;
        v[i] = (struct network_node){.name = j->gang.v[i].name,
                                     .facts = row ? &row->facts : NULL,
                                     .own = row ? &row->spec.env : NULL};
    }
    if (spec)
        cluster_network(g, spec, &cluster);
    _cleanup_(freep) char *differ = NULL;
    int r = network_plan(v, n, &cluster, spec ? &spec->env : NULL, env, &g->plan.moved, &differ,
                         &g->err);
    if (differ && !sent_of(g->l).tries)
        jobs_note(g->l, "warning", "network_differs", differ, clock_wall());
    if (r == 0)
        g->plan.lease = lease_text(j, g->s->p.cluster, g->s->p.settings, env);
    for (size_t i = 0; i < n; i++)
        pairs_release(&env[i]);
    pairs_release(&cluster);
    free(env);
    free(v);
    return r;
}

/* A spec that resumes another job without saying from where takes its newest verified checkpoint of
 * now: it may have been made since the submit. It stays while this attempt is being sent, and from
 * then on because the job's command line names it. */
static void find_other_step(struct sending *g)
{
    struct checkpoints *cs = g->s->p.checkpoints;
    const struct spec *spec = jobspec_of(g->s->p.settings, g->l->job);
    if (!spec || spec->resume_mode != SPEC_RESUME_JOB || spec->resume_step > 0)
        return;
    g->plan.other_step = checkpoints_newest(cs, spec->resume_job, g->l->job->user);
    if (!g->plan.other_step)
        return;
    g->used = xasprintf("%s@%lld", spec->resume_job, (long long)g->plan.other_step);
    g->use.user = g->l->job->user;
    g->use.text = g->used;
    checkpoints_use(cs, &g->use);
}

static const char *own_text(struct strv *all, const char *text)
{
    if (text)
        strv_add(all, text);
    return text ? all->v[all->n - 1] : NULL;
}

/* What its JupyterLab asks for. */
static void add_notebook_token(struct sending *g)
{
    const struct spec *spec = jobspec_of(g->s->p.settings, g->l->job);
    char token[NOTEBOOKTOKEN_MAX];
    if (!spec || spec->workload != WORKLOAD_NOTEBOOK)
        return;
    notebooktoken_of(g->s->p.secrets, g->plan.id, token);
    pairs_set(&g->plan.secrets, NOTEBOOKTOKEN_ENV, token);
    seal_forget(token, sizeof(token));
}

/* How it uses its trackers, as decided, and their keys. */
static void add_trackers(struct sending *g)
{
    struct launchplan *p = &g->plan;
    const struct trackers *ts = g->s->p.trackers;
    p->n_trackers = trackers_of(ts, p->id, p->k, p->trackers);
    for (size_t i = 0; i < p->n_trackers; i++) {
        p->trackers[i].url = own_text(&p->tracker_texts, p->trackers[i].url);
        p->trackers[i].run = own_text(&p->tracker_texts, p->trackers[i].run);
    }
    trackers_add_secrets(ts, g->l, &p->secrets);
}

static void sender_on_model(const char *path, void *arg)
{
    struct sending *g = arg;
    g->model = NULL;
    if (!sender_is_wanted(g)) {
        sending_free(g);
        return;
    }
    set_str(&g->plan.model_path, path);
    work_start_for(g->s->p.loop, g->plan.user, run_plan, done_plan, g);
}

void sender_act(struct sender *s, struct live *l)
{
    const struct sent sent = sent_of(l);
    if (s->closed || sent.busy || clock_mono() < sent.after || !cluster_is_up(s->p.cluster) ||
        !cluster_root_is_ok(s->p.cluster) || !trackers_decide(s->p.trackers, l))
        return;
    const struct job *j = l->job;
    struct sending *g = xcalloc(1, sizeof(*g));
    *g = (struct sending){.next = s->active, .s = s, .l = l, .k = job_attempt(j)->k};
    s->active = g;
    g->plan = (struct launchplan){.settings = s->p.settings,
                                  .spec = xstrdup(j->spec),
                                  .inputs = xstrdup(l->extra.inputs),
                                  .snapshots = xstrdup(l->extra.snapshots),
                                  .id = xstrdup(j->id),
                                  .user = xstrdup(j->user),
                                  .instance = xstrdup(s->p.instance),
                                  .k = g->k,
                                  .is_new = !l->has_dir,
                                  .demand = j->demand,
                                  .driver_node = xstrdup(gang_driver(&j->gang)),
                                  .train_rows = trial_train_rows(l->extra.trial),
                                  .node_cpus = smallest_cpus(s->p.cluster, &j->gang),
                                  .status_text = status_text(s->p.cluster)};
    const struct ckpt_list *known = checkpoints_of(s->p.checkpoints, j->id);
    if (known)
        ckpt_list_copy(&g->plan.known, known);
    aim_driver(g);
    find_other_step(g);
    sent_change(l)->busy = true;
    jobs_busy(l);
    /* opened now and not before */
    if (lease_nodes(g) < 0 ||
        secretcheck_open(s->p.secrets, s->p.settings, j, &g->plan.secrets, &g->err) < 0) {
        sender_fail(g, FINDING_CONFIG_ERROR, &g->err);
        sending_free(g);
        return;
    }
    add_trackers(g);
    add_notebook_token(g);
    g->model = modelcopy_begin(s->p.nodes, l, sent_of(l).tries > 0, sender_on_model, g);
    if (!g->model)
        work_start_for(s->p.loop, g->plan.user, run_plan, done_plan, g);
}
