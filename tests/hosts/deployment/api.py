"""The admin's client of the hosts' API server, and of anyone's by token."""

from tools.testbed.hosts.access import AdminApi as AdminApi
