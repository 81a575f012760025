/* SPDX-License-Identifier: Apache-2.0 */
/* opinion.h - what somebody else says of why a job failed: the ops agent, a person, or a model that
 * argusd asked. It stands beside our finding, as text; nothing in Argus acts on it.
 *
 * Whoever gives one is not trusted: each member has a ceiling, a link is http or https, a patch is
 * an object that a retry may name (core/spec/respec.h). Kept as the data of an event. */
#pragma once
#include "base/err.h"
#include "base/field.h"

enum {
    OPINION_BODY_MAX = 32 << 10, /* of the request that gives one */
    OPINIONS_OF_JOB_MAX = 100,
};
#define OPINION_EVENT "opinion"
#define OPINION_GIVEN "given"          /* source: by a request */
#define OPINION_ASKED "second_opinion" /* source: argusd asked a model */

struct opinion {
    int64_t id; /* of its event */
    usec_t at;
    char *source, *author, *model;
    int64_t attempt; /* that it is about */
    char *class;     /* of finding_class.h; NULL */
    double confidence;
    char *cause, *advice, *link;
    char *patch; /* JSON object, NULL */
};
/* Rows FIELD_ASKED may stand in a request, FIELD_STORED in the event's data; a page has all. */
extern const struct field_table opinion_table;

/* What a request says, into zeroed memory. ERR_BAD_REQUEST with the member's name. */
must_check int opinion_read(json_t *body, struct opinion *ret, struct err *err);
/* Back from the event; false: its data is none of ours. */
bool opinion_from_event(const char *data, int64_t seq, usec_t at, struct opinion *ret);
