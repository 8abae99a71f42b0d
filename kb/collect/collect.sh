#!/bin/sh
# Collects evidence on this host before a restart: @PURPOSE@
#
# It reads, and changes nothing; what it runs stands in `main` below, word by word. It installs
# nothing and never asks for a password. It leaves one archive, kb-HOST-TIME.tar.gz, in the current
# directory, that only you can read.
#
#   one host      sh collect.sh
#   Slurm         srun --jobid JOBID --overlap -N "$(squeue -h -j JOBID -o %D)" \
#                     --ntasks-per-node=1 sh collect.sh
#   clush         clush -w NODES 'cd /shared/dir && sh collect.sh'
#   pdsh          pdsh -w NODES 'cd /shared/dir && sh collect.sh'
#   Kubernetes    kubectl exec -i -n NS POD -- env KB_COLLECT_DIR=/tmp sh -s < collect.sh
#                 kubectl cp NS/POD:/tmp/kb-HOST-TIME.tar.gz kb-POD.tar.gz
#
# Without a shared directory, fetch them: clush -w NODES --rcopy '/tmp/kb-*.tar.gz' --dest DIR
# Then read all of them together: kb ask -f kb-*.tar.gz
#
#   KB_COLLECT_DIR=DIR     where the archive goes
#   KB_COLLECT_SECONDS=N   for all checks together; 300
#   KB_COLLECT_LIMIT=N     for each check, instead of its own limit in seconds
#   KB_COLLECT_PAUSE=no    leave out what stops a process for a moment (py-spy, gdb, strace)
#   KB_COLLECT_PID=..., KB_COLLECT_IFACE=..., ...   values of your job, where the script finds none
#
# Secrets (NAME=value of tokens, passwords and keys, users in URLs, Authorization) are masked before
# they are kept, as far as plain rules find them; `kb ask` masks more. Look before you pass it on.

set -u
umask 077
LC_ALL=C
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
export LC_ALL PATH

max_bytes=524288 # that one check may print
max_values=16    # processes or interfaces that one check looks at

main() {
    begin
    find_processes
@CHECKS@
    finish
}

have() { command -v "$1" >/dev/null 2>&1; }
now() { date +%s; }
nap() { sleep 0.1 2>/dev/null || sleep 1; }

fail() {
    rm -rf "$work"
    echo "kb collect: $1" >&2
    exit 1
}

no_room() {
    fail "cannot write to $directory, perhaps the disk is full; nothing was left there. Choose another: KB_COLLECT_DIR=/dev/shm sh collect.sh"
}

stopped_by_signal() {
    kill_session
    fail "stopped; nothing was left in $directory"
}

# Claims the name of the archive by a hidden directory beside it, in which all is made.
begin() {
    work=
    directory=${KB_COLLECT_DIR:-.}
    directory=$(cd "$directory" 2>/dev/null && pwd) || {
        directory=$KB_COLLECT_DIR
        fail "$directory is not a directory; create it, or choose another: KB_COLLECT_DIR=DIR"
    }
    have tar || fail "tar is not on this host, so no archive can be made"
    host=$( (hostname || uname -n) 2>/dev/null | tr -c 'A-Za-z0-9.\n-' _ | cut -c 1-40)
    host=${host:-unknown}
    base=kb-$host-$(date -u +%Y%m%dT%H%M%SZ)
    name=$base
    number=1
    until [ ! -e "$directory/$name.tar" ] && [ ! -e "$directory/$name.tar.gz" ] &&
        mkdir "$directory/.$name.part" 2>/dev/null; do
        [ "$number" -lt 100 ] || no_room
        number=$((number + 1))
        name=$base-$number
    done
    work=$directory/.$name.part
    run=0
    trap stopped_by_signal HUP INT TERM
    trap '' XFSZ # a file that may not grow is an error of whoever writes it
    mkdir "$work/$name" 2>/dev/null || no_room
    list=$work/$name/collected
    end=$(($(now) + ${KB_COLLECT_SECONDS:-300}))
    count=0
    hung=' '
    shell=$(command -v bash || command -v sh)
    new_session=$(command -v setsid) || new_session=
    write_mask
    note collection 1
    note host "$host"
    note time "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
    note user "$(id -un 2>/dev/null || id -u)"
    note system "$(uname -srm)"
    [ -n "$new_session" ] || note remark 'setsid is not here: what a hanging tool started may run on'
}

