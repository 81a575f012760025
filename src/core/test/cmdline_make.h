/* SPDX-License-Identifier: Apache-2.0 */
/* cmdline_make.h - from the text of a JobSpec to a whole command line, with a
 * made-up cluster around it: for the unit test and for cmdline_tool. */
#pragma once
#include "core/verl/cmdline.h"

struct made {
    struct spec spec;
    struct cmdline cmd;
    struct demand demand;
    struct problems ps;
    struct err err;
};

struct make_place {
    const char *root; /* the shared root */
    const char *hook; /* may be NULL */
    const char *code; /* user_code_path; may be NULL */
    int64_t own_step;
};

/* 0, or negative with made->err or made->ps. version NULL: none. Release it in any case. */
must_check int make_cmdline(const char *yaml,
                            const char *version,
                            const struct make_place *place,
                            struct made *ret);
void made_release(struct made *m);
/* One argument a line, environment, links and demand. */
void made_to_text(const struct made *m, struct buf *out);
/* {"argv": […], "env": {…}, "links": {…}} */
void made_to_json(const struct made *m, struct buf *out);
