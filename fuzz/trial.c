/* SPDX-License-Identifier: Apache-2.0 */
/* trial.c - any bytes as a trial's result: what is taken can be shown, a failure has a sentence. */
#include <assert.h>
#include <string.h>

#include "core/check/trial.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trial_result r;
    struct err err = {0};
    int x = trial_read((const char *)data, size, "abc", &r, &err);
    assert(x < 0 || (r.shown && strlen(r.shown) <= TRIAL_SHOWN_MAX));
    assert(x < 0 || r.ok || (finding_class_is(r.found.class, FINDING_OF_TRIAL) && *r.text));
    assert(x < 0 || r.ok || (r.found.n_evidence && *r.found.evidence[0].text && r.found.advice));
    assert(x == 0 || err.code < 0);
    trial_result_release(&r);
    return 0;
}
