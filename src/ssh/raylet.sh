#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# raylet.sh - starts, adopts, looks at and stops the raylet of one node of ours; prints KEY=VALUE lines.
#   start OWNER NODE MARK TOKEN WAIT LIMIT HEAD SPARE DASHBOARD ADDRESS NODE_IP [K=V]… RAY start …
#         in a session of its own (raylet_detach.sh). SPARE: 1 or nothing; DASHBOARD of a head: "PORT SECONDS", or nothing
#   stop  OWNER NODE MARK WAIT GRACE                                                  the same
#   look  OWNER NODE MARK TEMP_DIR ROOT ROOT_MARK CARDS    CARDS: a directory with <architecture>/argus-gpus, or nothing
#   exporter OWNER NODE MARK PROGRAM PORT PLACE WORDS…    that program runs beside the raylet and listens on PORT: it is found,
#         or copied from PLACE/<architecture>; started in a session of its own, or adopted. Who stops the raylet, stops it.
# MARK (of owner and node) and TOKEN (of one start) are in the environment of all that the raylet starts.
#
# What may be ended, exactly: a recorded process with the start time that was recorded, in the same boot; who
# is in the recorded session while at least one recorded or marked process still is (until then the kernel gives that
# number to nobody else); who has the mark in its environment. No process is ended for its name.
LC_ALL=C
export LC_ALL
verb=$1 owner=$2 node=$3 mark=$4
shift 4
dir=/tmp/argus-$(id -u)/$owner/$node
read -r boot </proc/sys/kernel/random/boot_id

# state, session and start time (ticks since boot) of a living process
stat_of() {
    read -r line 2>/dev/null <"/proc/$1/stat" || return 1
    stat_read ${line##*) }
}
stat_read() {
    [ $# -ge 20 ] || return 1
    state=$1 session=$4
    shift 19
    start=$1
    [ "$state" != Z ] && [ "$state" != X ]
}
is_alive() { [ -n "$1" ] && stat_of "$1" && [ "$start" = "$2" ]; }
name_of() { read -r name 2>/dev/null <"/proc/$1/comm"; }
env_of() { tr '\0' '\n' 2>/dev/null <"/proc/$1/environ" | sed -n "s/^$2=//p" | head -n 1; }
option_of() { tr '\0' '\n' 2>/dev/null <"/proc/$1/cmdline" | sed -n "s/^--$2=//p" | head -n 1; }
# pids of all that have this text in their environment
pids_with() { grep -l -e "$1" /proc/[0-9]*/environ 2>/dev/null | sed 's/^\/proc\/\([0-9]*\)\/.*/\1/'; }
now() {
    read -r up _ </proc/uptime
    echo "${up%.*}${up#*.}0" # milliseconds
}
pause() { sleep 0.1 2>/dev/null || sleep 1; }
end() {
    echo "END=$*"
    exit 0
}

# ---- the record ----

# r_*: of the last start in this boot; r_all: "pid start" of each process then, a line each
read_record() {
    r_token='' r_session='' r_leader='' r_state='' r_pid='' r_start='' r_gcs='' r_gcs_start='' r_head=0 r_address='' r_ip='' r_all=''
    [ -f "$dir/record" ] || return 1
    while IFS='=' read -r key value; do
        case $key in
        BOOT) [ "$value" = "$boot" ] || return 1 ;;
        TOKEN) r_token=$value ;;
        SESSION) r_session=${value% *} r_leader=${value#* } ;;
        STATE) r_state=$value ;;
        RAYLET) r_pid=${value% *} r_start=${value#* } ;;
        GCS) r_gcs=${value% *} r_gcs_start=${value#* } ;;
        HEAD) r_head=$value ;;
        ADDRESS) r_address=$value ;;
        NODE_IP) r_ip=$value ;;
        PROC) r_all="$r_all$value
" ;;
        esac
    done <"$dir/record"
}

write_record() { # state
    {
        echo "BOOT=$boot"
        echo "TOKEN=$r_token"
        echo "SESSION=$r_session $r_leader"
        echo "STATE=$1"
        [ -z "$r_pid" ] || echo "RAYLET=$r_pid $r_start"
        [ -z "$r_gcs" ] || echo "GCS=$r_gcs $r_gcs_start"
        echo "HEAD=$r_head"
        echo "ADDRESS=$r_address"
        echo "NODE_IP=$r_ip"
        [ -z "$r_all" ] || printf %s "$r_all" | sed 's/^/PROC=/'
    } >"$dir/record.$$" && mv "$dir/record.$$" "$dir/record"
}

