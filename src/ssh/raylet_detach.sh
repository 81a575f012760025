#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# raylet_detach.sh - runs the script $1 with the other arguments in a session of its own, which goes on when the
# connection breaks, and prints what it prints. Its output goes by a file, since a pipe would end with us.
act=$1
shift
file=$(mktemp "/tmp/argus-$(id -u)-XXXXXX") || { echo "END=unwritable /tmp" && exit 0; }
if command -v setsid >/dev/null 2>&1; then
    setsid sh -c "$act" argus-raylet "$@" >"$file" 2>&1 </dev/null &
else
    python3 -c 'import os, sys; os.setsid(); os.execvp("sh", ["sh"] + sys.argv[1:])' \
        -c "$act" argus-raylet "$@" >"$file" 2>&1 </dev/null &
fi
wait $!
cat "$file"
rm -f "$file"
