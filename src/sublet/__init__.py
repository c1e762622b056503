"""Sublet: when, and where, can I run this?"""
