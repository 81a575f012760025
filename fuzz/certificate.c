/* SPDX-License-Identifier: Apache-2.0 */
/* certificate.c - any text as a PEM file: a certificate whose names are visible ASCII, or none. */
#include <assert.h>

#include "fuzz.h"
#include "http/certificate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(freep) char *pem = xstrndup((const char *)data, size);
    struct certificate c = {0};
    if (certificate_read(pem, &c) < 0) {
        assert(!c.ends && !c.names.n);
        return 0;
    }
    assert(c.names.n <= CERTIFICATE_NAMES_MAX);
    for (size_t i = 0; i < c.names.n; i++)
        for (const char *s = c.names.v[i]; *s; s++)
            assert(*s > ' ' && *s < 0x7f);
    (void)certificate_is_for(&c, "a.example.org"); /* any answer will do */
    certificate_release(&c);
    return 0;
}
