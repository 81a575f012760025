/* SPDX-License-Identifier: Apache-2.0 */
/* ports.h - every port that Ray and Argus use on a machine: one table.
 *
 * Starting a raylet, `argus node firewall` and docs/ports.md read the same rows. A range is
 * shared by the raylets of one host: each gets its own part, by its place on the host. Pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/strv.h"

/* X(enumerator suffix, key in argus.yaml) */
#define PORTS_TABLE(X)                                                                             \
    X(GCS, "gcs")                                                                                  \
    X(DASHBOARD, "dashboard")                                                                      \
    X(CLIENT, "client")                                                                            \
    X(HEAD_METRICS, "head_metrics")                                                                \
    X(RAYLET, "raylet")                                                                            \
    X(OBJECTS, "objects")                                                                          \
    X(AGENT, "agent")                                                                              \
    X(AGENT_GRPC, "agent_grpc")                                                                    \
    X(RUNTIME_ENV, "runtime_env")                                                                  \
    X(METRICS, "metrics")                                                                          \
    X(EXPORTER, "exporter")                                                                        \
    X(NOTEBOOK, "notebook")                                                                        \
    X(WORKER, "worker")
#define X(e, word) PORTS_##e,
enum ports_key { PORTS_TABLE(X) PORTS_COUNT };
#undef X

enum { PORTS_RAYLETS_MAX = 8 }; /* of ours on one host */

struct ports_range {
    int first, last;
};
/* What argus.yaml says, or the defaults. */
struct ports {
    struct ports_range v[PORTS_COUNT];
};

struct ports_row {
    const char *key, *dflt;
    bool on_head, on_node;
    const char *from; /* who connects: "nodes" "argusd" "prometheus" */
    const char *why;
};
const struct ports_row *ports_row(enum ports_key k);

/* given: key -> "9400" or "9400-9499". *ret is whole in any case. ERR_BAD_SPEC names the key:
 * one that does not exist, a text that is no range, one that is too small, two that meet. */
must_check int ports_read(const struct pairs *given,
                          struct ports *ret,
                          const char **ret_key,
                          struct err *err);

/* The part of the range that raylet `place` (from 0) of a host gets. */
struct ports_range ports_at(const struct ports *p, enum ports_key k, int place);

/* The options of `ray start`, name to value, and the environment of a head. */
void ports_options(const struct ports *p, int place, bool head, struct pairs *ret);
void ports_head_env(const struct ports *p, struct pairs *ret);
/* What must be free before; returns how many, at most PORTS_COUNT. */
size_t ports_needed(const struct ports *p, int place, bool head, int ret[static PORTS_COUNT]);

/* The page docs/ports.md. */
void ports_page(struct buf *out);
