"""A host for playbooks/roles/readygate_node/files/switch.sh, without systemd: its folders, and programs in the place of
`systemctl`, `systemd-run`, `journalctl`, `cp`, `ln` and `sync` in front of PATH.

A version is a unit that says how its agent does:

    healthy, unhealthy     it says so of its node
    silent                 it never says more than that it starts
    dies                   it is another process each time one looks
    broken                 it does not start
    refused                it does not take its configuration
    stuck, hangs           its check does not end in time; it does not say in time that it runs
    power                  the program that puts it in place is killed while it starts
    full, torn             it does not start either, and from then on the disk is full; in torn there are two disks
"""

import os
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

from tests.playbooks.rendering import ROLES

SWITCH = ROLES / "readygate_node" / "files" / "switch.sh"
NAME = "readygate-node"
SYSTEMCTL = """
state=$HOST/state
say() { [ -e "$state/$1" ] && cat "$state/$1"; }
does() { sed -n 's/^# does //p' "$1" 2> /dev/null; }
what=$1
shift
case $what in
    show)
        property=${1#--property=}
        if [ "$property" = MainPID ] && [ "$(say Does)" = dies ]; then
            echo $(($(say MainPID) + 1)) > "$state/MainPID"
        fi
        say "$property"
        ;;
    daemon-reload) [ ! -e "$state/deaf" ] ;;
    enable) echo enabled > "$state/UnitFileState" ;;
    disable)
        rm -f "$state/UnitFileState" "$state/StatusText" "$state/Does" "$state/Version"
        echo inactive > "$state/ActiveState"
        ;;
    start)
        case $(does "$RUNTIME_UNITS/$1") in
            refused) exit 1 ;;
            stuck) echo timeout > "$state/Result" ; exit 1 ;;
        esac
        ;;
    restart)
        unit=$UNITS/$1
        [ -e "$unit" ] || exit 5
        does=$(does "$unit")
        echo "$does" > "$state/Does"
        sed -n 's/^# version //p' "$unit" > "$state/Version"
        echo "$does" >> "$state/started"
        echo $(($(say MainPID || echo 0) + 1)) > "$state/MainPID"
        echo failed > "$state/ActiveState"
        rm -f "$state/StatusText"
        case $does in
            power) kill -9 "$PPID" ;;
            torn) touch "$state/otherwise" "$state/full" ; exit 1 ;;
            full) touch "$state/full" ; exit 1 ;;
            broken) exit 1 ;;
            hangs) echo timeout > "$state/Result" ; exit 1 ;;
        esac
        echo active > "$state/ActiveState"
        case $does in
            healthy | dies) echo "healthy: all checks passed (1)" > "$state/StatusText" ;;
            unhealthy) echo "not healthy: disk" > "$state/StatusText" ;;
            silent) echo starting > "$state/StatusText" ;;
        esac
        ;;
esac
"""
SYSTEMD_RUN = """
while [ "$1" != sh ]; do
    case $1 in --setenv=*) export "${1#--setenv=}" ;; esac
    shift
done
exec "$@"
"""
# For a file that is wanted no room is left, or for any once the disk is full: half of it is there then.
CP = """
for to; do :; done
if [ -e "$HOST/state/full" ] || [ "$(cat "$HOST/state/no-room-for" 2> /dev/null)" = "${to##*/}" ]; then
    echo half > "$to"
    exit 1
fi
exec /bin/cp "$@"
"""
LN = '[ ! -e "$HOST/state/otherwise" ] && exec /bin/ln "$@"'
PROGRAMS = {
    "systemctl": SYSTEMCTL,
    "systemd-run": SYSTEMD_RUN,
    "journalctl": 'case "$*" in *--sync*) ;; *) echo "these are its last words" ;; esac',
    "cp": CP,
    "ln": LN,
    "sync": "exit 0",
}


@dataclass(frozen=True)
class Ended:
    """What a run said first, all of it, and its exit code."""

    word: str
    said: str
    code: int


