/* SPDX-License-Identifier: Apache-2.0 */
/* preflight.h - the problems of a spec before it is accepted, derived from facts.
 *
 * preflight_plan() lists the files to look at; its caller looks at them
 * (argusd/launch/preflight.c, in the worker pool) and fills in the facts; preflight_judge()
 * turns them into problems, each with field, sentence and fix. Pure: no function here opens a
 * file. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/doc/problem.h"
#include "base/strv.h"
#include "core/spec/spec.h"
#include "core/verl/verl.h"

enum preflight_kind {
    PREFLIGHT_DATA,       /* parquet or JSON rows */
    PREFLIGHT_REWARD,     /* a Python file */
    PREFLIGHT_DIR,        /* a directory */
    PREFLIGHT_PROGRAM,    /* something that can be executed */
    PREFLIGHT_TREE,       /* YAML or JSON */
    PREFLIGHT_CHECKPOINT, /* the directory of a step of another job */
};

enum { PREFLIGHT_HEAD = 64, PREFLIGHT_TAIL = 4, PREFLIGHT_FILES_MAX = 1000 };

struct preflight_file {
    char *field, *path;
    enum preflight_kind kind;

    /* The look: */
    int error; /* errno, 0 = it is there and can be read */
    bool is_dir, is_file, may_run;
    bool is_elsewhere; /* PROGRAM: a link leads off the root; what it is there is not known */
    uint64_t size;
    unsigned char head[PREFLIGHT_HEAD], tail[PREFLIGHT_TAIL];
    size_t n_head;
    char *real;   /* where it leads once links are followed, or the text of a link that leaves the
                   * root; NULL: not known */
    char *broken; /* TREE: why it does not parse; NULL */
};

struct preflight_shard {
    char *name;
    int error;
    uint64_t size, wants; /* wants: as its header says; 0 = not known */
    uint64_t elements;
    unsigned char head[PREFLIGHT_HEAD];
    size_t n_head;
    bool is_safetensors;
    bool is_elsewhere; /* a link leads off the root: nothing is known of it */
    char *broken;      /* why its header cannot be read; NULL */
};

enum { PREFLIGHT_SHARDS_MAX = 4096 };

struct preflight_model {
    const char *field; /* static: who names it */
    char *path;        /* a directory; of a hub id: the one of the cache that holds snapshots/ */
    char *cache;       /* of a hub id: the directory of argus.yaml in which it is; NULL: the root */
    bool is_hub;       /* model_id is a Hugging Face id */
    bool is_offline;   /* and nothing may be fetched */
    bool only_there;   /* merge: a directory that is not empty, no more is asked */

    /* The look: */
    int error;
    bool is_dir, is_empty, has_config, has_tokenizer, has_index;
    bool is_elsewhere;   /* of a hub id: a link leads off the root; nothing is known of it */
    char *real;          /* where it leads */
    char *config_broken; /* why config.json does not parse; NULL */
    char *index_name, *index_broken;
    struct preflight_shard *shards; /* of the index, or what lies there */
    size_t n_shards;
};

/* The keys that an override may name in one release's configuration. */
struct preflight_keys {
    char *name;          /* of the configuration: "ppo_trainer" */
    struct strv keys;    /* flattened, with those in between: "trainer", "trainer.nnodes" */
    struct strv groups;  /* config groups: "engine", "actor" */
    struct strv options; /* "engine=fsdp" */
    struct strv leaves;  /* of these keys, those that hold no mapping, or an empty one */
    bool whole;          /* nothing was left out: an unknown key is a wrong one */
};

void preflight_keys_release(struct preflight_keys *k);

struct preflight_facts {
    struct preflight_file *files;
    size_t n_files;
    struct preflight_model *model; /* NULL: none to look at */
    char *real_root;               /* where the shared root leads; NULL: not known */
    bool has_free;
    uint64_t free_bytes;               /* of the file system that checkpoints go to */
    const struct preflight_keys *keys; /* NULL: not known. Borrowed */
};

struct preflight_where {
    const char *shared_root, *user_root;
    const char *hf_home; /* where the cache of models is */
    bool hf_is_ours;     /* argus.yaml says so, and not the spec: it may be elsewhere */
    bool hf_offline;
};

/* Fill in what is to be looked at: what the job will read, so the values of overrides before
 * those of the spec's own keys. */
void preflight_plan(const struct spec *s,
                    const struct preflight_where *where,
                    struct preflight_facts *ret);
void preflight_release(struct preflight_facts *f);
/* True if there is anything to look at. */
bool preflight_has_work(const struct preflight_facts *f);

/* The configuration whose keys the overrides of this spec are; NULL: none (ray, merge). Its
 * text lies in buf or is constant. */
const char *preflight_config_name(const struct spec *s,
                                  const struct verl_version *v,
                                  char buf[static 128]);

/* v is NULL for workloads that are not verl's. */
void preflight_judge(const struct spec *s,
                     const struct verl_version *v,
                     const struct preflight_where *where,
                     const struct preflight_facts *f,
                     struct problems *ps);

/* ---- its parts ---- */

void preflight_judge_files(const struct preflight_where *where,
                           const struct preflight_facts *f,
                           struct problems *ps);
void preflight_judge_model(const struct spec *s,
                           const struct preflight_where *where,
                           const char *real_root,
                           const struct preflight_model *m,
                           struct problems *ps);
/* True if a path that leads to `real` leaves the root or enters another user's directory: then
 * no further problem of that path is told. */
bool preflight_judge_real(const char *field,
                          const char *path,
                          const char *real,
                          const char *real_root,
                          const struct preflight_where *where,
                          struct problems *ps);
void preflight_judge_sizes(const struct spec *s, const struct verl_version *v, struct problems *ps);
void preflight_judge_space(const struct spec *s,
                           const struct preflight_facts *f,
                           struct problems *ps);
void preflight_judge_keys(const struct spec *s,
                          const struct preflight_keys *keys,
                          struct problems *ps);
/* The size of one checkpoint of this model; 0 = not known. */
uint64_t preflight_checkpoint_bytes(const struct spec *s, const struct preflight_model *m);

/* Names a file by its first bytes if it is not data: "an HTML page", "a pointer of git-lfs";
 * NULL for everything else. */
const char *preflight_name_head(const unsigned char *head, size_t n);
/* "1.5 GB" */
const char *preflight_size_text(uint64_t bytes, char buf[static 32]);
