"""Part of a child process's script: opens a file without a name, to test whether a folder can be written. Pure.

The name is removed before anything is written, so a run that is killed leaves no file. A pod that writes to the folder
may have made a file of that name: no link is followed, no file of others is written, and where such a file cannot be
removed another name is used.
"""

SCRIPT = """
import os
def nameless(folder, name):
    # A descriptor, to read and write. Raises OSError.
    tries = [name, *(f"{name}-{os.urandom(8).hex()}" for _ in range(2))]
    for path in [os.path.join(folder, name) for name in tries]:
        try:
            os.unlink(path)
        except (FileNotFoundError, IsADirectoryError, PermissionError):
            pass
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(path, flags, 0o600)
        except FileExistsError:
            continue
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        return descriptor
    raise FileExistsError(17, "File exists")
"""
