/* SPDX-License-Identifier: Apache-2.0 */
/* host_load.c - a load as JSON, and back; see host_load.h. */
#include "core/figure/host_load.h"

#include "base/field.h"
#include "base/json.h"
#include "base/mem.h"

static const double PROCESSES_MAX = 1e7, CORES_MAX = 1e5, BYTES_MAX = 1e15;

#define LOAD(member) FIELD_AT(host_load, #member, FIELD_REAL, member, .flags = FIELD_NO_LIMIT)
static const struct field host_load_rows[] = {
    LOAD(processes),
    LOAD(cpu_cores),
    LOAD(mem_bytes),
};
static const struct field_table host_load_table =
    FIELD_TABLE("HostLoad", host_load_rows, host_load);

void host_load_init(struct host_load *l)
{
    *l = (struct host_load){.processes = -1, .cpu_cores = -1, .mem_bytes = -1};
}

void host_load_put(const struct host_load *l, struct buf *out)
{
    struct jout j = jout_begin(out);
    jout_open(&j, NULL, '{');
    jout_int(&j, "at", (int64_t)l->at);
    field_put_members(&host_load_table, l, FIELD_ALL, FIELD_PAGE, &j);
    jout_close(&j, '}');
}

static void host_load_clean(double *v, double most)
{
    if (!(*v >= 0 && *v <= most))
        *v = -1;
}

bool host_load_read(const char *text, size_t n, struct host_load *ret)
{
    _cleanup_(json_unrefp) json_t *o = NULL;
    host_load_init(ret);
    if (json_parse(text, n, HOST_LOAD_MAX_BYTES, &o, NULL) < 0 || !json_is_object(o))
        return false;
    int64_t at = json_get_int(o, "at", 0);
    if (at <= 0)
        return false;
    ret->at = (usec_t)at;
    field_from_json(&host_load_table, o, FIELD_ALL, ret);
    host_load_clean(&ret->processes, PROCESSES_MAX);
    host_load_clean(&ret->cpu_cores, CORES_MAX);
    host_load_clean(&ret->mem_bytes, BYTES_MAX);
    return true;
}