# note WORD TEXT...: one line of the list of what was taken.
note() {
    (
        IFS='	'
        printf '%s\n' "$*"
    ) >>"$list" || no_room
}

skip() {
    note skipped "$1" "$2"
    echo "kb collect: $host: skipped $1: $2" >&2
}

# The processes on GPUs, without the workers that they started; where there are none, all of Python.
# Only what a stuck process cannot block is read first: `cmdline` and `environ` can hang with it.
find_processes() {
    cat 2>/dev/null >"$work/command" <<'END_OF_COMMAND' || no_room
on_gpus=$(ls -l /proc/[0-9]*/fd 2>/dev/null | awk '
    /^\/proc\// { split($0, part, "/"); process = part[3] }
    / -> \/dev\/(nvidia[0-9]|kfd|davinci[0-9])/ { print process }' | sort -un)
processes=
for process in $on_gpus; do
    parent=$(sed -n 's/^PPid:[^0-9]*//p' "/proc/$process/status" 2>/dev/null)
    case " $(echo $on_gpus) " in *" $parent "*) continue ;; esac
    processes="$processes $process"
done
if [ -z "$processes" ]; then
    for comm in /proc/[0-9]*/comm; do
        process=${comm#/proc/}
        process=${process%/comm}
        [ -r "/proc/$process/environ" ] || continue
        case $(cat "$comm" 2>/dev/null) in
            python* | pt_main_thread | ray::* | vllm* | VLLM* | sglang*) processes="$processes $process" ;;
        esac
    done
fi
for process in $processes; do echo "process $process"; done
for process in $processes; do
    rank=$(tr '\0' '\n' <"/proc/$process/environ" 2>/dev/null |
        sed -n -e 's/^RANK=//p' -e 's/^SLURM_PROCID=//p' -e 's/^OMPI_COMM_WORLD_RANK=//p' |
        grep '^[0-9][0-9]*$' | head -n 1)
    [ -z "$rank" ] || echo "rank $process $rank"
    script=$(tr '\0' '\n' <"/proc/$process/cmdline" 2>/dev/null |
        sed -n 's|^\(.*/\)*\([A-Za-z0-9_.-]*\.py\)$|\2|p' | head -n 1)
    [ -z "$script" ] || echo "script $process $script"
done
END_OF_COMMAND
    limited 10 || note remark 'to list the processes took more than 10 s'
    has_room
    cp "$work/$run.raw" "$work/processes" 2>/dev/null || no_room
    kind=rank # those of a job, where one says which it is
    grep -q '^rank ' "$work/processes" || kind=process
    found=$(sed -n "s/^$kind \([0-9]*\).*/\1/p" "$work/processes" | head -n "$max_values" | tr '\n' ' ')
    all=$(grep -c "^$kind " "$work/processes")
    [ "$all" -le "$max_values" ] || note remark "only $max_values of $all processes are looked at"
    script=$(sed -n 's/^script [0-9]* //p' "$work/processes" | head -n 1)
    KB_COLLECT_PID=${KB_COLLECT_PID:-$found}
    KB_COLLECT_SCRIPT=${KB_COLLECT_SCRIPT:-$script}
    KB_COLLECT_JOBID=${KB_COLLECT_JOBID:-${SLURM_JOB_ID:-}}
    KB_COLLECT_NODE=${KB_COLLECT_NODE:-${SLURMD_NODENAME:-${host%%.*}}}
    KB_COLLECT_HOST=${KB_COLLECT_HOST:-localhost}
    KB_COLLECT_IFACE=${KB_COLLECT_IFACE:-$(interfaces)}
}

# Network interfaces that are up: hardware, or else the one of the default route.
interfaces() {
    for device in /sys/class/net/*/device; do
        interface=${device%/device}
        read -r state 2>/dev/null <"$interface/operstate" || continue
        [ "$state" != up ] || echo "${interface##*/}"
    done | head -n "$max_values" | tr '\n' ' ' | grep . ||
        awk '$2 == "00000000" { print $1; exit }' /proc/net/route 2>/dev/null
}

