"""Tests of the partitioner."""
