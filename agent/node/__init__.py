"""Mode `kubelet` only: what the node says of itself (`facts`, pure), registering and reporting it (`registration`), its
heartbeat (`lease`)."""
