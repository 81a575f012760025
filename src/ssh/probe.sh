#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# probe.sh - what a machine is: KEY=VALUE lines that probe_read.c judges. It changes nothing but one small
# file beside the root's mark, which it removes again.
#   $1 ray or ""  $2 shared root or ""  $3 mark below it or ""  $4 Ray's temp dir  $5 owner  $6… ports
# What may hang for ever (a dead mount, a sick GPU) is announced by STEP= before it is touched, and comes last.
LC_ALL=C
export LC_ALL
echo "CLOCK=$(date +%s.%N)"
ray=$1 root=$2 root_mark=$3 tmp=$4 owner=$5
shift 5

first_of() { head -n 1 "$1" 2>/dev/null; }
# a process's environment: the value of one name
env_of() { tr '\0' '\n' 2>/dev/null <"/proc/$1/environ" | sed -n "s/^$2=//p" | head -n 1; }
words_of() { tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline" | cut -c 1-200; }
space_of() { df -Pk "$1" 2>/dev/null | sed -n '2s/^.* \([0-9][0-9]*\)  *[0-9][0-9]*  *\([0-9][0-9]*\)  *[0-9]*% .*$/\1 \2/p'; }

echo STEP=host
echo "HOSTNAME=$(uname -n)"
echo "CPUS=$(nproc 2>/dev/null || grep -c ^processor /proc/cpuinfo)"
echo "CPU_MAX=$(first_of /sys/fs/cgroup/cpu.max)"
sed -n 's/^MemTotal: *\([0-9]*\) kB/MEMORY_KB=\1/p' /proc/meminfo
echo "MEMORY_MAX=$(first_of /sys/fs/cgroup/memory.max || first_of /sys/fs/cgroup/memory/memory.limit_in_bytes)"
image=
for name in ARGUS_IMAGE CONTAINER_IMAGE DOCKER_IMAGE IMAGE_NAME; do
    [ -n "$image" ] || image=$(env_of 1 $name)
done
[ -n "$image" ] || image=$(sed -n 's/^PRETTY_NAME="*\([^"]*\)"*$/\1/p' /etc/os-release 2>/dev/null)
echo "IMAGE=$image"

echo STEP=disk
while [ ! -d "$tmp" ] && [ "$tmp" != / ] && [ -n "$tmp" ]; do tmp=$(dirname "$tmp"); done
echo "DISK_KB=$(space_of "$tmp")"
echo "DISK_AT=$tmp"
[ -w "$tmp" ] || echo "DISK_CLOSED=$(id -un 2>/dev/null)"
[ -d /dev/shm ] && echo "SHM_KB=$(space_of /dev/shm)"

echo STEP=ports
# pid of the process that has the socket with this inode
holder() { ls -l /proc/[0-9]*/fd 2>/dev/null | sed -n -e '/^\/proc/h' -e "/socket:\[$1\]/{" -e 'x' -e 's/[^0-9]//gp' -e 'q' -e '}'; }
# it was there when a raylet of ours had been started: raylet.sh wrote it down, with its start time
is_in_record() {
    began=$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20)
    [ -n "$owner" ] && [ -n "$began" ] && grep -qsx "PROC=$1 $began" "/tmp/argus-$(id -u)/$owner"/*/record
}
# it, or who started it, has our owner in its environment: Ray's processes lose theirs when they take a title
is_of_ours() {
    up=$1
    ! is_in_record "$up" || return 0
    while [ -n "$owner" ] && [ "${up:-0}" -gt 1 ]; do
        [ "$(env_of "$up" ARGUS_OWNER)" != "$owner" ] || return 0
        up=$(sed -n 's/^PPid:[^0-9]*//p' "/proc/$up/status" 2>/dev/null)
    done
    return 1
}
wanted=
for port in "$@"; do wanted="$wanted $(printf %04X "$port")"; done
[ -z "$wanted" ] || cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | while read -r _ at _ state _ _ _ _ _ inode _; do
    case "$state $wanted " in
    "0A"*" ${at##*:} "*)
        pid=$(holder "$inode")
        is_ours=0
        is_of_ours "$pid" && is_ours=1
        echo "PORT=$(printf %d "0x${at##*:}") ${at%%:*} ${pid:-0} $is_ours $([ -z "$pid" ] || words_of "$pid")"
        ;;
    esac
done

echo STEP=raylets
here=$(readlink /proc/self/ns/net 2>/dev/null)
for dir in /proc/[0-9]*; do
    read -r name 2>/dev/null <"$dir/comm" || continue
    [ "$name" = raylet ] || continue
    pid=${dir#/proc/}
    there=$(readlink "$dir/ns/net" 2>/dev/null)
    [ -n "$there" ] && [ "$there" != "$here" ] && continue # in a container of its own
    line=$(tr '\0' '\n' 2>/dev/null <"$dir/cmdline")
    ip=$(echo "$line" | sed -n 's/^--node_ip_address=//p' | head -n 1)
    gcs=$(echo "$line" | sed -n 's/^--gcs-address=//p' | head -n 1)
    user=$(ls -ld "$dir" 2>/dev/null | sed 's/^[^ ]* *[0-9]* *\([^ ]*\).*/\1/')
    head=0
    echo "$line" | grep -qx -e --head && head=1
    mark=$(env_of "$pid" ARGUS_OWNER)
    name=$(env_of "$pid" ARGUS_NODE)
    echo "RAYLET=$pid ${mark:--} ${name:--} $head ${user:--} ${ip:--} ${gcs:--}"
done

echo STEP=network
net=/sys/class/net rdma=/sys/class/infiniband
value() { value=; read -r value 2>/dev/null <"$1"; } # no process for each of hundreds of files
left=64
for link in "$net"/*; do
    [ -e "$link/mtu" ] && [ "$left" -gt 0 ] || continue
    left=$((left - 1))
    value "$link/mtu" && mtu=$value
    value "$link/speed" && mbps=$value
    value "$link/bonding/slaves"
    echo "LINK=${link##*/} ${mtu:-0} ${mbps:-0} $value"
    mbps=
done
ip -o addr show 2>/dev/null | sed -n 's/^[0-9]*: *\([^ ]*\) *inet6* \([0-9a-f.:]*\).*/ADDRESS=\1 \2/p' | head -n 64
while read -r link to _ flags _ _ _ mask _; do
    case $flags in *[13579BDF]) echo "ROUTE=$link 0x$to 0x$mask" ;; esac # it is up
