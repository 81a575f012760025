# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# token.sh <instance> <token>: keeps Ray's token in a file that only its user reads, and says where.
#
# Below /tmp others may be first: whoever owns the upper directory could swap the lower one between
# the look and the mv. So both are made, or are directories of our own and no links.
umask 077
at=/tmp/argus-$(id -u)
dir=$at/$1
own() {
    mkdir "$1" 2>/dev/null
    # shellcheck disable=SC3067 # every sh that is in use knows -O
    [ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ]
}
own "$at" && chmod go-w "$at" && own "$dir" && chmod 700 "$dir" || exit 3
printf '%s\n' "$2" >"$dir/ray_token.$$" && mv "$dir/ray_token.$$" "$dir/ray_token" || exit 4
printf '%s\n' "$dir/ray_token"
