/* SPDX-License-Identifier: Apache-2.0 */
/* proof.c - any bytes as a record of what was imported: refused with a sentence, or a record
 * whose mismatch can be told. */
#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "fsroot/attempt/proof.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err;
    struct proof_record r = {0};
    if (proof_record_from_json((const char *)data, size, &r, &err) < 0) {
        assert(err.text[0]);
        return 0;
    }
    assert(r.kind && r.node);
    if (r.what) {
        _cleanup_(freep) char *text = proof_says(&r);
        assert(text[0]);
    }
    proof_record_release(&r);
    return 0;
}
