"""Builds the container image of readygate without root and without a container tool: `make image`.

`build` assembles three layers and the archive. `debian` fetches Debian packages, `base` unpacks them, `python` installs
and compiles Python packages, `oci` writes layers and archives. docker makes the same files from images/Containerfile.

Guarantees: the same commit gives the same bytes. Downloads are compared with recorded hashes. A failed build is a
BuildError with cause and remedy in one line.
It imports `tools.kit`, nothing of the product and nothing of tests; tests and tools may import it.
"""