# the processes of the session as they are now, into r_*; $$ is only their starter
take_session() { # session
    r_all=
    for at in /proc/[0-9]*; do
        pid=${at#/proc/}
        stat_of "$pid" && [ "$session" = "$1" ] && [ "$pid" != $$ ] || continue
        r_all="$r_all$pid $start
"
        name_of "$pid" || continue
        case $name in
        raylet) r_pid=$pid r_start=$start ;;
        gcs_server) r_gcs=$pid r_gcs_start=$start ;;
        esac
    done
}

# ours without a record, or with one of another time: known by the mark
find_by_mark() {
    for pid in $(pids_with "ARGUS_MARK=$mark"); do
        name_of "$pid" && [ "$name" = raylet ] && stat_of "$pid" || continue
        r_session=$session r_token=$(env_of "$pid" ARGUS_RAYLET) r_leader=0
        r_ip=$(option_of "$pid" node_ip_address)
        r_address=$(option_of "$pid" gcs-address)
        r_head=0
        tr '\0' '\n' <"/proc/$pid/cmdline" | grep -qx -e --head && r_head=1
        take_session "$r_session"
        return 0
    done
    return 1
}

lives() { is_alive "$r_pid" "$r_start" && { [ "$r_head" = 0 ] || is_alive "$r_gcs" "$r_gcs_start"; }; }
find_ours() {
    read_record && lives && return 0
    [ "$r_state" = starting ] && return 1
    find_by_mark && lives
}

