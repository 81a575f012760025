/* SPDX-License-Identifier: Apache-2.0 */
/* events.h - one event as a page, and which events are asked for; see events.c. */
#pragma once
#include "argusd/kit/api.h"

/* One event as these eyes see it: "Event" in openapi.json. */
void api_event_put(const struct api_eyes *eyes, const struct store_event *row, struct jout *j);
/* The same as a line of CSV, and the line above all of them. */
void api_event_put_csv(const struct api_eyes *eyes, const struct store_event *row, struct buf *out);
void api_event_put_csv_head(struct buf *out);

/* What of a query narrows the events that are asked for. Owned. */
struct event_filter {
    char *job, *kinds, *actor, *object; /* NULL: any */
    usec_t from, to;                    /* 0: any */
};
/* The filters of a request; its params: EVENT_FILTER_PARAMS. ERR_BAD_REQUEST. */
must_check int event_filter_read(const struct http_req *req,
                                 struct event_filter *ret,
                                 struct err *err);
void event_filter_release(struct event_filter *f);
/* Borrows from f. */
void event_filter_ask(const struct event_filter *f, struct store_event_query *q);

#define EVENT_FILTER_PARAMS                                                                        \
    {"job", HTTP_PARAM_STRING, "only of the job with this id"},                                    \
        {"kind", HTTP_PARAM_STRING, "only of these kinds, comma-separated: stop,ended"},           \
        {"actor", HTTP_PARAM_STRING, "only by this user, or argusd"},                              \
        {"object", HTTP_PARAM_STRING, "only about this: job/ID, node/NAME; node for all nodes"},   \
        {"from", HTTP_PARAM_STRING, "only from this time on, or this long ago (2h)"},              \
    {                                                                                              \
        "to", HTTP_PARAM_STRING, "only before this time, or before this long ago"                  \
    }
