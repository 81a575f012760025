/* SPDX-License-Identifier: Apache-2.0 */
/* reports.c - the form and language that a report is asked for in, and its reply; see reports.h. */
#include "argusd/kit/reports.h"

#include "base/message.h"
#include "base/str.h"

const struct http_param report_params[] = {
    {"format", HTTP_PARAM_STRING, "md (if not given) or html"},
    {"language", HTTP_PARAM_STRING, "en or zh; that of Accept-Language if not given"},
    {0}};

const char *report_ask(struct http_req *req, struct report_ask *ret, struct err *err)
{
    const char *form = str_or(http_req_query(req, "format"), "md");
    const char *language = http_req_query(req, "language");
    *ret = (struct report_ask){.is_html = str_eq(form, "html"),
                               .in = http_req_principal(req)->language};
    if (!ret->is_html && !str_eq(form, "md")) {
        (void)message_refuse(err, ERR_BAD_REQUEST, "report_form",
                             MESSAGE_ARGS(MESSAGE_STR("form", form)));
        return "format";
    }
    if (!language)
        return NULL;
    if (!str_eq(language, "en") && !str_eq(language, "zh")) {
        (void)message_refuse(err, ERR_BAD_REQUEST, "report_language",
                             MESSAGE_ARGS(MESSAGE_STR("language", language)));
        return "language";
    }
    ret->in = str_eq(language, "zh") ? MESSAGE_CHINESE : MESSAGE_ENGLISH;
    return NULL;
}

void report_reply(struct http_req *req,
                  const struct report_ask *asked,
                  struct buf *out,
                  uint64_t barrier)
{
    http_reply(req, 200,
               asked->is_html ? "text/html; charset=utf-8" : "text/markdown; charset=utf-8", out,
               barrier);
    buf_release(out);
}
