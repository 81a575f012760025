/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt.h - checkpoints as verl leaves them: which are whole by their names, and which to keep.
 *
 *   global_step_N/data.pt, actor/{model,optim,extra_state}_world_size_W_rank_R.pt, critic/… (RL)
 *   global_step_N/{model,optim,extra_state}_world_size_W_rank_R.pt, data_<dp rank>.pt      (SFT)
 *   global_step_N/actor/{,model/,optimizer/,extra/}dist_ckpt/                            (Megatron)
 *   latest_checkpointed_iteration.txt: the tracker; verl writes N into it last
 *
 * fsroot/ckpt/ckpt.h reads them, argusd/checkpoints/checkpoints.h acts. Pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/field.h"
#include "base/json.h"
#include "base/message.h"

enum {
    CKPT_WHY_MAX = 320,
    CKPT_LIST_MAX = 1024,    /* of one job; with more the oldest are not looked at */
    CKPT_VALUES_MAX = 8,     /* validation metrics of one job that its checkpoints carry */
    CKPT_NAME_MAX = 96,      /* bytes of the name of such a metric */
    CKPT_JOB_MAX = 64,       /* bytes of the id of a job, with its end */
    CKPT_WORLD_MAX = 1 << 16 /* ranks */
};

/* The step of a directory's name, global_step_N with N from 1 as verl writes it; 0: none. */
int64_t ckpt_step_of_name(const char *name);

/* X(enumerator, word) */
#define CKPT_STATE_TABLE(X)                                                                        \
    X(CKPT_PARTIAL, "partial")   /* not all there, or not named by the tracker yet */              \
    X(CKPT_COMPLETE, "complete") /* all there by name; not read yet */                             \
    X(CKPT_VERIFIED, "verified") /* all there, and every shard can be read */                      \
    X(CKPT_BROKEN, "broken")     /* all there, and a shard cannot be read */
#define CKPT_STATE_ROW(e, word) e,
enum ckpt_state { CKPT_STATE_TABLE(CKPT_STATE_ROW) CKPT_STATE_COUNT };
#undef CKPT_STATE_ROW
const char *ckpt_state_to_string(enum ckpt_state s);
/* False: none of the words. */
bool ckpt_state_from_string(const char *word, enum ckpt_state *ret);

/* What became of the job that judges it (eval_on_save). X(enumerator, word) */
#define CKPT_EVAL_TABLE(X)                                                                         \
    X(CKPT_EVAL_NONE, "")                                                                          \
    X(CKPT_EVAL_SUBMITTED, "submitted") /* it waits or runs */                                     \
    X(CKPT_EVAL_DONE, "done")           /* what it told stands among the values */                 \
    X(CKPT_EVAL_SILENT, "silent")       /* it ended well and told no number */                     \
    X(CKPT_EVAL_FAILED, "failed")                                                                  \
    X(CKPT_EVAL_REFUSED, "refused") /* it was not accepted */
#define CKPT_EVAL_ROW(e, word) e,
enum ckpt_eval { CKPT_EVAL_TABLE(CKPT_EVAL_ROW) CKPT_EVAL_COUNT };
#undef CKPT_EVAL_ROW

/* X(enumerator, word): why it stays */
#define CKPT_KEEP_TABLE(X)                                                                         \
    X(CKPT_GOES, "")                                                                               \
    X(CKPT_KEEP_LAST, "keep_last")                                                                 \
    X(CKPT_KEEP_BEST, "keep_best")                                                                 \
    X(CKPT_KEEP_ONLY, "last_verified") /* the last verified one */                                 \
    X(CKPT_KEEP_PINNED, "pinned")      /* somebody wants it to */                                  \
    X(CKPT_KEEP_HELD, "in_use")                                                                    \
    X(CKPT_KEEP_OPEN, "unfinished") /* it may still be written, or be read again */
#define CKPT_KEEP_ROW(e, word) e,
enum ckpt_keep { CKPT_KEEP_TABLE(CKPT_KEEP_ROW) CKPT_KEEP_COUNT };
#undef CKPT_KEEP_ROW

