/* SPDX-License-Identifier: Apache-2.0 */
/* spec.h - a JobSpec: what one training run asks for, read, checked and expanded.
 *
 * Reading reports every problem at once (unknown keys, types, bounds, keys that
 * do not go together, overrides of what the platform owns). Pure: whether a file
 * exists is asked elsewhere. The life of one: spec_read(), spec_expand(), then it
 * is only read, by demand.h and cmdline.h. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/doc/doc.h"
#include "base/doc/problem.h"
#include "base/field.h"
#include "base/json.h"
#include "base/strv.h"

/* X(enumerator, word in JSON and YAML): verl's programs, then those that run an entrypoint. */
#define WORKLOAD_TABLE(X)                                                                          \
    X(WORKLOAD_PPO, "ppo")                                                                         \
    X(WORKLOAD_GRPO, "grpo")                                                                       \
    X(WORKLOAD_SFT, "sft")                                                                         \
    X(WORKLOAD_EVAL, "eval")                                                                       \
    X(WORKLOAD_GENERATE, "generate")                                                               \
    X(WORKLOAD_MERGE, "merge")                                                                     \
    X(WORKLOAD_RAY, "ray")                                                                         \
    X(WORKLOAD_TRAIN, "train")                                                                     \
    X(WORKLOAD_TUNE, "tune")                                                                       \
    X(WORKLOAD_DATA, "data")                                                                       \
    X(WORKLOAD_RLLIB, "rllib")                                                                     \
    X(WORKLOAD_SERVE, "serve")                                                                     \
    X(WORKLOAD_NOTEBOOK, "notebook")

enum workload {
#define X(e, word) e,
    WORKLOAD_TABLE(X)
#undef X
        WORKLOAD_COUNT
};

enum spec_resume { SPEC_RESUME_AUTO, SPEC_RESUME_NEVER, SPEC_RESUME_JOB };

/* Where what needs no GPU runs: on the leased nodes, or on any worker. */
enum spec_spread { SPEC_SPREAD_LEASE, SPEC_SPREAD_CLUSTER };

enum {
    SPEC_ID_MAX = 63,
    SPEC_ID_BUF = 64,
    SPEC_SECRETS_MAX = 32,
    SPEC_SECRET_NAME_MAX = 64,
    SPEC_JOB_NAME_MAX = 200,   /* letters */
    SPEC_OVERRIDES_MAX = 1000, /* a retry with others compares each old one with each new one */
};

struct spec_limits {
    double gpus_per_job; /* of one gang; 0 = no limit */
};

/* Read-only to everybody but spec.c. Texts are NULL when not given. */
struct spec {
    int workload; /* enum workload */
    char *id;     /* submission_id; NULL: spec_generate_id() */
    char *name, *project, *cluster, *preset;
    struct strv pool;
    int64_t priority;

    int64_t nnodes;
    double gpus_per_node;     /* fractions only where there is an entrypoint */
    double cpus_per_gpu;      /* 0: what the verl version asks for */
    double cpus_per_node;     /* at least; only where there is an entrypoint; 0: not stated */
    int spread;               /* enum spec_spread */
    uint64_t memory_per_node; /* bytes; 0: not stated */
    double entrypoint_cpus;   /* < 0: as in argus.yaml */
    double entrypoint_gpus;   /* < 0: as in argus.yaml, or what the workload needs */
    struct pairs entrypoint_resources; /* name to number as text; worker_node is not removable */

    char *code, *code_path, *working_dir;
    struct strv extra_pythonpath;
    char *model_id;
    struct strv train_file, val_file;
    char *reward_fn_path;  /* as given, with ":function" */
    char *reward_file;     /* its file, or NULL */
    char *reward_module;   /* its dotted module, or NULL */
    char *reward_function; /* "compute_score" when not given; NULL without a reward */
    int64_t total_epochs, total_training_steps; /* 0: not given */
    int64_t save_freq, test_freq;               /* 0: not given; -1: never */
    bool samples;                               /* of ppo and grpo: what the model writes is kept */
    struct strv overrides;
    struct strv entrypoint;   /* of workloads that run one */
    bool entrypoint_is_shell; /* entrypoint.v[0] is one line for /bin/sh */
    struct pairs env;         /* env and runtime_env.env_vars together */
    struct pairs env_vars;    /* empty once read: moved to env */
    char *py_executable;
    struct strv secrets;

    usec_t timeout, queue_timeout; /* 0: none */
    usec_t stop_grace;
    char *resume;        /* as given */
    int resume_mode;     /* enum spec_resume */
    char *resume_job;    /* of SPEC_RESUME_JOB */
    int64_t resume_step; /* 0: not given */
    bool checkpoint_none;
    int64_t keep_last; /* 0: all */
    char *keep_best_metric;
    int keep_best_mode;

    int64_t restart_max;
    struct strv restart_on;
    usec_t restart_backoff;
    bool restart_avoid_failed_nodes;
    double idle_min_gpu_util;
    usec_t idle_window, idle_warn;
    int idle_action;
    bool wandb_enabled;
    char *wandb_project, *wandb_run;
    int wandb_mode; /* spec_wandb_mode_name() */
    char *tracking_backend, *tracking_uri, *tracking_project, *tracking_run;
    usec_t hold_on_failure;
    struct strv after, notify;
    struct strv alerts; /* of its metrics, see metric_alert.h */
    char *eval_on_save; /* JSON object, as it was given; see evalspec.h */
};

/* Read and check; lim may be NULL (no limits). *ret is whole and releasable in
 * both cases, with nothing borrowed from root. ERR_BAD_SPEC when ps got errors. */
