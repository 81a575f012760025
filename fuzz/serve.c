/* SPDX-License-Identifier: Apache-2.0 */
/* serve.c - any bytes as the answer of Ray Serve, and as what somebody wants to serve: what was
 * read is whole, and what is refused is refused with a reason. */
#include <assert.h>

#include "core/serve/serve_look.h"
#include "core/serve/serve_spec.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct serve_look look = {0};
    struct serve_ask ask;
    struct problems ps = {0};
    struct err err = {0};
    if (serve_look_read((const char *)data, size, &look, &err) == 0)
        for (size_t i = 0; i < look.n_apps; i++)
            assert(look.apps[i].name && look.apps[i].running <= (int64_t)look.apps[i].n);
    else
        assert(err.text[0]);
    serve_look_release(&look);
    if (serve_ask_read((const char *)data, size, NULL, &ask, &ps) == 0)
        assert(!ask.spec.model != !ask.spec.app && ask.spec.replicas > 0);
    else
        assert(ps.errors > 0);
    serve_ask_release(&ask);
    problems_release(&ps);
    return 0;
}