class NodeHost:
    def __init__(self, root: Path) -> None:
        self.root, self.folder, self.state = root, root / "node", root / "state"
        self.units, self.runtime = root / "units", root / "run/systemd/system"
        programs = root / "bin"
        for path in (self.folder, self.state, self.units, self.runtime.parent, programs):
            path.mkdir(parents=True)
        for name, text in PROGRAMS.items():
            (programs / name).write_text(f"#!/bin/sh\n{text.strip()}\n")
            (programs / name).chmod(0o755)
        (self.folder / "switch.sh").write_text(SWITCH.read_text())
        self.path = f"{programs}:{os.environ['PATH']}"

    def want(self, version: str) -> None:
        """As the play does. version: how it does, with a number where there are several that do alike, as healthy-2."""
        for kind in ("images", "configuration"):
            (self.folder / kind / version).mkdir(parents=True, exist_ok=True)
        lines = [
            f"# does {version.partition('-')[0]}",
            f"# version {version}",
            f"RootDirectory={self.folder}/images/{version}",
            f"BindReadOnlyPaths={self.folder}/configuration/{version}:/etc/readygate",
            "TimeoutStartSec=60",
            "ExecStart=/usr/local/bin/readygate-agent",
            "[Install]",
        ]
        (self.folder / "wanted.service").write_text("\n".join(lines) + "\n")

    def switch(self, *, limit_s: int = 1, calm_s: int = 0) -> Ended:
        return self._run(str(self.folder), str(limit_s), str(calm_s))

    def switch_bare(self) -> Ended:
        return self._run()

    def _run(self, *words: str) -> Ended:
        environment = {
            **os.environ,
            "HOST": str(self.root),
            "PATH": self.path,
            "UNITS": str(self.units),
            "RUNTIME_UNITS": str(self.runtime),
        }
        command = ["sh", str(self.folder / "switch.sh"), *words]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
        said = run.stdout.strip()
        return Ended(said.partition(":")[0], said, run.returncode)

    def play(self, version: str, **limits: int) -> Ended:
        self.want(version)
        return self.switch(**limits)

    def play_twice_at_once(self, version: str) -> list[Ended]:
        self.want(version)
        ended: list[Ended] = []
        threads = [threading.Thread(target=lambda: ended.append(self.switch())) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return ended

    def stop_service(self) -> None:
        """As somebody does by hand, or as a service looks whose unit has failed."""
        (self.state / "ActiveState").write_text("inactive\n")
        (self.state / "StatusText").unlink(missing_ok=True)

    def become(self, **words: str) -> None:
        """The agent that runs says something else now."""
        for name, word in words.items():
            (self.state / name).write_text(f"{word}\n")

    def no_room_for(self, file: str) -> None:
        (self.state / "no-room-for").write_text(file)

    def full(self) -> None:
        (self.state / "full").touch()

    def room(self) -> None:
        for name in ("no-room-for", "full"):
            (self.state / name).unlink(missing_ok=True)

    @property
    def in_place(self) -> str | None:
        return _version(self.units / f"{NAME}.service")

    @property
    def runs(self) -> str | None:
        """The version that was started last, where it still does."""
        state = (self.state / "ActiveState").read_text().strip() if (self.state / "ActiveState").exists() else ""
        return (self.state / "Version").read_text().strip() if state == "active" else None

    @property
    def previous(self) -> str | None:
        return _version(self.folder / "previous.service")

    @property
    def is_open(self) -> bool:
        """As look.sh tells the play, which then does not take the host for one that has the version."""
        return (self.folder / "earlier.service").exists()

    @property
    def images(self) -> set[str]:
        images, configurations = (
            {path.name for path in (self.folder / kind).iterdir()} for kind in ("images", "configuration")
        )
        assert images == configurations
        return images

    @property
    def left_over(self) -> list[str]:
        """Files that are nobody's, wherever it writes."""
        known = {"switch.sh", "lock", "verdict", "wanted.service", "previous.service", f"{NAME}.service"}
        known |= {"earlier.service", "earlier.status"} if self.is_open else set()
        paths = [*self.folder.iterdir(), *self.units.iterdir(), *self.root.glob("run/**/*")]
        return sorted(path.name for path in paths if path.is_file() and path.name not in known)


def _version(unit: Path) -> str | None:
    if not unit.exists():
        return None
    return unit.read_text().partition("# version ")[2].partition("\n")[0]
