"""Programs that measure, demonstrate, break and test readygate. Tests are in tests/."""
