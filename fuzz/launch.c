/* SPDX-License-Identifier: Apache-2.0 */
/* launch.c - any bytes as launch.json; what is accepted is written and read again the same. */
#include <assert.h>
#include <string.h>

#include "fsroot/attempt/launch.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(launch_release) struct launch l = {0}, back = {0};
    struct err err = {0};
    if (launch_from_json((const char *)data, size, &l, &err) < 0) {
        assert(err.code < 0 && err.text[0] && !l.argv.n);
        return 0;
    }
    if (launch_secrets_add(&l, (const char *)data, size, NULL) == 0)
        assert(l.argv.n);
    _cleanup_(buf_release) struct buf one = BUF_INIT(LAUNCH_MAX_BYTES), two = one;
    assert(launch_to_json(&l, &one, &err) == 0);
    assert(launch_from_json(one.data, one.len, &back, &err) == 0);
    assert(launch_to_json(&back, &two, &err) == 0);
    assert(one.len == two.len && !memcmp(one.data, two.data, one.len));
    return 0;
}
