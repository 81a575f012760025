/* SPDX-License-Identifier: Apache-2.0 */
/* routes_files.c - rows and schemas of uploads and files; see routes.h. */
#include "argusd/api/routes.h"

#include "argusd/api/handlers.h"

enum { BODY_MAX = 64 << 10 };

static const struct http_param list_params[] = {
    {"path", HTTP_PARAM_STRING, "common/…, users/<you>/… or jobs/<id>/…; what there is if absent"},
    {"limit", HTTP_PARAM_INTEGER, "of the entries of a directory, at most 1000 [200]"},
    {"cursor", HTTP_PARAM_STRING, "next_cursor of the page before"},
    {0}};
static const struct http_param content_params[] = {{"path", HTTP_PARAM_STRING, "of the file"}, {0}};
static const struct http_param remove_params[] = {
    {"path", HTTP_PARAM_STRING, "of a file, a link or a directory"},
    {"recursive", HTTP_PARAM_BOOLEAN, "a directory with all that is in it"},
    {0}};

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/files",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_files,
     .summary = "a file, or a directory and what is in it",
     .params = list_params,
     .reply_schema = "File"},
    {.method = "GET",
     .pattern = "/v1/files/content",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_files_content,
     .summary = "the bytes of a file, whole or by Range and If-Range",
     .params = content_params,
     .reply_type = "application/octet-stream"},
    {.method = "POST",
     .pattern = "/v1/files",
     .least = HTTP_ROLE_USER,
     .max_body = BODY_MAX,
     .handle = api_files_put,
     .summary = "an upload becomes a file, in one step; none is replaced unless you say so",
     .request_schema = "FileForm",
     .reply_schema = "FilePut",
     .reply_status = 201},
    {.method = "DELETE",
     .pattern = "/v1/files",
     .least = HTTP_ROLE_USER,
     .handle = api_files_remove,
     .summary = "remove a file or a directory",
     .params = remove_params,
     .reply_schema = "FileRemoved"},
};

static const struct http_schema schemas[] = {
    {.name = "File", .table = &file_table},
    {.name = "FileForm", .table = &file_form, .is_form = true},
    {.name = "FilePut", .table = &file_put_table},
    {.name = "FileRemoved", .table = &file_removed_table},
};

const struct api_part part_routes_files = {rows, array_len(rows), schemas, array_len(schemas)};