/* Who needs one: a job that is not over, or an entry of the registry that lies there. Borrowed. */
struct ckpt_user {
    const char *kind; /* "job", "dataset" or "model" */
    const char *name;
};
extern const struct field_table ckpt_user_table; /* "CheckpointUser" */

struct ckpt {
    int64_t step;
    enum ckpt_state state;
    uint64_t bytes;
    usec_t at;   /* the newest mtime of its files; 0 = not known */
    int attempt; /* that was running when it was seen first; 0 = not known */
    bool has_value;
    double value; /* of keep_best's metric at its step */
    double values[CKPT_VALUES_MAX];
    unsigned told; /* bit i: values[i] is there, of the list's names[i] */
    int asked;     /* so often its values were looked for in vain */
    enum ckpt_eval eval;
    char eval_job[CKPT_JOB_MAX]; /* "": none was asked for */
    uint64_t mark;               /* of its files' names, sizes and times */
    unsigned kinds; /* of its shards, ckpt_listing_kinds(); 0 = not looked at in this life */
    bool held;      /* a job uses it */
    bool pinned;    /* somebody wants it to stay */
    bool by_pin;    /* its own names are not all there; a pin has its files */
    bool strange;   /* its layout is not known here, or it may not be read: no word on it */
    /* In a list that is shown, else zeroed: why it stays, and of struct ckpt_user, borrowed. */
    enum ckpt_keep kept;
    struct field_list users;
    char why[CKPT_WHY_MAX]; /* it is partial or broken, as message_keep() keeps it; "" else */
};

enum { CKPT_TRACKER_NONE = 0, CKPT_TRACKER_TORN = -1 };

struct ckpt_list {
    struct ckpt *v; /* by step, the oldest first */
    size_t n;
    int64_t tracker;              /* the step that it names, or one of CKPT_TRACKER_* */
    bool cut;                     /* there are more, which were not looked at */
    char *names[CKPT_VALUES_MAX]; /* validation metrics as they came; NULL from the first unused */
};
void ckpt_list_release(struct ckpt_list *l);
void ckpt_list_copy(struct ckpt_list *to, const struct ckpt_list *from); /* to: an empty one */
void ckpt_list_copy_names(struct ckpt_list *to, const struct ckpt_list *from); /* to: without any */
void ckpt_list_remove(struct ckpt_list *l, int64_t step);                      /* not there: fine */
/* A new one at its place, zeroed but for its step; that step is not there yet. */
struct ckpt *ckpt_list_add(struct ckpt_list *l, int64_t step);
struct ckpt *ckpt_list_find(const struct ckpt_list *l, int64_t step); /* NULL: none */
/* The newest verified one; NULL: none. */
const struct ckpt *ckpt_list_newest(const struct ckpt_list *l);
uint64_t ckpt_list_bytes(const struct ckpt_list *l);
/* The verified one with the best finite value, of equals the newest; NULL: none has one. */
const struct ckpt *ckpt_list_best(const struct ckpt_list *l, bool is_min);

/* ERR_NOT_FOUND: no verified one has a value of this metric; NULL: of any. */
must_check int ckpt_refuse_best(const char *job, const char *metric, struct err *err);

/* ---- the values of validation at its step ---- */

/* A metric that checkpoints carry: it begins with val-core/, val/ or eval/, and its name is short
 * and has no control character, so that a list of checkpoints has a ceiling. */
bool ckpt_is_validation(const char *metric);
/* The smaller value is the better one, as far as the name tells: "loss" is in it. */
bool ckpt_metric_is_min(const char *metric);
/* The place of this metric in names, where it is added if there is room; -1: there is none. */
int ckpt_list_name(struct ckpt_list *l, const char *metric);
/* The main one, as training_figure.h has it: the first val-core/ by name, else the first val/, else
 * the first eval/. NULL: nothing was told. */
