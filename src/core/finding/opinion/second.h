/* SPDX-License-Identifier: Apache-2.0 */
/* second.h - a second opinion: what a model is asked about a failure, and what it said.
 *
 * The form is that of OpenAI's chat completions, which many programs speak. The evidence are lines
 * that a job printed, so they may hold words for the model: they come as data, and whatever it
 * answers is text that nobody acts on. Pure. */
#pragma once
#include "base/buf.h"
#include "core/finding/opinion/opinion.h"

enum {
    SECOND_EVIDENCE_MAX = 24 << 10, /* bytes of the finding that the model is shown */
    SECOND_REPLY_MAX = 256 << 10,
};

/* Is a finding of this class and so sure worth a question? below: what is less sure is. */
bool second_is_unsure(const char *class, double confidence, double below);

/* What of a finding (core/finding/finding_page.h, as JSON) the model is shown: its class and the
 * lines that it quotes, cut to SECOND_EVIDENCE_MAX. False: it is no finding. */
bool second_evidence(const char *finding, struct buf *out);

/* The body of the request. evidence: masked. */
void second_question(const char *model,
                     const char *evidence,
                     int64_t answer_tokens,
                     struct buf *out);

struct second_answer {
    struct opinion said; /* cause, advice, class, confidence; field_release() it */
    int64_t tokens;      /* that it counted; 0: it did not say */
};
/* Any bytes. An answer that is no object of ours is a cause as a whole; texts are cut to what an
 * opinion may have, and what is no text for people is taken out. ERR_UNAVAILABLE: there is no
 * answer in it. */
must_check int second_answer_read(const char *text,
                                  size_t len,
                                  struct second_answer *ret,
                                  struct err *err);
