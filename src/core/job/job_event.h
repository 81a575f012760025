/* SPDX-License-Identifier: Apache-2.0 */
/* job_event.h - what happens to a job, and the one function that changes its state by it: a pure
 * function of (job, event) that reads one table. */
#pragma once
#include "core/job/job.h"

/* How an attempt ended, as the witnesses say. */
struct job_end {
    const char *cause;          /* "exit" "signal" "stopped" "start_failed" "lost" … */
    int code;                   /* exit code, -1 if none */
    const char *signal;         /* "" if none */
    enum finding_class finding; /* FINDING_NONE = not known */
    const char *node;           /* at fault, of its own; NULL: the driver's, if any */
    bool head_lost;             /* Ray's head went away under it */
    bool is_doubtful;           /* it ended with 0, and `text` says why that may be wrong */
    usec_t fault_at;            /* wall: its command ended, or was last heard of; 0 = not known */
    usec_t noticed_at;          /* wall: argusd met that; 0 = now */
    const char *message, *text; /* how: a message (base/message.h); message NULL: a sentence */
};

#define JOB_EVENT_TABLE(X)                                                                         \
    X(ADMITTED) /* a gang was leased: gang */                                                      \
    X(ACCEPTED) /* Ray has the attempt */                                                          \
    X(STARTED)  /* a witness saw it run */                                                         \
    X(ENDED)    /* end: two witnesses agree, or the exit file says so */                           \
    X(STOP)     /* cause: somebody or something wants it stopped; finding, text */                 \
    X(REQUEUED) /* the attempt never ran and is given up; no_fault, text */                        \
    X(BLIND)    /* nobody can see it; text */                                                      \
    X(SEEN)     /* somebody can again */                                                           \
    X(HELD)     /* by: it waits until it is released */                                            \
    X(RELEASED) /* it waits for its turn again; or its slots are kept no more */                   \
    X(TRIED)    /* its trial is over and found nothing; text */                                    \
    X(REJECTED) /* its trial found something: finding, text */                                     \
    X(UNTRIED)  /* its trial was lost; text */                                                     \
    X(HUNG)     /* it gets nowhere; text */                                                        \
    X(WENT_ON)  /* it does again; text */                                                          \
    X(IDLE)     /* it hardly uses its GPUs; code, text */                                          \
    X(BUSY)     /* it uses them again */
#define X(word) JOB_EV_##word,
enum job_event_kind { JOB_EVENT_TABLE(X) JOB_EV_END };
#undef X
const char *job_event_to_string(enum job_event_kind e); /* "admitted" */

struct job_event {
    enum job_event_kind kind;
    enum stop_cause cause;      /* STOP */
    enum finding_class finding; /* STOP_FINDING: platform where none is given; REJECTED */
    const struct gang *gang;    /* ADMITTED */
    const char *by;             /* HELD: the user */
    const char *session;        /* ACCEPTED: Ray's; NULL, "" = not known */
    bool no_fault;              /* REQUEUED: nothing was tried, it does not count */
    usec_t since;               /* HUNG: wall, when it last got on; 0 = not known */
    const char *code, *text;    /* reason: a message; NULL = the kind's own */
    const char *message;       /* code of the text, where `code` (or the finding) only classes it */
    const struct job_end *end; /* ENDED */
};

/* Change the job by the event. Returns true if anything changed (then store it);
 * an event that means nothing in this state changes nothing. */
bool job_apply(struct job *j, const struct job_event *e, const struct moment *now);

/* Why it changed, after job_apply() said that it did: the event's own message, else the message
 * "job_" and the kind's word. */
void job_event_cause(const struct job *j, const struct job_event *e, struct reason *ret);
