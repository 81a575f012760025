# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# tcptry.sh <seconds> <Ray's program, or ''> <address> <port>…: opens a connection to each port, all at once, and closes it.
# OPEN=<port> of each that let us in, END=1 when all were tried. Nothing is sent. Status 3: this machine has no Python.
seconds=$1 ray=$2 address=$3
shift 3
# "#!/path/python", or pip's way out where that line would be too long
python=$(sed -n -e '1s/^#! *\(\/[^ ]*python[^ ]*\).*/\1/p' -e "2s/^'''exec' [\"']*\([^\"']*python[^\"' ]*\).*/\1/p" \
    -e 2q "$ray" 2>/dev/null | head -n 1)
[ -n "$python" ] || python=${ray%/*}/python3
[ -x "$python" ] || python=$(command -v python3) || exit 3
# -I: neither this directory nor PYTHONPATH is looked into
exec "$python" -I -c 'import errno, select, socket, sys, time
until, waits = time.monotonic() + float(sys.argv[1]), {}
for port in map(int, sys.argv[3:]):
    family, kind, _, _, at = socket.getaddrinfo(sys.argv[2], port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)[0]
    s = socket.socket(family, kind)
    s.setblocking(False)
    if s.connect_ex(at) in (0, errno.EINPROGRESS):
        waits[s] = port
while waits and until > time.monotonic():
    for s in select.select([], list(waits), [], max(0, until - time.monotonic()))[1]:
        if s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
            print("OPEN=%d" % waits[s])
        del waits[s]
        s.close()
print("END=1")' "$seconds" "$address" "$@"
