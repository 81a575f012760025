/* SPDX-License-Identifier: Apache-2.0 */
/* routes_code.c - rows and schemas of snapshots; see routes.h. */
#include "argusd/routes.h"

#include "argusd/api.h"

enum { BODY_MAX = 64 << 10 };

#define WHOSE                                                                                      \
    {"common", HTTP_PARAM_BOOLEAN, "the common one, though there is one of yours"},                \
    {                                                                                              \
        "user", HTTP_PARAM_STRING, "this user's own (admins)"                                      \
    }

static const struct http_param find_params[] = {WHOSE, {0}};
static const struct http_param diff_params[] = {
    {"with", HTTP_PARAM_STRING, "the other one: name@version"},
    WHOSE,
    {0}};

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/snapshots",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_snapshots,
     .summary = "snapshots: the common ones and your own",
     .reply_schema = "SnapshotList"},
    {.method = "POST",
     .pattern = "/v1/snapshots",
     .least = HTTP_ROLE_USER,
     .max_body = BODY_MAX,
     .handle = api_snapshot_add,
     .summary =
         "make one from an upload, or name content that is here by its hash (404: it is not)",
     .request_schema = "SnapshotForm",
     .reply_schema = "Snapshot",
     .reply_status = 201},
    {.method = "GET",
     .pattern = "/v1/snapshots/{name}",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_snapshot_get,
     .summary = "one snapshot, by name@version",
     .params = find_params,
     .reply_schema = "Snapshot"},
    {.method = "GET",
     .pattern = "/v1/snapshots/{name}:diff",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_snapshot_diff,
     .summary = "what another one adds, leaves out and changes",
     .params = diff_params,
     .reply_schema = "SnapshotDiff"},
    {.method = "DELETE",
     .pattern = "/v1/snapshots/{name}",
     .least = HTTP_ROLE_USER,
     .handle = api_snapshot_remove,
     .summary = "remove one that no job uses",
     .params = find_params,
     .reply_schema = "Snapshot"},
};

static const struct http_schema schemas[] = {
    {"SnapshotForm", "{\"type\":\"object\",\"required\":[\"name\"],\"additionalProperties\":false,"
                     "\"properties\":{\"name\":" TEXT ",\"upload\":" TEXT_OR_NULL
                     ",\"hash\":" TEXT_OR_NULL ",\"common\":" BOOLEAN "}}"},
    {"Snapshot",
     "{\"type\":\"object\",\"required\":[\"name\",\"common\",\"user\",\"hash\","
     "\"verl\",\"files\",\"bytes\",\"path\",\"created_at\"],\"properties\":{\"name\":" TEXT
     ",\"common\":" BOOLEAN ",\"user\":" TEXT ",\"hash\":" TEXT ",\"verl\":" TEXT_OR_NULL
     ",\"files\":" INTEGER ",\"bytes\":" INTEGER ",\"path\":" TEXT ",\"created_at\":" TEXT "}}"},
    LIST_OF("SnapshotList", "snapshots", "Snapshot"),
    {"SnapshotDiff",
     "{\"type\":\"object\",\"required\":[\"a\",\"b\",\"differences\",\"added\",\"removed\","
     "\"changed\",\"more\"],\"properties\":{\"a\":" TEXT ",\"b\":" TEXT
     ",\"differences\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"path\","
     "\"how\"],\"properties\":{\"path\":" TEXT
     ",\"how\":{\"enum\":[\"added\",\"removed\",\"changed\"]}}}},\"added\":" INTEGER
     ",\"removed\":" INTEGER ",\"changed\":" INTEGER ",\"more\":" BOOLEAN "}}"},
};

const struct api_part *routes_code(void)
{
    static const struct api_part part = {rows, array_len(rows), schemas, array_len(schemas)};
    return &part;
}
