/* SPDX-License-Identifier: Apache-2.0 */
/* overlaypack.h - the packages that a user installed in a notebook, as one tar of which a snapshot
 * is made.
 *
 *   users/<user>/.argus/notebooks/<notebook>/overlay   "overlay-<environment> python3.11": which
 *                                                      overlay its last start used
 *   users/<user>/.argus/<overlay>/lib/<python>/site-packages
 *
 * lib/argus_notebook.py writes both. <environment> is a hash of the interpreter below the overlay;
 * packages with compiled parts work with that interpreter alone. The tar has what is installed, as
 * it can be imported from PYTHONPATH, and at its top
 *
 *   argus-packages.txt       each package with its exact version, as pip reads it; it is not named
 *                            requirements.txt, since that says what a machine must have (needs.h)
 *   argus-environment.json   {"environment": "0123456789ab", "python": "python3.11"}
 *
 * Left out are pip itself, links, and what Python compiled. All of this is written by jobs: it is
 * listed and opened below descriptors, by no link, and within the limits. All blocks. */
#pragma once
#include "fsroot/archive/packlist.h"

enum { OVERLAY_ENVIRONMENT = 13 };

/* All borrowed. */
struct overlaypack {
    const char *root;
    const char *user, *notebook;
    const char
        *upload; /* id of the upload that gets the tar (content/upload.h); nobody else has it */
    struct packlist_limits limits;
};

struct overlaypack_made {
    uint64_t bytes;  /* of the tar */
    size_t packages; /* lines of argus-packages.txt */
    char environment[OVERLAY_ENVIRONMENT];
};

/* ERR_CONFLICT: it never ran, or nothing was installed, or a file was written meanwhile.
 * ERR_REFUSED: past a limit. What was written of the upload is the caller's to remove. */
must_check int overlaypack_write(const struct overlaypack *o,
                                 struct overlaypack_made *ret,
                                 struct err *err);
