"""The checks of mode `pod`: what they are (actions, cni), what they mean (verdict), who runs them (engine)."""
