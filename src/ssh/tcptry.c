/* SPDX-License-Identifier: Apache-2.0 */
/* tcptry.c - sends tcptry.sh and reads its answer; see tcptry.h. */
#include "ssh/tcptry.h"

#include <stdlib.h>
#include <string.h>

#include "base/strv.h"
#include "ssh/answer.h"
#include "ssh/embedded.h"

enum { TCPTRY_PORT_MAX = 65535 };

static size_t tcptry_place(const struct tcptry_want *want, uint64_t port)
{
    size_t i = 0;
    while (i < want->n && (uint64_t)want->ports[i] != port)
        i++;
    return i;
}

bool tcptry_read(const char *text, size_t len, const struct tcptry_want *want, int *ret)
{
    struct answer a = answer_of(text, len);
    size_t first = want->n;
    bool is_whole = false;
    while (answer_next(&a)) {
        const char *rest = a.value;
        is_whole = is_whole || answer_is(&a, "END");
        if (!answer_is(&a, "OPEN"))
            continue;
        size_t at = tcptry_place(want, answer_number(&rest, TCPTRY_PORT_MAX, 0));
        first = at < first ? at : first;
    }
    if (is_whole)
        *ret = first < want->n ? want->ports[first] : 0;
    return is_whole;
}

struct ssh_call *tcptry_begin(uv_loop_t *loop,
                              const struct ssh_target *t,
                              const struct tcptry_want *want,
                              usec_t limit,
                              ssh_f cb,
                              void *arg)
{
    _cleanup_(strv_release) struct strv words = {0};
    strv_addf(&words, "%d", want->seconds);
    strv_add(&words, want->ray_bin);
    strv_add(&words, want->address);
    for (size_t i = 0; i < want->n; i++)
        strv_addf(&words, "%d", want->ports[i]);
    return ssh_run(loop, t, (const char *)embedded_tcptry_sh, (const char *const *)words.v, limit,
                   cb, arg);
}
