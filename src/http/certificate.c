/* SPDX-License-Identifier: Apache-2.0 */
/* certificate.c - X.509 in DER, as far as a certificate's end and its names; see certificate.h.
 *
 *     Certificate ─ tbs ─┬ [0] version, serial, algorithm, issuer
 *                        ├ validity: from, to
 *                        ├ subject, key
 *                        └ [3] extensions: one of them subjectAltName
 *
 * Each element is a tag, a length and so many bytes; nothing is read beyond the element that it
 * stands in, so a wrong length is only a certificate that is not in form. */
#include "http/certificate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/digest/hash.h"
#include "base/str.h"
#include "base/text.h"

#define PEM_BEGINS "-----BEGIN CERTIFICATE-----"
#define PEM_ENDS "-----END CERTIFICATE-----"
enum {
    DER_BOOLEAN = 0x01,
    DER_INTEGER = 0x02,
    DER_OCTETS = 0x04,
    DER_OBJECT_ID = 0x06,
    DER_UTC_TIME = 0x17, /* a year of two digits */
    DER_TIME = 0x18,
    DER_SEQUENCE = 0x30,
    DER_VERSION = 0xa0,
    DER_EXTENSIONS = 0xa3,
    DER_DNS_NAME = 0x82, /* this and an address stand in subjectAltName */
    DER_ADDRESS = 0x87
};
enum { DER_LENGTH_BYTES = 4, DNS_NAME_MAX = 253, TIME_DIGITS = 14 };
static const unsigned char alt_name_id[] = {0x55, 0x1d, 0x11}; /* 2.5.29.17 */

/* Bytes that are still to be read. */
struct der {
    const unsigned char *p, *end;
};

/* The next element, whatever it is, is taken off d. */
static bool der_next(struct der *d, unsigned *ret_tag, struct der *ret)
{
    if (d->end - d->p < 2)
        return false;
    unsigned tag = *d->p++;
    size_t n = *d->p++;
    if (n & 0x80) { /* the length has so many bytes of its own; 0, an open end, is not DER */
        size_t bytes = n & 0x7f;
        if (!bytes || bytes > DER_LENGTH_BYTES || (size_t)(d->end - d->p) < bytes)
            return false;
        for (n = 0; bytes; bytes--)
            n = n << 8 | *d->p++;
    }
    if ((size_t)(d->end - d->p) < n)
        return false;
    *ret_tag = tag;
    *ret = (struct der){d->p, d->p + n};
    d->p += n;
    return true;
}

static bool der_take(struct der *d, unsigned tag, struct der *ret)
{
    unsigned found;
    return der_next(d, &found, ret) && found == tag;
}

/* The same where it may be absent: then d stays as it is. */
static bool der_take_if(struct der *d, unsigned tag, struct der *ret)
{
    struct der rest = *d;
    if (!der_take(&rest, tag, ret))
        return false;
    *d = rest;
    return true;
}

static bool der_take_time(struct der *d, usec_t *ret)
{
    struct der text;
    unsigned tag;
    char digits[TIME_DIGITS + 1] = "", said[CLOCK_TEXT_MAX];
    if (!der_next(d, &tag, &text) || (tag != DER_UTC_TIME && tag != DER_TIME))
        return false;
    size_t n = (size_t)(text.end - text.p), century = tag == DER_UTC_TIME ? 2 : 0;
    if (n + century != TIME_DIGITS + 1 || text.p[n - 1] != 'Z')
        return false;
    if (century)
        text_copy(digits, text.p[0] < '5' ? "20" : "19");
    memcpy(digits + century, text.p, n - 1);
    if (strspn(digits, "0123456789") != TIME_DIGITS)
        return false;
    text_printf(said,
                "%.4s-%.2s-%.2s"
                "T%.2s:%.2s:%.2sZ",
                digits, digits + 4, digits + 6, digits + 8, digits + 10, digits + 12);
    return clock_from_string(said, ret, NULL) == 0;
}

/* ---- names ---- */

/* Names are shown: one with a byte that a host name does not have is none. */
static void certificate_add_name(struct certificate *c, const struct der *name)
{
    char text[DNS_NAME_MAX + 1];
    size_t n = (size_t)(name->end - name->p);
    if (!n || n > DNS_NAME_MAX)
        return;
    for (size_t i = 0; i < n; i++)
        if (name->p[i] <= ' ' || name->p[i] >= 0x7f)
            return;
    memcpy(text, name->p, n);
    text[n] = '\0';
    strv_add(&c->names, text);
}

