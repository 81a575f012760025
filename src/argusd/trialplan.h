/* SPDX-License-Identifier: Apache-2.0 */
/* trialplan.h - what a trial is asked, and what it answered: files of jobs/<id>/trial/ and the
 * cache of passed ones, argus/trials/<hash>.json. Blocking: for the worker pool. */
#pragma once
#include "argusd/launchplan.h"
#include "core/trial.h"

/* Filled by the caller; texts are owned. */
struct trialplan {
    const struct settings *settings;
    char *spec, *id, *user;
    char *inputs, *snapshots; /* of struct record_extra; NULL: none */
    char *dir;                /* where its files lie; NULL: jobs/<id>/trial */

    /* Of trialplan_make(): */
    char *entrypoint, *py_executable;
    struct pairs env; /* for Ray, without what is secret */
    char hash[65];
    bool is_over; /* result is set: passed lately by the same content, or found there */
    struct trial_result result;
};

/* Writes ask.json, unless there is a result already. */
must_check int trialplan_make(struct trialplan *p, struct err *err);
/* 1: p->result is set; 0: there is no result yet; negative: what lies there is none. A pass is
 * remembered in the cache. */
must_check int trialplan_look(struct trialplan *p, struct err *err);
void trialplan_release(struct trialplan *p);
