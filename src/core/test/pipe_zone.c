/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of pipe_zone.h: every hour of years against the C library, with the machine's own zone
 * files and with files that are cut or spoilt. */
#include "core/pipe/pipe_zone.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"

#include "base/unit.h"

/* TZif of 'Pretended/Zone': no change is in the file, all is in the rule. */
#define COUNTS "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\4"
#define BLOCK "\0\0\x0e\x10\0\0CET\0"
#define HEAD "TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0" COUNTS
#define FILE_OF(rule) HEAD BLOCK HEAD BLOCK "\n" rule "\n"
#define BYTES_OF(rule) FILE_OF(rule), sizeof(FILE_OF(rule)) - 1

static struct pipe_zone *parse(const void *bytes, size_t n)
{
    struct pipe_zone *z = NULL;
    assert_int_equal(pipe_zone_parse(bytes, n, &z, NULL), 0);
    return z;
}

/* Each hour and a half from 2020 to 2045 as the C library has it. */
static void compare(struct pipe_zone *z, const char *tz)
{
    assert_int_equal(setenv("TZ", tz, 1), 0);
    tzset();
    for (int64_t at = 1577836800; at < 2366841600; at += 5400) {
        time_t t = at;
        struct tm tm;
        (void)localtime_r(&t, &tm);
        if (pipe_zone_offset(at, z) != tm.tm_gmtoff)
            fail_msg("%s at %lld: %d, not %ld", tz, (long long)at, pipe_zone_offset(at, z),
                     tm.tm_gmtoff);
    }
    assert_int_equal(unsetenv("TZ"), 0);
    tzset();
}

static void test_rules(void **state)
{
    (void)state;
    const struct {
        const char *tz, *bytes;
        size_t n;
    } all[] = {
        {"CET-1CEST,M3.5.0,M10.5.0/3", BYTES_OF("CET-1CEST,M3.5.0,M10.5.0/3")},
        {"EST5EDT,M3.2.0,M11.1.0", BYTES_OF("EST5EDT,M3.2.0,M11.1.0")},
        {"AEST-10AEDT,M10.1.0,M4.1.0/3", BYTES_OF("AEST-10AEDT,M10.1.0,M4.1.0/3")},
        {"<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", BYTES_OF("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0")},
        {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", BYTES_OF("<-02>2<-01>,M3.5.0/-1,M10.5.0/0")},
        {"CST-8", BYTES_OF("CST-8")},
    };
    for (size_t i = 0; i < array_len(all); i++) {
        struct pipe_zone *z = parse(all[i].bytes, all[i].n);
        compare(z, all[i].tz);
        pipe_zone_free(z);
    }
}

static void test_spoilt(void **state)
{
    static const char good[] = FILE_OF("CET-1CEST,M3.5.0,M10.5.0/3");
    struct pipe_zone *z = NULL;
    (void)state;
    for (size_t n = 0; n + 30 < sizeof(good); n++)
        assert_int_equal(pipe_zone_parse(good, n, &z, NULL), ERR_BAD_SPEC);
    for (size_t i = 0; i < 96; i++) { /* no byte of it makes it read beyond its end */
        char bad[sizeof(good)];
        memcpy(bad, good, sizeof(good));
        bad[i] = (char)0xff;
        if (pipe_zone_parse(bad, sizeof(bad) - 1, &z, NULL) == 0) {
            (void)pipe_zone_offset(2000000000, z);
            pipe_zone_free(z);
        }
    }
}

static void test_names(void **state)
{
    (void)state;
    assert_true(pipe_zone_is_name("Europe/Berlin"));
    assert_true(pipe_zone_is_name("Etc/GMT+5"));
    assert_true(pipe_zone_is_name("UTC"));
    const char *const bad[] = {"", "/etc/passwd", "../passwd", "Europe//Berlin", "Europe/", "a b"};
    for (size_t i = 0; i < array_len(bad); i++)
        assert_false(pipe_zone_is_name(bad[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_spoilt),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
