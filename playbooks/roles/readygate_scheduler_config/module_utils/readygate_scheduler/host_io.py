"""Files and commands of this host: every effect of the program goes through here."""

import contextlib
import json
import os
import shutil
import subprocess
from typing import Any, Dict, List, Optional, Tuple

LABEL = "security.selinux"


class HostIO:
    """Every effect of the program on its host, one a call. Tests end the program before and after each."""

    def make(self, path: str) -> None:
        os.makedirs(path, mode=0o700, exist_ok=True)

    def write(self, path: str, data: bytes, mode: int = 0o600) -> None:
        """Writes the whole file or nothing. The content is on the disk when it returns."""
        part = os.path.join(os.path.dirname(path), "." + os.path.basename(path) + ".part")
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        self.rename(part, path)

    def rename(self, old: str, new: str) -> None:
        os.rename(old, new)
        for folder in {os.path.dirname(old), os.path.dirname(new)}:
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def label(self, path: str, like: str) -> None:
        """Gives a file that will be renamed to `like` the SELinux label of the file there, or of that folder.

        It would keep the label of the folder in which it was written, and its reader might not be allowed to read it.
        """
        with contextlib.suppress(OSError):  # there is no SELinux, or no label
            wanted = os.getxattr(like if os.path.exists(like) else os.path.dirname(like), LABEL)
            if os.getxattr(path, LABEL) != wanted:
                os.setxattr(path, LABEL, wanted)

    def remove(self, path: str) -> None:
        """Removes a file or a folder, if it exists."""
        with contextlib.suppress(FileNotFoundError):
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)

    def remove_empty(self, folder: str) -> None:
        """Removes a folder if it is empty."""
        with contextlib.suppress(OSError):
            os.rmdir(folder)

    def run(self, argv: List[str], limit_s: float = 30.0, binary: Optional[str] = None) -> Tuple[int, str]:
        """Runs a command. Returns its exit code and output, with standard error only if it failed.

        Code 127: the command cannot be run; 124: it took too long. `binary` is the file to run, if not argv[0].
        """
        try:
            done = subprocess.run(
                argv,
                executable=binary,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                timeout=limit_s,
            )
        except subprocess.TimeoutExpired:
            return 124, argv[0] + " took longer than " + str(limit_s) + " s"
        except OSError as e:
            return 127, str(e)
        return done.returncode, (done.stdout + (done.stderr if done.returncode else b"")).decode("utf-8", "replace")


def read(path: str) -> Optional[bytes]:
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None


def noted(path: str) -> Dict[str, Any]:
    """The JSON object in a file; empty if there is none or it cannot be read.

    A damaged file must not prevent the other ways to end a change.
    """
    try:
        found = json.loads((read(path) or b"{}").decode())
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
