/* SPDX-License-Identifier: Apache-2.0 */
/* probe.h - what a machine is, and what stands in the way of a raylet there.
 *
 * One script in one round trip; it only looks. Its answer is facts, and findings: each one
 * sentence and one fix, with a code of one table. No finding = fit. What a machine prints is
 * never trusted: bounded, cut to printable text, numbers within their range. */
#pragma once
#include "core/job/node.h"
#include "ssh/ssh.h"

/* X(enumerator, code). The first ones are those of ssh itself. */
#define PROBE_TABLE(X)                                                                             \
    X(SSH_UNREACHABLE, "ssh_unreachable")                                                          \
    X(SSH_REFUSED, "ssh_refused")                                                                  \
    X(HOST_KEY_CHANGED, "host_key_changed")                                                        \
    X(SSH_TIMEOUT, "ssh_timeout")                                                                  \
    X(NO_SSH_CLIENT, "no_ssh_client")                                                              \
    X(SSH_FAILED, "ssh_failed")                                                                    \
    X(NO_PYTHON, "no_python")                                                                      \
    X(NO_RAY, "no_ray")                                                                            \
    X(RAY_VERSION, "ray_version")                                                                  \
    X(PYTHON_VERSION, "python_version")                                                            \
    X(ROOT_NOT_MOUNTED, "root_not_mounted")                                                        \
    X(ROOT_READ_ONLY, "root_read_only")                                                            \
    X(ROOT_OTHER, "root_other") /* the path is there, but it is another file system */             \
    X(ROOT_HANGS, "root_hangs")                                                                    \
    X(DISK_FULL, "disk_full")                                                                      \
    X(SHM_TOO_SMALL, "shm_too_small")                                                              \
    X(CLOCK_OFF, "clock_off")                                                                      \
    X(PORT_TAKEN, "port_taken")                                                                    \
    X(RAYLET_FOREIGN, "raylet_foreign")                                                            \
    X(GPU_TROUBLE, "gpu_trouble")                                                                  \
    X(FAILED, "probe_failed") /* it ended early, or its answer makes no sense */

#define X(name, word) PROBE_##name,
enum probe_code { PROBE_TABLE(X) PROBE_END };
#undef X
const char *probe_code_to_string(enum probe_code code); /* "no_ray"; static */

enum { PROBE_FINDINGS_MAX = 16, PROBE_PORTS_MAX = 64 };

/* NULL or 0 = not looked at. Copied. */
struct probe_want {
    const char *ray_bin;        /* NULL = looked for on PATH and in the usual places */
    const char *ray_version;    /* the head's */
    const char *python_version; /* the head's minor, "3.11" */
    const char *shared_root;
    const char *root_mark; /* a file below it, as a path relative to it, that only this root has */
    const int *ports;      /* that must be free */
    size_t n_ports;        /* at most PROBE_PORTS_MAX */
    const char *node_ip;  /* of the raylet to come: ports count on this address and on all; "127…"
                             = a host made of a loopback address, whose neighbours are other hosts */
    const char *temp_dir; /* Ray's, for the free disk [/tmp] */
    uint64_t min_disk_bytes, min_shm_bytes;
    usec_t max_skew;
    usec_t now; /* wall clock of the caller, now; 0 = its clock is not looked at */
    /* Our mark: a raylet with ARGUS_OWNER=<owner> is ours and holds its ports rightly; one of
     * another node of ours than `node` is told, since two do not go on one machine. */
    const char *owner, *node;
};

struct probe_finding {
    const char *code; /* static, of the table */
    char text[400];   /* a message's (base/message.h): what is wrong, and its fix */
};

/* A fact that is not known is "" or 0. */
struct probe_result {
    struct probe_finding findings[PROBE_FINDINGS_MAX];
    size_t n_findings;
    struct node_facts facts;    /* but for `at`, the caller's */
    char host_key[SSH_KEY_MAX]; /* pinned now */
    uint64_t shm_bytes;
    bool has_skew;
    bool has_nvidia;
    char gpu_trouble[200]; /* "" = none */
    uint64_t ecc_errors;   /* of the GPU ecc_gpu; 0 = none */
    int ecc_gpu;
};
/* Borrowed until it returns. */
typedef void (*probe_f)(const struct probe_result *r, void *arg);

struct probe;
/* Like ssh_run(): one callback from the loop, then the handle is gone. limit 0 = 20 s. */
struct probe *probe_start(uv_loop_t *loop,
                          const struct ssh_target *t,
                          const struct probe_want *want,
                          usec_t limit,
                          probe_f cb,
                          void *arg);
void probe_free(struct probe *p); /* NULL is fine; the callback never comes */

/* Any bytes as the answer to this want, heard at `began`; ret is whole afterwards. For probe.c,
 * its test and its fuzz target. */
void probe_read(const char *text,
                size_t len,
                const struct probe_want *want,
                usec_t began,
                struct probe_result *ret);
