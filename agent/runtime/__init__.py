"""Containers: what the agent asks of a runtime (`base`) and `process`, where a container is a local process."""
