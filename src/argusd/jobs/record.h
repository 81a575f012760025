/* SPDX-License-Identifier: Apache-2.0 */
/* record.h - a job as rows of the store, and back.
 *
 * Columns hold what lists show and filter; `detail` is JSON with the rest. Members
 * that an older argusd did not write get their defaults. A class of failure that a newer one
 * wrote and this one does not know is acted on as `unknown`; its word stays in the row and is
 * shown. Words of its restart.on stay in the same way, see restart.h. */
#pragma once
#include "base/buf.h"
#include "base/strv.h"
#include "core/account/slotbook.h"
#include "core/finding/finding.h"
#include "core/job/job.h"
#include "core/metric/goodput.h"
#include "core/past/past.h"
#include "core/training/verdict.h"
#include "store/store.h"

enum {
    RECORD_DETAIL_MAX = 1 << 20,
    RECORD_ATTEMPT_MAX = 64 << 10, /* of record_attempt_row(): its lease and its end, all quoted */
};

/* The newest finding of a job, see findings.h. Zeroed: there is none. */
struct record_finding {
    char *json; /* object: as it is stored and shown; asked about below, never searched */
    char *rule; /* NULL: none */
    int attempt;
};
/* json is copied, and rule is. */
void record_finding_set(struct record_finding *f, const char *json, const char *rule, int attempt);
void record_finding_release(struct record_finding *f);
/* What finding_to_json() wrote of it; f has a json. *ret is releasable in both cases. */
must_check int record_finding_read(const struct record_finding *f,
                                   struct finding *ret,
                                   struct err *err);

/* What argusd keeps of a job beside its state. Owned texts, NULL = none. */
struct record_extra {
    char *argv;           /* JSON array: the command line of the newest attempt */
    char *verl;           /* version of verl that the command line follows */
    char *warnings;       /* JSON array of problems that the spec came with */
    char *inputs;         /* JSON array: the registered names of the spec, see registry_inputs.h */
    char *placement;      /* JSON object: where its demands were found, see placement.c */
    char *snapshots;      /* JSON array: which its spec names, see code.h; fixed at the submit */
    char *trial;          /* JSON object: what its trial saw, see core/check/trial.h */
    char *metrics;        /* JSON object: how its training goes, see core/metric/metric_watch.h */
    char *gpus;           /* JSON array: what its GPUs did, see figures/gpurow.h */
    double gpu_joules;    /* of all its attempts, the sum of these; 0 = not known */
    char *slow_rank;      /* JSON object: core/training/rank.h; of now, and not stored */
    char *slow_rank_says; /* its sentence in English */
    unsigned metrics_trouble; /* of them: enum metric_trouble_kinds */
    char *
        verdict; /* JSON object: what is wrong with it, see core/training/verdict.h; set as below */
    uint64_t verdict_seen;          /* of it: kinds that were ever seen, as bits */
    char *verdict_says;             /* of it, in English; NULL: nothing wrong is seen */
    char *verdict_samples;          /* of it: how to open samples that show it; NULL: none */
    enum verdict_kind verdict_kind; /* of it, where it says something */
    double verdict_certainty;
    struct strv project_alerts; /* those of its project when it was submitted */
    char *metric_alerts;        /* JSON array: core/training/metric_alarm.h; set as below */
    unsigned alerts_seen;       /* of them: those that ever held, as bits */
    char *alerts_say;           /* what those say that hold, in English; NULL: none does */
    char *alerts_curve;         /* of the first of those, as core/training/curve.h; NULL: none */
    char *alerts_samples;       /* of those: how to open samples that show it; NULL: none */
    char *anatomy;              /* JSON object: where its steps go, see core/training/anatomy.h */
    int64_t step;               /* of its training; 0 = none yet */
    int64_t total_steps;        /* 0 = not known */
    double reward;              /* of its newest record that has one; 0 unless has_reward */
    bool has_reward;
    usec_t idle_until;  /* wall: up to then idle GPUs are justified; 0 = they are not */
    char *idle_why;     /* by what its owner said */
    usec_t idle_learnt; /* how long its GPUs rest again and again, see core/metric/gpu_idle.h */
    usec_t paced_end;   /* wall: when its last step ends at its own pace; 0 = not known */
    char *imports;      /* JSON object: what its processes imported, see fsroot/attempt/proof.h */
    struct record_finding finding;
    char *finding_word;        /* class of job.finding if it has no row here, see above */
    int64_t hung_step;         /* where it stood when it was called hung, */
    uint64_t hung_bytes;       /* and how much it had printed */
    char *retry_of;            /* id of the job that this one is again */
    char *sealed_spec;         /* until it is stored: what the store gets in place of the spec */
    struct slotbook_held held; /* by its leases that are over */
    usec_t expected_p50, expected_p90; /* learnt spans of running when it was queued; 0 = none */
};

void record_extra_release(struct record_extra *x);
/* Takes the verdict's object, NULL is fine, and what is asked of it. */
void record_set_verdict(struct record_extra *x, char *json);
void record_set_alerts(struct record_extra *x, char *json); /* the same of metric_alerts */

/* The row of j, its texts borrowed from j and detail (may be NULL). x NULL: neither its step nor
 * what it held is wanted. */
void record_job_row(const struct job *j,
                    const struct record_extra *x,
                    const char *detail,
                    struct store_job *ret);
/* The detail text. */
void record_detail(const struct job *j, const struct record_extra *x, struct buf *out);
void record_attempt_row(const struct job *j,
                        const struct attempt *a,
                        struct buf *detail,
                        struct store_attempt *ret);

/* Back. Attempts are added by record_add_attempt() in order. -EINVAL: the row is none of ours. */
must_check int record_to_job(const struct store_job *row,
                             struct job **ret,
                             struct record_extra *x,
                             struct err *err);
void record_add_attempt(struct job *j, const struct store_attempt *row);

/* The sums of its steps, of record_extra.metrics, NULL is fine. Returns the time of the newest
 * record, 0 where there is none. */
usec_t record_steps(const char *metrics, struct goodput_sums *ret);

/* What the past is told by, of a row and its detail text when that is parsed. Borrowed from both.
 */
void record_past_row(const struct store_job *row, const json_t *detail, struct past_row *ret);

/* The class of j's failure as it is stored and shown; NULL = none. Borrowed. */
const char *record_finding_word(const struct job *j, const struct record_extra *x);

/* "UNKNOWN,HELD" (a literal) and back. */
const char *record_flags_to_string(unsigned flags);
unsigned record_flags_from_string(const char *text);
