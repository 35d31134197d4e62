"""A file without a name, for what a child process writes to see whether it can: a script's part. Pure.

Its name goes before anything is written, so that a run that is killed leaves none. In a folder where pods write, one of
them may have put something of its own in the place of that name: no link is followed, nothing of others is written to,
and where it cannot be taken away another name does.
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
