/* SPDX-License-Identifier: Apache-2.0 */
/* tracker.h - the trackers that a spec asks for (W&B, MLflow, TensorBoard, SwanLab), and what
 * verl's own loggers are told of them.
 *
 * A tracker has one run per attempt: "<job>-<attempt>", grouped by the job. Whether it is spoken to
 * while the attempt runs is decided before the start and given to this module; every limit is set
 * so that none of them waits for long. Pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/strv.h"
#include "core/spec/spec.h"

#define TRACKER_KIND_TABLE(X)                                                                      \
    X(TRACKER_WANDB, "wandb")                                                                      \
    X(TRACKER_MLFLOW, "mlflow")                                                                    \
    X(TRACKER_TENSORBOARD, "tensorboard")                                                          \
    X(TRACKER_SWANLAB, "swanlab")
#define X(name, word) name,
enum tracker_kind { TRACKER_KIND_TABLE(X) TRACKER_KINDS };
#undef X

enum tracker_mode {
    TRACKER_NONE,    /* the attempt does without: argusd sends all of it afterwards */
    TRACKER_OFFLINE, /* to files */
    TRACKER_ONLINE
};

/* How one attempt tells a tracker; borrowed. */
struct tracker {
    enum tracker_kind kind;
    enum tracker_mode mode;
    const char *url; /* of the server; NULL: none is configured */
    const char *run; /* MLflow's id of the run that was made for the attempt; NULL: none */
};

const char *tracker_kind_to_string(enum tracker_kind kind);
/* NULL-terminated, for field tables. */
extern const char *const tracker_kind_words[];
extern const char *const tracker_mode_words[];

/* What the spec asks for. The number, at most two. */
size_t tracker_of_spec(const struct spec *s, enum tracker_kind ret[static 2]);
/* How an attempt does it when nobody has looked at a server. */
enum tracker_mode tracker_mode_of_spec(const struct spec *s, enum tracker_kind kind);
/* The names of the spec's secrets that it uses, where the user or the project has them;
 * NULL-terminated. */
const char *const *tracker_secrets(enum tracker_kind kind);

/* Project and name of a run; NULL: the spec names none. Borrowed. */
const char *tracker_project(const struct spec *s);
const char *tracker_run_name(const struct spec *s);

/* A server's address: http or https, a host, a port and a path, and nothing else, since argusd
 * sends requests below it. */
bool tracker_is_url(const char *url);

/* A metric's key as MLflow takes it, as verl writes it there. Cut at size. */
void tracker_mlflow_key(const char *key, char *ret, size_t size);

struct tracker_place {
    const char *job, *job_dir, *attempt_dir;
    int attempt;
};
/* The variables of one tracker, added to ret where it has none of that name. */
void tracker_env(const struct spec *s,
                 const struct tracker *t,
                 const struct tracker_place *at,
                 struct pairs *ret);
