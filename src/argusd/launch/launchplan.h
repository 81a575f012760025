/* SPDX-License-Identifier: Apache-2.0 */
/* launchplan.h - what one attempt sends to Ray and writes to its directory.
 *
 * Blocking (reads the verl version, writes the directory): for the worker pool. */
#pragma once
#include "argusd/ground/settings.h"
#include "base/doc/problem.h"
#include "base/err.h"
#include "core/job/job.h"
#include "core/spec/tracker.h"
#include "fsroot/ckpt/ckpt.h"
#include "ray/ray.h"

/* Filled by the caller; copies, since the loop goes on meanwhile. */
struct launchplan {
    const struct settings *settings; /* never changes: shared with the worker */
    char *spec, *id, *user, *instance;
    char *inputs;    /* as record_extra has it; may be NULL */
    char *snapshots; /* of the job, see code.h; NULL: none */
    int k;
    struct demand demand;
    char *driver_resource; /* "argus_node_w1" or "node:10.0.0.3" */
    double driver_amount;
    char *driver_node;      /* our name of the driver's node; NULL: not known */
    char *lease;            /* ARGUS_LEASE, see lease.h */
    struct strv moved;      /* variables of argus.yaml's that its lease has for each node instead */
    struct ckpt_list known; /* of its checkpoints */
    int64_t train_rows;     /* as its trial counted them; 0: not known */
    double node_cpus;       /* of the smallest node that it runs on; 0: not known */
    char *model_path;   /* of its registered model on its nodes' own disks; NULL: the registry's */
    int64_t other_step; /* newest verified checkpoint of the job that its spec resumes; 0: none */
    struct tracker trackers[2]; /* as decided; their texts are tracker_texts */
    struct strv tracker_texts;
    size_t n_trackers;
    struct pairs secrets; /* what the spec names in secrets:, opened */
    char *status_text;    /* of debug/ray_status_pre.txt */
    bool is_new;          /* jobs/<id> is to be made: nothing may be there yet */

    /* Results of launchplan_make(). */
    char *ray_id, *entrypoint, *py_executable;
    struct pairs env, metadata; /* env: for Ray, without what is secret */
    struct ray_amounts resources;
    bool made;                /* jobs/<id> was */
    char *argv, *verl;        /* JSON array; version text */
    bool code_changed;        /* it failed because a snapshot is not what it was */
    int64_t resume_step;      /* of its own checkpoint that a later attempt goes on from; 0: none */
    struct ckpt_torn torn;    /* and that was put aside */
    struct problems warnings; /* what the command line was warned of */
    char *proof;              /* ARGUS_PROOF: what its processes are to import, see there */
};

/* -EEXIST: a shepherd of this attempt has started already, nothing was changed. ERR_CONFLICT:
 * is_new, and something is there. */
must_check int launchplan_make(struct launchplan *p, struct err *err);
/* Only argv and verl, and nothing is written: for a dry run. */
must_check int launchplan_preview(struct launchplan *p, struct err *err);
void launchplan_release(struct launchplan *p);

struct spec;
/* Where the job's verl is looked for: code_path, else py_executable. NULL: neither. Borrowed. */
const char *launchplan_verl_path(const struct spec *spec);
/* What a job of this spec has in its environment under this name, by itself or by argus.yaml.
 * NULL: nothing. Yours. */
char *launchplan_env(const struct settings *settings,
                     const struct spec *spec,
                     const char *user,
                     const char *name);

/* What a trial is made of: the job's command line under the id "trial", and its environment.
 * All borrowed for the call. */
struct launchplan_trial {
    const struct spec *spec;
    const char *verl;           /* NULL: not known */
    const struct strv *argv;    /* without what is secret */
    const struct pairs *env;    /* the same */
    const struct pairs *secret; /* the rest of it */
};
typedef int (*launchplan_trial_f)(const struct launchplan_trial *t, void *arg, struct err *err);
/* job: settings, spec, user, inputs, snapshots and secrets are read. */
must_check int launchplan_for_trial(const struct launchplan *job,
                                    launchplan_trial_f make,
                                    void *arg,
                                    struct err *err);
