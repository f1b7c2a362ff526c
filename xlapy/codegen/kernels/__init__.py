"""Whole kernels: how instructions that are worth a loop nest become one."""