must_check int spec_read(const struct node *root,
                         const struct spec_limits *lim,
                         struct spec *ret,
                         struct problems *ps);
/* What is wrong with each key and each value by itself; what goes together is spec_read()'s. */
void spec_check_rows(const struct node *root, struct problems *ps);
void spec_release(struct spec *s);
/* dst is zeroed memory, and owns all that it gets. */
void spec_copy(struct spec *dst, const struct spec *src);
/* Where the checkpoint of this step of resume_job lies. Yours. */
char *spec_resume_path(const struct spec *s, const char *shared_root, int64_t step);

struct spec_roots {
    const char *shared_root; /* absolute, without a final slash */
    const char *user_root;   /* <shared_root>/users/<user> */
    const struct strv *more; /* further directories that paths may lie under; may be NULL */
};

/* Replace ${SHARED_ROOT}, ${shared_root}, ${USER_ROOT}, ${user_root} (in paths every other
 * name is an error; in the entrypoint, env and overrides others stay as they are) and check
 * that each path stays, lexically, under a root and out of other users' directories.
 * ERR_BAD_SPEC when ps got errors. */
must_check int spec_expand(struct spec *s, const struct spec_roots *roots, struct problems *ps);

/* The other jobs that an expanded spec names, each once: the one that it resumes, and those below
 * whose directory a path, or a word of the entrypoint, env and overrides, lies. */
enum { SPEC_JOBS_MAX = 64 }; /* more are counted as one more */
struct spec_jobs {
    struct spec_job_name {
        const char *field; /* static: where the job is named first */
        char *id;
    } * v;
    size_t n;
};
void spec_list_jobs(const struct spec *s, const char *shared_root, struct spec_jobs *ret);
void spec_jobs_add(struct spec_jobs *sj, const char *field, const char *id); /* id: copied */
void spec_jobs_release(struct spec_jobs *sj);

/* Can this text be the name of a registered data set or model (core/spec/dataref.h)? spec_expand()
 * leaves such names in train_file, val_file and model_id as they are. */
bool spec_is_input_name(const char *text);
/* Put what they mean in their place: a JSON array of {"key":"train_file", "text": the name,
 * "files": [paths]}; NULL is none. */
must_check int spec_put_inputs(struct spec *s, const char *inputs, struct err *err);
/* What the job will really read: `s` with the values of overrides that go before train_file,
 * val_file, model_id and reward_fn_path in their place. One whose value is only known later (${…})
 * leaves nothing there. The answer is borrowed from `s` where no override goes before a key, else
 * from *held, which spec_release() releases in both cases. */
enum spec_replaced {
    SPEC_REPLACED_TRAIN = 1 << 0,
    SPEC_REPLACED_VAL = 1 << 1,
    SPEC_REPLACED_MODEL = 1 << 2,
    SPEC_REPLACED_REWARD = 1 << 3,
};
const struct spec *spec_final(const struct spec *s, struct spec *held, unsigned *ret_replaced);
/* The key of the spec that this override's key (n bytes) goes before; NULL: none. */
const char *spec_field_of_override(const struct spec *s, const char *key, size_t n);
/* The model of model_id in that array: its directory, and its hash without the word "sha256:"; both
 * yours. False: there is none, or its hash is not known. */
bool spec_find_model(const char *inputs, char **ret_path, char **ret_hash);

/* The resolved spec as an object under key, nested as in YAML, keys that were not given left
 * out; values of environment variables that look like secrets are "***". */
void spec_to_json(const struct spec *s, struct jout *j, const char *key);
/* The rows of the JobSpec, for openapi.json. */
extern const struct field_table spec_table;
/* The reference text of all keys. */
void spec_describe(struct buf *out);

/* [a-z0-9][a-z0-9_.-]{0,62}, and neither "-a<k>" nor "-trial" at its end. */
must_check int spec_check_id(const char *id, struct err *err);
/* "<workload>-<yyyymmdd>-<6 characters>" of the UTC day; bytes: 6 random ones. Returns ret. */
const char *spec_generate_id(enum workload w,
                             usec_t now,
                             const unsigned char bytes[static 6],
                             char ret[static SPEC_ID_BUF]);

const char *workload_to_string(enum workload w);
/* True if the job runs one of verl's own programs. */
bool workload_is_verl(enum workload w);
/* True if it makes checkpoints, and goes on from them: ppo, grpo, sft. */
bool workload_trains(enum workload w);
/* The same by its word; false for a word that is no workload's. */
bool workload_word_trains(const char *word);
/* True if the job runs the entrypoint of its spec: ray, or a word for one of Ray's libraries
 * (train, tune, data, rllib, serve), which is the same by another name. */
bool workload_has_entrypoint(enum workload w);
const char *spec_wandb_mode_name(int mode);

/* False for a name that jobs may set. True for a reserved one: then *ret_instead (may be NULL)
 * is what to use instead, or NULL. Borrowed. */
bool spec_is_reserved_env(const char *name, const char **ret_instead);

/* Checks the name of a stored secret: [A-Z_][A-Z0-9_]*, and none that the platform owns.
 * ERR_BAD_SPEC. */
must_check int spec_check_secret_name(const char *name, struct err *err);

/* The value of the last override that sets key (without + or ++), NULL if none does.
 * Borrowed. Hydra's quoting is not undone. */
const char *spec_override_find(const struct spec *s, const char *key);
/* The keys whose value is the path of a file of its own; NULL ends them. */
extern const char *const spec_file_overrides[];
/* The value, a part of the override, of one with such a key; NULL for others. */
const char *spec_override_file(const char *override);