done 2>/dev/null </proc/net/route | head -n 128
for port in "$rdma"/*/ports/*; do
    [ -e "$port/state" ] || continue
    device=${port#"$rdma"/} device=${device%%/*}
    value "$port/state" && state=${value%%:*}
    value "$port/rate" && rate=${value%% *}
    value "$port/link_layer" && layer=$value
    is_open=0
    for verbs in "$rdma/$device"/device/infiniband_verbs/uverbs*; do
        verbs=/dev/infiniband/${verbs##*/}
        [ -r "$verbs" ] && [ -w "$verbs" ] && is_open=1
    done
    echo "HCA=$device ${port##*/} $layer ${state:-0} ${rate%%.*} $is_open"
    [ "$layer" = Ethernet ] || continue
    left=16
    for gid in "$port"/gids/*; do
        value "$gid"
        case $value in "" | 0000:0000:0000:0000:0000:0000:0000:0000) continue ;; esac
        text=$value
        value "$port/gid_attrs/types/${gid##*/}"
        case $value in *v2) roce=2 ;; *) roce=1 ;; esac
        [ "$left" -gt 0 ] || break
        left=$((left - 1))
        echo "GID=$device ${port##*/} ${gid##*/} $roce $text"
    done
done

echo STEP=ray
if [ -z "$ray" ]; then
    ray=$(command -v ray 2>/dev/null)
    for at in "$HOME/venv" "$HOME/.venv" /opt/venv /venv /opt/conda /usr/local "$HOME/miniconda3" "$HOME/anaconda3" "$HOME/.local"; do
        [ -n "$ray" ] || { [ -x "$at/bin/ray" ] && ray=$at/bin/ray; }
    done
fi
echo "RAY_BIN=$ray"
python=
if [ -n "$ray" ] && [ -x "$ray" ]; then
    echo RAY_THERE=1
    # "#!/path/python", or pip's way out where that line would be too long
    python=$(sed -n -e '1s/^#! *\(\/[^ ]*python[^ ]*\).*/\1/p' -e "2s/^'''exec' [\"']\([^\"']*\)[\"'].*/\1/p" \
        -e "2s/^'''exec' \([^\"' ]*\) .*/\1/p" -e 2q "$ray" 2>/dev/null | head -n 1)
    [ -n "$python" ] || python=$(dirname "$ray")/python3
    echo "PYTHON_BIN=$python"
    PYTHONDONTWRITEBYTECODE=1 "$python" -c '
import os, re, sys
print("PYTHON=%d.%d.%d" % sys.version_info[:3])
found = {}
for folder in sys.path:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        continue
    for name in names:
        m = re.match(r"([A-Za-z0-9_.]+)-([0-9][^-]*)\.dist-info$", name)
        if m:
            found.setdefault(m.group(1).lower(), m.group(2))
    if "torch" in names and "cuda" not in found:
        try:
            with open(os.path.join(folder, "torch", "version.py")) as f:
                m = re.search(r"^cuda[^=\n]*= *.([0-9.]+).", f.read(65536), re.M)
            found["cuda"] = m.group(1) if m else ""
        except OSError:
            pass
for name in "ray torch cuda vllm sglang transformers numpy verl".split():
    print("LIB=%s %s" % (name, found.get(name, "")))
' </dev/null 2>&1 | sed -e '/^PYTHON=/b' -e '/^LIB=/b' -e 's/^/PYTHON_SAYS=/'
fi
command -v python3 >/dev/null 2>&1 && echo ANY_PYTHON=1

echo STEP=gpus
smi=$(command -v nvidia-smi 2>/dev/null)
[ -n "$smi" ] || { [ -x /usr/bin/nvidia-smi ] && smi=/usr/bin/nvidia-smi; }
if [ -n "$smi" ]; then
    echo NVIDIA=1
    "$smi" --query-gpu=name,driver_version,ecc.errors.uncorrected.volatile.total --format=csv,noheader 2>&1 | sed 's/^/GPU=/'
fi

echo STEP=root
if [ -n "$root" ]; then
    if [ ! -d "$root" ]; then
        echo ROOT=missing
    elif [ -n "$root_mark" ] && [ ! -f "$root/$root_mark" ]; then
        echo ROOT=other
        echo "ROOT_MOUNT=$(df -P "$root" 2>/dev/null | sed -n '2s/^\([^ ]*\) .* \(\/.*\)$/\2 of \1/p')"
        [ -n "$(ls -A "$root" 2>/dev/null | head -n 1)" ] || echo ROOT_EMPTY=1
    else
        at=$root
        [ -z "$root_mark" ] || at=$(dirname "$root/$root_mark")
        file=$at/.probe-$$-$(uname -n)
        why=$( (echo word >"$file") 2>&1)
        if [ "$(cat "$file" 2>/dev/null)" = word ] && rm -f "$file"; then
            echo ROOT=ok
        else
            echo ROOT=unwritable
            echo "ROOT_SAYS=$why"
        fi
    fi
fi
echo STEP=end
