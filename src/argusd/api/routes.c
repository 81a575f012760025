/* SPDX-License-Identifier: Apache-2.0 */
/* routes.c - joins the parts of the route table; see routes.h. */
#include "argusd/api/routes.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/version.h"

/* Of every name in a path. tests/daemon/test_described.py makes objects of these names. */
static const struct http_example path_examples[] = {
    {"/v1/alert_rules/{rule}", "job_failed"},
    {"/v1/alerts/{alert}", "a1"},
    {"/v1/clusters/{cluster}", "default"},
    {"/v1/clusters/{cluster}/foreign/{ray_id}", "raysubmit_1"},
    {"/v1/datasets/{name}", "gsm8k"},
    {"/v1/incidents/{incident}", "i1"},
    {"/v1/simulations/{simulation}", "sim-0123456789"},
    {"/v1/jobs/{id}", "sft-gsm8k"},
    {"/v1/jobs/{id}/checkpoints/{step}", "10"},
    {"/v1/models/{name}", "qwen"},
    {"/v1/notebooks/{name}", "main"},
    {"/v1/nodes/{name}", "worker1"},
    {"/v1/ops/plans/{plan}", "plan-0123456789"},
    {"/v1/pipeline-runs/{run}", "sft-to-model-1"},
    {"/v1/pipelines/{name}", "sft-to-model"},
    {"/v1/presets/{name}", "baseline"},
    {"/v1/projects/{project}", "rlhf"},
    {"/v1/receivers/{receiver}", "ops"},
    {"/v1/secrets/{name}", "HF_TOKEN"},
    {"/v1/services/{name}", "chat"},
    {"/v1/sessions/{session}", "e1"},
    {"/v1/silences/{silence}", "s1"},
    {"/v1/snapshots/{name}", "verl@0.9.1"},
    {"/v1/tokens/{token}", "t1"},
    {"/v1/uploads/{id}", "u1"},
    {"/v1/users/{user}", "alice"},
    {NULL, NULL},
};

struct http_route *routes_join(size_t *ret_n)
{
    struct http_route *rows = NULL;
    size_t n = 0;
    for (size_t i = 0; API_PARTS[i]; i++) {
        const struct api_part *p = API_PARTS[i];
        rows = xrealloc(rows, n + p->n_rows, sizeof(*rows));
        if (p->n_rows)
            memcpy(rows + n, p->rows, p->n_rows * sizeof(*rows));
        n += p->n_rows;
    }
    *ret_n = n;
    return rows;
}

void routes_openapi(struct buf *out)
{
    struct http_schema *schemas = NULL;
    size_t n = 0, n_rows;
    for (size_t i = 0; API_PARTS[i]; i++) {
        const struct api_part *p = API_PARTS[i];
        schemas = xrealloc(schemas, n + p->n_schemas, sizeof(*schemas));
        if (p->n_schemas)
            memcpy(schemas + n, p->schemas, p->n_schemas * sizeof(*schemas));
        n += p->n_schemas;
    }
    _cleanup_(freep) void *rows = routes_join(&n_rows);
    http_openapi(rows, n_rows, path_examples, schemas, n, ARGUS_VERSION, out);
    free(schemas);
}
