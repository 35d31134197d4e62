"""Builds the container image of readygate: `make image`, or `python -m images.build`; no root, no container tool.

`build` puts the layers together: `debian` fetches recorded packages, `base` says what of them is in, `wheels` unpacks
the locked dependencies and readygate itself, `bytecode` compiles with the image's own Python. `deb`, `elf`, `tree`,
`oci`, `sbom` and `containerfile` are the formats. `push` puts it into a registry. `Containerfile` is for docker.
`packages` installs the tools. `rootfs` makes file systems of Debian; that, `cache` (made once and found again) and
`commands` (run with progress) also serve whoever else builds: the testbed.

Guarantees: everything is cached by the content of what went into it; a folder of the cache is whole or not there; one
process at a time makes it. What cannot be made is a BuildError with cause and remedy in one line.
Imports nothing of the product and nothing of tests/; tests/ may import it.
"""
