/* SPDX-License-Identifier: Apache-2.0 */
/* services_calls.c - see services_calls.h. The argument of each is the struct services. */
#include "argusd/run/services_calls.h"

#include "argusd/agent/agent.h"
#include "argusd/backup/backups.h"
#include "argusd/checkpoints/checkpoints.h"
#include "argusd/content/registry.h"
#include "argusd/content/uploads.h"
#include "argusd/evals/evals.h"
#include "argusd/evidence/placement.h"
#include "argusd/export/remotewriter.h"
#include "argusd/jobs/people_usage.h"
#include "argusd/kit/view.h"
#include "argusd/launch/drytrial.h"
#include "argusd/launch/needscheck.h"
#include "argusd/launch/secretsweep.h"
#include "argusd/launch/trials.h"
#include "argusd/network/netchecks.h"
#include "argusd/notebooks/notebooks.h"
#include "argusd/people/people_dirs.h"
#include "argusd/pipes/pipes.h"
#include "argusd/run/services_state.h"
#include "argusd/services/service_metrics.h"
#include "argusd/services/serving.h"
#include "argusd/trackers/trackers.h"
#include "argusd/watch/ending.h"
#include "argusd/watch/meta.h"
#include "argusd/watch/sender.h"
#include "argusd/watch/watcher.h"
#include "base/message.h"

void calls_act(struct live *l, void *arg)
{
    struct services *s = arg;
    if (s->stopping)
        return;
    if (l->over)
        people_usage_end(s->usage, l->job);
    else if (l->job->state != JOB_QUEUED)
        people_usage_begin(s->usage, l->job);
    metas_write(s->api.metas, l);
    registry_saw(s->api.registry, l);
    trackers_act(s->api.trackers, l);
    if (l->over || l->job->state == JOB_QUEUED)
        secretsweep_soon(s->sweep);
    if (l->over || job_act(l->job) != JOB_ACT_TRY)
        trials_drop(s->trials, l);
    if (l->over)
        return;
    watcher_strays(s->watcher, l);
    switch (job_act(l->job)) {
    case JOB_ACT_SEND:
        sender_act(s->sender, l);
        break;
    case JOB_ACT_STOP:
        watcher_stop(s->watcher, l);
        break;
    case JOB_ACT_TRY:
        trials_act(s->trials, l);
        break;
    case JOB_ACT_NONE:
        break;
    }
}

void calls_ended(struct live *l, void *arg)
{
    struct services *s = arg;
    metas_owe(s->api.store, l->job);
    trackers_ended(s->api.trackers, l);
    checkpoints_ended(s->api.checkpoints, l);
    evals_ended(s->evals, l);
    serving_job_ended(s->api.serving, l);
}

void calls_trial(const struct live *l, struct reason *ret, void *arg)
{
    const struct services *s = arg;
    trials_tell(s->trials, l, ret);
}

char *calls_needs(const struct live *l, void *arg)
{
    const struct services *s = arg;
    const struct needscheck_ask ask = {.snapshots = s->api.snapshots,
                                       .user = l->job->user,
                                       .code = l->extra.snapshots,
                                       .own_python = l->extra.snapshots &&
                                                     needscheck_own_python(s->settings, l->job)};
    return needscheck_of(&ask);
}

void calls_trial_failed(struct live *l,
                        const struct finding *found,
                        const char *message,
                        const char *text,
                        bool left,
                        void *arg)
{
    struct services *s = arg;
    ending_by_trial(s->api.findings, l, found, message, text, left);
}

void calls_lease_ended(struct live *l, const struct gang *gang, void *arg)
{
    struct services *s = arg;
    if (!s->stopping)
        nodes_lease_ended(s->api.nodes, l->job->id, gang, l->job->demand.cpus_per_node);
}

bool calls_is_registered(const char *name, void *arg)
{
    const struct services *s = arg;
    return nodes_is_registered(s->api.nodes, name);
}

const char *calls_registered_address(const char *name, void *arg)
{
    const struct services *s = arg;
    return nodes_address(s->api.nodes, name);
}

char *calls_also_in(const char *node, void *arg)
{
    const struct services *s = arg;
    return netchecks_pools(s->api.netchecks, node);
}

