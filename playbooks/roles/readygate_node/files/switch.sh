# Puts FOLDER/wanted.service in place, and puts the earlier version back if the new one fails:
#   sh switch.sh FOLDER LIMIT_S CALM_S
#
# systemd runs it on the host, so it continues when the process that started it has ended. One rename of the unit is the
# whole change, because the unit names its image and its configuration. The earlier unit is saved as earlier.service until
# the new one is proven; an empty file means that there was none. So the next run detects one that was interrupted. Then it
# is renamed to previous.service. To go back by hand, copy that over wanted.service and run this program again. A version
# that is in place already is never removed. It prints one line with a word and the cause:
#
#   unchanged, changed    this version is in place and works
#   refused               nothing was changed
#   undone                the earlier version is in place again
#   failed                this version is in place and does not work, but there is no other, or it could not be put back
#
# A version is proven if its agent accepts the configuration (--check, in the same sandbox), reports READY, and within
# LIMIT_S reports the node healthy; if the node was not healthy before, any status but `starting` is enough. Then it must
# stay the same process for CALM_S.
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
        echo "the agent must report the node's state within $2 s, then run for $3 s; if you interrupt this, see $1/verdict for the result" >&2
    fi
    # The verdict of this run alone. The program's whole path, because systemd runs in no folder. In memory, so that a full
    # disk can be reported.
    verdict=${runtime%/systemd/system}/$name.verdict.$$
    systemd-run --quiet --collect --wait --setenv=UNITS="$units" --setenv=RUNTIME_UNITS="$runtime" --setenv=VERDICT="$verdict" \
        sh "$1/switch.sh" detached "$@"
    code=$?
    cat "$verdict" 2> /dev/null || echo "failed: it was ended early (code $code); check journalctl and $1/verdict"
    rm -f "$verdict"
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

report() {
    printf '%s\n' "$*" > "$folder/verdict.new" && mv "$folder/verdict.new" "$folder/verdict"
    [ -z "${VERDICT:-}" ] || printf '%s\n' "$*" > "$VERDICT"
}

uptime_s() {
    read -r up _ < /proc/uptime
    echo "${up%%.*}"
}

shown() {
    systemctl show --property="$1" --value "${2:-$name.service}"
}

# Whether systemd has ended a unit's start because it took too long; then `hangs` has the possible cause.
hung() {
    [ "$(shown Result "$1")" = timeout ] || return
    hangs="after $(sed -n 's/^TimeoutStartSec=//p' "$wanted") s. What it reads hangs, as a disk or a folder of the network may, or the host is too slow: ps -eo pid,stat,wchan:30,args shows who waits for what (stat D). Mend that, and run this again"
}

# The last log lines of a unit's last start, on one line; of all starts of this run if that one has logged nothing yet.
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
        tried="its check of the configuration had not ended $hangs"
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
            why="within $limit_s s it reported only: $(shown StatusText)"
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

# If there is no room for a copy, a hard link on the same disk is enough.
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
        back="there was no earlier version, so it was removed"
    elif cmp -s "$wanted" "$unit" && { ! [ -e "$earlier" ] || cmp -s "$earlier" "$unit"; }; then
        word=failed
        back="it was in place before, so it stays"
    elif cmp -s "$earlier" "$unit"; then
        back="the earlier version is still there"
    elif put_back; then
        systemctl restart "$name.service" 2> /dev/null && back="the earlier version is back" || back="the earlier version is back in place and does not start either"
    else
        word=failed
        back="the earlier version could not be put back, so this one stays; the earlier version is saved, run this again when the cause is repaired"
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
    report "unchanged: $(shown StatusText)"
    exit 0
fi
if ! trial; then
    forget
    report "refused: nothing was changed, because the new version does not accept its configuration: $tried"
    exit 1
fi
case $(shown StatusText) in healthy*) before=healthy ;; *) before=other ;; esac
if [ -e "$earlier" ]; then before=$(cat "$earlier_status" 2> /dev/null); fi
if ! keep; then
    rm -f "$earlier_status"
    forget
    report "refused: nothing was changed, because the earlier version could not be saved; is the disk of $folder full?"
    exit 1
fi
if put_in_place && proven; then
    if [ -s "$earlier" ] && ! cmp -s "$earlier" "$unit"; then mv -T "$earlier" "$previous"; fi
    forget_earlier
    forget
    report "changed: $(shown StatusText)"
    exit 0
fi
last=$(words "$name.service")
if [ "$why" = "it did not start" ] && hung "$name.service"; then why="it had not reported READY $hangs"; fi
undo
forget
report "$word: $why; $back. Last log line: $last"
exit 1
