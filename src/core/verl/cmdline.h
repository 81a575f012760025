/* SPDX-License-Identifier: Apache-2.0 */
/* cmdline.h - from a resolved JobSpec to what the shepherd executes.
 *
 * The argv is for execve: no shell reads it (workload ray with a shell line says
 * so with /bin/sh -c itself). The environment is what the job adds to the
 * worker's own. Pure: the caller makes the links and directories. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/doc/problem.h"
#include "base/err.h"
#include "base/strv.h"
#include "core/spec/spec.h"
#include "core/spec/tracker.h"
#include "core/verl/demand.h"
#include "core/verl/verl.h"

struct cmdline_in {
    const struct spec *spec;            /* expanded */
    const struct verl_version *version; /* NULL for an entrypoint */
    const char *id;                     /* job id */
    int attempt;                        /* from 1 */
    const char *shared_root, *user_root;
    const char *job_dir;        /* <shared_root>/jobs/<id> */
    const char *attempt_dir;    /* <job_dir>/attempts/<k> */
    const char *hook_dir;       /* NULL: none */
    const char *user_code_path; /* of argus.yaml, expanded; NULL: none */
    const struct pairs *env;    /* runtime_env.env_vars of argus.yaml, expanded; may be NULL */
    int64_t train_rows;         /* 0: not known */
    double node_cpus;           /* of the smallest node it may run on; 0: not known */
    int64_t resume_step;        /* newest verified checkpoint of spec->resume_job; 0: none */
    int64_t own_step;           /* of a checkpoint that an attempt before left, which was read: it
                                   goes on from there; 0: there is none */
    const struct tracker
        *trackers; /* as they were decided for the attempt; NULL: as the spec says */
    size_t n_trackers;
};

struct cmdline {
    struct strv argv;
    struct pairs env;   /* for Ray's env_vars; PYTHONPATH ends in ":${PYTHONPATH}" */
    struct pairs links; /* symbolic links to make first: path (its directory too) to target */
    struct pairs files; /* small files to write then: path, in one of dirs, to text */
    struct strv dirs;   /* directories to make first */
    char *cwd;          /* working_dir, or NULL: the attempt's directory */
    int64_t save_freq;  /* as resolved; 0 where the workload saves nothing */
};

/* ERR_BAD_SPEC with a code when this release of verl cannot do what the spec asks, whatever its
 * files hold; *ret_field is the key to change then. */
must_check int cmdline_check_version(const struct spec *s,
                                     const struct verl_version *v,
                                     const char **ret_field,
                                     struct err *err);

/* ERR_BAD_SPEC with a sentence when this version cannot do what the spec asks; warnings
 * (keys that were guessed) go to ps. *ret is released by the caller in both cases. */
must_check int cmdline_build(const struct cmdline_in *in,
                             struct cmdline *ret,
                             struct problems *ps,
                             struct err *err);
void cmdline_release(struct cmdline *c);

/* Append a shell script that runs exactly this argv in c->cwd (else cwd). -EMSGSIZE. */
must_check int cmdline_script_text(const struct cmdline *c, const char *cwd, struct buf *out);

struct cmdline_submit {
    const char *address; /* http://head:8265 */
    const char *ray_id;
    double cpus, gpus;             /* of the entrypoint */
    const struct pairs *resources; /* of the entrypoint, numbers as text; may be NULL */
    const char *py_executable;     /* of Ray's runtime_env; NULL: none */
    const char *script;            /* path of a file that holds cmdline_script_text() */
};

/* Append the `ray job submit …` line that does the same by hand, for a POSIX shell; values of
 * environment variables that look like secrets are "***". -EMSGSIZE. */
must_check int cmdline_submit_text(const struct cmdline *c,
                                   const struct cmdline_submit *how,
                                   struct buf *out);
