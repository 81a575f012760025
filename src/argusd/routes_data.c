/* SPDX-License-Identifier: Apache-2.0 */
/* routes_data.c - rows and schemas of data sets and models; see routes.h. */
#include "argusd/api.h"
#include "argusd/routes.h"

enum { BODY_MAX = 64 << 10 };

static const struct http_param list_params[] = {{"q", HTTP_PARAM_STRING, "part of the name"},
                                                {"user", HTTP_PARAM_STRING, "only this owner's"},
                                                {0}};

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/datasets",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_datasets,
     .summary = "data sets: common ones, yours and those of your projects, or all",
     .params = list_params,
     .reply_schema = "DatasetList"},
    {.method = "POST",
     .pattern = "/v1/datasets",
     .least = HTTP_ROLE_USER,
     .max_body = BODY_MAX,
     .handle = api_dataset_import,
     .summary = "import a data set, as a job; it is ready once the job has SUCCEEDED",
     .request_schema = "ImportForm",
     .reply_schema = "Dataset",
     .reply_status = 201},
    {.method = "POST",
     .pattern = "/v1/datasets:prepare",
     .least = HTTP_ROLE_USER,
     .max_body = BODY_MAX,
     .handle = api_dataset_prepare,
     .summary = "make a data set that verl reads from a raw one, as a job",
     .request_schema = "PrepareForm",
     .reply_schema = "Dataset",
     .reply_status = 201},
    {.method = "GET",
     .pattern = "/v1/datasets/{name}",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_dataset_get,
     .summary = "one data set, [owner:]name[@version], with columns, sample and fit",
     .reply_schema = "Dataset"},
    {.method = "DELETE",
     .pattern = "/v1/datasets/{name}",
     .least = HTTP_ROLE_USER,
     .handle = api_dataset_remove,
     .summary = "remove a data set and its bytes; refused while a job uses it",
     .reply_schema = "Dataset"},
    {.method = "GET",
     .pattern = "/v1/models",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_models,
     .summary = "models: common ones, yours and those of your projects, or all",
     .params = list_params,
     .reply_schema = "ModelList"},
    {.method = "POST",
     .pattern = "/v1/models",
     .least = HTTP_ROLE_USER,
     .max_body = BODY_MAX,
     .handle = api_model_import,
     .summary = "import a model, as a job; it is ready once the job has SUCCEEDED",
     .request_schema = "ImportForm",
     .reply_schema = "Model",
     .reply_status = 201},
    {.method = "GET",
     .pattern = "/v1/models/{name}",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_model_get,
     .summary = "one model, [owner:]name[@version], with lineage",
     .reply_schema = "Model"},
    {.method = "DELETE",
     .pattern = "/v1/models/{name}",
     .least = HTTP_ROLE_USER,
     .handle = api_model_remove,
     .summary = "remove a model and its bytes; refused while a job uses it",
     .reply_schema = "Model"},
};

#define OBJECT_OR_NULL "{\"type\":[\"object\",\"null\"]}"
#define INTEGER_OR_NULL "{\"type\":[\"integer\",\"null\"]}"
#define TEXTS "{\"oneOf\":[" TEXT ",{\"type\":\"array\",\"items\":" TEXT "}]}"
#define ENTRY_REQUIRED                                                                             \
    "[\"name\",\"version\",\"ref\",\"state\",\"owner\",\"common\",\"path\",\"bytes\",\"files\"]"
#define ENTRY_PROPERTIES                                                                           \
    "\"name\":" TEXT ",\"version\":" INTEGER ",\"ref\":" TEXT                                      \
    ",\"state\":{\"enum\":[\"importing\",\"ready\",\"removing\"]},\"owner\":" TEXT                 \
    ",\"project\":" TEXT_OR_NULL ",\"common\":" BOOLEAN ",\"path\":" TEXT ",\"in_place\":" BOOLEAN \
    ",\"source\":" TEXT_OR_NULL ",\"revision\":" TEXT_OR_NULL ",\"hash\":" TEXT_OR_NULL            \
    ",\"job\":" TEXT_OR_NULL ",\"bytes\":" INTEGER ",\"files\":" INTEGER ",\"created_at\":" TEXT   \
    ",\"uses\":" INTEGER ",\"progress\":" OBJECT_OR_NULL ",\"note\":" TEXT_OR_NULL                 \
    ",\"lineage\":" OBJECT_OR_NULL ",\"lineage_by\":" TEXT_OR_NULL ",\"format\":" TEXT_OR_NULL     \
    ",\"about\":" OBJECT_OR_NULL

static const struct http_schema schemas[] = {
    {"ImportForm",
     "{\"type\":\"object\",\"required\":[\"name\",\"source\"],\"additionalProperties\":false,"
     "\"properties\":{\"name\":" TEXT ",\"source\":" TEXT ",\"project\":" TEXT ",\"endpoint\":" TEXT
     ",\"sha256\":" TEXT ",\"filename\":" TEXT ",\"pool\":" TEXT ",\"py_executable\":" TEXT
     ",\"common\":" BOOLEAN ",\"in_place\":" BOOLEAN ",\"include\":" TEXTS ",\"secrets\":" TEXTS
     ",\"lineage\":{\"type\":\"object\"}}}"},
    {"PrepareForm",
     "{\"type\":\"object\",\"required\":[\"name\",\"with\"],\"additionalProperties\":false,"
     "\"properties\":{\"name\":" TEXT ",\"with\":" TEXT ",\"as\":" TEXT ",\"args\":" TEXTS
     ",\"project\":" TEXT ",\"pool\":" TEXT ",\"py_executable\":" TEXT ",\"common\":" BOOLEAN
     ",\"secrets\":" TEXTS "}}"},
    {"Dataset",
     "{\"type\":\"object\",\"required\":" ENTRY_REQUIRED ",\"properties\":{" ENTRY_PROPERTIES
     ",\"rows\":" INTEGER_OR_NULL ",\"fit\":" OBJECT_OR_NULL "}}"},
    {"Model",
     "{\"type\":\"object\",\"required\":" ENTRY_REQUIRED ",\"properties\":{" ENTRY_PROPERTIES
     ",\"architecture\":" TEXT_OR_NULL ",\"parameters\":" INTEGER_OR_NULL "}}"},
    LIST_OF("DatasetList", "datasets", "Dataset"),
    LIST_OF("ModelList", "models", "Model"),
};

const struct api_part *routes_data(void)
{
    static const struct api_part part = {rows, array_len(rows), schemas, array_len(schemas)};
    return &part;
}
