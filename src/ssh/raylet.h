/* SPDX-License-Identifier: Apache-2.0 */
/* raylet.h - our raylet (or head) on a machine: start or adopt, look, stop.
 *
 * Whose a process is, is known by three things together: the session that `ray start` got of its
 * own, pid with start time (in ticks since that machine's boot, with its boot id), and a mark in
 * its environment (ARGUS_OWNER, ARGUS_NODE, ARGUS_RAYLET=<random>), which all that Ray starts
 * inherits. A pid alone is never believed, `ray stop` is never used, nothing is found by name.
 * The machine keeps a record below /tmp/argus-<uid>/<owner>/<node> (0700); without it the marks
 * are enough to adopt. All that argusd needs to know is on the machine, so it may forget.
 *
 * start, stop and look of one node may come at once and from several argusd: a lock on the
 * machine (with its holder's pid and start time, so that a dead one's is taken over) lets one
 * through, and a second start finds what the first one made. A start goes on to its end when the
 * connection breaks: look, or start again. */
#pragma once
#include "base/buf.h"
#include "base/strv.h"
#include "core/figure/gpu_card.h"
#include "core/figure/rdma.h"
#include "ssh/ssh.h"

/* Copied. NULL or 0 = Ray's own choice. */
struct raylet_spec {
    const char *owner;   /* [A-Za-z0-9_-], at most 64: our instance */
    const char *node;    /* [A-Za-z0-9._-], at most 64 */
    const char *ray_bin; /* as the probe found it: whole path */
    bool head;           /* ray start --head */
    bool spare; /* for a head: its GCS runs jobs; as long as that lives, none of its processes is
                   ended */
    usec_t dashboard_wait;      /* of a head: its dashboard (ports' dashboard-port) must listen so
                                   soon after `ray start`, or that start has failed */
    const char *address;        /* the head's GCS, of a worker */
    const char *node_ip;        /* of a worker NULL = the address by which it reaches its head */
    double cpus;                /* < 0 = Ray's own choice; a head's are 0 as given */
    int gpus;                   /* < 0 = Ray's own choice */
    const char *resources_json; /* "{\"worker_node\":100}" */
    const char *labels;         /* from raylet_labels() */
    const char *temp_dir;       /* short: Unix sockets lie below it */
    uint64_t object_store_bytes;
    const struct pairs
        *ports; /* "node-manager-port" -> "6380": any option of ray start without its "--" */
    const struct pairs *env; /* RAY_AUTH_MODE, …; no secrets: every job inherits it */
};

#define RAYLET_TABLE(X)                                                                            \
    X(OK, "ok")                                                                                    \
    X(SSH, "ssh")                   /* see trouble */                                              \
    X(START_FAILED, "start_failed") /* text quotes ray start; no process of it is left */          \
    X(NO_HEAD, "no_head")           /* the head did not answer, or runs another Ray */             \
    X(BUSY, "busy")             /* another start or stop has had the lock for all of the limit */  \
    X(GCS_ALONE, "gcs_alone")   /* of a head to be spared: its raylet is gone, its GCS lives */    \
    X(NOT_ENDED, "not_ended")   /* of a stop: text names what SIGKILL did not end */               \
    X(UNWRITABLE, "unwritable") /* no record can be kept on that machine */                        \
    X(REFUSED, "refused")       /* the spec cannot be used: our own mistake, nothing was done */   \
    X(UNREADABLE, "unreadable") /* the answer makes no sense */

#define X(name, word) RAYLET_##name,
enum raylet_outcome { RAYLET_TABLE(X) RAYLET_END };
#undef X
const char *raylet_outcome_to_string(enum raylet_outcome outcome);

/* How an act ended; text is a message's (base/message.h), "" for RAYLET_OK. Its code is the word of
 * the outcome, or of the trouble. */
struct raylet_end {
    enum raylet_outcome outcome;
    enum ssh_trouble trouble; /* SSH_OK unless outcome is RAYLET_SSH */
    char text[400];
};

