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

static const struct http_schema schemas[] = {
    {.name = "Verified", .table = &verified_table},
    {.name = "Whoami", .table = &whoami_table},
};

const struct api_part part_routes_people = {rows, array_len(rows), schemas, array_len(schemas)};
