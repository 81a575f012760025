/* SPDX-License-Identifier: Apache-2.0 */
/* routes.c - joins the parts of the route table; see routes.h. */
#include "argusd/api/routes.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/version.h"

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
    http_openapi(rows, n_rows, schemas, n, ARGUS_VERSION, out);
    free(schemas);
}
