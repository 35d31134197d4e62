#!/usr/bin/python
"""Waits until a URL answers 200. The action plugin of the same name does it, with ansible.builtin.uri."""
