/* SPDX-License-Identifier: Apache-2.0 */
/* figure.c - any bytes as a page of an exporter, as one to be pushed, and as a file of records:
 * values keep their bounds, and what was read is never beyond the end. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/figure/figure_block.h"
#include "core/figure/remote_write.h"
#include "fuzz.h"

static void read_page(const uint8_t *data, size_t size)
{
    struct figure_page *p = xcalloc(1, sizeof(*p));
    figure_page_init(p);
    for (int source = FIGURE_OF_RAY; source <= FIGURE_OF_NVIDIA; source++)
        figure_page_read(p, (enum figure_source)source, (const char *)data, size);
    assert(p->n_gpus <= FIGURE_GPUS_MAX && p->bad <= p->lines);
    for (int f = 0; f < FIGURE_GPU_FIGURES; f++)
        for (int g = 0; g < p->n_gpus; g++)
            assert(p->gpus[g].v[f] == FIGURE_NONE || p->gpus[g].v[f] >= 0);
    free(p);
}

static void write_page(const uint8_t *data, size_t size)
{
    char *page = xstrndup((const char *)data, size);
    struct buf body = BUF_INIT(1 << 20);
    const struct remote_write of = {.page = page, .before = page + strlen(page) / 2};
    assert(remote_write_body(&of, &body, NULL) <= 0);
    buf_release(&body);
    free(page);
}

static void read_records(const uint8_t *data, size_t size)
{
    struct figure_before before = {0};
    struct figure_record *r = xcalloc(1, sizeof(*r));
    size_t at = 0;
    while (figure_record_get(data, size, &at, &before, r) > 0)
        assert(at <= size && r->n_gpus <= FIGURE_GPUS_MAX);
    figure_before_release(&before);
    free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_page(data, size);
    write_page(data, size);
    read_records(data, size);
    return 0;
}
