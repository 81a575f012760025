/* SPDX-License-Identifier: Apache-2.0 */
/* finding_start.c - see finding_start.h. Whatever else keeps a command from starting (no memory, no
 * pipe, a root that does not answer) is no row here. */
#include "core/finding/finding_start.h"

#include "base/mem.h"
#include "base/message.h"
#include "base/str.h"

static const struct finding_start MISTAKES[] = {
    {"child_not_in_path", FINDING_PERMISSION_OR_PATH, "command-not-found"},
    {"command_missing", FINDING_PERMISSION_OR_PATH, "path-of-program"},
    {"command_not_executable", FINDING_PERMISSION_OR_PATH, "command-not-executable"},
    {"command_is_directory", FINDING_PERMISSION_OR_PATH, "command-is-directory"},
    {"command_crlf", FINDING_PERMISSION_OR_PATH, "command-crlf"},
    {"command_no_interpreter", FINDING_PERMISSION_OR_PATH, "command-no-interpreter"},
    {"child_no_interpreter", FINDING_PERMISSION_OR_PATH, "command-no-interpreter"},
    {"command_no_shebang", FINDING_PERMISSION_OR_PATH, "command-format"},
    {"command_bom", FINDING_PERMISSION_OR_PATH, "command-format"},
    {"command_foreign", FINDING_PERMISSION_OR_PATH, "command-format"},
    {"command_bad_path", FINDING_PERMISSION_OR_PATH, "path-of-program"},
    {"child_no_cwd", FINDING_PERMISSION_OR_PATH, "command-directory"},
    {"child_no_program", FINDING_CONFIG_ERROR, "command-empty"},
    {"command_too_long", FINDING_CONFIG_ERROR, "command-too-long"},
};

const struct finding_start *finding_start_of(const char *kept)
{
    const char *code = kept ? message_kept_code(kept) : NULL;
    for (size_t i = 0; code && i < array_len(MISTAKES); i++)
        if (str_eq(MISTAKES[i].says, code))
            return &MISTAKES[i];
    return NULL;
}