/* Our processes on that machine. */
struct raylet_facts {
    bool alive;    /* the raylet; of a head the GCS server too */
    bool starting; /* a start is under way */
    bool has_gcs;  /* of a look: neither, and a GCS server of ours lives on all the same */
    bool is_head;
    int64_t pid, session;
    uint64_t start_time; /* clock ticks since boot_id's boot: a pid alone proves nothing */
    char boot_id[40];
    char token[40];   /* of this start: the same as before = the same raylet */
    char address[80]; /* the GCS it was started for */
    char node_ip[64];
};

struct raylet_started {
    struct raylet_end end;
    struct raylet_facts facts;
    bool adopted;    /* it was alive already */
    usec_t ray_took; /* `ray start` itself, measured there; 0 = adopted or not known */
};
typedef void (*raylet_start_f)(const struct raylet_started *r, void *arg);

struct raylet_stopped {
    struct raylet_end end;
    size_t ended;  /* processes */
    size_t killed; /* of these, ended by SIGKILL */
};
typedef void (*raylet_stop_f)(const struct raylet_stopped *r, void *arg);

/* The expectations that raylet_look() checks; 0 and NULL = not checked. Copied. */
struct raylet_want {
    const char *owner, *node;
    const char *const *live_jobs; /* ids; the others' processes are strays */
    size_t n_live_jobs;
    const char *shared_root, *root_mark;
    uint64_t min_disk_bytes, min_shm_bytes; /* free, below Ray's temp_dir and in /dev/shm */
    const char *temp_dir;                   /* [/tmp] */
    usec_t max_skew, max_write;             /* clock; one small file on the root, synced */
    usec_t now;        /* wall clock of the caller, now; 0 = no look at the clock */
    int gpus;          /* nvidia-smi shows fewer = trouble */
    const char *cards; /* directory with <architecture>/argus-gpus: the driver is asked, too */
};

enum { RAYLET_JOBS_MAX = 64 };

struct raylet_job {
    char id[80];        /* ARGUS_JOB_ID of its environment */
    unsigned processes; /* a shepherd, drivers, workers */
    bool is_live;       /* in live_jobs */
};

struct raylet_look {
    struct raylet_end end; /* not OK: all else is unknown, and "unknown" is no verdict */
    struct raylet_facts facts;
    struct raylet_job jobs[RAYLET_JOBS_MAX]; /* that have a process on this machine */
    size_t n_jobs;
    size_t strays; /* processes of jobs that are not live, and GPU processes that belong to no job
                      of ours */
    char stray_text[400];  /* of the message "strays", "" = none */
    char trouble[400];     /* of the machine's health: a message's text; "" = healthy */
    char trouble_code[24]; /* its code: one of probe.h, or "root_slow" */
    usec_t root_write;     /* what one small synced write took, 1 at the least; 0 = not looked at */
    bool has_disk, has_shm, has_clock; /* it was measured */
    uint64_t disk_free, shm_free;      /* bytes, of Ray's directory and of /dev/shm */
    int64_t skew;                      /* its clock minus ours, microseconds */
    /* What the driver says, by a reader that runs beside the raylet and that the look starts where
     * it does not; NULL = nothing. Borrowed until the callback returns. */
    struct gpu_sample *cards;
    struct rdma_counts *rdma; /* of its InfiniBand and RoCE ports; NULL = none. Borrowed likewise */
};
typedef void (*raylet_look_f)(const struct raylet_look *r, void *arg);

/* Ray's token into a file that only its user reads there: token.sh, whose words these are
 * (instance, token, NULL). The answer is the file's path; status 3: what is below /tmp is
 * another's. */
struct ssh_call *raylet_put_token(uv_loop_t *loop,
                                  const struct ssh_target *t,
                                  const char *const words[],
                                  usec_t limit,
                                  ssh_f cb,
                                  void *arg);

