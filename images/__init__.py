"""Builds the container image of readygate: `make image`, or `python -m images.build` as root.

`Containerfile` says what is in the image; `build` runs it with buildah, without a network, on the base that `rootfs`
makes from Debian's archive and with the wheels that `wheels` takes from the lock file. `packages` installs the tools.
`cache` (made once and found again) and `commands` (run with progress) also serve whoever else builds: the testbed.

Guarantees: everything is cached by the content of what went into it; a folder of the cache is whole or not there; one
process at a time makes it. What cannot be made is a BuildError with cause and remedy in one line.
Imports nothing of the product and nothing of tests/; tests/ may import it.
"""
