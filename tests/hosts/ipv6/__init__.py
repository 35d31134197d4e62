"""Ring 3 where nothing has an address of IPv4 but each host's loopback: hosts, pods, services and Ansible's SSH."""
