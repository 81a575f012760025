/* SPDX-License-Identifier: Apache-2.0 */
#include "core/a.h"

int a_called(int x)
{
    return x;
}

int a_in_a_table(int x)
{
    return a_called(x);
}

int a_for_nobody(const char *text, struct err *err)
{
    return text && err; /* a_for_nobody() in a comment is no call, nor is "a_for_nobody" */
}

int a_for_tests(void)
{
    return 1;
}

char *a_names(const char *fmt, ...)
{
    return 0;
}

void a_check(void)
{
}

void a_list_of_jobs_free(void)
{
}

#define A(noun) a_list_of_##noun##_free()
int (*const a_table[])(int) = {a_in_a_table};
