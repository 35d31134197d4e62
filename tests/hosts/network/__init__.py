"""Ring 3 with five hosts, whose pod network is broken in turn: the check `podNetwork` closes what is broken, alone."""
