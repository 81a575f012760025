/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - answers with the wheel of the Python client and the page that names it; see client.h.
 *
 * pip asks for "/client/" or "/client/argus-client/", which no pattern but a star takes, so the
 * routes stand in no description; docs/client.md says how they are used. */
#include "argusd/web/client.h"

#include "argusd/kit/api.h"
#include "base/message.h"

static void client_answer(struct http_req *req, void *app)
{
    const struct api *a = app;
    const struct web_file *f = web_find(a->client, http_req_path(req));
    struct err err = {0};
    if (!f) {
        (void)message_refuse(&err, ERR_NOT_FOUND, "no_page", MESSAGE_NO_ARGS); /* only fills err */
        http_problem(req, ERR_NOT_FOUND, &err, NULL, NULL, 0);
        return;
    }
    http_reply_header(req, "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
    http_reply_header(req, "Cache-Control", "no-cache");
    if (!http_reply_not_modified(req, f->etag, 0))
        http_reply_borrowed(req, 200, f->type, (const char *)f->data, *f->size);
}

#define CLIENT_ROUTE(at)                                                                           \
    {                                                                                              \
        .method = "GET", .pattern = (at), .least = HTTP_ROLE_NONE, .handle = client_answer,        \
        .flags = HTTP_ROUTE_ANY_QUERY | HTTP_ROUTE_HIDDEN | HTTP_ROUTE_CACHEABLE,                  \
        .summary = "the Python client: a page for pip, and its wheel"                              \
    }
static const struct http_route rows[] = {CLIENT_ROUTE("/client"), CLIENT_ROUTE("/client/*")};
const struct api_part part_client = {rows, array_len(rows), NULL, 0};
