/* SPDX-License-Identifier: Apache-2.0 */
/* routes_secrets.c - rows and schemas of secrets; see routes.h. */
#include "argusd/routes.h"

#include "argusd/api.h"

enum { BODY_MAX = 8 * SECRET_VALUE_MAX };

static const struct http_param list_params[] = {
    {"user", HTTP_PARAM_STRING, "this user's"},
    {"project", HTTP_PARAM_STRING, "this project's"},
    {"all", HTTP_PARAM_BOOLEAN, "all that you may see; your own and your projects' if not given"},
    {0}};
static const struct http_param remove_params[] = {
    {"user", HTTP_PARAM_STRING, "of this user (admins)"},
    {"project", HTTP_PARAM_STRING, "of this project"},
    {0}};

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/secrets",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_secrets,
     .summary = "names of stored secrets, without their values",
     .params = list_params,
     .reply_schema = "SecretList"},
    {.method = "PUT",
     .pattern = "/v1/secrets/{name}",
     .least = HTTP_ROLE_USER,
     .max_body = BODY_MAX,
     .handle = api_secret_put,
     .summary = "store a secret of yours, of a user or of a project; its value is never given back",
     .request_schema = "SecretForm",
     .reply_schema = "Secret"},
    {.method = "DELETE",
     .pattern = "/v1/secrets/{name}",
     .least = HTTP_ROLE_USER,
     .handle = api_secret_remove,
     .summary = "remove a secret",
     .params = remove_params,
     .reply_schema = "Secret"},
};

static const struct http_schema schemas[] = {
    {"SecretForm", "{\"type\":\"object\",\"required\":[\"value\"],\"properties\":{\"value\":" TEXT
                   ",\"user\":" TEXT ",\"project\":" TEXT "}}"},
    {"Secret",
     "{\"type\":\"object\",\"required\":[\"name\",\"user\",\"project\",\"bytes\"],"
     "\"properties\":{\"name\":" TEXT ",\"user\":" TEXT_OR_NULL ",\"project\":" TEXT_OR_NULL
     ",\"bytes\":" INTEGER ",\"masked\":" BOOLEAN ",\"created_at\":" TEXT_OR_NULL
     ",\"changed_at\":" TEXT_OR_NULL ",\"changed_by\":" TEXT ",\"last_use_at\":" TEXT_OR_NULL "}}"},
    LIST_OF("SecretList", "secrets", "Secret"),
};

const struct api_part *routes_secrets(void)
{
    static const struct api_part part = {rows, array_len(rows), schemas, array_len(schemas)};
    return &part;
}
