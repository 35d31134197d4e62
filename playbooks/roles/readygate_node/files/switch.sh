# Puts FOLDER/wanted.service in place, and the version before back where the new one does not do:
#   sh switch.sh FOLDER LIMIT_S CALM_S
#
# By the host itself: systemd runs it, so it goes on when who started it has gone. One rename of the unit is the whole
# change, as the unit names its image and its configuration. What was in place is kept as earlier.service until the new
# one is proven, an empty one where there was nothing, so the next run knows of one that was interrupted; then it is
# previous.service, for the way back by hand: copy it over wanted.service, and run this again. What is in place already
# is never taken away. Prints one line, and why:
#
#   unchanged, changed    it is in place and does
#   refused               nothing was changed
#   undone                what was before is in place again
#   failed                this version is in place and does not do, but there is no other, or it could not be put back
#
# Proven: the agent of the wanted unit takes its configuration (--check, in the same sandbox), says READY, and within
# LIMIT_S says of the node that it is healthy; or says anything but `starting`, where it was not healthy before. For CALM_S
# it must then stay the same process.
set -u
name=readygate-node
units=${UNITS:-/etc/systemd/system}
runtime=${RUNTIME_UNITS:-/run/systemd/system}
if [ $# -lt 3 ]; then
    echo "usage: sh switch.sh FOLDER LIMIT_S CALM_S, as root" >&2
    exit 2
fi
if [ "$1" != detached ]; then
    if [ -t 2 ]; then
        echo "within $2 s it has to say how the node is, then to stay for $3 s; should you leave, $1/verdict will say how it ended" >&2
    fi
    # The verdict of this very run, not of one before it; and by the program's whole path, for systemd is in no folder.
    # In memory, so that a full disk can be told of.
    told=${runtime%/systemd/system}/$name.verdict.$$
    systemd-run --quiet --collect --wait --setenv=UNITS="$units" --setenv=RUNTIME_UNITS="$runtime" --setenv=TOLD="$told" \
        sh "$1/switch.sh" detached "$@"
    code=$?
    cat "$told" 2> /dev/null || echo "failed: it was not run to its end (code $code); journalctl and $1/verdict may say why"
    rm -f "$told"
    exit "$code"
fi
folder=$2 limit_s=$3 calm_s=$4
unit=$units/$name.service
wanted=$folder/wanted.service
earlier=$folder/earlier.service
earlier_status=$folder/earlier.status # `healthy`, where it was
previous=$folder/previous.service
exec 9> "$folder/lock"
flock 9 # one that an interrupted play has left running ends first

say() {
    printf '%s\n' "$*" > "$folder/verdict.new" && mv "$folder/verdict.new" "$folder/verdict"
    [ -z "${TOLD:-}" ] || printf '%s\n' "$*" > "$TOLD"
}

uptime_s() {
    read -r up _ < /proc/uptime
    echo "${up%%.*}"
}

shown() {
    systemctl show --property="$1" --value "${2:-$name.service}"
}

# Whether systemd has ended a unit's start because it took too long; then `hangs` says what may be the matter.
hung() {
    [ "$(shown Result "$1")" = timeout ] || return
    hangs="after $(sed -n 's/^TimeoutStartSec=//p' "$wanted") s. What it reads hangs, as a disk or a folder of the network may, or the host is too slow: ps -eo pid,stat,wchan:30,args shows who waits for what (stat D). Mend that, and run this again"
}

# The last words of a unit's last start, on one line; of all since we began where that one has said nothing yet.
words() {
    journalctl --sync 2> /dev/null
    start=$(systemctl show --property=InvocationID --value "$1")
    last=$(lines "$1" "_SYSTEMD_INVOCATION_ID=$start" + "INVOCATION_ID=$start")
    echo "${last:-$(lines "$1" --unit="$1")}"
}

lines() {
    of=$1
    shift
    journalctl --since="@$began_s" --no-pager --output=cat "$@" 2> /dev/null \
        | grep -v -e "^$of: \(Main process exited\|Failed with result\|Scheduled restart job\|Consumed\|Deactivated\|start operation timed out\)" \
            -e '^\(Starting\|Started\|Stopping\|Stopped\|Failed to start\|Finished\) ' \
        | tail -n 3 | cut -c 1-400 | tr '\n' ' '
}

# A copy over a file in one step, on the disk before it is seen.
place() {
    cp "$1" "$2.new" && sync "$2.new" && mv -T "$2.new" "$2" && sync "$(dirname "$2")" || { rm -f "$2.new"; return 1; }
}

# What is there before the first change, which a run that goes on with another one's leaves as it is.
keep() {
    if [ -e "$earlier" ] || cmp -s "$wanted" "$unit"; then return; fi
    echo "$before" > "$earlier_status" || return
    if [ -e "$unit" ]; then place "$unit" "$earlier"; else : > "$earlier" && sync "$folder"; fi
}

forget_earlier() {
    rm -f "$earlier" "$earlier_status"
}

trial() {
    mkdir -p "$runtime"
    sed -e '/^\[Install\]/,$d' -e 's/^Type=.*/Type=oneshot/' -e 's/^Restart=.*/Restart=no/' -e '/^WatchdogSec=/d' \
        -e '/^RuntimeDirectory/d' -e 's/^ExecStart=.*/& --check/' "$wanted" > "$runtime/$name-trial.service"
    systemctl daemon-reload
    systemctl start "$name-trial.service" 2> /dev/null
    code=$?
    if hung "$name-trial.service"; then
        tried="its check of it had not ended $hangs"
    else
        tried=$(words "$name-trial.service")
    fi
    rm -f "$runtime/$name-trial.service"
    systemctl reset-failed "$name-trial.service" 2> /dev/null
    systemctl daemon-reload
    return "$code"
}

is_well() {
    case $(shown StatusText) in
        healthy*) return 0 ;;
        "not healthy"*) [ "$before" != healthy ] ;;
        *) return 1 ;;
    esac
}

