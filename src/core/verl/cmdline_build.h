/* SPDX-License-Identifier: Apache-2.0 */
/* cmdline_build.h - what cmdline*.c share while one command line is made.
 *
 * The first failure stays in `r` and turns every later call into a no-op, so that
 * the lists of keys read as lists. */
#pragma once
#include "core/verl/cmdline.h"

struct build {
    const struct cmdline_in *in;
    const struct spec *s;
    const struct verl_version *v;
    struct cmdline *out;
    struct problems *ps;
    struct err *err;
    int r;
    struct tracker trackers[2]; /* of the spec, as the caller decided */
    size_t n_trackers;
};

/* Add "key=value". Left out when the spec's overrides set the same key: they win anyway, and
 * a "+key" given twice is an error in Hydra. */
void build_text(struct build *b, const char *key, const char *value); /* quoted */
void build_plain(struct build *b, const char *key, const char *fmt, ...) printf_like(3, 4);
void build_files(struct build *b, const char *key, const struct strv *files);
/* An argument that is no override. */
void build_arg(struct build *b, const char *arg);
/* A variable that a job may set otherwise. */
void build_env_default(struct build *b, const char *name, const char *value);
void build_fail(struct build *b, const char *code, const struct message_arg *args);

/* What the spec's overrides say about a whole number, else dflt. */
int64_t build_number(const struct build *b, const char *key, int64_t dflt);
int64_t build_world(const struct build *b); /* GPUs of the trainers */
const char *build_python(const struct build *b);

void build_ppo(struct build *b); /* grpo too */
void build_sft(struct build *b);
void build_eval(struct build *b);
void build_generate(struct build *b);
void build_merge(struct build *b);
/* Keys under trainer. that every training has, and the overrides last. */
void build_trainer(struct build *b, int64_t default_epochs, int64_t default_batch);
void build_hydra_dir(struct build *b);
void build_overrides(struct build *b);
