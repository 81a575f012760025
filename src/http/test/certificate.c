/* SPDX-License-Identifier: Apache-2.0 */
/* certificate.c - tests of what is read of a certificate, and of whom it is for. */
#include "http/certificate.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/unit.h"

/* Made with the package cryptography of Python: for argus.example.org, *.nb.example.org, 192.0.2.7
 * and 2001:db8::7. */
static const char named[] = "-----BEGIN CERTIFICATE-----\n"
                            "MIIBZjCCAQ2gAwIBAgIBBzAKBggqhkjOPQQDAjAQMQ4wDAYDVQQDDAVhcmd1czAe\n"
                            "Fw0yNTAxMDEwMDAwMDBaFw0zNTEyMzEyMzU5NTlaMBAxDjAMBgNVBAMMBWFyZ3Vz\n"
                            "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEJu/OvQ7p40pmkYfhizqRIrL3M5Rb\n"
                            "ZJzJ+fkh6fna2BKQI4venMe7Mw0VDGdwTdJa5wVSBXRLbzG/QHB0WHLQ5qNYMFYw\n"
                            "RgYDVR0RBD8wPYIRYXJndXMuZXhhbXBsZS5vcmeCECoubmIuZXhhbXBsZS5vcmeH\n"
                            "BMAAAgeHECABDbgAAAAAAAAAAAAAAAcwDAYDVR0TAQH/BAIwADAKBggqhkjOPQQD\n"
                            "AgNHADBEAiAYcodiJ9Qs0RrVZ25sRApIGtFxnr88Ejiv87RH7v7pAQIgfUFt0PhZ\n"
                            "CBKBuC6GhJ9+q62Q5XwwgwzBXNfpNmA2754=\n"
                            "-----END CERTIFICATE-----\n";
/* Without a name; its end has a year of four digits. */
static const char nameless[] = "-----BEGIN CERTIFICATE-----\n"
                               "MIIBHzCBx6ADAgECAgEHMAoGCCqGSM49BAMCMBAxDjAMBgNVBAMMBWFyZ3VzMCAX\n"
                               "DTI1MDEwMTAwMDAwMFoYDzIwNzUwNjAxMTIwMDAwWjAQMQ4wDAYDVQQDDAVhcmd1\n"
                               "czBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABCbvzr0O6eNKZpGH4Ys6kSKy9zOU\n"
                               "W2Scyfn5Ien52tgSkCOL3pzHuzMNFQxncE3SWucFUgV0S28xv0BwdFhy0OajEDAO\n"
                               "MAwGA1UdEwEB/wQCMAAwCgYIKoZIzj0EAwIDRwAwRAIgLMgTLGIED3VlhuhQap7J\n"
                               "dvQcMfos2k4Tna/ftK06mtwCIDIVok06OkctTsoeGmtwhkC8w1Sdku7s9c/fl+Zn\n"
                               "BjBy\n"
                               "-----END CERTIFICATE-----\n";

static usec_t at(const char *text)
{
    usec_t t = 0;
    assert_int_equal(clock_from_string(text, &t, NULL), 0);
    return t;
}

static void test_read(void **state)
{
    struct certificate c = {0};
    (void)state;
    assert_int_equal(certificate_read(named, &c), 0);
    assert_true(c.ends == at("2035-12-31T23:59:59Z"));
    assert_int_equal(c.names.n, 4);
    assert_string_equal(c.names.v[0], "argus.example.org");
    assert_string_equal(c.names.v[3], "2001:db8::7");
    certificate_release(&c);
    assert_int_equal(certificate_read(nameless, &c), 0);
    assert_true(c.ends == at("2075-06-01T12:00:00Z"));
    assert_int_equal(c.names.n, 0);
    certificate_release(&c);
}

static void test_first_of_chain(void **state)
{
    struct certificate c = {0};
    _cleanup_(buf_release) struct buf chain = BUF_INIT(64 << 10);
    (void)state;
    assert_int_equal(buf_addf(&chain, "# of argusd\n%s%s", nameless, named), 0);
    assert_int_equal(certificate_read(buf_str(&chain), &c), 0);
    assert_int_equal(c.names.n, 0);
    certificate_release(&c);
}

static void test_whom_it_is_for(void **state)
{
    static const struct {
        const char *host;
        bool is_for;
    } rows[] = {
        {"argus.example.org", true},
        {"ARGUS.Example.org", true},
        {"example.org", false},
        {"x.argus.example.org", false},
        {"a.nb.example.org", true},
        {"nb.example.org", false},
        {"a.b.nb.example.org", false},
        {"192.0.2.7", true},
        {"192.0.2.8", false},
        {"2001:db8::7", true},
        {"2001:0DB8:0:0::7", true},
        {"2001:db8::8", false},
        {"", false},
        {".nb.example.org", false},
        {"localhost", false},
    };
    struct certificate c = {0};
    (void)state;
    assert_int_equal(certificate_read(named, &c), 0);
    for (size_t i = 0; i < array_len(rows); i++)
        if (certificate_is_for(&c, rows[i].host) != rows[i].is_for)
            fail_msg("'%s'", rows[i].host);
    certificate_release(&c);
}

/* Whatever byte is another one, or missing, the answer is a certificate or none. */
static void test_bytes_that_are_others(void **state)
{
    static const char *const none[] = {
        "",
        "x",
        "-----BEGIN CERTIFICATE-----",
        "-----BEGIN CERTIFICATE----------END CERTIFICATE-----",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
        "-----BEGIN CERTIFICATE-----\n*\n-----END CERTIFICATE-----"};
    char text[sizeof(named)];
    size_t refused = 0;
    (void)state;
    for (size_t i = 0; i < array_len(none); i++) {
        struct certificate c = {.ends = 7};
        assert_int_equal(certificate_read(none[i], &c), -EINVAL);
        assert_true(c.ends == 7 && !c.names.n);
    }
    for (size_t i = 0; i < sizeof(named) - 1; i++) {
        struct certificate c = {0};
        memcpy(text, named, sizeof(named));
        text[i] = text[i] == 'A' ? '/' : 'A';
        if (certificate_read(text, &c) < 0)
            refused++;
        certificate_release(&c);
    }
    assert_true(refused > sizeof("-----BEGIN CERTIFICATE-----"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_first_of_chain),
        cmocka_unit_test(test_whom_it_is_for),
        cmocka_unit_test(test_bytes_that_are_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
