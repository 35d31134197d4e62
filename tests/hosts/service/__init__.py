"""The agent as a service on all three hosts, beside real kubelets and health pods; one installation for all tests here.

Read in this order: node_mode.py (the health pods, who reads what is said of them), conftest.py, test_*.py.
"""
