/* SPDX-License-Identifier: Apache-2.0 */
/* finding_class.h - the classes of a failure, and all that follows from a class alone.
 *
 * One row per class: its word (in JobSpecs, rules, the store, JSON and pages), what follows from
 * it, what it means. A new class is a new row here; a rule (of rules/) or a fact
 * (finding_judge.c) then concludes it. Rows are never taken away or renamed: stores hold words.
 *
 * A word without a row comes from the store of a newer Argus. Whoever reads it acts on
 * FINDING_UNKNOWN and keeps the word: see argusd/jobs/record.h and restart_on in restart.h. */
#pragma once
#include <assert.h>
#include <stdbool.h>

/* What follows from a class. */
enum finding_flags {
    FINDING_BLAMES_NODE = 1 << 0, /* the node may be at fault: the next attempt avoids it */
    FINDING_NAMES_NODE = 1 << 1,  /* as above, but only the node that the finding itself names */
    FINDING_RESTARTS = 1 << 2,    /* in restart.on where the JobSpec does not say it */
    FINDING_IS_INFRA = 1 << 3,    /* `infra` in restart.on covers it */
    FINDING_IS_LOSS = 1 << 4,     /* the CLI ends with the status of lost infrastructure */
    FINDING_IS_DEATH = 1 << 5,    /* says that something died, not why: facts outrank it */
    FINDING_OF_TRIAL = 1 << 6,    /* a trial may find it */
    FINDING_NO_RULE = 1 << 7,     /* no rule may conclude it */
    FINDING_NO_RESTART = 1 << 8,  /* restart.on may not name it */
};

/* X(enumerator, word, enum finding_flags, what it means) */
#define FINDING_TABLE(X)                                                                           \
    X(FINDING_NONE, "none", FINDING_NO_RULE | FINDING_NO_RESTART, "nothing failed")                \
    X(FINDING_GPU_OOM, "gpu_oom", 0, "the memory of a GPU was full")                               \
    X(FINDING_HOST_OOM, "host_oom", FINDING_BLAMES_NODE,                                           \
      "the memory of a node, or of the job's share of it, was full")                               \
    X(FINDING_SHM_EXHAUSTED, "shm_exhausted", FINDING_BLAMES_NODE,                                 \
      "/dev/shm or Ray's object store was full")                                                   \
    X(FINDING_DISK_FULL, "disk_full", FINDING_BLAMES_NODE, "a file system or its quota was full")  \
    X(FINDING_NCCL_TIMEOUT, "nccl_timeout",                                                        \
      FINDING_BLAMES_NODE | FINDING_RESTARTS | FINDING_IS_DEATH,                                   \
      "ranks waited for an NCCL collective that never came")                                       \
    X(FINDING_NCCL_NETWORK, "nccl_network",                                                        \
      FINDING_BLAMES_NODE | FINDING_RESTARTS | FINDING_IS_DEATH,                                   \
      "the network between the ranks failed")                                                      \
    X(FINDING_GPU_HARDWARE, "gpu_hardware", FINDING_BLAMES_NODE | FINDING_RESTARTS,                \
      "a GPU or its links are at fault")                                                           \
    X(FINDING_CUDA_ERROR, "cuda_error", FINDING_BLAMES_NODE, "a kernel or a CUDA library failed")  \
    X(FINDING_DRIVER_MISMATCH, "driver_mismatch", FINDING_BLAMES_NODE,                             \
      "GPU driver, CUDA, PyTorch and GPU do not go together")                                      \
    X(FINDING_NODE_LOST, "node_lost", FINDING_BLAMES_NODE | FINDING_RESTARTS | FINDING_IS_LOSS,    \
      "a node went away")                                                                          \
    X(FINDING_ACTOR_DIED, "actor_died", FINDING_BLAMES_NODE | FINDING_IS_DEATH,                    \
      "a process of the job died and left no reason")                                              \
    X(FINDING_INSUFFICIENT_RESOURCES, "insufficient_resources", 0,                                 \
      "the job asked for more than the cluster has")                                               \
    X(FINDING_RUNTIME_ENV_FAILED, "runtime_env_failed", 0, "Ray could not make the environment")   \
    X(FINDING_IMPORT_ERROR, "import_error", FINDING_OF_TRIAL,                                      \
      "Python code was not found, or not the right one")                                           \
    X(FINDING_CONFIG_ERROR, "config_error", FINDING_OF_TRIAL, "the configuration is wrong")        \
    X(FINDING_DATA_ERROR, "data_error", FINDING_OF_TRIAL,                                          \
      "the data is missing or not as the program needs it")                                        \
    X(FINDING_MODEL_LOAD_ERROR, "model_load_error", 0, "the model could not be loaded")            \
    X(FINDING_CHECKPOINT_ERROR, "checkpoint_error", 0,                                             \
      "a checkpoint could not be saved or loaded")                                                 \
    X(FINDING_NAN_LOSS, "nan_loss", 0, "the numbers of the training became NaN or infinite")       \
    X(FINDING_PERMISSION_OR_PATH, "permission_or_path", 0, "a path is missing or may not be used") \
    X(FINDING_AUTH_OR_HUB, "auth_or_hub", 0, "a hub or a tracker could not be reached or refused") \
    X(FINDING_PORT_CONFLICT, "port_conflict", 0, "a port was taken")                               \
    X(FINDING_TIMEOUT_OR_HANG, "timeout_or_hang", FINDING_NAMES_NODE | FINDING_IS_DEATH,           \
      "something waited longer than it may")                                                       \
    X(FINDING_USER_CODE_ERROR, "user_code_error", FINDING_OF_TRIAL, "the user's own code failed")  \
    X(FINDING_PREEMPTED_OR_STOPPED, "preempted_or_stopped", FINDING_IS_DEATH,                      \
      "somebody or something stopped it")                                                          \
    X(FINDING_INFERENCE_ENGINE_FAILED, "inference_engine_failed", FINDING_IS_DEATH,                \
      "vLLM, SGLang or another engine failed to start or to answer")                               \
    X(FINDING_PLATFORM, "platform", FINDING_BLAMES_NODE | FINDING_IS_INFRA,                        \
      "Argus or Ray itself failed the job")                                                        \
    X(FINDING_LEASE_BREACH, "lease_breach", FINDING_NO_RULE | FINDING_NO_RESTART,                  \
      "the job used nodes or GPUs outside of its lease")                                           \
    X(FINDING_INFRA, "infra",                                                                      \
      FINDING_BLAMES_NODE | FINDING_RESTARTS | FINDING_IS_LOSS | FINDING_NO_RULE,                  \
      "the job could not be started, again and again; in `restart.on` also every `platform` and "  \
      "the loss of Ray's head")                                                                    \
    X(FINDING_UNKNOWN, "unknown", FINDING_BLAMES_NODE | FINDING_NO_RULE,                           \
      "it failed, and nothing says why")

enum finding_class {
#define X(e, word, flags, meaning) e,
    FINDING_TABLE(X)
#undef X
        FINDING_CLASS_COUNT
};
static_assert(FINDING_CLASS_COUNT <= 64, "a set of classes is one word of 64 bits");

/* Borrowed for ever. */
const char *finding_class_to_string(enum finding_class c);
const char *finding_class_meaning(enum finding_class c);
/* -1 if there is none of this word. */
int finding_class_from_string(const char *word);
bool finding_class_is(enum finding_class c, enum finding_flags flag);
/* Something failed, and the class says why. */
bool finding_class_tells(enum finding_class c);
