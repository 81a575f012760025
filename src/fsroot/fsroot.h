/* SPDX-License-Identifier: Apache-2.0 */
/* fsroot.h - the shared root: its directories, and the files of a job on it.
 *
 * Plain blocking calls without state: argusd runs them in its worker pool, never
 * on the loop. `root` is the configured shared_root. What was written by a job
 * or its shepherd is outside bytes and is read with a ceiling. Every failure is
 * one sentence with the path and, where there is one, the fix. Strings returned
 * as char * are the caller's to free; everything passed in is borrowed for the call.
 *
 * A job id or user name that is no plain file name is -EINVAL everywhere. */
#pragma once
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/strv.h"

/* ---- the root itself ---- */

struct fsroot_status {
    uint64_t free_bytes, total_bytes;
    bool prepared; /* fsroot_prepare() was here: false later on means "not mounted" */
};

/* There, a directory, and a probe file can be written, synced and removed. */
must_check int fsroot_check(const char *root, struct fsroot_status *ret, struct err *err);

/* Checks a prepared root: -ENOENT with a sentence when the marker is gone with the mount, another
 * code when that cannot be looked at ("root_unseen"). */
must_check int fsroot_check_mounted(const char *root, struct err *err);

/* common/{datasets,models,code} users/ hf/ jobs/ argus/{bin,hook,backup,archive}. A link that has
 * one of these names stays, and nothing is made behind it. */
must_check int fsroot_prepare(const char *root, struct err *err);
/* users/<user>/{datasets,models,code}, with links as above. */
must_check int fsroot_user_prepare(const char *root, const char *user, struct err *err);

/* Place argus/bin/<arch>/argus-shepherd (arch: `uname -m` of the ELF header, so
 * one root serves several) and argus/hook/sitecustomize.py, each atomically and
 * only when its bytes differ. An empty plain file argus/hook/__pycache__ keeps
 * Python from writing there. Returns how many were replaced (0 to 2). ERR_USAGE: what lies in
 * hook_dir is one of the sources of the hook only. */
must_check int fsroot_install(const char *root,
                              const char *shepherd_binary,
                              const char *hook_dir,
                              struct err *err);
/* A file that travels inside argusd. */
struct fsroot_file {
    const char *name;
    const void *data;
    size_t size;
};
/* Place argus/lib/<name>, in the same way: what our own jobs on workers run. Returns how many
 * were replaced. */
must_check int fsroot_install_lib(const char *root,
                                  const struct fsroot_file *files,
                                  size_t n,
                                  struct err *err);
char *fsroot_lib_dir(const char *root); /* <root>/argus/lib */
/* Remove what stands at this path below the root, whole trees too, but follow no link on the way
 * there, nor below. Nothing there is fine. */
must_check int fsroot_sweep(const char *root, const char *path, struct err *err);
/* <root>/argus/hook, the first entry of a job's PYTHONPATH. */
char *fsroot_hook_dir(const char *root);
/* Append Ray's entrypoint of an attempt, quoted for its shell; the worker's own
 * `uname -m` chooses the binary. */
void fsroot_entrypoint(struct buf *out, const char *root, const char *job, int attempt);

/* ---- paths ---- */

bool fsroot_is_name(const char *name);                   /* a plain file name that we accept */
char *fsroot_job_dir(const char *root, const char *job); /* <root>/jobs/<job> */
/* <root>/jobs/<job>/attempts/<k>, and "/<sub>" when sub is not NULL. */
char *fsroot_attempt_dir(const char *root, const char *job, int attempt, const char *sub);

/* The version of verl in a snapshot (<path>/verl/version/version), or of the one installed beside
 * an interpreter (<venv>/bin/python), in *ret, to be freed; NULL: there is none on the shared root.
 * A failure says nothing about that. */
must_check int fsroot_verl_version(const char *root, const char *path, char **ret, struct err *err);

struct rootdir;
/* The path of site-packages/<name> in the venv of this interpreter, below top, in *ret, to be
 * freed; NULL: there is none. A negative errno: that could not be found out. */
must_check int fsroot_beside_interpreter(const struct rootdir *top,
                                         const char *below,
                                         const char *name,
                                         char **ret);

/* ---- a job's directory ---- */

/* Makes jobs/<job> for a job that has none yet. ERR_CONFLICT: something is there already, and it is
 * not just an empty directory of ours. */
must_check int fsroot_job_make(const char *root, const char *job, struct err *err);
/* UNREADABLE is not ABSENT: a file that cannot be looked at, and a witness that cannot be heard,
 * have said nothing. */
