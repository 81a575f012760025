/* SPDX-License-Identifier: Apache-2.0 */
/* sender.h - brings an admitted job to Ray, exactly once.
 *
 * Its id is on disk before anything is sent. The files of the attempt are written
 * in the worker pool, then one POST; whatever leaves a doubt is resolved by asking
 * Ray for the id and looking for our mark. Called again for the same job it goes on. */
#pragma once
#include <uv.h>

#include "argusd/ground/cluster.h"
#include "argusd/ground/settings.h"
#include "argusd/jobs/jobs.h"
#include "ray/ray.h"

struct sender;
struct trackers;

struct sender_parts { /* all borrowed */
    uv_loop_t *loop;
    const struct settings *settings;
    struct cluster *cluster;
    struct ray_client *ray;
    struct secrets *secrets;
    struct checkpoints *checkpoints;
    struct nodes *nodes;
    struct trackers *trackers;
    const char *instance; /* our mark: which store this is */
};

struct sender *sender_new(const struct sender_parts *parts);
/* argusd ends: what is under way goes no further than the answer that it waits for. */
void sender_close(struct sender *s); /* NULL is fine */
void sender_free(struct sender *s);
/* l owes JOB_ACT_SEND. Does nothing while it is under way or before l->send_after. */
void sender_act(struct sender *s, struct live *l);

/* The files of its newest attempt are being written, or a POST is under way. */
bool sender_is_sending(const struct live *l);
/* Ray may have its newest attempt, though no answer has said so. */
bool sender_may_have_sent(const struct live *l);
/* Ray was asked and does not have it. */
void sender_saw_none(struct live *l);