# check ID SECONDS TOOL NEED [VALUE]... <command: takes it, or says why not. TOOL is `-` where any
# shell will do; NEED is `root`, `pause` or `-`; each VALUE stands as @VALUE@ in the command.
check() {
    id=$1 seconds=${KB_COLLECT_LIMIT:-$2} tool=$3 need=$4
    shift 4
    { echo 'sudo() { "$@"; }' && cat; } 2>/dev/null >"$work/command" || no_room
    case $need in
        root) [ "$(id -u)" = 0 ] || { skip "$id" 'it needs root' && return; } ;;
        pause) [ "${KB_COLLECT_PAUSE:-}" != no ] || { skip "$id" 'it stops a process for a moment' && return; } ;;
    esac
    [ "$tool" = - ] || have "$tool" || { skip "$id" "$tool is not on this host" && return; }
    case $hung in *" $tool "*) skip "$id" "$tool did not end before" && return ;; esac
    if [ "$(now)" -ge "$end" ]; then
        skip "$id" 'the time for all checks is over; KB_COLLECT_SECONDS gives more' && return
    fi
    several=
    for value; do
        eval "given=\${KB_COLLECT_$value:-}"
        # shellcheck disable=SC2154  # eval sets it
        case $given in
            '' | ' ') skip "$id" "no $value is known here; KB_COLLECT_$value=... gives one" && return ;;
            -* | *' -'* | *[!A-Za-z0-9_.:,/@%+*\ -]*) skip "$id" "KB_COLLECT_$value is odd: letters, digits and _.:,/@%+*- are taken" && return ;;
        esac
        case $value in
            PID | IFACE) several=$value several_given=$given ;;
            *) fill_in "$value" "$given" ;;
        esac
    done
    if [ -z "$several" ]; then
        take "$id"
        return
    fi
    mv "$work/command" "$work/form"
    for one in $several_given; do
        cp "$work/form" "$work/command" 2>/dev/null || no_room
        fill_in "$several" "$one"
        take "$id$(rank_of "$several" "$one").$several-$(printf %s "$one" | tr -c 'A-Za-z0-9_' _)"
    done
}

fill_in() {
    sed "s|@$1@|$2|g" "$work/command" 2>/dev/null >"$work/filled" || no_room
    mv "$work/filled" "$work/command"
}

rank_of() {
    [ "$1" = PID ] || return 0
    sed -n "s/^rank $2 /.rank-/p" "$work/processes" | head -n 1
}

# take NAME: runs the command, and keeps its output under this name, masked.
take() {
    limited "$seconds" && ended=yes || ended=
    has_room
    raw=$work/$run.raw
    head -c "$max_bytes" "$raw" | sed -E -f "$work/mask" 2>/dev/null >"$work/$name/$1.txt" || no_room
    note taken "$1"
    if [ -z "$ended" ]; then
        note stopped "$1" "did not end within $seconds s"
        [ "$tool" = - ] || hung="$hung$tool "
    fi
    [ "$(wc -c <"$raw")" -lt "$max_bytes" ] || note cut "$1" "only the first $max_bytes bytes were kept"
    rm -f "$raw"
    count=$((count + 1))
}

# limited SECONDS: runs the command in a session of its own, of which nothing is left afterwards. Its
# output is in $run.raw. False if it had to be stopped. Nobody waits for a process that cannot be
# killed, so all files of a run have names of their own.
limited() {
    run=$((run + 1))
    mv "$work/command" "$work/$run.command"
    : >"$work/$run.raw" || no_room
    (
        ulimit -f $((max_bytes / 512)) 2>/dev/null
        # shellcheck disable=SC2016,SC2086  # the inner shell expands it; empty where there is none
        $new_session sh -c 'echo $$ >"$1.leader"; exec "$2" "$1.command" >"$1.raw" 2>&1' \
            sh "$work/$run" "$shell"
        echo $? >"$work/$run.status"
    ) </dev/null >/dev/null 2>&1 &
    stop=$(($(now) + $1))
    runner=$!
    until [ -s "$work/$run.status" ] || ! kill -0 "$runner" 2>/dev/null; do
        if [ "$(now)" -ge "$stop" ]; then
            kill_session
            return 1
        fi
        nap
    done
    kill_session
}

