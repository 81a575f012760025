/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a time zone, and a schedule in it. */
#include "core/pipe/pipe_zone.h"

#include "core/pipe/pipe_cron.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pipe_zone *z = NULL;
    struct pipe_cron c;
    if (pipe_zone_parse(data, size, &z, NULL) == 0) {
        if (pipe_cron_parse("30 2 * * *", &c, NULL) == 0)
            (void)pipe_cron_next(&c, (usec_t)1700000000 * USEC_SEC, pipe_zone_offset, z);
        pipe_zone_free(z);
    }
    return 0;
}
