/* SPDX-License-Identifier: Apache-2.0 */
/* tools.c - from the bytes inside argusd to files on the shared root; see tools.h. */
#include "argusd/ground/tools.h"

#include "embedded.h"
#include "fsroot/attempt/install.h"

int tools_place(const char *root, struct err *err)
{
    const struct fsroot_file files[] = {
        {"argus_client.py", embedded_argus_client_py, embedded_argus_client_py_size},
        {"argus_engine.py", embedded_argus_engine_py, embedded_argus_engine_py_size},
        {"argus_gate.py", embedded_argus_gate_py, embedded_argus_gate_py_size},
        {"argus_import.py", embedded_argus_import_py, embedded_argus_import_py_size},
        {"argus_look.py", embedded_argus_look_py, embedded_argus_look_py_size},
        {"argus_netcheck.py", embedded_argus_netcheck_py, embedded_argus_netcheck_py_size},
        {"argus_notebook.py", embedded_argus_notebook_py, embedded_argus_notebook_py_size},
        {"argus_prepare.py", embedded_argus_prepare_py, embedded_argus_prepare_py_size},
        {"argus_raylet.py", embedded_argus_raylet_py, embedded_argus_raylet_py_size},
        {"argus_record.py", embedded_argus_record_py, embedded_argus_record_py_size},
        {"argus_remote.py", embedded_argus_remote_py, embedded_argus_remote_py_size},
        {"argus_serve.py", embedded_argus_serve_py, embedded_argus_serve_py_size},
        {"argus_sources.py", embedded_argus_sources_py, embedded_argus_sources_py_size},
        {"argus_track.py", embedded_argus_track_py, embedded_argus_track_py_size},
        {"argus_trial.py", embedded_argus_trial_py, embedded_argus_trial_py_size},
    };
    return fsroot_install_lib(root, files, array_len(files), err);
}
