/* SPDX-License-Identifier: Apache-2.0 */
/* trialplan.h - what a trial is asked, and what it answered: files of jobs/<id>/trial/ and the
 * cache of passed ones, <state_dir>/trials/<hash>.json. Blocking: for the worker pool.
 *
 * The job's secrets reach it by a file of their own, argus/secrets/<ray id> (0600), which it
 * removes once it has read it. What it answers is masked by their values before anybody else reads
 * it. */
#pragma once
#include "argusd/launch/launchplan.h"
#include "core/check/trial.h"
#include "fsroot/attempt/mask.h"

/* Filled by the caller; texts are owned. */
struct trialplan {
    const struct settings *settings;
    char *spec, *id, *user;
    char *inputs, *snapshots; /* of struct record_extra; NULL: none */
    char *dir;                /* where its files lie; NULL: jobs/<id>/trial */
    char *ray_id;             /* of this try */
    bool is_new;              /* jobs/<id> is to be made: nothing may be there yet */
    struct pairs secrets;     /* what the spec names in secrets:, opened */
    unsigned char key[32];    /* of secrets_derive(): secret values are in the hash by it */

    /* What trialplan_make() fills in: */
    char *entrypoint, *py_executable;
    struct pairs env; /* for Ray, without what is secret */
    struct mask mask; /* what is */
    char hash[65];
    bool made;    /* jobs/<id> was */
    bool is_over; /* result is set: passed lately by the same content, or found there */
    struct trial_result result;
};

/* Writes ask.json, unless there is a result already. ERR_CONFLICT: is_new, and something is there.
 */
must_check int trialplan_make(struct trialplan *p, struct err *err);
/* 1: p->result is set; 0: there is no result yet; negative: what lies there is none. A pass is
 * remembered in the cache. */
must_check int trialplan_look(struct trialplan *p, struct err *err);
void trialplan_release(struct trialplan *p);
/* A text of somebody else about it, with stars in place of secrets, cut to size bytes. */
void trialplan_mask(const struct trialplan *p, const char *text, char *ret, size_t size);
