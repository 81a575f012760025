/* SPDX-License-Identifier: Apache-2.0 */
/* pages.c - answers with the files of the pages; see pages.h.
 *
 * Their policy lets in scripts and styles of this server alone, none inline; no text becomes markup
 * or a script (trusted types); nobody may frame them, and nothing is told to other servers. */
#include "argusd/web/pages.h"

#include <string.h>

#include "argusd/kit/api.h"
#include "base/message.h"

static const char *const headers[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
     "connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; "
     "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
     "trusted-types argus"},
    {"X-Frame-Options", "DENY"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Permissions-Policy", "camera=(), microphone=(), geolocation=()"},
    {"Content-Encoding", "gzip"},
    {"Vary", "Accept-Encoding"},
};

const struct web_file *web_find(const struct web_file *files, const char *path)
{
    for (const struct web_file *f = files; f->path; f++)
        if (!strcmp(f->path, path))
            return f;
    return NULL;
}

static const struct web_file *web_file_for(const struct web_file *files, const char *path)
{
    const struct web_file *f = web_find(files, path);
    /* A file that an older page asks for is gone, and is not the index. */
    if (f || !strncmp(path, "/assets/", 8))
        return f;
    return web_find(files, "/index.html");
}

static void web_refuse(struct http_req *req, int code, const char *message)
{
    struct err err = {0};
    (void)message_refuse(&err, code, message, MESSAGE_NO_ARGS); /* only fills err */
    http_problem(req, code, &err, NULL, NULL, 0);
}

static bool takes_gzip(const struct http_req *req)
{
    const char *takes = http_req_header(req, "Accept-Encoding");
    return takes && (strstr(takes, "gzip") || strchr(takes, '*'));
}

static void web_answer(struct http_req *req, void *app)
{
    const struct api *a = app;
    const struct web_file *f = web_file_for(a->web, http_req_path(req));
    if (!f) {
        web_refuse(req, ERR_NOT_FOUND, a->web->path ? "no_page" : "no_pages");
        return;
    }
    if (!takes_gzip(req)) {
        web_refuse(req, ERR_MEDIA, "page_not_gzip");
        return;
    }
    for (size_t i = 0; i < array_len(headers); i++)
        http_reply_header(req, headers[i][0], headers[i][1]);
    http_reply_header(req, "Cache-Control",
                      f->is_hashed ? "public, max-age=31536000, immutable" : "no-cache");
    if (!http_reply_not_modified(req, f->etag, 0))
        http_reply_borrowed(req, 200, f->type, (const char *)f->data, *f->size);
}

const struct http_route web_pages = {
    .method = "GET",
    .pattern = "/",
    .flags = HTTP_ROUTE_ANY_QUERY | HTTP_ROUTE_HIDDEN | HTTP_ROUTE_CACHEABLE,
    .handle = web_answer,
    .summary = "the pages for browsers",
};
