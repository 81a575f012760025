/* SPDX-License-Identifier: Apache-2.0 */
/* docbroken.h - what is wrong with a YAML text that libfyaml refused, in words of ours. */
#pragma once

/* The catalogue's code for libfyaml's sentence; "yaml_broken" for one that is not known. */
const char *docbroken_code(const char *sentence);
