# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# remedycall.sh - what may be put right on a machine by itself; prints KEY=VALUE lines, END=done when it came to its end.
#   strays   OWNER NODE MARK SECONDS JOB…   ends the processes of these jobs, which are over: SIGTERM, SIGKILL after SECONDS
#   sessions OWNER NODE MARK TEMP_DIR AGE   removes the directories of Ray sessions of ours that are dead
#
# A process is ended where three things hold: it belongs to our user, its environment has the MARK of this node's raylet, and
# the id of one of these jobs. It is known by pid and start time from then on.
# A directory goes where all of these hold: the raylet that had it was started by us (raylet.sh wrote it down), it is ours and
# no link, it is not the newest one, no process names it or has a file of it open, nothing is mounted in it, and nothing
# in it has changed for AGE minutes. The last one stands for processes that are not seen here: those of another container.
LC_ALL=C
export LC_ALL
verb=$1 owner=$2 node=$3 mark=$4
shift 4
dir=/tmp/argus-$(id -u)/$owner/$node

start_of() {
    read -r line 2>/dev/null <"/proc/$1/stat" || return 1
    start_read ${line##*) }
}
start_read() {
    [ $# -ge 20 ] || return 1
    state=$1
    shift 19
    start=$1
    [ "$state" != Z ] && [ "$state" != X ]
}
still_is() { start_of "$1" && [ "$start" = "$2" ]; }

# ---- processes of jobs that are over ----

# The job among "$@" that a process is of, as $job.
job_of() { # pid jobs…
    at=/proc/$1
    shift
    # shellcheck disable=SC3067 # every sh that is in use knows -O
    [ -O "$at" ] || return 1
    # A line inside of a value is no variable: a job may have kept the environment of another one in it.
    says=$(tr '\n\0' ' \n' 2>/dev/null <"$at/environ" | grep -x -e "ARGUS_MARK=$mark" -e 'ARGUS_JOB_ID=[A-Za-z0-9._-]*')
    case "
$says
" in
    *"
ARGUS_MARK=$mark
"*) ;;
    *) return 1 ;;
    esac
    for job in "$@"; do
        case "
$says
" in
        *"
ARGUS_JOB_ID=$job
"*) return 0 ;;
        esac
    done
    return 1
}

# "pid start" of each, a line each, as $found
find_strays() { # jobs…
    found=
    for pid in $(grep -l -e "ARGUS_MARK=$mark" /proc/[0-9]*/environ 2>/dev/null | sed 's/^\/proc\/\([0-9]*\)\/.*/\1/'); do
        [ "$pid" != $$ ] && start_of "$pid" && job_of "$pid" "$@" || continue
        found="$found$pid $start
"
    done
}
signal_strays() { # signal
    while read -r pid began; do
        still_is "$pid" "$began" && kill "-$1" "$pid" 2>/dev/null
    done <<LIST
$found
LIST
}
count_alive() {
    alive=0
    while read -r pid began; do
        still_is "$pid" "$began" && alive=$((alive + 1))
    done <<LIST
$found
LIST
}
wait_ended() { # seconds
    left=$(($1 * 10))
    while :; do
        count_alive
        [ "$alive" -gt 0 ] && [ "$left" -gt 0 ] || return 0
        left=$((left - 1))
        sleep 0.1 2>/dev/null || { sleep 1 && left=$((left - 9)); }
    done
}

strays() { # seconds jobs…
    grace=$1
    shift
    find_strays "$@"
    count_alive
    all=$alive
    signal_strays TERM
    wait_ended "$grace"
    killed=$alive
    if [ "$killed" -gt 0 ]; then
        find_strays "$@" # with what they have started meanwhile
        signal_strays KILL
        wait_ended 5
    fi
    echo "PROCESSES=$all"
    echo "KILLED=$killed"
    echo "LEFT=$alive"
}

# ---- directories of dead sessions ----

is_in_use() { # path name
    # By a file of patterns: what a grep is given as a word, it would find in its own command line.
    printf '%s\n' "$2" | grep -q -F -f - /proc/[0-9]*/cmdline /proc/[0-9]*/environ /proc/[0-9]*/maps 2>/dev/null
    # 2: some of them belong to others, or have ended. Above that it is not known: a command line has no room for so many.
    case $? in
    1 | 2) ;;
    *) return 0 ;;
    esac
    # shellcheck disable=SC2010 # the names of links matter, and no file has them
    ls -l /proc/[0-9]*/fd /proc/[0-9]*/cwd 2>/dev/null | grep -q -F -e "/$2/" -e "/$2" && return 0
    grep -q -F -e "/$2/" -e "/$2 " /proc/mounts /proc/net/unix 2>/dev/null
}
is_dead() { # path name
    # shellcheck disable=SC3067
    [ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ] || return 1
    # Its logs tell why it ended.
    [ "$(readlink "$temp/session_latest" 2>/dev/null | sed 's/.*\///')" != "$2" ] || return 1
    is_in_use "$1" "$2" && return 1
    [ "$(find "$1" -prune -mmin "+$age" 2>/dev/null)" = "$1" ] || return 1 # nor is it dead where find does not work
    [ -z "$(find "$1" -mmin "-$age" 2>/dev/null | head -n 1)" ]
}

sessions() { # temp_dir age
    temp=${1%/} age=$2 n=0
    ours=${dir%/*/*} # below /tmp others may have been first
    # shellcheck disable=SC3067
    [ ! -L "$ours" ] && [ -O "$ours" ] && [ -O "$dir" ] && [ -f "$dir/sessions" ] && [ -O "$dir/sessions" ] || return 0
    # shellcheck disable=SC3067
    [ -d "$temp" ] && [ ! -L "$temp" ] && [ -O "$temp" ] || return 0
    while read -r path && [ "$n" -lt 20 ]; do
        name=${path##*/}
        [ "$path" = "$temp/$name" ] || continue
        case $name in
        *[!A-Za-z0-9_.-]*) continue ;;
        session_[0-9]*) ;;
        *) continue ;;
        esac
        is_dead "$path" "$name" || continue
        kb=$(du -sk "$path" 2>/dev/null | sed 's/[^0-9].*//')
        # rm follows no link, and a link that came into its place meanwhile is all that goes
        rm -rf -- "$path" 2>/dev/null && echo "REMOVED=${kb:-0} $path" && n=$((n + 1))
    done <"$dir/sessions"
}

"$verb" "$@"
echo END=done