enum fsroot_seen { FSROOT_ABSENT, FSROOT_UNREADABLE, FSROOT_PRESENT };

/* For each of these names, whether anything, a broken link as well, has it below jobs. ret: one for
 * each. */
void fsroot_jobs_are_there(const char *root, const struct strv *jobs, enum fsroot_seen *ret);

/* The content of an attempt's directory. Values under secret names (see str_is_secret_name) are
 * masked in every file that people read, and so is each occurrence of such a value in any of the
 * texts; the real values are only in a 0600 file that the shepherd deletes once it has read it. */
struct launch_logs;

struct fsroot_attempt {
    const char *root;
    const char *job;
    int attempt; /* from 1 */
    const struct strv *argv;
    const char *cwd;               /* NULL: where Ray starts it */
    const struct pairs *env;       /* set over Ray's, exact bytes; may be NULL */
    const struct pairs *secrets;   /* further environment, all of it secret; may be NULL */
    const char *ray_id;            /* names the file of Ray's workers; NULL: there are none */
    const char *pythonpath_prefix; /* NULL: none */
    usec_t stop_grace;
    usec_t beat;                    /* 0: 5 s */
    const struct launch_logs *logs; /* NULL: as launch_logs_default() */
    const char *ray_config;         /* texts of config/ray_config.yaml, */
    const char *jobspec;            /* config/jobspec.yaml, */
    const char *submit_cmd;         /* config/submit_cmd.txt and */
    const char *submit_payload;     /* attempts/<k>/submit_payload.json; NULL: not written */
};

/* Makes jobs/<job>/ whole: config/ logs/ debug/ metrics/ checkpoints/ attempts/<k>/,
 * its files, and the links to the newest attempt. Doing it again for the same
 * attempt gives the same files. -EEXIST: this attempt has started already. */
must_check int fsroot_attempt_write(const struct fsroot_attempt *a, struct err *err);

/* ---- secrets of attempts, for Ray's workers ---- */

/* <root>/argus/secrets/<ray id>, 0600 in a directory 0700: a JSON object, name to value. */
char *fsroot_secrets_path(const char *root, const char *ray_id);
must_check int fsroot_secrets_write(const char *root,
                                    const char *ray_id,
                                    const struct pairs *env,
                                    struct err *err);
/* fsroot_secrets_write() with further texts that must never be shown (launch.h); hidden may be
 * NULL. */
must_check int fsroot_secrets_write_hidden(const char *root,
                                           const char *ray_id,
                                           const struct pairs *env,
                                           const struct strv *hidden,
                                           struct err *err);
/* A missing file is no failure. Removes the shepherd's own file (attempts/<k>/.secrets.json) as
 * well. */
must_check int fsroot_secrets_remove(const char *root, const char *ray_id, struct err *err);
/* Adds the Ray id of each file there is; that there is no directory is fine. */
must_check int fsroot_secrets_list(const char *root, struct strv *ret, struct err *err);

/* meta.json, atomically. text is JSON. */
must_check int fsroot_meta_write(const char *root,
                                 const char *job,
                                 const char *text,
                                 struct err *err);
/* attempts/<k>/debug/<name>; debug/<name> of the job links to it. */
must_check int fsroot_debug_write(const char *root,
                                  const char *job,
                                  int attempt,
                                  const char *name,
                                  const char *text,
                                  struct err *err);
/* Append to logs/submit.out: what submitting said. */
must_check int fsroot_submit_out_add(const char *root,
                                     const char *job,
                                     const char *text,
                                     struct err *err);
/* Ask the shepherd to stop the attempt, Ray or no Ray; the first reason stays. */
must_check int fsroot_stop_write(const char *root,
                                 const char *job,
                                 int attempt,
                                 const char *reason,
                                 struct err *err);

/* ---- checkpoints, as verl leaves them ---- */

struct ckpt_list;
/* The step of a checkpoint of the job that training can go on from, in *ret: the newest (step 0),
 * or this one. All its shards are there and were read (fsroot/ckpt.h), and it is none that is known
 * to be broken (known: NULL, none is). ERR_NOT_FOUND. */
must_check int fsroot_checkpoint_find(const char *root,
                                      const char *job,
                                      const struct ckpt_list *known,
                                      int64_t step,
                                      int64_t *ret,
                                      struct err *err);

/* ---- what the shepherd says ---- */

