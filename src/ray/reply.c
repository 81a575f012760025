/* SPDX-License-Identifier: Apache-2.0 */
/* reply.c - names, copies and ends of Ray's values; parse.c reads them. */
#include "ray/reply.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

#define X(word) [RAY_JOB_##word] = #word,
static const char *const job_statuses[] = {RAY_JOB_STATUS_TABLE(X)};
#undef X
#define X(word) [RAY_ACTOR_##word] = #word,
static const char *const actor_states[] = {RAY_ACTOR_STATE_TABLE(X)};
#undef X
#define X(word) [RAY_GROUP_##word] = #word,
static const char *const group_states[] = {RAY_GROUP_STATE_TABLE(X)};
#undef X
static_assert(array_len(job_statuses) == RAY_JOB_STATUS_END, "a word per status");
static_assert(array_len(actor_states) == RAY_ACTOR_STATE_END, "a word per state");
static_assert(array_len(group_states) == RAY_GROUP_STATE_END, "a word per state");

static const char *word_at(const char *const *words, size_t n, unsigned i)
{
    return i < n ? words[i] : words[0];
}

/* 0 is UNKNOWN in each table. */
static unsigned index_of(const char *const *words, size_t n, const char *word)
{
    for (unsigned i = 0; i < n; i++)
        if (str_eq(words[i], word))
            return i;
    return 0;
}

const char *ray_job_status_to_string(enum ray_job_status status)
{
    return word_at(job_statuses, array_len(job_statuses), status);
}

enum ray_job_status ray_job_status_from_string(const char *word)
{
    return index_of(job_statuses, array_len(job_statuses), word);
}

bool ray_job_status_is_terminal(enum ray_job_status status)
{
    return status == RAY_JOB_STOPPED || status == RAY_JOB_SUCCEEDED || status == RAY_JOB_FAILED;
}

const char *ray_actor_state_to_string(enum ray_actor_state state)
{
    return word_at(actor_states, array_len(actor_states), state);
}

enum ray_actor_state ray_actor_state_from_string(const char *word)
{
    return index_of(actor_states, array_len(actor_states), word);
}

const char *ray_group_state_to_string(enum ray_group_state state)
{
    return word_at(group_states, array_len(group_states), state);
}

enum ray_group_state ray_group_state_from_string(const char *word)
{
    return index_of(group_states, array_len(group_states), word);
}

bool ray_job_is_ghost(const struct ray_job *job)
{
    return job->status == RAY_JOB_FAILED && str_eq(job->entrypoint, "Entrypoint not found.");
}

void ray_amounts_release(struct ray_amounts *a)
{
    for (size_t i = 0; i < a->n; i++)
        free(a->v[i].name);
    free(a->v);
    *a = (struct ray_amounts){0};
}

/* The place of name, or where it would stand. */
static size_t amount_place(const struct ray_amounts *a, const char *name, bool *ret_found)
{
    size_t lo = 0, hi = a->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = strcmp(a->v[mid].name, name);
        if (c == 0) {
            *ret_found = true;
            return mid;
        }
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    *ret_found = false;
    return lo;
}

void ray_amounts_set(struct ray_amounts *a, const char *name, double amount)
{
    bool found;
    size_t i = amount_place(a, name, &found);
    if (!found) {
        if (a->n == a->cap) {
            a->cap = a->cap ? a->cap * 2 : 8;
            a->v = xrealloc(a->v, a->cap, sizeof(*a->v));
        }
        memmove(a->v + i + 1, a->v + i, (a->n - i) * sizeof(*a->v));
        a->v[i].name = xstrdup(name);
        a->n++;
    }
    a->v[i].amount = amount;
}

double ray_amounts_find(const struct ray_amounts *a, const char *name)
{
    bool found;
    size_t i = amount_place(a, name, &found);
    return found ? a->v[i].amount : 0;
}

void ray_version_release(struct ray_version *v)
{
    free(v->text);
    free(v->session_name);
    *v = (struct ray_version){0};
}

void ray_version_copy(struct ray_version *dst, const struct ray_version *src)
{
    struct ray_version v = *src;
    v.text = xstrdup(src->text);
    v.session_name = xstrdup(src->session_name);
    ray_version_release(dst);
    *dst = v;
}

void ray_job_release(struct ray_job *job)
{
    char *texts[] = {job->submission_id, job->job_id,         job->entrypoint,
                     job->message,       job->error_type,     job->driver_id,
                     job->driver_ip,     job->driver_node_id, job->driver_agent};
    for (size_t i = 0; i < array_len(texts); i++)
        free(texts[i]);
    pairs_release(&job->metadata);
    *job = (struct ray_job){0};
}

void ray_jobs_release(struct ray_jobs *jobs)
{
    for (size_t i = 0; i < jobs->n; i++)
        ray_job_release(&jobs->v[i]);
    free(jobs->v);
    *jobs = (struct ray_jobs){0};
}

void ray_nodes_release(struct ray_nodes *nodes)
{
    for (size_t i = 0; i < nodes->n; i++) {
        struct ray_node *node = &nodes->v[i];
        free(node->node_id);
        free(node->ip);
        free(node->name);
        free(node->state_message);
        ray_amounts_release(&node->resources);
        pairs_release(&node->labels);
    }
    free(nodes->v);
    *nodes = (struct ray_nodes){0};
}

void ray_usages_release(struct ray_usages *usages)
{
    for (size_t i = 0; i < usages->n; i++)
        free(usages->v[i].node_id);
    free(usages->v);
    *usages = (struct ray_usages){0};
}

void ray_actors_release(struct ray_actors *actors)
{
    for (size_t i = 0; i < actors->n; i++) {
        struct ray_actor *actor = &actors->v[i];
        free(actor->actor_id);
        free(actor->class_name);
        free(actor->name);
        free(actor->job_id);
        free(actor->node_id);
        free(actor->group_id);
        ray_amounts_release(&actor->resources);
    }
    free(actors->v);
    *actors = (struct ray_actors){0};
}

static void group_release(struct ray_group *group)
{
    free(group->group_id);
    free(group->name);
    free(group->job_id);
    free(group->scheduling_state);
    for (size_t i = 0; i < group->n_bundles; i++) {
        free(group->bundles[i].node_id);
        ray_amounts_release(&group->bundles[i].resources);
    }
    free(group->bundles);
}

void ray_groups_release(struct ray_groups *groups)
{
    for (size_t i = 0; i < groups->n; i++)
        group_release(&groups->v[i]);
    free(groups->v);
    *groups = (struct ray_groups){0};
}
