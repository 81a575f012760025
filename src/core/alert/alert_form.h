/* SPDX-License-Identifier: Apache-2.0 */
/* alert_form.h - messages in the form of each kind of receiver, signed as that one documents it,
 * and what its answer means. Pure: secrets and the time are arguments. */
#pragma once
#include "core/alert/alert_text.h"

/* What is to be sent. Wipe: url and headers may hold keys. */
struct alert_letter {
    char *url;
    struct strv headers; /* "Name: value" */
    struct buf body;
};
void alert_letter_release(struct alert_letter *l);

struct alert_order {
    const struct alert_receiver *to;
    const char *url, *secret; /* secret NULL: none */
    const char *id;           /* the same at each try */
    const json_t *const *payloads;
    size_t n;         /* of a webhook 1: programs get each for itself */
    const char *body; /* of a webhook: the whole body, in place of payloads; NULL */
    usec_t now;
};
/* ERR_TOO_LARGE, ERR_USAGE: the secret is none. */
must_check int alert_form(const struct alert_order *o, struct alert_letter *ret, struct err *err);

enum alert_verdict { ALERT_TAKEN, ALERT_AGAIN, ALERT_REFUSED };
/* status: of HTTP or SMTP. retry_after: seconds, 0 = not said. Chat services say 200 for failures,
 * so of them the body decides. *err has the sentence, without anything secret. */
enum alert_verdict alert_judge(enum alert_kind kind,
                               int status,
                               const char *body,
                               size_t len,
                               struct err *err);