/* The scheduler has another table of nodes, or Ray and the root another state. */
void calls_room(void *arg)
{
    struct services *s = arg;
    const char *code, *text;
    if (s->stopping)
        return;
    people_dirs_retry(s->loop, s->api.cluster, s->settings->shared_root, s->api.people);
    cluster_why_not(s->api.cluster, &code, &text);
    jobs_block(s->api.jobs, code, text);
    if (!*code)
        jobs_admit(s->api.jobs, clock_wall());
}

void calls_cluster(void *arg)
{
    struct services *s = arg;
    if (s->stopping)
        return;
    nodes_take(s->api.nodes);
    uploads_root_news(s->api.uploads);
    calls_room(s);
}

void calls_new_session(void *arg)
{
    struct services *s = arg;
    if (!s->stopping)
        watcher_forget(s->watcher);
}

bool calls_knows_id(const char *id, void *arg)
{
    const struct services *s = arg;
    return idset_has(s->api.used, id) || drytrials_is_stray(s->api.drytrials, id);
}

void calls_settled(void *arg)
{
    struct services *s = arg;
    if (!s->stopping)
        watcher_look(s->watcher);
}

usec_t calls_head_gone(void *arg)
{
    const struct services *s = arg;
    return nodes_head_gone(s->api.nodes);
}

void calls_saw_jobs(const struct ray_jobs *jobs, void *arg)
{
    const struct services *s = arg;
    placement_saw_jobs(s->placement, jobs);
    adopted_saw_jobs(s->api.adopted, s->api.events, jobs, cluster_session(s->api.cluster),
                     clock_wall());
}

int calls_check_unused(const char *job, void *arg, struct err *err)
{
    const struct services *s = arg;
    if (jobs_find_any(s->api.jobs, job) || metas_is_owed(s->api.metas, job))
        return message_refuse(err, ERR_CONFLICT, "job_just_ended",
                              MESSAGE_ARGS(MESSAGE_STR("job", job)));
    return checkpoints_check_unnamed(s->api.checkpoints, job, err);
}

void calls_checkpoints_gone(const char *job, void *arg)
{
    const struct services *s = arg;
    checkpoints_forget(s->api.checkpoints, job);
}

bool calls_has_checkpoints(const char *job, void *arg)
{
    const struct services *s = arg;
    const struct ckpt_list *list = checkpoints_of(s->api.checkpoints, job);
    return list && list->n > 0;
}

/* Written down for all readers of the job: no name of others. */
void calls_view_for_file(struct jout *j,
                         const struct settings *s,
                         const struct job *job,
                         const struct record_extra *extra,
                         struct live *l)
{
    view_job(j, s, job, extra, l, NULL);
}

usec_t calls_agent_failing(const char **ret_trouble, void *arg)
{
    const struct services *s = arg;
    struct agent_state state;
    if (!s->api.agent)
        return 0;
    agent_state(s->api.agent, &state);
    *ret_trouble = message_words("agent_told_to_admins", MESSAGE_ENGLISH);
    return state.failing_for;
}

usec_t calls_backup_overdue(const char **ret_trouble, void *arg)
{
    const struct services *s = arg;
    return s->api.backups ? backups_overdue(s->api.backups, ret_trouble) : 0;
}

size_t calls_services_down(usec_t *ret_longest, void *arg)
{
    const struct services *s = arg;
    return s->api.serving ? serving_down(s->api.serving, ret_longest) : 0;
}

const char *calls_notebook_of(const char *job, usec_t *ret_left, void *arg)
{
    const struct services *s = arg;
    return s->api.notebooks ? notebooks_of_job(s->api.notebooks, job, ret_left) : NULL;
}

void calls_put_metrics(const struct api *a, const struct access_who *who, struct expo *e)
{
    serving_put_metrics(a->serving, who, e);
    remotewriter_put_metrics(a->remotewriter, e);
}

void calls_add_removal_users(const struct api *a, struct removal *r)
{
    serving_add_removal_users(a->serving, r);
    pipes_add_removal_users(a->pipes, r);
}

void calls_add_stop_steps(const struct api_eyes *eyes, struct stopplan *p)
{
    struct access_who who;
    people_who(eyes->a->people, eyes->p, &who);
    pipes_add_stop_steps(eyes->a->pipes, &who, p);
}
