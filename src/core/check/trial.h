/* SPDX-License-Identifier: Apache-2.0 */
/* trial.h - what a trial says in its result.json: bytes that a job's own environment wrote. */
#pragma once
#include <stdint.h>

#include "base/err.h"
#include "base/field.h"
#include "core/spec/finding_class.h"

enum { TRIAL_RESULT_MAX = 1 << 20, TRIAL_SHOWN_MAX = 32 << 10, TRIAL_FINDINGS_MAX = 20 };

struct trial_result {
    bool ok;
    enum finding_class class; /* of the first finding; FINDING_CONFIG_ERROR where it has none that
                                 a trial may find */
    const char *message;      /* of all: a message; NULL: text is the sentence of the only one */
    char text[1024];
    char *shown; /* JSON object for people, at most TRIAL_SHOWN_MAX bytes */
};

extern const struct field_table trial_result_table; /* of what is shown */

/* hash: of what was asked; a result of something else is -ESTALE. -EINVAL: it is none. */
must_check int trial_read(const char *text,
                          size_t len,
                          const char *hash,
                          struct trial_result *ret,
                          struct err *err);
/* Rows of the training data as a trial counted them, from what it showed (NULL is fine); 0: it did
 * not say. verl may leave out some of them, never add any. */
int64_t trial_train_rows(const char *shown);
void trial_result_release(struct trial_result *r);
