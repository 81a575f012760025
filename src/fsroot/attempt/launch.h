/* SPDX-License-Identifier: Apache-2.0 */
/* launch.h - attempts/<k>/launch.json: what the shepherd is to run, and how.
 *
 * fsroot writes it, the shepherd reads it; nobody else has to. The file:
 *   {"version": 1, "job": "my-run-7", "attempt": 1,
 *    "argv": ["python3", "-m", …],        the command, never through a shell
 *    "cwd": "/private/…" or null,         null: the directory Ray started us in
 *    "env": {"NAME": "value", …},         set over the environment that Ray gave
 *    "pythonpath_prefix": "a:b" or null,  goes in front of the worker's PYTHONPATH
 *    "stop_grace_s": 60, "beat_s": 5,
 *    "logs": {"rate": 67108864, "segment": …, "total": …, "spool": …, "patience_s": 900},
 *                                         see struct launch_logs; what is missing has its default
 *    "secrets": ".secrets.json" or null,  in the attempt's directory
 *    "worker_secrets": "/private/argus/secrets/my-run-7" or null}
 * The secrets file (0600) is {"env": {…}, "argv": […] or null}: its env is set last,
 * and its argv, where there is one, is the real one (launch.json then shows it masked).
 * The shepherd deletes it once it has read it. The worker_secrets are what Ray's workers read
 * (SECRETS_ENV names the file to them, hook/sitecustomize.py): an object, name to value. Under the
 * name "" it has an array of what else is never to be shown, for those who mask
 * (shepherd/scout/scout.h): it is there when the command line is shown masked. The shepherd deletes
 * that file at the end of the attempt.
 *
 * A string that is not valid UTF-8 stands as {"hex": "ff00…"}, so that each byte
 * from 1 to 255 reaches the command as it was meant. */
#pragma once
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/strv.h"

/* Names in the attempt's directory, on which argusd and the shepherd agree. */
#define ATTEMPT_LAUNCH "launch.json"
#define ATTEMPT_SECRETS ".secrets.json"
#define ATTEMPT_LOG "logs/driver.log" /* its creation is the start: made once, never again */
#define ATTEMPT_BEAT "beat"
#define ATTEMPT_EXIT "exit.json"
#define ATTEMPT_FINDING "finding.json"
#define ATTEMPT_WORKERS "logs/workers" /* <node>/<Ray's name>: what its workers printed */
#define ATTEMPT_SCOUTS "scouts"        /* <node>.json of each scout that is at work */
#define ATTEMPT_GPUS "gpus"            /* <node>.json: what its GPUs did, core/figure/gpu_card.h */
#define ATTEMPT_LOAD "load"            /* <node>.json: what its processes take, host_load.h */
#define ATTEMPT_RANKS "ranks"          /* <rank>.json: its time, core/training/rank.h */
#define ATTEMPT_SCENE "scene"          /* <node>/…: what was gathered at a failure, */
#define ATTEMPT_SCENE_ASK "scene/ask"  /* once this asked for it */
#define SCENE_FACTS "scene.json"       /* of a node, written last */
#define SCENE_RAY_NODES "ray_nodes.json"   /* in scene/, by argusd: what Ray says of the nodes, */
#define SCENE_RAY_ACTORS "ray_actors.json" /* and what of the actors was last read back */
#define ATTEMPT_STACKS "stacks"            /* <n>.ask, and <n>/<node>.json that answers it */
#define ATTEMPT_STOP "stop"                /* asks for the end; the content is the reason */

#define SECRETS_ENV "ARGUS_SECRETS"

enum { LAUNCH_MAX_BYTES = 8 << 20 }; /* ceiling of either file */

/* Ceilings of what the command prints. */
struct launch_logs {
    uint64_t rate;    /* bytes a second that are kept, on the average; 0: all */
    uint64_t segment; /* of one file of the log; 0: none */
    uint64_t total;   /* of all its files; 0: none */
    uint64_t spool;   /* on the worker's disk, while the shared root is away */
    usec_t patience;  /* how long the root is waited for after the end */
};
struct launch_logs launch_logs_default(void);

struct launch {
    char *job;
    int attempt;
    struct strv argv;
    char *cwd;               /* NULL: inherit */
    struct pairs env;        /* without the secrets */
    char *pythonpath_prefix; /* NULL: leave PYTHONPATH alone */
    usec_t stop_grace, beat;
    struct launch_logs logs;
    char *secrets;             /* a name in the attempt's directory; NULL: there are none */
    char *worker_secrets;      /* an absolute path; NULL: there are none */
    struct strv secret_values; /* what launch_secrets_add() brought: never to be shown */
};

void launch_release(struct launch *l); /* zeroed memory is fine */

/* Append the JSON text. -EMSGSIZE past the buf's ceiling. */
must_check int launch_to_json(const struct launch *l, struct buf *out, struct err *err);
/* The text as a launch; ret is untouched on failure. The sentence names the key
 * that is missing or wrong. */
must_check int launch_from_json(const char *text, size_t len, struct launch *ret, struct err *err);

/* The secrets file. argv NULL: the one of launch.json is the real one. */
must_check int launch_secrets_to_json(const struct pairs *env,
                                      const struct strv *argv,
                                      struct buf *out,
                                      struct err *err);
/* Adds the content of the text to l: env over l->env, argv (if any) in place of l->argv, and its
 * secret values to secret_values. */
must_check int launch_secrets_add(struct launch *l, const char *text, size_t len, struct err *err);

/* Adds what stands in the real arguments where these, as they are shown, have stars; where that
 * cannot be told, the whole argument. */
void launch_hidden_add(const struct strv *shown, const struct strv *real, struct strv *ret);

/* The value of PYTHONPATH: prefix in front of own, which may be NULL or empty and
 * may start with the prefix already (Ray's env_vars say the same thing to workers). */
char *launch_pythonpath(const char *prefix, const char *own);

/* Writes a string of any bytes as a member of an object or (key NULL) an element of an array: a
 * JSON string where it is valid UTF-8, else {"hex": …}. */
struct jout;
void launch_jout_bytes(struct jout *j, const char *key, const char *value);
