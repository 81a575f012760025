/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
struct err;
int a_called(int x);
int a_in_a_table(int x);
int a_for_nobody(const char *text,
                 const char *and_another_text_that_is_long_enough_for_a_second_line,
                 struct err *err);
int a_for_tests(void);
char *a_names(const char *fmt, ...) printf_like(1, 2);
void a_check(void);
void a_list_of_jobs_free(void);
extern int (*const a_table[])(int);