# The directories of sessions that raylets of ours had here: of these alone remedycall.sh may remove the dead ones.
note_session() {
    session_at=$(option_of "$r_pid" session_dir)
    case $session_at in
    /*/session_*) ;;
    *) return 0 ;;
    esac
    has_dir || return 0
    grep -qxF -e "$session_at" "$dir/sessions" 2>/dev/null && return 0
    {
        tail -n 99 "$dir/sessions" 2>/dev/null
        echo "$session_at"
    } >"$dir/sessions.$$" && mv "$dir/sessions.$$" "$dir/sessions"
}

print_facts() {
    echo "RAYLET=$r_pid $r_start $r_session"
    echo "BOOT=$boot"
    echo "TOKEN=$r_token"
    echo "HEAD=$r_head"
    echo "ADDRESS=$r_address"
    echo "NODE_IP=$r_ip"
}

# ---- the lock: a link whose text names its holder, made in one step; a dead one's is taken over ----

holder_lives() { # "pid.start.boot"
    rest=${1#*.}
    [ "${rest#*.}" = "$boot" ] && is_alive "${1%%.*}" "${rest%%.*}"
}
# Only one of several may take a dead one's lock, and only while it is still that one's.
take_over() {
    claim=$dir/claim.$1
    if ! mkdir "$claim" 2>/dev/null; then
        find "$claim" -prune -mmin +1 -exec rmdir {} \; 2>/dev/null # its maker died in this very step
        return 1
    fi
    [ "$(readlink "$dir/lock")" = "$1" ] && rm -f "$dir/lock"
    rmdir "$claim"
}
lock() { # seconds to wait
    stat_of $$
    me=$$.$start.$boot
    until=$(($(now) + $1 * 1000))
    while ! ln -s "$me" "$dir/lock" 2>/dev/null; do
        holder=$(readlink "$dir/lock" 2>/dev/null)
        [ -n "$holder" ] && ! holder_lives "$holder" && take_over "$holder" && continue
        [ "$(now)" -lt "$until" ] || return 1
        pause
    done
}
unlock() { [ "$(readlink "$dir/lock")" = "$me" ] && rm -f "$dir/lock"; }

# Below /tmp others may be first: what is not a directory of ours is not used.
has_dir() {
    at=/tmp/argus-$(id -u)
    (umask 077 && mkdir -p "$dir") 2>/dev/null
    # shellcheck disable=SC3067 # every sh that is in use knows -O
    [ -d "$dir" ] && [ ! -L "$at" ] && [ -O "$at" ] && [ -w "$dir" ]
}
make_dir() { has_dir || end "unwritable $dir"; }

# ---- ending ----

# all that may be ended, as "pid start" lines in $ours; without a fork, which would be in the list itself
note() { # pid start
    case "
$ours" in
    *"
$1 $2
"*) ;;
    *) ours="$ours$1 $2
" ;;
    esac
}
list_ours() {
    ours='' proven=''
    while read -r pid began; do
        is_alive "$pid" "$began" || continue
        [ "$session" = "$r_session" ] && proven=1
        note "$pid" "$began"
    done <<PROCS
$r_all
PROCS
    for pid in $(pids_with "ARGUS_MARK=$mark"); do
        [ "$pid" != $$ ] && stat_of "$pid" || continue
        [ "$session" = "$r_session" ] && proven=1
        note "$pid" "$start"
    done
    [ -n "$proven" ] || return 0
    for at in /proc/[0-9]*; do
        pid=${at#/proc/}
        [ "$pid" != $$ ] && stat_of "$pid" && [ "$session" = "$r_session" ] && note "$pid" "$start"
    done
}

# signal all of a list of "pid start" that still are who they were; counts them into $hit
hit=0
send() { # signal list
    hit=0
    while read -r pid began; do
        is_alive "$pid" "$began" && kill "-$1" "$pid" 2>/dev/null && hit=$((hit + 1))
    done <<LIST
$2
LIST
}
wait_gone() { # seconds list
    until=$(($(now) + $1 * 1000))
    while :; do
        left=
        while read -r pid began; do
            is_alive "$pid" "$began" && left="$left $pid"
        done <<LIST
$2
LIST
        [ -n "$left" ] || return 0
        [ "$(now)" -lt "$until" ] || return 1
        pause
    done
}
# what SIGTERM left, and what came up meanwhile
kill_rest() {
    killed=0
    for _ in 1 2 3 4 5; do
        list_ours
        [ -n "$ours" ] || return 0
        send KILL "$ours"
        killed=$((killed + hit))
        wait_gone 2 "$ours"
    done
    list_ours
    [ -z "$ours" ]
}

# ---- the verbs ----

clean_start() { # ray's whole command
    unset SSH_CLIENT SSH_CONNECTION SSH_TTY BASH_ENV ENV RAY_ADDRESS
    # shellcheck disable=SC3045 # and -S
    ulimit -S -n 65536 2>/dev/null || ulimit -n 65536 2>/dev/null || ulimit -S -n "$(ulimit -H -n)"
    for word in "$@"; do
        case $word in
        [A-Za-z_]*=*) ;;
        *) PATH=${word%/*}:$PATH && break ;; # as if that environment were activated
        esac
    done
    export PATH
    if command -v timeout >/dev/null 2>&1; then
        timeout -s KILL "$limit" env "ARGUS_OWNER=$owner" "ARGUS_NODE=$node" "ARGUS_MARK=$mark" "ARGUS_RAYLET=$r_token" "$@"
    else
        env "ARGUS_OWNER=$owner" "ARGUS_NODE=$node" "ARGUS_MARK=$mark" "ARGUS_RAYLET=$r_token" "$@"
    fi
}

# The address by which this machine reaches the head; Ray would ask the way to the internet. Nothing is sent.
own_address() { # head:port K=V… ray
    host=${1%:*}
    shift
    for ray in "$@"; do
        case $ray in
        [A-Za-z_]*=*) ;;
        *) break ;;
        esac
    done
    # "#!/path/python", or pip's way out where that line would be too long
    python=$(sed -n -e '1s/^#! *\(\/[^ ]*python[^ ]*\).*/\1/p' -e "2s/^'''exec' [\"']*\([^\"']*python[^\"' ]*\).*/\1/p" \
        -e 2q "$ray" 2>/dev/null | head -n 1)
    [ -n "$python" ] || python=${ray%/*}/python3
    "$python" -c 'import socket, sys
family, kind, _, _, at = socket.getaddrinfo(sys.argv[1].strip("[]"), 9, type=socket.SOCK_DGRAM)[0]
s = socket.socket(family, kind)
s.connect(at)
print(s.getsockname()[0])' "$host" 2>/dev/null
}

# `ray start --head` ends well though its dashboard does not come up; such a head takes no job, and nobody could use it yet.
listens() { # port
    cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
        grep -q "^ *[0-9]*: [0-9A-F]*:$(printf %04X "$1") [0-9A-F]*:0000 0A "
}
has_dashboard() {
    while read -r pid began; do
        is_alive "$pid" "$began" && tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -q 'dashboard/dashboard\.py' && return 0
    done <<PROCS
$r_all
PROCS
    return 1
}
await_dashboard() { # port seconds
    until=$(($(now) + $2 * 1000)) without=0
    while ! listens "$1"; do
        lives || return 1
        has_dashboard || without=$((without + 1))
        [ "$without" -lt 30 ] && [ "$(now)" -lt "$until" ] || return 1
        pause
    done
}
dashboard_log() { # words of ray start
    at=/tmp/ray
    for word in "$@"; do
        case $word in
        --temp-dir=*) at=${word#*=} ;;
        esac
    done
    echo "$at/session_latest/logs/dashboard.log"
}

# A head that has lost its raylet alone: jobs on other machines go on by its GCS.
has_gcs() {
    for pid in $(pids_with "ARGUS_MARK=$mark"); do
        name_of "$pid" && [ "$name" = gcs_server ] && stat_of "$pid" && return 0
    done
    return 1
}

start() { # token wait limit head spare dashboard address node_ip words…
    token=$1 limit=$3 head=$4 spare=$5 dashboard=$6 address=$7 ip=$8
    make_dir
    lock "$2" || end busy
    shift 8
    if find_ours; then
        write_record up
        unlock
        print_facts
        end adopted
    fi
    if [ -n "$spare" ] && has_gcs; then
        unlock
        end gcs_alone
    fi
    kill_rest # log_monitor and jobs of a raylet that died, or half a start
    if [ -z "$ip" ] && [ "$head" = 0 ]; then
        ip=$(own_address "$address" "$@")
        [ -z "$ip" ] || set -- "$@" "--node-ip-address=$ip"
    fi
    r_token=$token r_session=$$ r_head=$head r_address=$address r_ip=$ip r_pid='' r_gcs='' r_all=''
    stat_of $$
    r_leader=$start
    write_record starting || { unlock && end "unwritable $dir"; }
    began=$(now)
    (clean_start "$@") >"$dir/start.log" 2>&1 </dev/null
    status=$?
    took=$(($(now) - began))
    take_session $$
    # shellcheck disable=SC2086 # two words
    [ $status = 0 ] && lives && [ -n "$dashboard" ] && ! await_dashboard $dashboard && status=dashboard
    if [ $status = 0 ] && lives; then
        [ -n "$r_ip" ] || r_ip=$(option_of "$r_pid" node_ip_address)
        write_record up
        note_session
        unlock
        print_facts
        echo "TOOK_MS=$took"
        end started
    fi
    kill_rest
    rm -f "$dir/record"
    unlock
    echo "LOG_AT=$dir/start.log"
    tail -n 40 "$dir/start.log" | cut -c 1-500 | sed 's/^/LOG=/'
    if [ $status = dashboard ]; then
        log=$(dashboard_log "$@")
        echo "LOG_AT=$log"
        tail -n 5 "$log" 2>/dev/null | cut -c 1-500 | sed 's/^/LOG=/'
    fi
    end "failed $status"
}

stop() { # wait grace
    make_dir
    lock "$1" || end busy
    find_ours
    list_ours
    ended=$(printf %s "$ours" | grep -c .)
    if [ -n "$r_pid" ]; then
        send TERM "$r_pid $r_start"
        wait_gone "$2" "$r_pid $r_start"
    fi
    list_ours
    send TERM "$ours"
    wait_gone 3 "$ours"
    if kill_rest; then
        rm -f "$dir/record"
    else
        for pid in $left; do echo "LEFT=$pid $(tr '\0' ' ' <"/proc/$pid/cmdline" | cut -c 1-120)"; done
    fi
    unlock
    echo "KILLED=$killed"
    end "stopped $ended"
}

look() { # temp_dir root root_mark cards
    has_ours=
    echo "CLOCK=$(date +%s.%N)"
    if find_ours; then
        has_ours=1
        print_facts
        note_session
        [ ! -f "$dir/record" ] || touch "$dir/record" "$dir" # tmp cleaners go by age
    elif [ "$r_state" = starting ] && holder_lives "$(readlink "$dir/lock" 2>/dev/null)"; then
        echo STARTING=1
    elif has_gcs; then
        echo GCS=1
    fi
    marked=$(pids_with "ARGUS_MARK=$mark")
    files=
    for pid in $marked; do files="$files /proc/$pid/environ"; done
    [ -z "$files" ] || cat $files 2>/dev/null | tr '\0' '\n' | sed -n 's/^ARGUS_JOB_ID=//p' | sort | uniq -c | head -n 200 |
        sed 's/^ *\([0-9]*\) /JOB=\1 /'
    echo STEP=disk
    tmp=$1
    while [ ! -d "$tmp" ] && [ "$tmp" != / ] && [ -n "$tmp" ]; do tmp=$(dirname "$tmp"); done
    for at in "DISK_KB $tmp" "SHM_KB /dev/shm"; do
        df -Pk "${at#* }" 2>/dev/null |
            sed -n "2s/^.* \([0-9][0-9]*\)  *[0-9][0-9]*  *\([0-9][0-9]*\)  *[0-9]*% .*$/${at%% *}=\1 \2/p"
    done
    echo STEP=gpus
    smi=$(command -v nvidia-smi 2>/dev/null)
    if [ -n "$smi" ]; then
        echo NVIDIA=1
        "$smi" --query-gpu=name,driver_version,ecc.errors.uncorrected.volatile.total --format=csv,noheader 2>&1 | sed 's/^/GPU=/'
        for pid in $("$smi" --query-compute-apps=pid --format=csv,noheader 2>/dev/null | grep -x '[0-9]*' | sort -u); do
            case " $(echo "$marked" | tr '\n' ' ')" in
            *" $pid "*) continue ;;
            esac
            [ -d "/proc/$pid" ] && echo "GPU_USER=$pid $(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | cut -c 1-120)"
        done
        read -r up _ </proc/uptime
        dmesg 2>/dev/null | grep 'NVRM: Xid' | tail -n 8 | sed "s/^\[ *\([0-9]*\)\.[0-9]*\].*NVRM: Xid (\([^)]*\)): \([0-9]*\).*/XID=${up%.*} \1 \3 \2/"
    fi
    echo STEP=root
    if [ -n "$2" ]; then
        if [ ! -d "$2" ] || { [ -n "$3" ] && [ ! -f "$2/$3" ]; }; then
            echo ROOT=missing
        else
            file=$2/.probe-$$-$(uname -n)
            [ -z "$3" ] || file=$(dirname "$2/$3")/.probe-$$-$(uname -n)
            began=$(now)
            why=$(dd if=/dev/zero of="$file" bs=512 count=1 conv=fsync 2>&1) && echo "ROOT_MS=$(($(now) - began))" ||
                echo "ROOT_SAYS=$(echo "$why" | sed -n 's/.*: //p' | head -n 1)"
            rm -f "$file"
        fi
    fi
    if [ -n "$4" ] && [ -n "$has_ours" ]; then
        echo STEP=cards
        cards "$4/$(uname -m)/argus-gpus"
    fi
    echo STEP=rdma
    rdma
    echo STEP=end
    end looked
}

# What its InfiniBand and RoCE ports have counted, in words of 4 bytes, and when: Ray tells of neither. No process for each
# of these files, of which none is longer than a page.
rdma() {
    read -r up _ </proc/uptime
    echo "UPTIME=$up"
    left=129 # one more than is believed (core/figure/rdma.h)
    for at in /sys/class/infiniband/*/ports/*/counters; do
        received='' sent=''
        read -r received 2>/dev/null <"$at/port_rcv_data" && read -r sent 2>/dev/null <"$at/port_xmit_data" || continue
        [ "$left" -gt 0 ] || break
        left=$((left - 1))
        port=${at#/sys/class/infiniband/}
        echo "RDMA=$received $sent ${port%/counters}"
    done
}

# ---- what the driver says of its GPUs ----

# A reader of ours runs beside the raylet and keeps its newest sample in a file: the driver tells some errors only while
# it is watched, and to open it anew takes seconds. It bears the mark: who stops the raylet, stops it.
cards() { # program
    [ -x "$1" ] && has_dir || return 0
    at=$dir/cards
    c_boot='' c_pid='' c_start=''
    [ ! -f "$at.pid" ] || read -r c_boot c_pid c_start <"$at.pid"
    [ "$c_boot" = "$boot" ] || c_pid=
    if is_alive "$c_pid" "$c_start" && [ ! "/proc/$c_pid/exe" -ef "$1" ]; then # a newer one was placed
        send KILL "$c_pid $c_start"
        wait_gone 2 "$c_pid $c_start"
    fi
    if ! is_alive "$c_pid" "$c_start"; then
        rm -f "$at.json"
        program=$1
        c_pid=$(run_marked "$at.log" ARGUS_CARDS="$mark" --keep "$at.json")
        stat_of "$c_pid" && echo "$boot $c_pid $start" >"$at.pid"
        until=$(($(now) + 2000)) # its first sample; what is later comes with the next look
        while [ ! -f "$at.json" ] && is_alive "$c_pid" "$start" && [ "$(now)" -lt "$until" ]; do pause; done
    fi
    [ ! -f "$at.json" ] || [ "$(wc -c <"$at.json")" -gt 131072 ] || sed 's/^/CARDS=/' "$at.json"
}

# ---- the exporter of GPU figures beside it ----

# e_*: the one that was started in this boot; false: it does not run
find_exporter() {
    e_pid='' e_start='' e_port=''
    if [ -f "$dir/exporter" ]; then
        read -r e_boot e_pid e_start e_port <"$dir/exporter"
        [ "$e_boot" = "$boot" ] && is_alive "$e_pid" "$e_start" && return 0
    fi
    for e_pid in $(pids_with "ARGUS_EXPORTER=$mark"); do # without a record
        stat_of "$e_pid" && e_start=$start e_port='' && return 0
    done
    return 1
}

# The program: this machine's own, else a copy of what lies at PLACE, so that no mount that hangs can stop it.
place_exporter() { # name place
    for program in "$(command -v "$1" 2>/dev/null)" "/usr/bin/$1" "/usr/local/bin/$1"; do
        [ -n "$program" ] && [ -x "$program" ] && return 0
    done
    program=$dir/$1 source=$2/$(uname -m)/$1
    if [ -n "$2" ] && [ -f "$source" ] && ! cmp -s "$source" "$program" && [ "$(wc -c <"$source")" -le 268435456 ]; then
        cp "$source" "$program.$$" && chmod 700 "$program.$$" && mv "$program.$$" "$program"
    fi
    [ -x "$program" ]
}

# What dcgm-exporter is to tell; its own list leaves the errors out.
write_counters() {
    for field in GPU_UTIL FB_USED FB_FREE FB_RESERVED POWER_USAGE GPU_TEMP XID_ERRORS ECC_DBE_VOL_TOTAL \
        UNCORRECTABLE_REMAPPED_ROWS ROW_REMAP_FAILURE; do
        echo "DCGM_FI_DEV_$field, gauge, $field"
    done >"$dir/counters.csv"
}

# $program in a session of its own, with our marks; prints its pid
run_marked() { # log K=V words…
    log=$1 with="ARGUS_OWNER=$owner ARGUS_NODE=$node ARGUS_MARK=$mark $2"
    shift 2
    unset SSH_CLIENT SSH_CONNECTION SSH_TTY BASH_ENV ENV
    : >"$log"
    # shellcheck disable=SC2016 # it is the inner shell's
    act='env "$@" >>"$0" 2>&1 </dev/null & echo $!'
    # shellcheck disable=SC2086 # several words, none with blanks
    if command -v setsid >/dev/null 2>&1; then
        setsid sh -c "$act" "$log" $with "$program" "$@"
    else
        sh -c "$act" "$log" $with "$program" "$@"
    fi
}

run_exporter() { # words…
    for word in "$@"; do
        shift
        [ "$word" != COUNTERS ] || word=$dir/counters.csv
        set -- "$@" "$word"
    done
    run_marked "$dir/exporter.log" "ARGUS_EXPORTER=$mark" "$@"
}

exporter() { # name port place words…
    name=$1 port=$2 place=$3
    shift 3
    make_dir
    lock 10 || end busy
    if find_exporter; then
        if [ "$e_port" = "$port" ]; then
            [ "$(wc -c <"$dir/exporter.log")" -le 1048576 ] || : >"$dir/exporter.log"
            touch "$dir/exporter"
            unlock
            end runs "$e_pid"
        fi
        send KILL "$e_pid $e_start" # on another port, or nobody knows on which
        wait_gone 5 "$e_pid $e_start"
    fi
    if listens "$port"; then
        unlock
        end foreign
    fi
    if ! place_exporter "$name" "$place"; then
        unlock
        end missing
    fi
    write_counters
    e_pid=$(run_exporter "$@")
    stat_of "$e_pid" && echo "$boot $e_pid $start $port" >"$dir/exporter"
    e_start=$start
    unlock
    until=$(($(now) + 5000))
    while is_alive "$e_pid" "$e_start" && ! listens "$port" && [ "$(now)" -lt "$until" ]; do pause; done
    is_alive "$e_pid" "$e_start" && end runs "$e_pid"
    tail -n 5 "$dir/exporter.log" | cut -c 1-300 | sed 's/^/LOG=/'
    end ended
}

killed=0
"$verb" "$@"
