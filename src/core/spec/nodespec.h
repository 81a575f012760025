/* SPDX-License-Identifier: Apache-2.0 */
/* nodespec.h - what an operator says about one machine: read, checked, compared.
 *
 * Every problem is told at once, with place and nearest key. A label is a text; "k=v" is one
 * too. Three have a meaning of their own: "pool=a" is the label "a", "network=x" names the
 * switch or island, "shareable" lets fractions share the GPUs. Pure. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/doc/doc.h"
#include "base/doc/problem.h"
#include "base/field.h"
#include "base/json.h"
#include "base/strv.h"

enum {
    NODESPEC_NAME_MAX = 63,
    NODESPEC_LIST_MAX = 1000, /* of one request */
    NODESPEC_JSON_MAX = 64 << 10,
};

/* X(enumerator, word, program) - who tells of a machine's GPUs in Prometheus' form. */
#define NODESPEC_EXPORTER_TABLE(X)                                                                 \
    X(NONE, "", "")                                                                                \
    X(DCGM, "dcgm", "dcgm-exporter")                                                               \
    X(NVIDIA, "nvidia", "nvidia_gpu_exporter")
#define X(e, word, program) NODESPEC_EXPORTER_##e,
enum nodespec_exporter { NODESPEC_EXPORTER_TABLE(X) NODESPEC_EXPORTER_END };
#undef X

/* Read-only to everybody but nodespec.c. Texts are NULL when not given. */
struct nodespec {
    char *name, *cluster;
    char *host, *user; /* for ssh */
    int64_t port;      /* of sshd; 0 = ssh's own choice */
    char *identity_file, *proxy_jump;
    struct strv labels; /* without those that have a meaning of their own */
    char *network;      /* of "network=x" */
    bool shareable;     /* of "shareable" */
    int64_t gpu_count;  /* -1 = what the machine shows */
    int64_t cpu_count;  /* -1 = what the machine shows */
    char *gpu_type;
    char *ray_bin;    /* NULL = found there */
    struct pairs env; /* of the raylet, and so of every worker and driver there */
    char *image;      /* a note: nothing is pulled */
    enum nodespec_exporter exporter;
    bool check_net;    /* its network is measured before it takes jobs */
    char *model_cache; /* directory of models on its own disk; NULL: none */
};

/* Read one. *ret is whole and releasable in any case, with nothing borrowed from root.
 * prefix: of the fields of problems ("[2]."), "" for a single one. ERR_BAD_SPEC when ps got
 * errors. */
must_check int nodespec_read(const struct node *root,
                             const char *prefix,
                             struct nodespec *ret,
                             struct problems *ps);
void nodespec_release(struct nodespec *s);
void nodespec_move(struct nodespec *dst, struct nodespec *src); /* src is empty after */

/* A body that is one spec, a list of them, or {nodes: [...]}: the specs, to be released one by
 * one and freed. Names may not come twice. ERR_BAD_SPEC when ps got errors. */
must_check int nodespec_read_all(const struct node *root,
                                 struct nodespec **ret,
                                 size_t *ret_n,
                                 struct problems *ps);

/* As an object under key, what was not given left out; reads back as the same. With `masked`
 * the values of secret-looking variables are "***": for eyes, not for the store. */
void nodespec_to_json(const struct nodespec *s, struct jout *j, const char *key, bool masked);
char *nodespec_text(const struct nodespec *s, bool masked); /* that object; heap */
bool nodespec_equal(const struct nodespec *a, const struct nodespec *b);

/* [A-Za-z0-9][A-Za-z0-9_.-]{0,62}. "head" is one too, but nobody may give it in a list. */
must_check int nodespec_check_name(const char *name, struct err *err);
/* A word that ssh takes as a host: a name or an address, an IPv6 one without brackets; no port.
 * ERR_BAD_SPEC. */
must_check int nodespec_check_host(const char *host, struct err *err);
/* The labels as the scheduler takes them, "a,b"; yours to free(). */
char *nodespec_pool(const struct nodespec *s);
/* The same sshd: no two nodes may have it. */
bool nodespec_same_machine(const struct nodespec *a, const struct nodespec *b);
/* The rows of a NodeSpec as it is given, and as it is shown, for openapi.json. */
extern const struct field_table nodespec_table, nodespec_shown_table;
/* The reference text of its keys. */
void nodespec_describe(struct buf *out);