static void certificate_add_address(struct certificate *c, const struct der *address)
{
    char text[INET6_ADDRSTRLEN];
    size_t n = (size_t)(address->end - address->p);
    int family = n == sizeof(struct in_addr) ? AF_INET : AF_INET6;
    if ((n == sizeof(struct in_addr) || n == sizeof(struct in6_addr)) &&
        inet_ntop(family, address->p, text, sizeof(text)))
        strv_add(&c->names, text);
}

static bool certificate_read_names(struct der octets, struct certificate *c)
{
    struct der names, name;
    unsigned tag;
    if (!der_take(&octets, DER_SEQUENCE, &names))
        return false;
    while (names.p < names.end) {
        if (!der_next(&names, &tag, &name))
            return false;
        if (c->names.n >= CERTIFICATE_NAMES_MAX)
            return true;
        if (tag == DER_DNS_NAME)
            certificate_add_name(c, &name);
        else if (tag == DER_ADDRESS)
            certificate_add_address(c, &name);
    }
    return true;
}

static bool certificate_read_extensions(struct der wrapped, struct certificate *c)
{
    struct der all, one, id, is_critical, value;
    if (!der_take(&wrapped, DER_SEQUENCE, &all))
        return false;
    while (all.p < all.end) {
        if (!der_take(&all, DER_SEQUENCE, &one) || !der_take(&one, DER_OBJECT_ID, &id))
            return false;
        (void)der_take_if(&one, DER_BOOLEAN, &is_critical); /* it may be absent */
        if (!der_take(&one, DER_OCTETS, &value))
            return false;
        if ((size_t)(id.end - id.p) == sizeof(alt_name_id) &&
            !memcmp(id.p, alt_name_id, sizeof(alt_name_id)) && !certificate_read_names(value, c))
            return false;
    }
    return true;
}

/* ---- the whole ---- */

static bool certificate_read_der(struct der der, struct certificate *c)
{
    struct der whole, tbs, validity, part;
    usec_t begins;
    if (!der_take(&der, DER_SEQUENCE, &whole) || !der_take(&whole, DER_SEQUENCE, &tbs))
        return false;
    (void)der_take_if(&tbs, DER_VERSION, &part); /* the first version does not say it */
    if (!der_take(&tbs, DER_INTEGER, &part) || !der_take(&tbs, DER_SEQUENCE, &part) ||
        !der_take(&tbs, DER_SEQUENCE, &part) || !der_take(&tbs, DER_SEQUENCE, &validity) ||
        !der_take_time(&validity, &begins) || !der_take_time(&validity, &c->ends))
        return false;
    while (tbs.p < tbs.end) {
        unsigned tag;
        if (!der_next(&tbs, &tag, &part))
            return false;
        if (tag == DER_EXTENSIONS)
            return certificate_read_extensions(part, c);
    }
    return true;
}

/* The base64 between the two lines, without line ends. Heap; NULL: there is none. */
static char *certificate_base64(const char *pem)
{
    const char *from = strstr(pem, PEM_BEGINS);
    const char *to = from ? strstr(from, PEM_ENDS) : NULL;
    if (!to)
        return NULL;
    from += sizeof(PEM_BEGINS) - 1;
    char *text = xcalloc(1, (size_t)(to - from) + 1), *at = text;
    for (; from < to; from++)
        if (!strchr(" \t\r\n", *from))
            *at++ = *from;
    return text;
}

int certificate_read(const char *pem, struct certificate *ret)
{
    _cleanup_(freep) char *text = certificate_base64(pem);
    struct certificate c = {0};
    size_t n = 0;
    unsigned char *bytes = text ? hash_from_base64(text, &n) : NULL;
    bool is_one = bytes && certificate_read_der((struct der){bytes, bytes + n}, &c);
    free(bytes);
    if (!is_one) {
        certificate_release(&c);
        return -EINVAL;
    }
    *ret = c;
    return 0;
}

bool certificate_is_for(const struct certificate *c, const char *host)
{
    unsigned char address[sizeof(struct in6_addr)];
    char text[INET6_ADDRSTRLEN];
    const char *dot = strchr(host, '.');
    int family = strchr(host, ':') ? AF_INET6 : AF_INET;
    bool is_address = inet_pton(family, host, address) == 1;
    if (is_address && !inet_ntop(family, address, text, sizeof(text)))
        return false;
    for (size_t i = 0; i < c->names.n; i++) {
        const char *name = c->names.v[i];
        if (!strcasecmp(name, is_address ? text : host))
            return true;
        if (!is_address && str_starts(name, "*.") && dot && dot > host &&
            !strcasecmp(name + 1, dot))
            return true; /* a star is one label, never more */
    }
    return false;
}

void certificate_release(struct certificate *c)
{
    strv_release(&c->names);
    *c = (struct certificate){0};
}
