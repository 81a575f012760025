/* SPDX-License-Identifier: Apache-2.0 */
/* attempt.h - writes the directory of a job and of one attempt, and what is added to it later.
 *
 * Every failure is one sentence with the path and, where there is one, the fix. Blocking. */
#pragma once
#include "base/clock.h"
#include "base/err.h"
#include "base/strv.h"

/* The content of an attempt's directory. Values under secret names (see str_is_secret_name) are
 * masked in every file that people read, and so is each occurrence of such a value in any of the
 * texts; the real values are only in a 0600 file that the shepherd deletes once it has read it. */
struct launch_logs;

struct fsroot_attempt {
    const char *root;
    const char *job;
    int attempt; /* from 1 */
    const struct strv *argv;
    const char *cwd;               /* NULL: where Ray starts it */
    const struct pairs *env;       /* set over Ray's, exact bytes; may be NULL */
    const struct pairs *secrets;   /* further environment, all of it secret; may be NULL */
    const struct strv *hidden;     /* texts with stars in their place in what others read */
    const char *ray_id;            /* names the file of Ray's workers; NULL: there are none */
    const char *pythonpath_prefix; /* NULL: none */
    usec_t stop_grace;
    usec_t beat;                    /* 0: 5 s */
    const struct launch_logs *logs; /* NULL: as launch_logs_default() */
    const char *ray_config;         /* texts of config/ray_config.yaml, */
    const char *jobspec;            /* config/jobspec.yaml, */
    const char *submit_cmd;         /* config/submit_cmd.txt and */
    const char *submit_payload;     /* attempts/<k>/submit_payload.json; NULL: not written */
};

/* Makes jobs/<job>/ whole: config/ logs/ debug/ metrics/ checkpoints/ attempts/<k>/,
 * its files, and the links to the newest attempt. Doing it again for the same
 * attempt gives the same files. -EEXIST: this attempt has started already. */
must_check int fsroot_attempt_write(const struct fsroot_attempt *a, struct err *err);

/* meta.json, atomically. text is JSON. */
must_check int fsroot_meta_write(const char *root,
                                 const char *job,
                                 const char *text,
                                 struct err *err);
/* attempts/<k>/debug/<name>; debug/<name> of the job links to it. */
must_check int fsroot_debug_write(const char *root,
                                  const char *job,
                                  int attempt,
                                  const char *name,
                                  const char *text,
                                  struct err *err);
/* Append to logs/submit.out: what submitting said. */
must_check int fsroot_submit_out_add(const char *root,
                                     const char *job,
                                     const char *text,
                                     struct err *err);
/* Ask the shepherd to stop the attempt, Ray or no Ray; the first reason stays. */
must_check int fsroot_stop_write(const char *root,
                                 const char *job,
                                 int attempt,
                                 const char *reason,
                                 struct err *err);

/* A file of the scene that belongs to no node: SCENE_RAY_NODES, SCENE_RAY_ACTORS. text is JSON. */
must_check int fsroot_scene_write(const char *root,
                                  const char *job,
                                  int attempt,
                                  const char *name,
                                  const char *text,
                                  struct err *err);
/* attempts/<k>/finding.json. text is JSON. */
must_check int fsroot_finding_write(const char *root,
                                    const char *job,
                                    int attempt,
                                    const char *text,
                                    struct err *err);