well_in_time() {
    ends=$(($(uptime_s) + limit_s))
    until is_well; do
        if [ "$(uptime_s)" -ge "$ends" ]; then
            why="within $limit_s s it only said: $(shown StatusText)"
            return 1
        fi
        sleep 0.5
    done
}

stays_calm() {
    process=$(shown MainPID)
    ends=$(($(uptime_s) + calm_s))
    while [ "$(uptime_s)" -lt "$ends" ]; do
        sleep 0.5
        [ "$(shown MainPID)" = "$process" ] || { why="it ended within $calm_s s"; return 1; }
    done
}

proven() {
    why="it did not start"
    systemctl enable --quiet "$name.service" && systemctl restart "$name.service" 2> /dev/null && well_in_time && stays_calm
}

put_in_place() {
    why="it could not be put in place"
    cmp -s "$wanted" "$unit" || place "$wanted" "$unit" || return
    systemctl daemon-reload
}

# Where there is no room for a copy a second name of the same file does, on the same disk.
put_back() {
    place "$earlier" "$unit" || { ln -f "$earlier" "$unit.new" && mv -T "$unit.new" "$unit"; } || return
    systemctl daemon-reload
}

undo() {
    word=undone
    if [ -e "$earlier" ] && ! [ -s "$earlier" ]; then
        systemctl disable --quiet --now "$name.service"
        rm -f "$unit"
        systemctl daemon-reload
        systemctl reset-failed "$name.service" 2> /dev/null
        back="there was none before, so there is none"
    elif cmp -s "$wanted" "$unit" && { ! [ -e "$earlier" ] || cmp -s "$earlier" "$unit"; }; then
        word=failed
        back="it was in place before, so it stays"
    elif cmp -s "$earlier" "$unit"; then
        back="the version before is still there"
    elif put_back; then
        systemctl restart "$name.service" 2> /dev/null && back="the version before is back" || back="the version before is back in place and does not start either"
    else
        word=failed
        back="the version before could not be put back, so this one stays; it is kept, run this again when that is mended"
        return
    fi
    forget_earlier
}

# What no unit names any more; the wanted one may be tried again.
forget() {
    for one in "$folder"/images/* "$folder"/configuration/*; do
        grep -q -s -F "$one" "$unit" "$earlier" "$previous" "$wanted" || rm -rf "$one"
    done
}

began_s=$(date +%s)
if cmp -s "$wanted" "$unit" && ! [ -e "$earlier" ] && [ "$(shown ActiveState) $(shown UnitFileState)" = "active enabled" ]; then
    say "unchanged: $(shown StatusText)"
    exit 0
fi
if ! trial; then
    forget
    say "refused: nothing was changed, as the new version does not take its configuration: $tried"
    exit 1
fi
case $(shown StatusText) in healthy*) before=healthy ;; *) before=other ;; esac
if [ -e "$earlier" ]; then before=$(cat "$earlier_status" 2> /dev/null); fi
if ! keep; then
    rm -f "$earlier_status"
    forget
    say "refused: nothing was changed, as the version before could not be kept; is the disk of $folder full?"
    exit 1
fi
if put_in_place && proven; then
    if [ -s "$earlier" ] && ! cmp -s "$earlier" "$unit"; then mv -T "$earlier" "$previous"; fi
    forget_earlier
    forget
    say "changed: $(shown StatusText)"
    exit 0
fi
said=$(words "$name.service")
if [ "$why" = "it did not start" ] && hung "$name.service"; then why="it had not said that it runs $hangs"; fi
undo
forget
say "$word: $why; $back. It said last: $said"
exit 1