# Ends all that belongs to the session of the last run, also what left the group of its leader.
kill_session() {
    [ -s "$work/$run.leader" ] && read -r leader <"$work/$run.leader" || return 0
    if [ -z "$new_session" ]; then
        [ -s "$work/$run.status" ] || kill -KILL "$leader" 2>/dev/null
        return 0
    fi
    for signal in STOP KILL KILL; do # what stands still starts nothing, and says nothing
        alive=
        for stat in /proc/[0-9]*/stat; do
            line=
            { read -r line <"$stat"; } 2>/dev/null
            process=${stat#/proc/}
            # Behind the name, which may be anything: state, parent, group, session.
            # shellcheck disable=SC2086  # these are words
            set -- ${line##*) }
            [ "${4:-}" != "$leader" ] || [ "$1" = Z ] || {
                kill -"$signal" "${process%/stat}" 2>/dev/null
                alive=yes
            }
        done
        [ -n "$alive" ] || return 0
    done
}

# An output that a full disk has cut looks whole; so ask while it is still there.
has_room() {
    dd if=/dev/zero of="$work/probe" bs=65536 count=1 2>/dev/null || no_room
    rm -f "$work/probe"
}

write_mask() {
    cat 2>/dev/null >"$work/mask" <<'END_OF_RULES' || no_room
/-----BEGIN [A-Z ]*PRIVATE KEY/,/-----END [A-Z ]*PRIVATE KEY/s/.*/<secret>/
s#([A-Za-z][A-Za-z0-9+.-]*://)[^/@[:space:]"']+@#\1<secret>@#g
s/([Aa][Uu][Tt][Hh][Oo][Rr][Ii][Zz][Aa][Tt][Ii][Oo][Nn]["']?[[:space:]]*[:=][[:space:]]*["']?)[^"']+/\1<secret>/g
s/([Bb]earer[[:space:]]+)[A-Za-z0-9._~+\/=-]{8,}/\1<secret>/g
s/(([Pp][Aa][Ss][Ss]([Ww][Oo][Rr][Dd]|[Ww][Dd]|[Pp][Hh][Rr][Aa][Ss][Ee])|[Ss][Ee][Cc][Rr][Ee][Tt]|_PWD|([Aa][Pp][Ii]|[Aa][Cc][Cc][Ee][Ss][Ss]|[Pp][Rr][Ii][Vv][Aa][Tt][Ee]|[Aa][Uu][Tt][Hh]|[Ss][Ii][Gg][Nn][Ii][Nn][Gg]|[Ee][Nn][Cc][Rr][Yy][Pp][Tt][Ii][Oo][Nn])[_.-]?[Kk][Ee][Yy]|SECRET[A-Z0-9_]*|[Cc][Rr][Ee][Dd][Ee][Nn][Tt][Ii][Aa][Ll][Ss]?)["']?[[:space:]]*[=:][[:space:]]*)("[^"]*"|'[^']*'|[^[:space:]"'][^[:space:]]*)/\1<secret>/g
s/([Tt][Oo][Kk][Ee][Nn]["']?[[:space:]]*[=:][[:space:]]*)("[^"]*"|'[^']*'|[0-9.]*[A-Za-z_\/+~-][^[:space:]"',;]*)/\1<secret>/g
s/(--?(pass|password|passwd|token|auth-token|api[_-]key|secret|secret[_-]key|access[_-]key)[[:space:]]+)("[^"]*"|'[^']*'|[^-[:space:]"'][^[:space:]]*)/\1<secret>/g
s/(hf_|gh[opsu]_|github_pat_|glpat-|sk-|nvapi-|xox[abp]-|AKIA)[A-Za-z0-9_-]{16,}/<secret>/g
END_OF_RULES
}

finish() {
    archive=$name.tar
    cd "$work" || no_room
    set -- "$name"/*.txt
    [ -e "$1" ] || set --
    tar -cf "$archive" "$name/collected" "$@" 2>/dev/null || no_room
    if have gzip; then
        gzip "$archive" 2>/dev/null || no_room
        archive=$archive.gz
    fi
    mv "$archive" "$directory/$archive" 2>/dev/null || no_room
    cd "$directory" || exit
    rm -rf "$work"
    echo "kb collect: $host: $count outputs in $directory/$archive"
    echo "Bring the archives of all hosts to one place, and read them together: kb ask -f kb-*${archive#"$name"}"
}

main
