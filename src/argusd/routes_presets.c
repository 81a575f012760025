/* SPDX-License-Identifier: Apache-2.0 */
/* routes_presets.c - rows and schemas of presets; see routes.h. */
#include "argusd/routes.h"

#include "argusd/api.h"
#include "core/preset.h"

#define PRESET_YAML                                                                                \
    "application/yaml, application/json, application/x-yaml, text/yaml, text/plain, "              \
    "application/x-www-form-urlencoded"

static const struct http_param list_params[] = {
    {"project", HTTP_PARAM_STRING, "only this project's own"},
    {"workload", HTTP_PARAM_STRING, "only of this workload"},
    {0}};
static const struct http_param find_params[] = {
    {"project", HTTP_PARAM_STRING,
     "this project's own; if not given that of project default, else the shipped one"},
    {0}};

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/presets",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_presets,
     .summary = "presets: the shipped ones and those of your projects, with their holes",
     .params = list_params,
     .reply_schema = "PresetList"},
    {.method = "GET",
     .pattern = "/v1/presets/{name}",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_preset_get,
     .summary = "one preset, with its text",
     .params = find_params,
     .reply_schema = "Preset"},
    {.method = "PUT",
     .pattern = "/v1/presets/{name}",
     .least = HTTP_ROLE_USER,
     .max_body = PRESET_MAX_BYTES,
     .handle = api_preset_put,
     .summary = "store a preset of a project: description, holes, and a spec with ${hole:NAME}",
     .params = find_params,
     .request_type = PRESET_YAML,
     .request_schema = "PresetForm",
     .reply_schema = "Preset"},
    {.method = "DELETE",
     .pattern = "/v1/presets/{name}",
     .least = HTTP_ROLE_USER,
     .handle = api_preset_remove,
     .summary = "remove a project's preset",
     .params = find_params,
     .reply_schema = "Preset"},
};

static const struct http_schema schemas[] = {
    {"PresetForm",
     "{\"type\":\"object\",\"required\":[\"spec\"],\"additionalProperties\":false,\"properties\":{"
     "\"description\":" TEXT_OR_NULL
     ",\"holes\":{\"type\":[\"object\",\"null\"],\"additionalProperties\":{\"type\":\"object\","
     "\"properties\":{\"type\":{\"enum\":[\"text\",\"integer\",\"number\",\"boolean\",\"path\","
     "\"model\",\"data\"]},\"required\":" BOOLEAN
     ",\"default\":{},\"example\":{},\"description\":" TEXT_OR_NULL
     "}}},\"spec\":{\"type\":\"object\"}}}"},
    {"Preset",
     "{\"type\":\"object\",\"required\":[\"name\",\"project\",\"shipped\",\"workload\","
     "\"description\",\"holes\",\"hash\"],\"properties\":{\"name\":" TEXT
     ",\"project\":" TEXT_OR_NULL ",\"shipped\":" BOOLEAN ",\"workload\":" TEXT_OR_NULL
     ",\"description\":" TEXT
     ",\"holes\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"name\","
     "\"type\",\"required\",\"default\",\"example\",\"description\"],\"properties\":{\"name\":" TEXT
     ",\"type\":" TEXT ",\"required\":" BOOLEAN ",\"default\":{},\"example\":{},"
     "\"description\":" TEXT "}}},\"hash\":" TEXT ",\"changed_by\":" TEXT_OR_NULL
     ",\"created_at\":" TEXT_OR_NULL ",\"changed_at\":" TEXT_OR_NULL ",\"text\":" TEXT "}}"},
    LIST_OF("PresetList", "presets", "Preset"),
};

const struct api_part *routes_presets(void)
{
    static const struct api_part part = {rows, array_len(rows), schemas, array_len(schemas)};
    return &part;
}