/* An exporter of GPU figures beside the raylet. Copied. */
struct raylet_exporter_spec {
    const char *owner, *node;
    const char *program; /* its name; the machine's own comes first */
    const char
        *place; /* a directory that may have <architecture>/<program>, to be copied; or NULL */
    const char *address; /* on which it is to listen; NULL = on all */
    int port;
};
/* X(enumerator, word): the words are codes of messages. */
#define RAYLET_EXPORTER_TABLE(X)                                                                   \
    X(RUNS, "exporter_runs")                                                                       \
    X(FOREIGN, "exporter_foreign") /* somebody else listens on its port: left alone */             \
    X(MISSING, "exporter_missing") /* there is no such program */                                  \
    X(ENDED, "exporter_ended")     /* it was started and ended at once; text quotes it */
#define X(name, word) RAYLET_EXPORTER_##name,
enum raylet_exporter_state { RAYLET_EXPORTER_TABLE(X) RAYLET_EXPORTER_END };
#undef X
const char *raylet_exporter_to_string(enum raylet_exporter_state state);
struct raylet_exporter {
    struct raylet_end end; /* not OK: nothing is known */
    enum raylet_exporter_state state;
    char text[400]; /* of the message of its state */
};
typedef void (*raylet_exporter_f)(const struct raylet_exporter *r, void *arg);

struct raylet_call;
/* Like ssh_run(): one callback, from the loop and never from inside the call; then the handle is
 * gone. Freeing a handle cancels the callback, not the command that was begun there. */
struct raylet_call *raylet_start(uv_loop_t *loop,
                                 const struct ssh_target *t,
                                 const struct raylet_spec *spec,
                                 usec_t limit,
                                 raylet_start_f cb,
                                 void *arg);
/* Sends SIGTERM to the raylet (Ray hears of it at once), and after the grace SIGKILL to the
 * remaining processes of its session and of its mark. If none runs: RAYLET_OK with ended 0. */
struct raylet_call *raylet_stop(uv_loop_t *loop,
                                const struct ssh_target *t,
                                const char *owner,
                                const char *node,
                                usec_t grace,
                                raylet_stop_f cb,
                                void *arg);
struct raylet_call *raylet_look(uv_loop_t *loop,
                                const struct ssh_target *t,
                                const struct raylet_want *want,
                                usec_t limit,
                                raylet_look_f cb,
                                void *arg);
/* It runs afterwards, unless the state says otherwise. raylet_stop() of this node ends it. */
struct raylet_call *raylet_exporter(uv_loop_t *loop,
                                    const struct ssh_target *t,
                                    const struct raylet_exporter_spec *spec,
                                    usec_t limit,
                                    raylet_exporter_f cb,
                                    void *arg);
void raylet_call_free(struct raylet_call *c); /* NULL is fine */

/* "argus.node=<node>,argus.pool=<pool>…" in the form that Ray takes: keys and values are 1 to 63 of
 * [A-Za-z0-9._-] with a letter or digit at both ends. One pool is argus.pool=<pool>; each of
 * several is also argus.pool.<pool>=1. ERR_REFUSED names the text that cannot be a label. */
must_check int raylet_labels(const char *node,
                             const char *const *pools,
                             size_t n_pools,
                             struct buf *out,
                             struct err *err);

/* Any bytes as the answer of a start, a stop, a look: for the fuzz target and unit tests. */
void raylet_read_start(const char *text, size_t len, struct raylet_started *ret);
void raylet_read_stop(const char *text, size_t len, struct raylet_stopped *ret);
void raylet_read_exporter(const char *text,
                          size_t len,
                          const struct raylet_exporter_spec *spec,
                          struct raylet_exporter *ret);
/* ret->cards is yours to free(). */
void raylet_read_look(const char *text,
                      size_t len,
                      const struct raylet_want *want,
                      usec_t began,
                      struct raylet_look *ret);
