/* SPDX-License-Identifier: Apache-2.0 */
/* load.h - what argusd needs to know at its start, row by row. */
#pragma once
#include "store/reader.h"

must_check int load_all(struct reader *reader,
                        const struct store_load_ops *ops,
                        void *arg,
                        struct store_last *ret,
                        struct err *err);
