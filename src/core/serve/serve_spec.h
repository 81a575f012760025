/* SPDX-License-Identifier: Apache-2.0 */
/* serve_spec.h - what one version of a service is: a model and its engine, or an application of
 * Ray Serve, its size, its limits.
 *
 *   {"model": "sums@2", "replicas": 2, "gpus": 0.5}
 *   {"app": "translator:app", "code": "translator", "cpus": 2}
 *   {"job": "grpo-7", "step": "best"}: a checkpoint, whose model has yet to be merged
 *   {"config": "<the text of a serve.yaml: Ray Serve's own form with one application, or ours>"}
 *
 * Every key is checked here, with its place: Ray Serve drops unknown ones without a word. Keys of
 * Ray Serve that say where a replica runs or how many there are beyond num_replicas are argusd's,
 * and are refused with the key that is meant instead. Pure. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/doc/doc.h"
#include "base/doc/problem.h"
#include "base/field.h"
#include "core/serve/serve_name.h"

#define SERVE_ENGINE_TABLE(X) X(TRANSFORMERS, "transformers") X(VLLM, "vllm") X(SGLANG, "sglang")
enum serve_engine {
#define X(e, word) SERVE_##e,
    SERVE_ENGINE_TABLE(X)
#undef X
        SERVE_ENGINES
};
extern const char *const serve_engine_words[];

/* What the version before costs while another one has the traffic: its replicas (rolling back takes
 * a second), nothing but its row (it is loaded again), not even that. */
#define SERVE_KEEP_TABLE(X) X(WARM, "warm") X(COLD, "cold") X(NONE, "none")
enum serve_keep {
#define X(e, word) SERVE_KEEP_##e,
    SERVE_KEEP_TABLE(X)
#undef X
        SERVE_KEEPS
};
extern const char *const serve_keep_words[];

enum { SERVE_REPLICAS_MAX = 64, SERVE_DEPLOYMENTS_MAX = 16, SERVE_TEXT_MAX = 256 << 10 };

/* A deployment of an application, as far as the spec, or later the code itself, says. */
struct serve_deployment {
    char *name;
    int64_t num_replicas;         /* 0: not said */
    double num_cpus, num_gpus;    /* of each replica; below 0: not said */
    uint64_t memory;              /* bytes; 0: not said */
    int64_t max_ongoing_requests; /* 0, as all below: not said */
    int64_t max_queued_requests;
    double graceful_shutdown_timeout_s, health_check_period_s, health_check_timeout_s;
    char *user_config; /* JSON; NULL: not said */
};
extern const struct field_table serve_deployment_table;

struct serve_spec {
    char *model;                   /* as registered: "sums@2"; NULL: an application */
    char *model_path, *model_hash; /* filled by whoever resolves it */
    int engine;                    /* enum serve_engine */
    char *engine_args;             /* JSON object; NULL: none */
    char *engine_args_unchecked;   /* the same of those that serve_engine.h does not know */
    char *app;                     /* "module:attribute" */
    char *args;                    /* of a builder, JSON object; NULL: none */
    char *code;                    /* a snapshot; NULL: none */
    char *python;                  /* interpreter of the replicas; NULL: Ray's own */
    struct pairs env;
    struct field_list deployments; /* struct serve_deployment */

    int64_t replicas, min_replicas, max_replicas; /* max 0: no autoscaling */
    double target_requests;                       /* under way, of one replica */
    double gpus, cpus; /* of one replica, or of one copy of an application */
    uint64_t memory;   /* the same; 0: not stated */
    struct strv pool;
    int64_t priority;

    int64_t max_ongoing_requests, max_queued_requests;
    usec_t request_timeout, graceful, start_timeout;
    uint64_t max_body;
    char *check_path; /* of an application, below its route; NULL: none */
    int64_t requests_per_minute, tokens_per_minute; /* of one user; 0: no limit */
    double log_share;
};
extern const struct field_table serve_spec_table;

/* What a request to serve says beside the spec. */
enum { SERVE_STEP_LATEST = 0, SERVE_STEP_BEST = -1 };
struct serve_ask {
    char *name, *project;
    char *job;  /* of whose checkpoints one is served; spec.model is the same text until whoever
                   merges it names the model. NULL: none */
    char *step; /* of that checkpoint, as it was said; NULL: the newest */
    int64_t at; /* the same: a step, or SERVE_STEP_ */
    int keep;   /* enum serve_keep */
    bool says_keep;
    char *idle; /* it sleeps after so long without a request, as it was said; NULL: it is not */
    usec_t idle_for; /* the same; 0: never */
    struct serve_spec spec;
};
/* Its rows, for openapi.json: those of the spec that may be asked for are among them. */
extern const struct field_table serve_ask_table;

/* The body of a request, which may hold a whole serve.yaml in `config`. With `base` what is not
 * said is as there (the next version of a service), else a default. *ret is whole and releasable in
 * both cases. ERR_BAD_SPEC when ps got errors. */
must_check int serve_ask_read(const char *text,
                              size_t len,
                              const struct serve_spec *base,
                              struct serve_ask *ret,
                              struct problems *ps);
void serve_ask_release(struct serve_ask *a);
/* A key of such a body that a step of a pipeline may have, too: `job` and `step` are none, because
 * there a merge is a step of its own. */
bool serve_knows_key(const char *key);

/* The lease of one replica: what its deployments ask for together, where the spec says so. */
double serve_spec_cpus(const struct serve_spec *s);
double serve_spec_gpus(const struct serve_spec *s);
/* What the code says of its deployments (a JSON array that the lease's job wrote on its node), with
 * what the spec says over it. ERR_BAD_SPEC: a deployment that the code does not have; more than the
 * lease; none at all. */
must_check int serve_spec_merge(const struct serve_spec *s,
                                const json_t *found,
                                struct field_list *ret,
                                struct err *err);
void serve_deployments_release(struct field_list *l);