const char *ckpt_list_main(const struct ckpt_list *l);
/* What the eval job of one of the list's told last, its metrics by name: those of validation, and
 * where it has none all of them, with eval/ before their names. What the training told itself
 * stays. pattern: keep_best's metric, whose value they give where it has none; may be NULL. How
 * many numbers it told; *ret_kept: how many of them stand there now, for there is room for a few.
 */
size_t ckpt_take_eval(struct ckpt_list *l,
                      struct ckpt *c,
                      const json_t *latest,
                      const char *pattern,
                      size_t *ret_kept);
/* What is known in `from` of eval jobs, and was not when `to` was begun, is known there, too. */
void ckpt_list_carry_evals(struct ckpt_list *to, const struct ckpt_list *from);
/* The value of each checkpoint becomes what validation told of this metric, one of names. */
void ckpt_list_show(struct ckpt_list *l, const char *metric);

/* Writes why of these arguments; long ones are cut. */
void ckpt_write_why(char why[static CKPT_WHY_MAX],
                    const char *code,
                    const struct message_arg *args);

/* Writes one checkpoint of this list (NULL: without its values) as a member of an object or array,
 * with why as it is said to this listener; NULL: as it is kept, to be stored. */
void ckpt_to_json(const struct ckpt *c,
                  const struct ckpt_list *l,
                  const struct message_listener *to,
                  struct jout *j,
                  const char *key);
extern const struct field_table ckpt_table; /* what that writes: for openapi.json */
/* Back, to be put into this list, which gets the names of its values: -EINVAL when it is none of
 * ours. */
must_check int ckpt_from_json(const json_t *o, struct ckpt_list *l, struct ckpt *ret);

/* Does this text (a JobSpec, a command line) name the checkpoint, as "<job>@20" or as a path into
 * it, or all of the job's checkpoints? */
bool ckpt_is_meant(const char *text, const char *job, int64_t step);
/* Sets marks[i] of each of l->v that it names so, in one pass; the others stay. True: it names one.
 */
bool ckpt_mark_meant(const char *text, const char *job, const struct ckpt_list *l, bool *marks);

/* ---- whole by name? ---- */

struct ckpt_listing;
struct ckpt_listing *ckpt_listing_new(void);
void ckpt_listing_free(struct ckpt_listing *l); /* NULL is fine */
/* A regular file, its path below global_step_N. */
void ckpt_listing_add(struct ckpt_listing *l, const char *path, uint64_t bytes);
/* Every shard of its world size is there and none is empty. why (CKPT_WHY_MAX): what is not, kept.
 */
bool ckpt_listing_is_whole(const struct ckpt_listing *l, char *why);
/* False: none of its files is one of a layout that is known here. */
bool ckpt_listing_is_known(const struct ckpt_listing *l);
/* Which kinds of shards are there, a bit for each: the actor's model, its optimizer … */
unsigned ckpt_listing_kinds(const struct ckpt_listing *l);
/* One that has fewer kinds of shards than an older verified one of its job has lost them, whole as
 * it looks by itself: it becomes partial. */
void ckpt_list_compare(struct ckpt_list *l);
/* True for a file that training resumes from, so that it must be readable. */
bool ckpt_is_shard(const char *path);

/* ---- which to keep ---- */

struct ckpt_policy {
    int64_t keep_last;
    bool best, best_is_min;
    bool is_over; /* the attempt that wrote there has ended */
};

const char *ckpt_keep_to_string(enum ckpt_keep k);

/* ret[i] for each of l->v. Without a verified one everything stays. */
void ckpt_plan(const struct ckpt_list *l, const struct ckpt_policy *p, enum ckpt_keep *ret);
/* Makes room for a save: of the checkpoints that only keep_last keeps, the oldest are planned
 * for removal, too, until the plan frees at least this many bytes; none are if even all would
 * not be enough. Returns the bytes that the plan frees. */
uint64_t ckpt_plan_room(const struct ckpt_list *l, uint64_t bytes, enum ckpt_keep *plan);
