/* SPDX-License-Identifier: Apache-2.0 */
/* finding.h - why an attempt ended: the diagnosis of one interruption.
 *
 * A finder reads the logs of one attempt in one pass and bounded memory, whatever their
 * size, then judges what it saw together with the facts that stand in no log:
 *
 *     struct finder *f = finder_new(rules);
 *     finder_source(f, "driver.log");
 *     while (more) finder_feed(f, bytes, n);
 *     finder_end(f, &facts, &finding);
 *
 * How the bytes are cut into feeds changes nothing. First error wins; wrappers (what only
 * passes an error on), clean-up and consequences never do. `unknown` is an answer: something
 * failed and nothing says why. `none` too: nothing failed, whatever the words.
 * The rules are data (finding_rules.h). Pure: no I/O, no clock. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "base/mem.h"
#include "core/spec/finding_class.h"

struct finder;
struct pairs;
struct finding_rules;
struct spec;

/* What is known outside the log. Zeroed: nothing is; texts are borrowed and may be NULL. */
struct finding_facts {
    bool exit_known; /* then code, and signal: 0 if none */
    int exit_code;
    int signal;

    bool ended_well;            /* the job SUCCEEDED: the finding is `none` */
    bool stopped;               /* a user, a limit of the platform or an operator ended it */
    bool preempted;             /* a quota or a drain took its slots back */
    bool timed_out;             /* its own `timeout` was over */
    bool hung;                  /* no step, no beat or no output for too long */
    bool not_started;           /* Ray or the shepherd could not start it */
    bool shepherd_killed;       /* it ended without exit.json, and its node lives: `platform` */
    bool head_lost;             /* the head of Ray went away: `node_lost` */
    bool import_mismatch;       /* the proof differs from the snapshot: `import_error` */
    bool disk_full;             /* of what it writes to */
    bool shm_full;              /* /dev/shm */
    bool metrics_nan;           /* NaN or infinite in the metrics, until the end */
    int64_t oom_kills;          /* by the kernel, of its processes, on its nodes */
    bool oom_unsure;            /* they may have been another job's */
    int xid;                    /* the first Xid of the driver during the attempt; 0: none */
    int64_t step, steps;        /* the last step seen, all there are; 0: not known */
    const char *oom_line;       /* the kernel's, of the first of them */
    const char *xid_line;       /* the driver's, of that Xid */
    const char *nan_text;       /* which metric, since which step */
    const char *lost_node;      /* a node of the gang that is gone */
    const char *odd_node;       /* where the fact was seen, if on one node */
    const char *odd_rank;       /* the rank that hangs or died, if known */
    const char *stopped_reason; /* in words, for the quote */
    const char *start_says;     /* not_started: why, a message that was kept (finding_start.h) */
    const struct pairs *nodes;  /* by address, those of the job; NULL: not all are known */
};

enum {
    FINDING_QUOTE_MAX = 2000,   /* bytes of one quoted line */
    FINDING_EVIDENCE_MAX = 8,   /* quotes of one finding, the primary line first */
    FINDING_AFTER_MAX = 8,      /* consequences */
    FINDING_CHANGES_MAX = 8,    /* of a patch */
    FINDING_LINE_MAX = 32768,   /* a longer line is read in pieces of so many bytes */
    FINDING_SOURCES_MAX = 4096, /* files of one attempt */
};

/* One quoted line. source is NULL for a fact (then text says it, offset and line are 0). */
struct finding_quote {
    char *source;    /* as given to finder_source() */
    uint64_t offset; /* of the line's first byte in the source */
    uint64_t line;   /* from 1 */
    char *text;      /* without ANSI codes and surrounding blanks; valid UTF-8 */
};

enum finding_change_op {
    FINDING_SET,   /* to this text */
    FINDING_SCALE, /* times this number; a whole number stays one, at least 1, that divides the old
                    */
    FINDING_ADD,   /* plus this number (it may be negative) */
};

