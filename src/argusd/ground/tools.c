/* SPDX-License-Identifier: Apache-2.0 */
/* tools.c - from the bytes inside argusd to files on the shared root; see tools.h. */
#include "argusd/ground/tools.h"

#include "embedded.h"
#include "fsroot/fsroot.h"

int tools_place(const char *root, struct err *err)
{
    const struct fsroot_file files[] = {
        {"argus_import.py", embedded_argus_import_py, embedded_argus_import_py_size},
        {"argus_look.py", embedded_argus_look_py, embedded_argus_look_py_size},
        {"argus_prepare.py", embedded_argus_prepare_py, embedded_argus_prepare_py_size},
        {"argus_remote.py", embedded_argus_remote_py, embedded_argus_remote_py_size},
        {"argus_sources.py", embedded_argus_sources_py, embedded_argus_sources_py_size},
        {"argus_trial.py", embedded_argus_trial_py, embedded_argus_trial_py_size},
    };
    return fsroot_install_lib(root, files, array_len(files), err);
}