struct fsroot_beat {
    enum fsroot_seen seen;
    char why[256]; /* UNREADABLE: the sentence */
    int64_t pid;   /* of the command; 0: not started yet */
    int64_t shepherd_pid;
    uint64_t start_ticks; /* of the command's process, from /proc/<pid>/stat */
    char node[256];
    char ip[64]; /* "" if not known */
    uint64_t log_bytes, dropped_bytes;
    uint64_t seq;
    usec_t at;      /* the worker's clock */
    char state[16]; /* starting running stopping */
};

struct fsroot_exit {
    enum fsroot_seen seen;
    char why[256];
    char cause[24];        /* exit signal stopped mismatch start_failed stopped_before_start */
    char class[24];        /* of the failure, where the shepherd knows it: "import_error" or "" */
    bool has_code;         /* code is set */
    int code;              /* exit code of the command */
    char signal[24];       /* "SIGKILL", "" if none */
    usec_t started, ended; /* 0: not known */
    uint64_t max_rss_bytes;
    double user_s, sys_s;
    uint64_t log_bytes, dropped_bytes;
    int64_t oom_kills;  /* of its processes, by cgroup and kernel's log; -1: not readable there */
    bool oom_unsure;    /* they may have been another job's, which shares the cgroup */
    char oom_line[320]; /* of the kernel's log; "" */
    char node[256];
    int64_t pid;
    char stop_reason[256]; /* "" if no stop was requested */
    char sentence[512];
};

void fsroot_beat_read(const char *root, const char *job, int attempt, struct fsroot_beat *ret);
void fsroot_exit_read(const char *root, const char *job, int attempt, struct fsroot_exit *ret);

/* A directory of the attempt (sub; NULL: its own), by no link below the job's: closedir() it. 0 or
 * a negative errno: -ENOENT it is not there, -ELOOP there is a link or a file in its place. */
must_check int fsroot_attempt_opendir(const char *root,
                                      const char *job,
                                      int attempt,
                                      const char *sub,
                                      DIR **ret);
/* The nodes that have a directory in this place of the attempt (ATTEMPT_SCENE, ATTEMPT_WORKERS),
 * sorted, FSROOT_NODES_MAX at most. ret is empty. -ENOENT: there is no such place. */
enum { FSROOT_NODES_MAX = 4096 };
must_check int fsroot_nodes_of(const char *root,
                               const char *job,
                               int attempt,
                               const char *place,
                               struct strv *ret,
                               struct err *err);
/* Up to max names "logs/workers/<node>/<file>" of what its workers printed, by node and name, each
 * for logread_at(). -ENOENT: there is none. */
must_check int fsroot_worker_logs(const char *root,
                                  const char *job,
                                  int attempt,
                                  size_t max,
                                  struct strv *ret,
                                  struct err *err);
/* A file of the scene that belongs to no node: SCENE_RAY_NODES, SCENE_RAY_ACTORS. text is JSON. */
must_check int fsroot_scene_write(const char *root,
                                  const char *job,
                                  int attempt,
                                  const char *name,
                                  const char *text,
                                  struct err *err);
/* attempts/<k>/finding.json; attempt 0: trial/finding.json, where the trial's directory is. text is
 * JSON. */
must_check int fsroot_finding_write(const char *root,
                                    const char *job,
                                    int attempt,
                                    const char *text,
                                    struct err *err);

/* ---- where its processes stand ---- */

/* stacks/<n>.ask is a question to every node of the attempt, <node>.json in stacks/<n>/ is that
 * node's answer; scouts/ has a file of each node that can answer. */
enum {
    FSROOT_STACKS_MOST = 10000, /* asks of one attempt */
    FSROOT_STACKS_NODES = 1024,
    FSROOT_STACKS_BYTES = 16 << 20, /* of one answer */
};
/* *ret_n: the number of this ask, the next one from 1. -EMSGSIZE: there were too many. */
must_check int fsroot_stacks_ask(const char *root,
                                 const char *job,
                                 int attempt,
                                 const char *text,
                                 int *ret_n,
                                 struct err *err);
/* Adds the nodes that have answered ("w1"). */
must_check int fsroot_stacks_answers(const char *root,
                                     const char *job,
                                     int attempt,
                                     int n,
                                     struct strv *ret,
                                     struct err *err);
/* Adds each node that can answer, with what changes every few seconds for as long as it can. */
must_check int fsroot_scouts_list(const char *root,
                                  const char *job,
                                  int attempt,
                                  struct pairs *ret,
                                  struct err *err);
/* The answer of a node. -EMSGSIZE past the ceiling of out. */
must_check int fsroot_stacks_read(const char *root,
                                  const char *job,
                                  int attempt,
                                  int n,
                                  const char *node,
                                  struct buf *out,
                                  struct err *err);
