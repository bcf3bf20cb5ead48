"""Tests on the tiny random model. Being a package ends its service before another folder starts one."""
