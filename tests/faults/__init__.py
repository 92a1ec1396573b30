"""Faults on purpose: real campaigns, disturbed at random moments, and what is lost or left."""
