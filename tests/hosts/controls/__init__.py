"""Ring 3 with three control planes, of which the third joins while readygate is in the cluster already."""
