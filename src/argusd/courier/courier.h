/* SPDX-License-Identifier: Apache-2.0 */
/* courier.h - one receiver's connection: a message is signed, sent, and its answer judged.
 *
 * One message at a time. Whether it is said again, and for how long, is the caller's: he tells the
 * courier how he takes an answer, and the courier says when the next try is due. */
#pragma once
#include <uv.h>

#include "argusd/people/secrets.h"
#include "base/clock.h"
#include "core/alert/alert_form.h"

struct courier;

struct courier_parts { /* all borrowed */
    uv_loop_t *loop;
    struct secrets *secrets;
    const char *secrets_of;          /* whose: "user/NAME" or "project/NAME"; NULL: nobody's */
    const struct alert_receiver *to; /* not of kind log */
    const struct strv *networks;     /* calls.networks: by url_secret a user chooses whom we call */
    const char *log;                 /* component of log lines: "alerts" */
    const char *said;                /* in sentences: "receiver 'ops'" */
};

must_check int courier_new(const struct courier_parts *parts,
                           struct courier **ret,
                           struct err *err);
/* What is on its way ends without an answer. NULL is fine. */
void courier_free(struct courier *c);

struct courier_message {
    const char *id; /* the same at each try */
    const json_t *const *payloads;
    size_t n;
    const char *body;    /* of a webhook: sent as it is, in place of payloads; NULL */
    struct strv *having; /* of a mail: addresses that have it already, not all of them; those that
                            take it now are added. Borrowed until the answer; NULL: none */
    void (*had)(void *arg); /* one was added, others are still asked; arg of the answer. NULL: ask
                               afterwards */
};

/* v: taken, to be sent again, or refused for good; why is "" of one that is taken. A mail goes to
 * one address after the other: it is taken when one of them took it and none is to be asked again,
 * and why then names those that refused. Called on the loop, never from within courier_send(). */
typedef void (*courier_f)(enum alert_verdict v, const char *why, void *arg);
/* Nothing is on its way, and the pause after a failure is over. */
bool courier_is_ready(const struct courier *c, usec_t mono);
/* False: it could not begin (a secret is missing); that counts as a failure, cb is not called. */
bool courier_send(struct courier *c,
                  const struct courier_message *m,
                  courier_f cb,
                  void *arg,
                  usec_t mono);

/* How the caller takes an answer: as a failure (the next try is due later each time), or as an end
 * (why_not: it was refused for good; NULL: it was taken). */
void courier_failed(struct courier *c, const char *why, usec_t mono);
void courier_settled(struct courier *c, const char *why_not);

struct courier_state {
    usec_t taken_at;     /* wall; 0: never */
    usec_t failing_for;  /* since its first failure in a row; 0: it works */
    const char *trouble; /* "" = none; borrowed */
};
void courier_state(const struct courier *c, struct courier_state *ret);
