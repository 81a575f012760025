/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_run.h - what the files of the doctor share: one look, and the checks as they are made.
 * Nobody else includes it; see doctor.c. */
#pragma once
#include "argusd/kit/api.h"
#include "argusd/kit/saying.h"
#include "base/message.h"
#include "fsroot/tree/rootprobe.h"
#include "http/certificate.h"

enum { DOCTOR_CHECKS_MAX = 24, DOCTOR_LIMIT_SEC = 10 };

/* Only "ill" is a failure: "soon" will be one, and "unknown" could not be looked at. */
enum doctor_state { DOCTOR_WELL, DOCTOR_SOON, DOCTOR_ILL, DOCTOR_UNKNOWN };

struct doctor_check {
    const char *name; /* static */
    int state;
    struct said said; /* made of text */
    char text[JOB_REASON_TEXT_MAX];
};

struct doctor_room {
    int trouble; /* negative errno: nothing is known of it */
    uint64_t free_bytes, total_bytes;
};

/* What the worker thread sees of the certificate. */
struct doctor_tls {
    char *cert, *key; /* NULL: argusd speaks no TLS */
    struct err err;   /* why argusd would not start with them */
    struct certificate file;
};

/* One look at what blocks and at servers elsewhere, and all who wait for it. Freed once it is
 * over. */
struct doctor_look {
    struct api *a;
    struct doctor_ask *asks;
    unsigned waits; /* for the worker thread, and for the trackers */
    bool tests_root;
    bool is_late; /* somebody was answered without it: nobody waits for it any more */
    bool is_over; /* the worker thread's part of it */
    /* What the worker thread touches, until is_over. */
    char *root, *state_dir;
    struct err err;
    struct rootprobe probe;
    struct doctor_room state;
    struct doctor_tls tls;
};

/* The checks as they are made; v[].said is released with it. */
struct doctor_sight {
    const struct api *a;
    const struct doctor_look *look;
    struct api_eyes eyes;
    const char *host; /* by which the request came; NULL: it is not told by that */
    usec_t now;
    struct doctor_check v[DOCTOR_CHECKS_MAX];
    size_t n;
};

void doctor_say(struct doctor_sight *s,
                const char *name,
                enum doctor_state state,
                const char *code,
                const struct message_arg *args);

/* ---- doctor_around.c: what stands between argusd and others ---- */

/* On the worker thread. */
void doctor_look_at_tls(struct doctor_tls *t);
void doctor_see_certificate(struct doctor_sight *s);
void doctor_see_trackers(struct doctor_sight *s);
void doctor_see_prometheus(struct doctor_sight *s);
