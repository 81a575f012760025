/* SPDX-License-Identifier: Apache-2.0 */
/* ray_reply.c - any bytes as each of Ray's replies; the first byte chooses which. */
#include <assert.h>

#include "fuzz.h"
#include "ray/parse.h"

#define TRY(type, parse, release)                                                                  \
    do {                                                                                           \
        struct type value = {0};                                                                   \
        if (parse(text, n, &value, &err) == 0)                                                     \
            release(&value);                                                                       \
        else                                                                                       \
            assert(err.code < 0 && err.text[0]);                                                   \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = {0};
    if (size == 0)
        return 0;
    const char *text = (const char *)data + 1;
    size_t n = size - 1;
    switch (data[0] % 7) {
    case 0:
        TRY(ray_version, ray_parse_version, ray_version_release);
        break;
    case 1:
        TRY(ray_job, ray_parse_job, ray_job_release);
        break;
    case 2:
        TRY(ray_jobs, ray_parse_jobs, ray_jobs_release);
        break;
    case 3:
        TRY(ray_nodes, ray_parse_nodes, ray_nodes_release);
        break;
    case 4:
        TRY(ray_usages, ray_parse_usages, ray_usages_release);
        break;
    case 5:
        TRY(ray_actors, ray_parse_actors, ray_actors_release);
        break;
    default:
        TRY(ray_groups, ray_parse_groups, ray_groups_release);
        break;
    }
    return 0;
}
