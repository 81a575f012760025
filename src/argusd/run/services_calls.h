/* SPDX-License-Identifier: Apache-2.0 */
/* services_calls.h - what one service asks of others, by callbacks that are put together here, so
 * that they do not know each other. arg is always the struct services. */
#pragma once
#include "argusd/ground/settings.h"
#include "argusd/jobs/jobs.h"
#include "ray/ray.h"

struct finding;

void calls_act(struct live *l, void *arg);
void calls_ended(struct live *l, void *arg);
void calls_trial(const struct live *l, struct reason *ret, void *arg);
char *calls_needs(const struct live *l, void *arg);
void calls_trial_failed(struct live *l,
                        const struct finding *found,
                        const char *message,
                        const char *text,
                        bool left,
                        void *arg);
void calls_lease_ended(struct live *l, const struct gang *gang, void *arg);
char *calls_also_in(const char *node, void *arg);
bool calls_is_registered(const char *name, void *arg);
const char *calls_registered_address(const char *name, void *arg);
void calls_room(void *arg);
void calls_cluster(void *arg);
void calls_new_session(void *arg);
bool calls_knows_id(const char *id, void *arg);
void calls_settled(void *arg);
usec_t calls_head_gone(void *arg);
int calls_check_unused(const char *job, void *arg, struct err *err);
void calls_checkpoints_gone(const char *job, void *arg);
bool calls_has_checkpoints(const char *job, void *arg);
void calls_saw_jobs(const struct ray_jobs *jobs, void *arg);
void calls_view_for_file(struct jout *j,
                         const struct settings *s,
                         const struct job *job,
                         const struct record_extra *extra,
                         struct live *l);
/* The services are made after the alerts, which everybody sees: names are not told there. */
size_t calls_services_down(usec_t *ret_longest, void *arg);
/* So is the agent: what it answered is not told there; and the backups. */
usec_t calls_agent_failing(const char **ret_trouble, void *arg);
usec_t calls_backup_overdue(const char **ret_trouble, void *arg);
/* The notebooks are made after the alerts, too. */
const char *calls_notebook_of(const char *job, usec_t *ret_left, void *arg);
struct access_who;
struct api;
struct api_eyes;
struct expo;
struct removal;
struct stopplan;
void calls_put_metrics(const struct api *a, const struct access_who *who, struct expo *e);
void calls_add_removal_users(const struct api *a, struct removal *r);
void calls_add_stop_steps(const struct api_eyes *eyes, struct stopplan *p);
