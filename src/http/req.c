/* SPDX-License-Identifier: Apache-2.0 */
/* req.c - what a handler reads of its request, and the names of the roles. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "http/state.h"

static const char *const roles[] = {
    [HTTP_ROLE_NONE] = "none",
    [HTTP_ROLE_VIEWER] = "viewer",
    [HTTP_ROLE_USER] = "user",
    [HTTP_ROLE_ADMIN] = "admin",
};
static_assert(array_len(roles) == HTTP_ROLE_ADMIN + 1, "every role has a name");

const char *http_role_to_string(enum http_role role)
{
    return roles[role];
}

int http_role_from_string(const char *text, enum http_role *ret, struct err *err)
{
    for (size_t i = 0; i < array_len(roles); i++)
        if (str_eq(text, roles[i])) {
            *ret = (enum http_role)i;
            return 0;
        }
    return err_set(err, -EINVAL, "no role '%s': there are viewer, user and admin",
                   str_or(text, ""));
}

const char *http_req_method(const struct http_req *req)
{
    return req->method;
}

const char *http_req_path(const struct http_req *req)
{
    return req->path;
}

bool http_cookie_find(const char *header, const char *name, char *ret, size_t size)
{
    size_t name_n = strlen(name), found = 0;
    for (const char *p = header; *p; p += strspn(p, "; ")) {
        size_t n = strcspn(p, ";"), value_n = n > name_n ? n - name_n - 1 : 0;
        if (n > name_n && p[name_n] == '=' && !strncmp(p, name, name_n)) {
            if (found++ || value_n >= size)
                return false;
            memcpy(ret, p + name_n + 1, value_n);
            ret[value_n] = 0;
        }
        p += n;
    }
    return found == 1;
}

const char *http_req_param(const struct http_req *req, const char *name)
{
    for (size_t i = 0; i < req->n_params; i++)
        if (!strcmp(req->params[i].name, name))
            return req->params[i].value;
    return "";
}

const char *http_req_query_at(const struct http_req *req, const char *name, size_t i)
{
    for (size_t k = 0; k < req->n_query; k++)
        if (!strcmp(req->queries[k].name, name) && i-- == 0)
            return req->queries[k].value;
    return NULL;
}

const char *http_req_query(const struct http_req *req, const char *name)
{
    return http_req_query_at(req, name, 0);
}

int http_req_query_int(const struct http_req *req,
                       const char *name,
                       int64_t min,
                       int64_t max,
                       int64_t dflt,
                       int64_t *ret,
                       struct err *err)
{
    const char *text = http_req_query(req, name);
    if (!text) {
        *ret = dflt;
        return 0;
    }
    int r = str_to_int(text, min, max, ret, NULL);
    return r < 0
               ? message_refuse(err, r, "bad_number_query",
                                MESSAGE_ARGS(MESSAGE_STR("name", name), MESSAGE_STR("value", text),
                                             MESSAGE_NUM("min", min), MESSAGE_NUM("max", max)))
               : 0;
}

bool http_req_query_bool(const struct http_req *req, const char *name, bool dflt)
{
    const char *text = http_req_query(req, name);
    if (!text)
        return dflt;
    return !str_eq(text, "false") && !str_eq(text, "0");
}

const char *http_req_header(const struct http_req *req, const char *name)
{
    return MHD_lookup_connection_value(req->conn->mhd, MHD_HEADER_KIND, name);
}

const char *http_req_body(const struct http_req *req, size_t *ret_len)
{
    if (ret_len)
        *ret_len = req->body.len;
    return buf_str(&req->body);
}

const char *http_req_content_type(const struct http_req *req)
{
    return req->content_type;
}

bool http_req_accepts(const struct http_req *req, const char *media_type)
{
    const char *accept = http_req_header(req, MHD_HTTP_HEADER_ACCEPT);
    return !accept || !*accept || accept_allows(accept, media_type);
}

const struct http_principal *http_req_principal(const struct http_req *req)
{
    return &req->principal;
}

const void *http_req_arg(const struct http_req *req)
{
    return req->route->arg;
}

void http_req_set_data(struct http_req *req, void *data)
{
    req->data = data;
}

void *http_req_data(const struct http_req *req)
{
    return req->data;
}

void http_req_on_close(struct http_req *req, http_close_f cb, void *arg)
{
    req->on_close = cb;
    req->on_close_arg = arg;
}

const char *http_req_last_event_id(const struct http_req *req)
{
    const char *id = http_req_header(req, "Last-Event-ID");
    return id ? id : http_req_query(req, "last_event_id");
}

int http_principal_refuse(struct http_principal *p,
                          const char *message,
                          const struct message_arg *args)
{
    p->why_not = message_code(message);
    message_write(p->why_args, sizeof(p->why_args), args);
    return ERR_UNAUTHORISED;
}
