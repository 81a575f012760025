/* SPDX-License-Identifier: Apache-2.0 */
/* routes_people.c - rows and schemas of users, tokens, projects and quotas; see routes.h. */
#include "argusd/api/routes.h"

#include "argusd/api/handlers.h"

static const struct http_param verify_params[] = {
    {"expect", HTTP_PARAM_STRING, "a hash that was noted before: one of the events must have it"},
    {0}};

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/whoami",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_whoami,
     .summary = "who this token is",
     .reply_schema = "Whoami"},
    {.method = "GET",
     .pattern = "/v1/events:verify",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_events_verify,
     .summary = "check the chain of all events",
     .params = verify_params,
     .reply_schema = "Verified"},
};

#define ROLE "{\"enum\":[\"viewer\",\"user\",\"admin\"]}"

static const struct http_schema schemas[] = {
    {.name = "Verified",
     .json =
         "{\"type\":\"object\",\"required\":[\"ok\",\"count\",\"head\",\"broken_seq\",\"reason\"],"
         "\"properties\":{\"ok\":" BOOLEAN ",\"count\":" INTEGER ",\"unchained\":" INTEGER
         ",\"head\":{\"type\":\"object\",\"required\":[\"seq\",\"hash\"],\"properties\":{"
         "\"seq\":" INTEGER ",\"hash\":" TEXT_OR_NULL
         "}},\"expected_seq\":{\"type\":[\"integer\",\"null\"]},"
         "\"broken_seq\":{\"type\":[\"integer\",\"null\"]},\"reason\":" REASON "}}"},
    {.name = "Whoami",
     .json = OBJECT("\"user\",\"role\",\"sees_all\",\"projects\",\"token\"",
                    KEY("user", TEXT) "," KEY("role", ROLE) "," KEY("sees_all", BOOLEAN) "," KEY(
                        "projects",
                        TEXTS) "," KEY("token",
                                       OBJECT("\"id\",\"name\",\"expires_at\"",
                                              KEY("id", TEXT) "," KEY("name", TEXT_OR_NULL) "," KEY(
                                                  "expires_at",
                                                  TEXT_OR_NULL))))},
};

const struct api_part part_routes_people = {rows, array_len(rows), schemas, array_len(schemas)};
