#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# modelcache.sh - a model of the shared root on this machine's own disk: KEY=VALUE lines that modelcache.c reads.
#   $1 directory of the cache  $2 where the model is  $3 its sha256 in the registry, in hex
#   $4 bytes that all copies may take  $5 the job that asks  $6… jobs that are not over on this machine
#
#   <dir>/<sha256>/model/…   the copy; it has this name once it was read back and has this hash
#                 listing    size, time and name of each of its files: where that is another by now there is no copy
#                 bytes      what it takes
#                 jobs/<job> who uses it, changed at each use; the directory itself as well: by that the oldest goes
#   <dir>/.<sha256>.part     a copy that is being made, or was left by one that was killed
#   <dir>/.<sha256>.lock     held while it is made and looked at; <dir>/.lock while copies are chosen and removed
LC_ALL=C
export LC_ALL
umask 022
dir=$1 from=$2 key=$3 most=$4 job=$5
shift 5
jobs=" $* "
bytes=0 removed=0 began=.began.$$ part=.$key.part

# state sentence
end() {
    rm -f "$began"
    echo "STATE=$1"
    echo "BYTES=$bytes"
    echo "REMOVED=$removed"
    echo "TEXT=$2"
    exit 0
}
listing() { (cd "$1" && find . -type f -exec stat -c '%s %Y %n' {} + | sort); }
is_whole() { [ -f "$key/listing" ] && [ "$(listing "$key/model")" = "$(cat "$key/listing")" ]; }
use() { : >"$key/jobs/$job" && touch "$key"; }
sum_of() { cat "$@" 2>/dev/null | awk '{ n += $1 } END { printf "%.0f", n }'; }
free_bytes() { df -Pk . | awk 'NR == 2 { printf "%.0f", $4 * 1024 }'; }

# A job that is not over uses this copy, or one does that began since we were told which there are.
in_use() {
    for user in "$1"/jobs/*; do
        [ -e "$user" ] || continue
        case $jobs in *" ${user##*/} "*) return 0 ;; esac
        [ "$began" -nt "$user" ] || return 0
        rm -f "$user"
    done
    return 1
}

# What a script that was killed has left: nobody holds its lock.
remove_torn() {
    for torn in .*.part; do
        [ -d "$torn" ] && [ "$torn" != "$part" ] && flock -n "${torn%.part}.lock" rm -rf "$torn"
    done
    rm -rf "$part" .gone.*
}

remove_oldest() {
    for old in $(ls -tr); do
        [ -d "$old/jobs" ] && ! in_use "$old" || continue
        mv "$old" ".gone.$$" && rm -rf ".gone.$$" && removed=$((removed + 1)) && return 0
    done
    return 1
}

# Room for one more, that of copies that are being made beside it not counted.
has_room() {
    others=$(sum_of .*.part/bytes)
    [ $(($(sum_of */bytes) + others + bytes)) -le "$most" ] &&
        [ "$(free_bytes)" -ge $((bytes + bytes / 20 + others)) ]
}

copy_files() {
    (cd "$from" && find -L . -type f) | sed 's|^\./||' | sort >"$part/names"
    while IFS= read -r name; do
        case $name in */*) mkdir -p "$part/model/${name%/*}" || return 1 ;; esac
        cp -L -- "$from/$name" "$part/model/$name" || return 1
        chmod 0444 "$part/model/$name"
        printf '%s  %s\n' "$(sha256sum <"$part/model/$name" | cut -c 1-64)" "$name" || return 1
    done <"$part/names" >"$part/sums" 2>"$part/trouble"
}

mkdir -p "$dir" 2>/dev/null
cd "$dir" 2>/dev/null || end broken "'$dir' cannot be made or entered"
(: >"$began" && : >>.lock && : >>".$key.lock") 2>/dev/null || end broken "nothing can be written in '$dir'"
command -v flock >/dev/null 2>&1 || end broken "there is no flock here"
exec 8>>.lock 9>>".$key.lock"
flock 9 # who makes the same copy now is waited for
flock 8
if is_whole; then
    bytes=$(sum_of "$key/bytes")
    use 2>/dev/null || end broken "nothing can be written in '$dir/$key'"
    end hit ""
fi
rm -rf "$key"
remove_torn
bytes=$(find -L "$from" -type f -exec stat -L -c %s {} + 2>/dev/null | awk '{ n += $1 } END { printf "%.0f", n }')
[ "$bytes" -gt 0 ] || end broken "there is no file in '$from' here"
[ "$bytes" -le "$most" ] || end full "it takes $bytes bytes, and all copies may take $most"
while ! has_room; do
    remove_oldest || end full "it takes $bytes bytes, $(free_bytes) are free, and what is there is in use"
done
mkdir -p "$part/model" "$part/jobs" && echo "$bytes" >"$part/bytes" || end broken "nothing can be written in '$dir'"
flock -u 8
copy_files || {
    why=$(head -c 200 "$part/trouble" 2>/dev/null | tr '\n' ' ')
    rm -rf "$part"
    end broken "it could not be copied: $why"
}
[ "$(sha256sum <"$part/sums" | cut -c 1-64)" = "$key" ] || {
    rm -rf "$part"
    end differs "what lies in '$from' is not what was registered"
}
sync -f "$part" 2>/dev/null || sync
listing "$part/model" >"$part/listing" && rm -f "$part/names" "$part/sums" "$part/trouble"
flock 8
mv "$part" "$key" && use || end broken "the copy could not be put in its place"
end miss ""
