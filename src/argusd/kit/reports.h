/* SPDX-License-Identifier: Apache-2.0 */
/* reports.h - what every route of a report asks and answers: ?format=md|html, ?language=en|zh. */
#pragma once
#include "argusd/kit/api.h"

struct report_ask {
    bool is_html;
    enum message_language in;
};

extern const struct http_param report_params[];
/* The field that is wrong, with err; NULL: none is. */
must_check const char *report_ask(struct http_req *req, struct report_ask *ret, struct err *err);
/* out is taken. */
void report_reply(struct http_req *req,
                  const struct report_ask *asked,
                  struct buf *out,
                  uint64_t barrier);
