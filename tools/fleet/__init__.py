"""Virtual nodes against an API server of ring 2: agents in mode `kubelet` whose containers are made up, and nodes that
only renew their Lease and their status. The load generator of ring 2.

fleet     starts the processes with the nodes, and reads what they count
worker    one such process
full      a whole agent in mode `kubelet`
runtime   its containers, of which none runs
light     nodes of which the Lease and the status are all there is
turns     runs the turns of many nodes in few threads
counting  requests, failures and times, as counts that can be added up
watching  which nodes the API server calls Ready, and what it has served
"""
