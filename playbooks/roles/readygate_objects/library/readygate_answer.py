#!/usr/bin/python
"""Waits until a URL answers 200. The plugin of the same name does it, by ansible.builtin.uri: there is nothing here."""
