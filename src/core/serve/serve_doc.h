/* SPDX-License-Identifier: Apache-2.0 */
/* serve_doc.h - the whole document that Ray Serve is given: every application that argusd has, and
 * those of others as they were found. Pure.
 *
 * Each application is held to one machine by the same label selector on all of its deployments
 * (with another one on one of them Ray would import the user's code on the head), has a CPU or a
 * GPU in every replica (else it would land on the head), and ends requests that wait too long. */
#pragma once
#include "base/buf.h"
#include "core/serve/serve_spec.h"

/* One application. All borrowed. */
struct serve_app {
    const char *name;    /* serve_app_name() */
    const char *service; /* the name under which a model answers */
    const struct serve_spec *spec;
    const struct field_list *deployments; /* of an application: serve_spec_merge() */
    const char *label, *node;             /* "argus.node", "h1" */
    const char *share;                    /* the lease's resource; NULL: it has none */
    const char *lib;                      /* where our own modules lie on the machines */
    const char *code;                     /* directory of the snapshot; NULL: none */
};

struct serve_doc {
    int64_t port;
    const char *const *apps; /* serve_doc_app() of each, in the order of names */
    size_t n_apps;
    const char *const *foreign; /* the configuration of each as it was found */
    size_t n_foreign;
};

/* Heap: the JSON of one application. NULL: more than SERVE_TEXT_MAX. */
char *serve_doc_app(const struct serve_app *a);
void serve_doc_write(const struct serve_doc *d, struct buf *out);
/* Is everything that was sent there, with the same values? Numbers are equal by value, and what Ray
 * adds is no difference. */
bool serve_doc_has(const json_t *sent, const json_t *shown);
