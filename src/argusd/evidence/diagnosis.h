/* SPDX-License-Identifier: Apache-2.0 */
/* diagnosis.h - the finding of one attempt, or of the trial before the first, made from what it
 * left on the shared root.
 *
 * Reads the driver's log, and where that does not know those of the workers, through the finder
 * (core/finding/finding.h) together with what argusd knows and the scene (shepherd/scout/scene.h)
 * holds, and leaves attempts/<k>/finding.json, and in scene/ what Ray said last. Bounded: of a huge
 * log the beginning and the end are read. Blocking: for the worker pool. */
#pragma once
#include "base/clock.h"
#include "base/err.h"
#include "base/strv.h"
#include "core/finding/finding_page.h"

enum {
    DIAGNOSIS_HEAD = 128 << 20,       /* of a log that is larger than both together */
    DIAGNOSIS_TAIL = 384 << 20,       /* these many bytes at its ends are read */
    DIAGNOSIS_WORKER_TAIL = 2 << 20,  /* of each log of a worker, where the driver's does not */
    DIAGNOSIS_WORKERS_MAX = 64 << 20, /* know; and of all of them */
    DIAGNOSIS_FACTS_MAX = 256 << 10,  /* of one node's scene.json */
    DIAGNOSIS_BODY_MAX = 128 << 10,
};

struct diagnosis {
    /* What is asked. Owned texts; those of facts are borrowed from them. */
    char *root, *job;
    int k;                             /* 0: of the trial, of which all is known */
    const struct finding_rules *rules; /* borrowed */
    struct finding_facts facts;
    char *lost_node, *odd_node, *odd_rank, *stopped_reason, *oom_line, *xid_line, *nan_text,
        *start_says;
    char *node;      /* where the driver ran; NULL: not known */
    char *ray_nodes; /* what Ray said of nodes and of actors, for the scene: JSON; NULL */
    char *ray_actors;
    bool is_given; /* the class is known: nothing is read */
    enum finding_class given;
    char *whole;         /* all of it is known, as finding_to_json() writes it; NULL */
    struct pairs names;  /* address of a node, as Ray's logs have it, to its name */
    bool all_named;      /* these are all of the job's nodes */
    bool no_logs;        /* the facts say all */
    bool no_file;        /* nothing is written: the root hangs */
    uint64_t head, tail; /* bytes of a log that are read at its ends; 0: as above */
    usec_t at;           /* wall: when it is made */

    /* What came of it. */
    struct finding found;
    char sentence[400];
    char *body;       /* JSON object, as it is stored and shown */
    struct err wrote; /* why there is no finding.json; code 0: there is */
};

extern const struct field_table diagnosis_table; /* of the body: "Finding" in openapi.json */

/* d->facts gets its texts. */
void diagnosis_run(struct diagnosis *d);
void diagnosis_release(struct diagnosis *d);
