/* SPDX-License-Identifier: Apache-2.0 */
/* certificate.h - what its operator has to know of a certificate: when it ends, and for which names
 * it is.
 *
 * Only read: whether a client trusts it is the client's business. Pure; no I/O. */
#pragma once
#include "base/clock.h"
#include "base/strv.h"

enum { CERTIFICATE_NAMES_MAX = 1000 }; /* the rest are passed over */

/* Zeroed memory is none. */
struct certificate {
    usec_t ends; /* wall */
    /* subjectAltName, which alone counts for clients: names, "*.example.org" too, and addresses as
     * inet_ntop() writes them. */
    struct strv names;
};

/* The first certificate of a PEM file, which is the server's own. -EINVAL: there is none, or it is
 * not in form; *ret stays as it was. */
must_check int certificate_read(const char *pem, struct certificate *ret);
/* Would a client take it from a server that it calls by this name or address? An address has no
 * brackets. */
bool certificate_is_for(const struct certificate *c, const char *host);
void certificate_release(struct certificate *c);