/* One change of the JobSpec. key is a row of its table ("memory_per_node"), "env.NAME", or
 * "overrides.<Hydra key>". */
struct finding_change {
    char *key;
    enum finding_change_op op;
    char *value;     /* text or number */
    char *from;      /* the value to start from where the spec has none; NULL: then no change */
    double min, max; /* of the result of SCALE and ADD; both 0: none */
};

/* What it is else, where that is close. quote.text is NULL where no line of its own says so. */
struct finding_second {
    enum finding_class class;
    char *rule;                 /* NULL: the rule of the first says that it may be this */
    char *advice, *advice_code; /* as those of the finding; NULL for none */
    double confidence;          /* at most that of the first, and both together at most 1 */
    struct finding_quote quote;
};

struct finding {
    enum finding_class class;
    char *rule;        /* id of the rule; "fact-..." when a fact decides; NULL: none and unknown */
    char *advice;      /* what a person can do, in English; NULL for none */
    char *advice_code; /* of the catalogue (base/message.h), which says it in each language */
    double confidence; /* 0 to 1 */
    bool is_vague;     /* a guess from a word or two: to be told, not to act by; not in its JSON */
    /* What the prefixes of the primary line tell of its writer; else NULL. */
    char *rank, *node, *actor, *pid, *time;
    bool fatal; /* nothing went on after the primary line */

    bool has_second;
    struct finding_second second;

    struct finding_quote evidence[FINDING_EVIDENCE_MAX];
    size_t n_evidence;
    struct finding_quote after[FINDING_AFTER_MAX]; /* mere consequences, the first of each kind */
    size_t n_after;
    struct finding_change patch[FINDING_CHANGES_MAX];
    size_t n_patch;

    uint64_t bytes, lines; /* that were read */
};

void finding_release(struct finding *f);
/* Advises what the catalogue has under this code. */
void finding_advise(struct finding *f, const char *code);
/* {"class","rule","confidence","second","rank",…,"evidence":[…],"after":[…],"advice",…} under
 * key, null where nothing is known. */
void finding_to_json(const struct finding *f, struct jout *j, const char *key);
/* What finding_to_json() wrote, for one that was stored. *ret is releasable in both cases. */
must_check int finding_from_json(const json_t *object, struct finding *ret, struct err *err);
/* One line: "gpu_oom on node-7, rank 3: torch.OutOfMemoryError: CUDA out of …". Returns out. */
const char *finding_line(const struct finding *f, char *out, size_t size);

/* The patch with values, for this spec: an object under key whose members replace those of the
 * JobSpec; "overrides" is the whole list with the changes in place, of "env" only what is new, to
 * be merged. Changes that do not fit the workload, have nothing to start from or would change
 * nothing are left out. How many changes are in it; 0: it is {}. */
int finding_patch_to_json(const struct finding *f,
                          const struct spec *s,
                          struct jout *j,
                          const char *key);
/* One line for people per change: "actor_rollout_ref…micro_batch_size_per_gpu: times 0.5". */
void finding_change_to_text(const struct finding_change *c, struct buf *out);

/* rules is borrowed until finder_free(); many finders may share it. */
struct finder *finder_new(const struct finding_rules *rules);
void finder_free(struct finder *f); /* NULL is fine */
void finder_freep(struct finder **f);
/* What is fed from now on is another file, from its first byte; the name is copied. Past
 * FINDING_SOURCES_MAX the name of the last stays. Give the driver's log first. */
void finder_source(struct finder *f, const char *name);
/* Start in the middle: the next byte fed has this offset and stands in this line (from 1). */
void finder_seek(struct finder *f, uint64_t offset, uint64_t line);
void finder_feed(struct finder *f, const void *bytes, size_t n);
/* Judge. facts may be NULL. *ret is overwritten, and the caller's to release. The finder is
 * spent: free it. */
void finder_end(struct finder *f, const struct finding_facts *facts, struct finding *ret);
