/* SPDX-License-Identifier: Apache-2.0 */
/* routes_people.c - rows and schemas of users, tokens, projects and quotas; see routes.h. */
#include "argusd/routes.h"

#include "argusd/api.h"

enum { BODY_MAX = 64 << 10 };

static const struct http_param token_params[] = {
    {"user", HTTP_PARAM_STRING, "this user's"},
    {"all", HTTP_PARAM_BOOLEAN, "everybody's (admins); your own if not given"},
    {"ended", HTTP_PARAM_BOOLEAN, "also those that expired or were revoked"},
    {0}};
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
     .pattern = "/v1/users",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_users,
     .summary = "users: yourself and who shares a project with you, or all",
     .reply_schema = "UserList"},
    {.method = "POST",
     .pattern = "/v1/users",
     .least = HTTP_ROLE_ADMIN,
     .max_body = BODY_MAX,
     .handle = api_user_add,
     .summary = "make a user",
     .request_schema = "UserForm",
     .reply_schema = "User",
     .reply_status = 201},
    {.method = "GET",
     .pattern = "/v1/users/{user}",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_user_get,
     .summary = "one user",
     .reply_schema = "User"},
    {.method = "PATCH",
     .pattern = "/v1/users/{user}",
     .least = HTTP_ROLE_ADMIN,
     .max_body = BODY_MAX,
     .handle = api_user_change,
     .summary = "change role, note, or disable",
     .request_schema = "UserForm",
     .reply_schema = "User"},
    {.method = "DELETE",
     .pattern = "/v1/users/{user}",
     .least = HTTP_ROLE_ADMIN,
     .handle = api_user_remove,
     .summary = "remove a user, with all tokens",
     .reply_schema = "User"},
    {.method = "GET",
     .pattern = "/v1/users/{user}/quota",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_user_quota_get,
     .summary = "what a user may hold, and holds",
     .reply_schema = "Quota"},
    {.method = "PUT",
     .pattern = "/v1/users/{user}/quota",
     .least = HTTP_ROLE_ADMIN,
     .max_body = BODY_MAX,
     .handle = api_user_quota_put,
     .summary = "set what a user may hold; what is not given is no limit",
     .request_schema = "QuotaForm",
     .reply_schema = "Quota"},
    {.method = "GET",
     .pattern = "/v1/tokens",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_tokens,
     .summary = "tokens, without their text",
     .params = token_params,
     .reply_schema = "TokenList"},
    {.method = "POST",
     .pattern = "/v1/tokens",
     .least = HTTP_ROLE_USER,
     .max_body = BODY_MAX,
     .handle = api_token_add,
     .summary = "make a token; its text is shown this once",
     .request_schema = "TokenForm",
     .reply_schema = "Token",
     .reply_status = 201},
    {.method = "DELETE",
     .pattern = "/v1/tokens/{token}",
     .least = HTTP_ROLE_USER,
     .handle = api_token_revoke,
     .summary = "revoke a token",
     .reply_schema = "Token"},
    {.method = "GET",
     .pattern = "/v1/projects",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_projects,
     .summary = "projects: default and your own, or all",
     .reply_schema = "ProjectList"},
    {.method = "POST",
     .pattern = "/v1/projects",
     .least = HTTP_ROLE_ADMIN,
     .max_body = BODY_MAX,
     .handle = api_project_add,
     .summary = "make a project",
     .request_schema = "ProjectForm",
     .reply_schema = "Project",
     .reply_status = 201},
    {.method = "GET",
     .pattern = "/v1/projects/{project}",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_project_get,
     .summary = "one project",
     .reply_schema = "Project"},
    {.method = "PATCH",
     .pattern = "/v1/projects/{project}",
     .least = HTTP_ROLE_ADMIN,
     .max_body = BODY_MAX,
     .handle = api_project_change,
     .summary = "change members, pool, share, priority ceiling or note",
     .request_schema = "ProjectForm",
     .reply_schema = "Project"},
    {.method = "DELETE",
     .pattern = "/v1/projects/{project}",
     .least = HTTP_ROLE_ADMIN,
     .handle = api_project_remove,
     .summary = "remove a project that has no live jobs",
     .reply_schema = "Project"},
    {.method = "GET",
     .pattern = "/v1/projects/{project}/quota",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_project_quota_get,
     .summary = "what a project may hold, and holds",
     .reply_schema = "Quota"},
    {.method = "PUT",
     .pattern = "/v1/projects/{project}/quota",
     .least = HTTP_ROLE_ADMIN,
     .max_body = BODY_MAX,
     .handle = api_project_quota_put,
     .summary = "set what a project may hold; what is not given is no limit",
     .request_schema = "QuotaForm",
     .reply_schema = "Quota"},
    {.method = "GET",
     .pattern = "/v1/quotas",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_quotas,
     .summary = "quotas and use of all projects and users that you may see",
     .reply_schema = "QuotaList"},
    {.method = "GET",
     .pattern = "/v1/events:verify",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_events_verify,
     .summary = "check the chain of all events",
     .params = verify_params,
     .reply_schema = "Verified"},
};

