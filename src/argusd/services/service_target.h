/* SPDX-License-Identifier: Apache-2.0 */
/* service_target.h - where a request to a service goes, and what became of it: all that whoever
 * carries requests (HTTP, SSE, WebSocket) knows of services.
 *
 * A request:  service_target() once, then the first door; where that refuses the connection or
 * breaks before a byte of an answer, the second one, if the request may be sent twice. What follows
 * the service's name in the path ("/v1/chat/completions?x=1") is put behind the door's prefix as it
 * came. Then service_begin(), and service_end() with what became of it, exactly once each. Doors
 * are addresses of machines that argusd leases: nothing else is ever connected to. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

struct http_principal;
struct http_req;
struct serving;
struct wire;

enum {
    SERVICE_NAME_MAX = 40,
    SERVICE_DOORS = 2,
    SERVICE_ADDRESS_MAX = 64,
    SERVICE_PREFIX_MAX = 88,
    SERVICE_KEY_MAX = 80,
    SERVICE_CALLER_MAX = 72
};

/* Ray Serve's HTTP proxy on one machine, and the route of one replica's application. */
struct service_door {
    char address[SERVICE_ADDRESS_MAX]; /* IPv4 or IPv6, no name */
    int port;
    char prefix[SERVICE_PREFIX_MAX]; /* "/s/sums-v2": no slash at its end */
    int unit;                        /* for service_begin() and service_end() */
};

/* Plain values; nothing of it is borrowed. */
struct service_target {
    char service[SERVICE_NAME_MAX + 1];
    int64_t version;
    struct service_door doors[SERVICE_DOORS]; /* the one with the fewest requests first */
    int n_doors;                              /* at least 1 */
    /* Sent with each request, and never shown to anybody: without it the proxy's gate says 401. A
     * header of this name that came from outside is taken away. */
    const char *key_header; /* "x-argus-key"; static */
    char key[SERVICE_KEY_MAX];
    bool counts_tokens; /* an OpenAI-compatible engine: `usage` of its answers is counted */
    usec_t timeout;     /* of a whole request without progress */
    uint64_t max_body;  /* bytes of a request */
    /* What one caller may have in a minute; 0: no limit. The carrier counts. A caller is a user, or
     * a key of the service ("key 3f2a9c01b7de", which no user is called), with limits of its own
     * where it has some. */
    int64_t requests_per_minute, tokens_per_minute;
    char caller[SERVICE_CALLER_MAX];
    char by_key[SERVICE_CALLER_MAX]; /* id of that key; "": he came with a token */
    double log_share; /* 0 to 1: of so many requests one line is kept, never a body */
};

/* The version that a request names, as in its header Argus-Version; 0: text is NULL, it names none.
 * ERR_BAD_REQUEST: it is no number from 1 on. */
#define SERVICE_VERSION_HEADER "Argus-Version"
must_check int service_version_from_text(const char *text, int64_t *ret, struct err *err);
/* Where this user's next request to that version of the service goes; version 0: to the one that
 * has the traffic. ERR_NOT_FOUND: there is no such service or version, or he may not see it.
 * ERR_FORBIDDEN: he may see it and not call it. ERR_CONFLICT: no replica of that version is ready,
 * and none is to be. ERR_UNAVAILABLE: no replica of what has the traffic is ready, and the sentence
 * says why, as `argus service status` does; or that version is kept warm, and being loaded. A
 * key asks as whoever made it, and finds no service but its own. A service that sleeps is woken by
 * this, in his name, and says that it is; a version that cannot be asked wakes nothing. Limits are
 * the service's: those of the version that has the traffic, whichever answers. */
must_check int service_target(struct serving *sv,
                              const char *name,
                              int64_t version,
                              const struct http_principal *who,
                              struct service_target *ret,
                              struct err *err);

/* Answers the request, whose path names the service, with what service_target() of that version
 * refused it with, and with the time after which it may be asked again where it is being woken or
 * loaded. */
void service_refuse(const struct serving *sv,
                    struct http_req *req,
                    int64_t version,
                    const struct err *err);

/* The request goes through this door. A door that refused was not begun. */
void service_begin(struct serving *sv,
                   const struct service_target *t,
                   const struct service_door *d);

struct service_counted {
    int status;         /* of the answer; 0: none came. 499: the client left first */
    usec_t took, first; /* until the last byte, until the first one; 0: none came */
    uint64_t bytes_in, bytes_out;
    int64_t tokens_in, tokens_out; /* by `usage` of the answer; -1: not known */
    bool is_estimated;             /* the answer said none: they are a guess */
    bool refused; /* a limit of ours: it never went through a door, and was not begun */
    /* For the last requests of the service; path without its query. NULL: it is none of them. */
    const char *user, *method, *path;
};
/* What became of it; d is NULL where none was begun. The service or its version may be gone. */
void service_end(struct serving *sv,
                 const struct service_target *t,
                 const struct service_door *d,
                 const struct service_counted *c);
/* Nothing listens at this door: others go first for a while, and it is looked at. */
void service_door_failed(struct serving *sv,
                         const struct service_target *t,
                         const struct service_door *d);
/* What sends a request that is not passed on as it came: argusd's own connections to doors. NULL
 * once the service is closed. */
struct wire *serving_wire(const struct serving *sv);
