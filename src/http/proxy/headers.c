/* SPDX-License-Identifier: Apache-2.0 */
/* headers.c - the lines that a proxy hands on; see headers.h. */
#include "http/proxy/headers.h"

#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"
#include "http/proxy/answer.h"

/* A name that ends in '*' is a beginning. */
static const char *const ends_here[] = {
    "connection", "keep-alive",        "proxy-*", "te",
    "trailer",    "transfer-encoding", "upgrade", "content-length",
};
static const char *const never_up[] = {
    "host",
    "expect",
    "origin",
    "referer",
    "cookie",
    "authorization",
    "forwarded",
    "via",
    "x-forwarded-*",
    "x-real-ip",
    "x-original-*",
    "x-rewrite-url",
    "x-http-method*",
    "x-method-override",
    "x-request-id",
    "argus-*",
    "x-argus-*",
    "x-ray-*",
    "x-request-timeout-seconds",
    "x-request-disconnect-disabled",
    "x-serve-router-*",
    "serve-multiplexed-model-id",
    "sec-websocket-*",
    "sec-fetch-*",
};
static const char *const never_down[] = {
    "date",
    "server",
    "via",
    "set-cookie*",
    "access-control-*",
    "timing-allow-origin",
    "strict-transport-security",
    "public-key-pins*",
    "clear-site-data",
    "service-worker-allowed",
    "alt-svc",
    "refresh",
    "nel",
    "report-to",
    "reporting-endpoints",
    "origin-agent-cluster",
    "www-authenticate",
    "x-accel-*",
    "x-argus-*",
    "sec-websocket-*",
    "location",
    "content-location",
    "x-request-id",
};

static bool header_char_is(char a, char b)
{
    char x = (char)(a >= 'A' && a <= 'Z' ? a + 32 : a);
    return (x == '_' ? '-' : x) == b;
}

static bool header_name_is(const char *name, const char *pattern)
{
    for (; *pattern && *pattern != '*'; name++, pattern++)
        if (!header_char_is(*name, *pattern))
            return false;
    return *pattern == '*' || !*name;
}

static bool header_is_one_of(const char *name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (header_name_is(name, list[i]))
            return true;
    return false;
}

bool header_goes_up(const char *name, const char *connection)
{
    return !header_is_one_of(name, ends_here, array_len(ends_here)) &&
           !header_is_one_of(name, never_up, array_len(never_up)) &&
           !answer_list_has(connection, name);
}

bool header_goes_down(const char *name, const char *connection)
{
    return !header_is_one_of(name, ends_here, array_len(ends_here)) &&
           !header_is_one_of(name, never_down, array_len(never_down)) &&
           !answer_list_has(connection, name);
}

/* One dot of a path, encoded or not: its bytes, 0 if there is none. */
static size_t header_dot(const char *s)
{
    return *s == '.' ? 1 : !strncasecmp(s, "%2e", 3) ? 3 : 0;
}

/* The byte or escape ends a segment; a backslash does for some servers. */
static size_t header_slash(const char *s)
{
    return *s == '/' || *s == '\\'                                  ? 1
           : !strncasecmp(s, "%2f", 3) || !strncasecmp(s, "%5c", 3) ? 3
                                                                    : 0;
}

bool header_is_below(const char *path)
{
    bool is_start = true;
    for (const char *p = path; *p;) {
        size_t slash = header_slash(p);
        if (is_start && !slash) {
            size_t one = header_dot(p), two = one ? header_dot(p + one) : 0;
            const char *end = p + one + two;
            if (one && (!*end || *end == ';' || header_slash(end)))
                return false;
        }
        is_start = slash > 0;
        p += slash ? slash : 1;
    }
    return true;
}

/* What follows "http://HOST" if the address is one of the server behind; NULL if it is not. */
static const char *header_path_behind(const struct header_place *at, const char *location)
{
    const char *rest = !strncasecmp(location, "http://", 7)    ? location + 7
                       : !strncasecmp(location, "https://", 8) ? location + 8
                       : !strncmp(location, "//", 2)           ? location + 2
                                                               : NULL;
    size_t n = strlen(at->host);
    if (!rest)
        return *location == '/' ? location : NULL;
    return !strncasecmp(rest, at->host, n) && (!rest[n] || strchr("/?#", rest[n])) ? rest + n
                                                                                   : NULL;
}

static bool header_is_address(const char *location)
{
    return !strncasecmp(location, "http://", 7) || !strncasecmp(location, "https://", 8) ||
           !strncmp(location, "//", 2);
}

bool header_location(const struct header_place *at, const char *location, struct buf *out)
{
    const char *path = header_path_behind(at, location);
    size_t scheme = strcspn(location, ":/?#"), n = strlen(at->base);
    if (!path && header_is_address(location))
        return buf_adds(out, location) == 0;
    if (!path) /* relative to the request's own address; anything else has a scheme */
        return location[scheme] != ':' && *location != '\\' && header_is_below(location) &&
               buf_adds(out, location) == 0;
    if (!strncmp(path, at->base, n) && (!path[n] || strchr("/?#", path[n])))
        path += n;
    else if (*path == '/' && !strncmp(path, at->prefix, strlen(at->prefix)) &&
             (!path[strlen(at->prefix)] || strchr("/?#", path[strlen(at->prefix)])))
        path += strlen(at->prefix); /* it knows where it is seen */
    buf_adds(out, at->prefix);
    return buf_adds(out, path) == 0;
}