#define ROLE "{\"enum\":[\"viewer\",\"user\",\"admin\"]}"
#define TEXTS "{\"type\":\"array\",\"items\":" TEXT "}"
#define LIMIT "{\"type\":[\"number\",\"null\"],\"minimum\":0}"
#define LIMITS                                                                                     \
    "{\"type\":\"object\",\"properties\":{\"gpus_guaranteed\":" LIMIT ",\"gpus_ceiling\":" LIMIT   \
    ",\"cpus\":" LIMIT ",\"running\":" LIMIT ",\"queued\":" LIMIT ",\"checkpoints\":" LIMIT        \
    ",\"storage\":" LIMIT ",\"gpu_hours_per_month\":" LIMIT "}}"
#define USAGE                                                                                      \
    "{\"type\":\"object\",\"required\":[\"gpus\",\"gpus_borrowed\",\"cpus\",\"running\","          \
    "\"queued\","                                                                                  \
    "\"gpu_hours_this_month\"],\"properties\":{\"gpus\":" NUMBER ",\"gpus_borrowed\":" NUMBER      \
    ",\"cpus\":" NUMBER ",\"running\":" INTEGER ",\"queued\":" INTEGER ",\"storage\":" NUMBER      \
    ",\"gpu_hours_this_month\":" NUMBER "}}"

static const struct http_schema schemas[] = {
    {"UserForm", "{\"type\":\"object\",\"properties\":{\"name\":" TEXT ",\"role\":" ROLE
                 ",\"disabled\":" BOOLEAN ",\"note\":" TEXT "}}"},
    {"User",
     "{\"type\":\"object\",\"required\":[\"name\",\"role\",\"disabled\",\"projects\",\"quota\","
     "\"usage\"],\"properties\":{\"name\":" TEXT ",\"role\":" ROLE ",\"disabled\":" BOOLEAN
     ",\"note\":" TEXT ",\"projects\":" TEXTS ",\"created_at\":" TEXT_OR_NULL ",\"tokens\":" INTEGER
     ",\"last_use_at\":" TEXT_OR_NULL ",\"quota\":" LIMITS ",\"usage\":" USAGE "}}"},
    LIST_OF("UserList", "users", "User"),
    {"TokenForm", "{\"type\":\"object\",\"properties\":{\"name\":" TEXT ",\"user\":" TEXT
                  ",\"role\":" ROLE ",\"expires\":" TEXT "}}"},
    {"Token",
     "{\"type\":\"object\",\"required\":[\"id\",\"name\",\"user\",\"role\",\"state\"],"
     "\"properties\":{\"id\":" TEXT ",\"name\":" TEXT ",\"user\":" TEXT ",\"role\":" ROLE
     ",\"state\":{\"enum\":[\"works\",\"expired\",\"revoked\",\"disabled\"]}"
     ",\"created_at\":" TEXT_OR_NULL ",\"expires_at\":" TEXT_OR_NULL
     ",\"last_use_at\":" TEXT_OR_NULL ",\"revoked_at\":" TEXT_OR_NULL ",\"token\":" TEXT "}}"},
    LIST_OF("TokenList", "tokens", "Token"),
    {"ProjectForm", "{\"type\":\"object\",\"properties\":{\"name\":" TEXT ",\"note\":" TEXT
                    ",\"pool\":" TEXT ",\"members\":" TEXTS ",\"add\":" TEXTS ",\"remove\":" TEXTS
                    ",\"share\":" NUMBER ",\"priority_ceiling\":" INTEGER "}}"},
    {"Project",
     "{\"type\":\"object\",\"required\":[\"name\",\"members\",\"share\",\"priority_ceiling\","
     "\"quota\",\"usage\"],\"properties\":{\"name\":" TEXT ",\"note\":" TEXT ",\"pool\":" TEXT
     ",\"members\":" TEXTS ",\"share\":" NUMBER ",\"priority_ceiling\":" INTEGER
     ",\"created_at\":" TEXT_OR_NULL ",\"quota\":" LIMITS ",\"usage\":" USAGE "}}"},
    LIST_OF("ProjectList", "projects", "Project"),
    {"QuotaForm", LIMITS},
    {"Quota", "{\"type\":\"object\",\"required\":[\"kind\",\"name\",\"quota\",\"usage\"],"
              "\"properties\":{\"kind\":{\"enum\":[\"user\",\"project\"]},\"name\":" TEXT
              ",\"quota\":" LIMITS ",\"usage\":" USAGE "}}"},
    LIST_OF("QuotaList", "quotas", "Quota"),
    {"Verified",
     "{\"type\":\"object\",\"required\":[\"ok\",\"count\",\"head\",\"broken_seq\",\"reason\"],"
     "\"properties\":{\"ok\":" BOOLEAN ",\"count\":" INTEGER ",\"unchained\":" INTEGER
     ",\"head\":{\"type\":\"object\",\"required\":[\"seq\",\"hash\"],\"properties\":{"
     "\"seq\":" INTEGER ",\"hash\":" TEXT_OR_NULL
     "}},\"expected_seq\":{\"type\":[\"integer\",\"null\"]},"
     "\"broken_seq\":{\"type\":[\"integer\",\"null\"]},\"reason\":" REASON "}}"},
    {"Whoami",
     "{\"type\":\"object\",\"required\":[\"user\",\"role\"],\"properties\":{\"user\":" TEXT
     ",\"role\":{\"enum\":[\"viewer\",\"user\",\"admin\"]}}}"},
};

const struct api_part *routes_people(void)
{
    static const struct api_part part = {rows, array_len(rows), schemas, array_len(schemas)};
    return &part;
}
